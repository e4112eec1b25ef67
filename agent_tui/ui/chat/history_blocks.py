"""The chat rebuilt from the entries of a session file, and of those before its compactions."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from agent_tui.agent.part import Part
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.attachments import without_attachments
from agent_tui.commands.attached_files import describe_attached
from agent_tui.commands.command_output import command_output, result_text
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    Todo,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    images_in,
)
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.lineage.chain import snapshot
from agent_tui.sessions.lineage.joined import (
    copies,
    entries_kept_behind,
    leaf_when_continued,
    path_to,
    unread_line,
)
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import jobs_in, turn_facts_in
from agent_tui.sessions.replay.pins import pin_line, pin_of
from agent_tui.sessions.replay.scope_entries import mark_of
from agent_tui.tools.processes.shell import IN_BACKGROUND, INTERRUPTED, extract_printed
from agent_tui.ui.chat.compaction_blocks import (
    change_block,
    mark_blocks,
    readable_summary,
    summary_block,
)
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    BlockId,
    NoticeBlock,
    ReplyMark,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    ToolStatus,
    TurnBlock,
    UserBlock,
)
from agent_tui.ui.transcript.view import Transcript

REPLY_MARKS: dict[StopReason, ReplyMark] = {
    "stop": "",
    "toolUse": "",
    "length": "length",
    "error": "error",
    "aborted": "interrupted",
}
_TITLE_ARGUMENTS = ("command", "path", "file_path", "pattern", "query", "url", "focus")


def blocks_of(entries: Sequence[Entry], parts: Sequence[Part] = ()) -> list[Block]:
    """The blocks that the user saw when these entries were written.

    Messages kept by the compaction that begins a session come before that compaction.

    Args:
        entries: The entries.
        parts: Those of features, which say what their own entries are shown as.
    """
    if entries and isinstance(entries[0], CompactionEntry):
        kept = entries_kept_behind(entries)
        entries = (*kept, entries[0], *entries[1 + len(kept) :])
    blocks: list[Block] = []
    calls: dict[str, int] = {}
    plan: tuple[Todo, ...] = ()
    for entry in entries:
        match entry:
            case MessageEntry():
                plan = _add_message(entry.id, entry.message, blocks, calls, plan)
            case CompactionEntry():
                blocks.append(summary_block(entry))
            case BranchSummaryEntry():
                said = readable_summary(entry.summary)
                blocks.append(SummaryBlock(said, 0, 0, "summary of the branch you left"))
            case CustomMessageEntry():
                blocks.extend(_custom_message_blocks(entry))
            case CustomEntry() if block := change_block(entry, entries):
                blocks.append(block)
            case CustomEntry() if line := next(filter(None, (p.shown(entry) for p in parts)), ""):
                blocks.append(NoticeBlock("info", line))
            case CustomEntry() if facts := turn_facts_in(entry):
                blocks.append(TurnBlock(facts))
            case _:
                pass
    return blocks


def _custom_message_blocks(entry: CustomMessageEntry) -> Sequence[Block]:
    if mark := mark_of(entry):
        return mark_blocks(entry.id, mark)
    if pin := pin_of(entry):
        return [NoticeBlock("info", pin_line(pin), "file")]
    has_job = bool(jobs_in(entry))
    if entry.text and (entry.display or has_job):
        return [NoticeBlock("info", entry.text, "job" if has_job else "")]
    return []


def _add_message(
    entry_id: str,
    message: Message,
    blocks: list[Block],
    calls: dict[str, int],
    plan: tuple[Todo, ...],
) -> tuple[Todo, ...]:
    """Add what `message` is shown as; returns the plan, `plan` before it, as it is then."""
    match message:
        case UserMessage():
            blocks.append(user_block(message))
        case AssistantMessage():
            last = blocks[-1] if blocks else None
            if isinstance(last, AssistantBlock) and last.mark == "error":  # it was continued
                blocks[-1] = replace(last, mark="", note="")
            for block in _reply_blocks(message):
                if isinstance(block, ToolBlock):
                    calls[block.call_id] = len(blocks)
                blocks.append(block)
        case ToolResultMessage():
            place = calls.get(message.tool_call_id)
            block = blocks[place] if place is not None else None
            if place is not None and isinstance(block, ToolBlock):
                blocks[place] = with_result(block, message, plan)
                return message.tool_details.todos or plan
        case BashExecutionMessage():
            blocks.append(bash_block(entry_id, message))
    return plan


def user_block(message: UserMessage) -> UserBlock:
    """A user message as a block."""
    images = tuple(image.data for image in message.images)
    text = message.text
    return UserBlock(without_attachments(text), images, describe_attached(text))


def _reply_blocks(message: AssistantMessage) -> Iterable[Block]:
    """A reply in its parts; calls without a result yet count as cancelled."""
    mark = REPLY_MARKS[message.stop_reason]
    last_text = next(
        (part for part in reversed(message.content) if isinstance(part, TextContent)), None
    )
    for part in message.content:
        match part:
            case TextContent() if part.text.strip():
                note = message.error_message or "" if part is last_text else ""
                yield AssistantBlock(part.text, mark=mark if part is last_text else "", note=note)
            case ThinkingContent() if part.thinking.strip():
                yield ThinkingBlock(part.thinking)
            case ToolCall():
                title = call_title(part.name, part.arguments)
                command = command_of(part.name, part.arguments)
                yield ToolBlock(part.id, part.name, title, status="cancelled", command=command)
            case _:
                pass
    if mark and last_text is None and not message.tool_calls:
        yield AssistantBlock("", mark=mark, note=message.error_message or "")


def with_result(
    block: ToolBlock, message: ToolResultMessage, plan: tuple[Todo, ...] = ()
) -> ToolBlock:
    """`block` with its result. `plan` is the earlier plan."""
    details = message.tool_details
    if (printed := command_output(message)) is not None:
        output, summary = printed.text, printed.result
    else:
        output, summary = result_text(message), details.summary
    todos = (details.todos or ()) if message.tool_name == "todo" else ()
    return replace(
        block,
        status=_status_of(message),
        output=output,
        diff=details.diff or "",
        summary=summary,
        elapsed_s=details.elapsed_ms / 1_000 or None,
        images=tuple(image.data for image in images_in(message.content)),
        printed_lines=None if printed is None else printed.lines,
        kept_at=details.full_output_path or "",
        todos=todos,
        is_new_plan=[todo.text for todo in todos] != [todo.text for todo in plan],
    )


def _status_of(message: ToolResultMessage) -> ToolStatus:
    details = message.tool_details
    match details.ending:
        case "declined":
            return "denied"
        case "cancelled":
            return "cancelled"
        case _ if details.exit_code == 1 and details.printed_lines == 0:
            return "nothing"
        case _:
            return "error" if message.is_error else "ok"


def bash_block(call_id: str, message: BashExecutionMessage) -> BashBlock:
    """A finished command of the user's."""
    status: ToolStatus = "ok" if message.exit_code == 0 else "error"
    ending = INTERRUPTED if message.cancelled else f"exit code {message.exit_code}]"
    job = ""
    if message.jobs and message.exit_code is None:
        status, job = "ok", f"job {message.jobs[0].id}"
        ending = f"{IN_BACKGROUND}: {job}"
    if message.exit_code == 1 and message.printed_lines == 0:
        status = "nothing"
    return BashBlock(
        call_id,
        message.command,
        status="cancelled" if message.cancelled else status,
        output=extract_printed(message.output, ending),
        exit_code=message.exit_code,
        in_context=not message.exclude_from_context,
        printed_lines=message.printed_lines,
        kept_at=message.full_output_path or "",
        job=job,
    )


def call_title(name: str, arguments: JsonObject) -> str:
    """A one-line title for a call without one: its most telling argument."""
    match arguments.get("todos"):
        case list() as steps if name == "todo":
            done = sum(isinstance(s, dict) and s.get("status") == "completed" for s in steps)
            return f"plan: {done} of {len(steps)} done"
        case _:
            pass
    for key in _TITLE_ARGUMENTS:
        value: JsonValue = arguments.get(key)
        if isinstance(value, str) and value:
            return _short(value)
    return _short(ToolCall(id="", name=name, arguments=arguments).subject) or name


def command_of(name: str, arguments: JsonObject) -> str:
    """The shell command that a call runs; empty if it runs none."""
    command = arguments.get("command") if name == "bash" else None
    return command if isinstance(command, str) else ""


def _short(value: str) -> str:
    line = value.strip().partition("\n")[0]
    home = str(Path.home())
    return "~" + line.removeprefix(home) if line.startswith(home + "/") else line


_MOST_BLOCKS = 3_000
"""If more blocks were added above, they are dropped when the user is at the end again."""


class EarlierChat:
    """Reads earlier sessions one by one, each when the user gets near.

    Args:
        transcript: The chat.
        runtime: Finds the sessions, and has the parts of features.
    """

    def __init__(self, transcript: Transcript, runtime: AgentRuntime) -> None:
        self._transcript = transcript
        self._runtime = runtime
        self._own: KnownSession | None = None
        self._top: KnownSession | None = None
        self._first_id: BlockId | None = None
        self._count = 0

    def begin(self, log: SessionLog) -> None:
        """Start from `log`, with nothing before it."""
        path = log.path_entries()
        session = snapshot(log)
        is_on_trunk = bool(path) and path[0] is session.entries[0]
        self._own = session if is_on_trunk and session.begins_compacted else None
        self._first_id = self._transcript.first_id
        self._rewind()

    def _rewind(self) -> None:
        self._top, self._count = self._own, 0
        self._transcript.offer_earlier(self._top is not None)

    async def load(self) -> None:
        """Add the session before the topmost one above the chat."""
        below = self._top
        if below is None:
            return
        earlier, blocks = await asyncio.to_thread(self._read, below)
        if below is not self._top:  # another session is shown by now
            return
        self._count += len(blocks)
        self._transcript.prepend(blocks)
        self._top = earlier
        self._transcript.offer_earlier(earlier is not None and earlier.begins_compacted)

    def let_go(self) -> None:
        """Drop the blocks above if there are many, as the user is at the end again."""
        if self._count > _MOST_BLOCKS and self._first_id is not None:
            self._transcript.keep_from(self._first_id)
            self._rewind()

    def _read(self, below: KnownSession) -> tuple[KnownSession | None, Sequence[Block]]:
        """The session before `below`, and its blocks that `below` lacks. Reads files."""
        earlier = self._runtime.past.find_parent(below)
        if earlier is None:
            return None, (NoticeBlock("info", unread_line(below)),)
        taken = copies(below, earlier)
        path = path_to(earlier.entries, leaf_when_continued(earlier, below))
        added = [entry for entry in path if entry.id not in taken]
        return earlier, blocks_of(added, self._runtime.parts)
