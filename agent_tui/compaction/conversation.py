"""What the path of a request says, read once for all drafts of its compaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.ledger.build import build_ledger, earlier_ledger, entries_to_record
from agent_tui.compaction.plan import LiveConversation, previous_summary, read_live
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import WorkRecord, read_work
from agent_tui.compaction.sections.file_states import complete_file
from agent_tui.compaction.sections.tail import TailEditor
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.tiers.units import batch_id, read_units
from agent_tui.messages import AssistantMessage, Message, UserMessage, texts_in
from agent_tui.safe_paths import real_path
from agent_tui.sessions.context import without_dropped, wrap_summary
from agent_tui.sessions.entries import Entry, Ledger
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.tokens import TokenCounter

_LEAST_ROOM_TOKENS = 300


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the path of a request says.

    Args:
        path: Its entries in force.
        live: The part that a compaction can change.
        units: The messages of the context that can be changed.
        summary: The summary in force; may be empty.
        replaced_tokens: Size of that summary and of messages marked to stay until now.
        room: Target tokens of the result, see `room_of`.
        record: The work that it tells of, with the facts at its end.
        editor: Makes the edits of its newest messages.
    """

    path: Sequence[Entry]
    live: LiveConversation
    units: tuple[Unit, ...]
    summary: str
    replaced_tokens: int
    room: int
    record: WorkRecord
    editor: TailEditor


def read_conversation(request: CompactionRequest, counter: TokenCounter) -> Conversation:
    """Read the path of `request`."""
    path = in_force(request.path)
    live = read_live(path, counter)
    summary = previous_summary(path, request.previous)
    replaced = live.leaving_tokens + (summary_tokens(summary, counter) if summary else 0)
    record = read_work(
        without_dropped(path, read_marks(path)),
        ledger_of(request),
        request.previous.handover if request.previous is not None else None,
        folders_of(request),
        request.on_disk,
        request.repositories,
    )
    for file in record.files:
        if file.is_changed:
            complete_file(file, request.on_disk)
    units = read_units(
        path,
        carryover=request.previous,
        counter=counter,
        settings=request.settings,
        window=request.sizes.window,
    )
    return Conversation(
        path=path,
        live=live,
        units=units.items,
        summary=summary,
        replaced_tokens=replaced,
        room=room_of(request, sum(live.tokens) + replaced, live.pinned_tokens),
        record=record,
        editor=TailEditor(units.items, batch_id(path, "kept"), counter, folders_of(request)),
    )


def room_of(request: CompactionRequest, conversation: int, pinned: int) -> int:
    """Target tokens of the context without system prompt, tools and pinned texts.

    If the conversation is already below the target, a requested compaction applies the target's
    share to it. If system prompt, tools and pinned texts take nearly all of the target, the result
    exceeds it: an eighth of the target's share of the rest of the window is the least.
    """
    settings, overhead = request.settings, request.sizes.overhead + pinned
    target = target_of(request)
    room = target - overhead
    if request.occasion == "limit":
        return max(room, 0)
    if room >= conversation:
        room = int(conversation * settings.target_share(conversation))
    least = int(max(request.sizes.window - overhead, 0) * target / max(request.sizes.window, 1) / 8)
    return max(room, min(least, conversation // 2), _LEAST_ROOM_TOKENS)


def target_of(request: CompactionRequest) -> int:
    """Tokens that `request` wants to leave."""
    return request.sizes.target or request.settings.target_tokens(request.sizes.window)


def folders_of(request: CompactionRequest) -> tuple[str, str]:
    """Paths of the working folder: as given, and without links."""
    return str(request.cwd), str(real_path(request.cwd))


def ledger_of(request: CompactionRequest) -> Ledger:
    """The facts at the end of the conversation, including earlier sessions."""
    marks = read_marks(in_force(request.path))
    return build_ledger(
        without_dropped(entries_to_record(request.path), marks),
        folders=folders_of(request),
        previous=earlier_ledger(request.path, request.previous),
    )


def text_of(message: Message) -> str:
    """The text of `message`, and those of its calls."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    written = (text for call in calls for text in texts_in(call.arguments))
    return "\n\n".join((message.text, *written))


def summary_tokens(summary: str, counter: TokenCounter) -> int:
    """The tokens of `summary` as the model sees it."""
    return counter.count_message(UserMessage(content=wrap_summary(summary)))
