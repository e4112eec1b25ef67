"""Who asked for a recorded change, why the model made it, and the command that ran next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.attachments import plan_approved_by, without_attachments
from agent_tui.features.why.line_history.changes import RecordedChange
from agent_tui.features.why.line_history.kept_lines import lines_of, sources_of
from agent_tui.features.why.line_history.replay import Versions
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.safe_paths import follow_links
from agent_tui.sessions.entries import Entry, MessageEntry, leaf_of
from agent_tui.sessions.format.parse import id_in_name
from agent_tui.sessions.importers.import_session import import_source
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.log import name_of
from agent_tui.tools.call_edits import CallReader
from agent_tui.tools.processes.shell import extract_printed

_MOST_PRINTED = 5

ReasonKind: TypeAlias = Literal["", "text", "thinking"]


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command that ran after a change, in the same turn.

    `printed` are the last lines of its output, up to five, without empty ones; `exit_code` is None
    if unknown, and of a pipe that of its last command.
    """

    command: str
    printed: tuple[str, ...]
    exit_code: int | None
    is_error: bool


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What a session says about one change.

    Attributes:
        change: The change.
        session_name: The session's name; empty if it has none.
        imported_from: The agent whose session it was; empty for a session made here.
        pulled_from: The person who pushed the change; empty for one that was made here.
        asked: The message that the turn answered, as the user typed it; empty if there is none.
        asked_by: The person who pushed that message; empty if it was typed here.
        asked_at: When it was sent, as recorded.
        reason: What the model last said or thought before the call; empty if nothing.
        reason_kind: Whether that was text or thinking.
        replaced: The lines that it replaced; None if unknown.
        wrote: The lines that it wrote in their place; None if unknown.
        next_command: The command that ran next in the same turn.
        wrote_at: The index in `wrote` of the line in question; not compared, as lines with the same
            answer differ in it.
    """

    change: RecordedChange
    session_name: str
    imported_from: str
    pulled_from: str
    asked: str
    asked_by: str
    asked_at: str
    reason: str
    reason_kind: ReasonKind
    replaced: tuple[str, ...] | None
    wrote: tuple[str, ...] | None
    next_command: NextCommand | None
    wrote_at: int = field(default=0, compare=False)


def facts_of(change: RecordedChange, sessions: Sequence[KnownSession]) -> ChangeFacts:
    """What the sessions say about `change`, without the lines around a certain one.

    Args:
        change: The change.
        sessions: The known sessions, for the one that its session continues.
    """
    session, start = change.session, change.reply or change.entry
    asked = (
        None if change.maker in ("user command", "restore") else _asked(start, session, sessions)
    )
    reason, kind = _reason(change)
    return ChangeFacts(
        change,
        session_name=name_of(session.header, session.entries),
        imported_from=import_source(session.entries),
        pulled_from=change.entry.pulled_from or "",
        asked=without_attachments(asked.message.text) if asked is not None else "",
        asked_by=(asked.entry.pulled_from if asked is not None else None) or "",
        asked_at=asked.entry.timestamp if asked is not None else "",
        reason=reason,
        reason_kind=kind,
        replaced=None,
        wrote=None,
        next_command=_next_command(change),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    entry: MessageEntry
    message: UserMessage


def _asked(start: Entry, session: KnownSession, sessions: Sequence[KnownSession]) -> _Asked | None:
    """The nearest user message above `start`, in its session or in one that it continues.

    The approval of a plan counts only without another message: the model wrote its text.
    """
    walked: set[str] = set()
    approved: _Asked | None = None
    while session.id not in walked:
        walked.add(session.id)
        for entry in _upward(start, session):
            if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
                asked = _Asked(entry, entry.message)
                if not plan_approved_by(entry.message.text):
                    return asked
                approved = approved or asked
        parent = _parent(session, sessions)
        begun = session.header.timestamp
        before = [e for e in parent.entries if e.timestamp <= begun] if parent is not None else []
        leaf = leaf_of(before)
        if parent is None or leaf is None:
            break
        session, start = parent, leaf
    return approved


def _parent(session: KnownSession, sessions: Sequence[KnownSession]) -> KnownSession | None:
    wanted = id_in_name(Path(session.parent)) if session.parent else ""
    return next((known for known in sessions if known.id in (wanted, session.parent)), None)


def _upward(start: Entry, session: KnownSession) -> Iterator[Entry]:
    """`start` and the entries above it in the tree, nearest first."""
    by_id: Mapping[str, Entry] = {entry.id: entry for entry in session.entries}
    walked: set[str] = set()
    entry: Entry | None = start
    while entry is not None and entry.id not in walked:
        walked.add(entry.id)
        yield entry
        entry = by_id.get(entry.parent_id or "")


def _reason(change: RecordedChange) -> tuple[str, ReasonKind]:
    """The last that the model said or thought before the call, within the turn."""
    if change.reply is None:
        return "", ""
    for entry in _upward(change.reply, change.session):
        match entry:
            case MessageEntry(message=UserMessage()):
                break
            case MessageEntry(message=AssistantMessage() as reply):
                parts = list(reply.content)
                if entry is change.reply and change.call in parts:
                    parts = parts[: parts.index(change.call)]
                for part in reversed(parts):
                    if isinstance(part, TextContent) and part.text.strip():
                        return part.text.strip(), "text"
                    if isinstance(part, ThinkingContent) and part.thinking.strip():
                        return part.thinking.strip(), "thinking"
            case _:
                pass
    return "", ""


def _next_command(change: RecordedChange) -> NextCommand | None:
    """The first command after `change` on the same branch, before the next user message."""
    reader, cwd = CallReader(), Path(follow_links(change.session.cwd or "/"))
    below, calls = {change.entry.id}, dict[str, ToolCall]()
    if change.reply is not None and isinstance(change.reply.message, AssistantMessage):
        calls.update((call.id, call) for call in change.reply.message.tool_calls)
    entries = change.session.entries
    place = next((at for at, entry in enumerate(entries) if entry.id == change.entry.id), 0)
    for entry in entries[place + 1 :]:
        if entry.parent_id not in below:
            continue
        below.add(entry.id)
        match entry:
            case MessageEntry(message=UserMessage()):
                return None
            case MessageEntry(message=AssistantMessage() as reply):
                calls.update((call.id, call) for call in reply.tool_calls)
            case MessageEntry(message=BashExecutionMessage() as ran):
                is_error = bool(ran.exit_code)
                return NextCommand(ran.command, _last_lines(ran.output), ran.exit_code, is_error)
            case MessageEntry(message=ToolResultMessage() as result):
                call = calls.get(result.tool_call_id)
                command = reader.command_of(call.name, call.arguments, cwd) if call else ""
                if command:
                    ending, code = result.tool_details.summary, result.tool_details.exit_code
                    printed = extract_printed(result.text, ending) if ending else result.text
                    return NextCommand(command, _last_lines(printed), code, result.is_error)
            case _:
                pass
    return None


def _last_lines(text: str) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-_MOST_PRINTED:]


class ChangedBlocks:
    """The lines that one change replaced and wrote, block by block.

    Args:
        versions: The texts before and after it.
    """

    def __init__(self, versions: Versions) -> None:
        self._is_known = versions.before is not None and versions.after is not None
        self._before = lines_of(versions.before or "")
        self._after = lines_of(versions.after or "")
        self._kept = sources_of(self._before, self._after).kept

    def complete(self, facts: ChangeFacts, line: int) -> ChangeFacts:
        """`facts` with the block around the line with this index after the change, if known."""
        if not self._is_known:
            return facts
        first, last = line, line + 1
        while first > 0 and self._kept[first - 1] is None:
            first -= 1
        while last < len(self._after) and self._kept[last] is None:
            last += 1
        above = self._kept[first - 1] if first > 0 else None
        below = self._kept[last] if last < len(self._after) else None
        start = above + 1 if above is not None else 0
        end = below if below is not None else len(self._before)
        replaced, wrote = self._before[start:end], self._after[first:last]
        return replace(
            facts, replaced=tuple(replaced), wrote=tuple(wrote), wrote_at=max(line - first, 0)
        )
