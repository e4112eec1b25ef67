"""The context that the model sees of a session: a pure replay of its entries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, assert_never

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    BashExecutionMessage,
    ContextNote,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    images_in,
)
from agent_tui.omissions import IMAGE_MARK
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
    milliseconds,
)
from agent_tui.sessions.format.parse import garbage_collection_paused
from agent_tui.sessions.replay.changes import changes_context, in_force
from agent_tui.sessions.replay.file_changes import is_file_changes, result_changed
from agent_tui.sessions.replay.marks import Marks, read_marks
from agent_tui.sessions.replay.normalise import ContextMessage, normalise_messages
from agent_tui.sessions.replay.notes import find_superseded, turn_facts_in
from agent_tui.sessions.replay.pins import pins_on, removed_pins
from agent_tui.sessions.replay.scope_entries import ids_replaced_by_scopes

EntryT = TypeVar("EntryT", bound=Entry)

OMITTED_RESULT_TEXT = "(This result was removed from the context.)"
"""The text that replaces a tool result which an edit omits."""

_SUMMARY_INTRODUCTION = (
    "The earlier part of this conversation was compacted to save space. "
    "This summary replaces it; continue from here."
)
_BRANCH_INTRODUCTION = "This is what happened on a branch of the conversation the user left:"


@dataclass(frozen=True, slots=True)
class Context:
    """The messages of the next request, and the state that they were made in.

    `messages` can be sent as they are: see `normalise_messages`. `compaction` is the one in
    force, `summary` the summary of the history before it, whether or not a message holds it.
    `provider`, `model_id` and `thinking_level` are the newest on the path; if they are empty, the
    session's header counts. Messages from index `fresh_from` on are later than the newest
    compaction, edit or undo: only they saw this context.
    """

    messages: tuple[ContextMessage, ...]
    compaction: CompactionEntry | None
    provider: str
    model_id: str
    thinking_level: str
    summary: str = ""
    fresh_from: int = 0


@garbage_collection_paused()
def build_context(
    path: Sequence[Entry],
    *,
    summary_role: Literal["user", "system"] = "user",
    carryover: Carryover | None = None,
) -> Context:
    """Replay `path` (root to leaf) into what the model sees.

    The newest compaction's summary comes first, then the entries from its first kept one on,
    then everything after it; context edits replace or omit single messages, and summaries of scopes
    replace their contents. Changes that were undone (see `agent_tui.sessions.replay.changes`) have
    no effect. Pinned texts (see `agent_tui.sessions.replay.pins`) are included word for word, those
    from before the first kept entry right after the summary. Of the texts that hooks keep after
    compactions, only the newest is included. Marked messages (see
    `agent_tui.sessions.replay.marks`) stay like pinned texts, or are removed.

    Args:
        path: Entries from the root to the leaf.
        summary_role: With "system" no message holds the summary; the caller puts
            `wrap_summary` of it into the system prompt.
        carryover: The header's compaction state: its summary opens the context of a session
            that has no compaction entry.
    """
    changed = in_force(path)
    compaction, kept = _entries_to_keep(changed)
    drafts: list[ContextMessage] = []
    summary = compaction.summary if compaction else carryover.summary if carryover else ""
    if summary_role == "user" and (compaction or summary.strip()):
        drafts.append(_summary_message(summary, compaction))
    edits = _edits(changed)
    pinned = {entry.id: entry for entry in pins_on(changed).values()}
    gone = {*ids_replaced_by_scopes(changed), *removed_pins(changed), *find_superseded(changed)}
    marks = read_marks(changed)
    left_out = (gone - pinned.keys()) | marks.dropped
    whole = pinned.keys() | marks.whole
    staying = {entry.id for entry in kept}
    before = (entry for entry in changed if entry.id in whole and entry.id not in staying)
    for entry in (*before, *kept):
        message = _to_message(entry) if entry.id not in left_out else None
        edit = edits.get(entry.id) if entry.id not in whole else None
        if entry.id in marks.emptied:
            edit = _emptying(entry.id)
        if message is not None and edit is not None:
            message = apply_edit(message, edit)
        if message is not None:
            drafts.append(ContextMessage(entry.id, message))
    provider, model_id = newest_model(path)
    level = newest_thinking_level(path)
    messages = normalise_messages(drafts)
    fresh_from = _first_fresh(path, messages)
    return Context(messages, compaction, provider, model_id, level, summary, fresh_from)


def extend_context(
    known: Context, before: Sequence[Entry], path: Sequence[Entry]
) -> Context | None:
    """The same as `build_context(path)`, if `path` is `before` with new messages.

    Results in `before` may have got the files that their commands changed. Only entries from the
    last reply on are read again, so that a step costs no more in a long conversation.

    Args:
        known: The context of `before`.
        before: Entries from the root to the leaf.
        path: Likewise.

    Returns:
        The context, or None if it must be built from the start.
    """
    count = len(before)
    if not 0 < count <= len(path):
        return None
    completed = {result_changed(entry) for entry in path[count:]} - {""}
    last, was_last = path[count - 1], before[-1]
    if last is not was_last and not (last.id == was_last.id and last.id in completed):
        return None
    if not all(map(_only_adds, path[count:])):
        return None
    found = (i for i in range(len(known.messages) - 1, -1, -1) if _is_reply(known.messages[i]))
    at = next(found, 0)
    if at == 0 or at < known.fresh_from:
        return None
    reply_id = known.messages[at].entry_id
    start = next((i for i in range(count - 1, -1, -1) if path[i].id == reply_id), -1)
    gone = removed_pins(path) | find_superseded(path)
    drafts = [
        ContextMessage(entry.id, message)
        for entry in path[max(start, 0) :]
        if entry.id not in gone and (message := _to_message(entry)) is not None
    ]
    edited = {entry.target_id for entry in path if isinstance(entry, ContextEditEntry)}
    is_edited = any(draft.entry_id in edited for draft in drafts)
    if start < 0 or is_edited or not _belong_together(drafts):
        return None
    settled = known.messages[:at]
    if completed:
        settled = _with_details(settled, [entry for entry in path if entry.id in completed])
    return replace(known, messages=(*settled, *normalise_messages(drafts, settled)))


def _only_adds(entry: Entry) -> bool:
    """Whether `entry` changes nothing in the earlier context."""
    is_told = isinstance(entry, MessageEntry) or bool(result_changed(entry))
    return is_told or is_file_changes(entry) or turn_facts_in(entry) is not None


def _with_details(
    messages: Sequence[ContextMessage], results: Sequence[Entry]
) -> tuple[ContextMessage, ...]:
    """`messages` with the current details of their entries in `results`."""
    details = {
        entry.id: entry.message.details
        for entry in results
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage)
    }
    return tuple(
        replace(item, message=item.message.model_copy(update={"details": details[item.entry_id]}))
        if item.entry_id in details and isinstance(item.message, ToolResultMessage)
        else item
        for item in messages
    )


def _is_reply(item: ContextMessage) -> bool:
    return isinstance(item.message, AssistantMessage)


def _belong_together(drafts: Sequence[ContextMessage]) -> bool:
    """Whether each result among `drafts` answers a call of a reply among them."""
    waiting: set[str] = set()
    for draft in drafts:
        match draft.message:
            case AssistantMessage() as reply:
                waiting.update(call.id for call in reply.tool_calls)
            case ToolResultMessage(tool_call_id=call_id):
                if call_id not in waiting:
                    return False
                waiting.remove(call_id)
            case _:
                pass
    return True


def is_summary(item: ContextMessage, context: Context) -> bool:
    """Whether `item` of `context` is the summary of the history before."""
    stands_for = context.compaction.id if context.compaction else ""
    return bool(context.summary) and item.entry_id == stands_for


def context_edits(path: Sequence[Entry]) -> dict[str, ContextEditEntry]:
    """The edit in force of each message that has one, by the message's entry id."""
    return _edits(in_force(path))


def _edits(changed: Sequence[Entry]) -> dict[str, ContextEditEntry]:
    return {entry.target_id: entry for entry in changed if isinstance(entry, ContextEditEntry)}


def _emptying(entry_id: str) -> ContextEditEntry:
    return ContextEditEntry(target_id=entry_id, replacement=None)


def without_dropped(path: Sequence[EntryT], marks: Marks) -> tuple[EntryT, ...]:
    """`path` for a summary: without the messages and texts marked ``drop``."""
    return tuple(
        _without_content(entry) if entry.id in marks.emptied else entry
        for entry in path
        if entry.id not in marks.dropped
    )


def _without_content(entry: EntryT) -> EntryT:
    if not isinstance(entry, MessageEntry):
        return entry
    message = apply_edit(entry.message, _emptying(entry.id))
    return entry.model_copy(update={"message": message})


def _first_fresh(path: Sequence[Entry], messages: Sequence[ContextMessage]) -> int:
    """The index in `messages` of the first one after the newest change of the context."""
    fresh: set[str] = set()
    for entry in reversed(path):
        if changes_context(entry):
            break
        fresh.add(entry.id)
    else:
        return 0
    found = (i for i, item in enumerate(messages) if item.entry_id in fresh)
    return next(found, len(messages))


def wrap_summary(summary: str) -> str:
    """`summary` as the model sees it: an introductory line, then the summary in tags."""
    return f"{_SUMMARY_INTRODUCTION}\n\n<summary>\n{summary.strip()}\n</summary>"


def _entries_to_keep(path: Sequence[Entry]) -> tuple[CompactionEntry | None, Sequence[Entry]]:
    """The newest compaction and the entries it leaves, or None and all of them.

    In a session that ``/compact`` starts, the first kept entry comes after the compaction;
    everything after it is kept.
    """
    at = next(
        (i for i in range(len(path) - 1, -1, -1) if isinstance(path[i], CompactionEntry)), None
    )
    if at is None:
        return None, path
    compaction = path[at]
    assert isinstance(compaction, CompactionEntry)
    first = next((i for i in range(at) if path[i].id == compaction.first_kept_entry_id), at)
    return compaction, (*path[first:at], *path[at + 1 :])


def _summary_message(summary: str, compaction: CompactionEntry | None) -> ContextMessage:
    entry_id, sent_at = "", 0
    if compaction is not None:
        entry_id, sent_at = compaction.id, milliseconds(compaction.timestamp)
    return ContextMessage(entry_id, UserMessage(content=wrap_summary(summary), timestamp=sent_at))


def _to_message(entry: Entry) -> Message | None:
    match entry:
        case MessageEntry(message=BashExecutionMessage(exclude_from_context=True)):
            return None
        case MessageEntry():
            return entry.message
        case CustomMessageEntry():
            return UserMessage(content=entry.content, timestamp=milliseconds(entry.timestamp))
        case BranchSummaryEntry():
            text = f"{_BRANCH_INTRODUCTION}\n\n<summary>\n{entry.summary.strip()}\n</summary>"
            return UserMessage(content=text, timestamp=milliseconds(entry.timestamp))
        case (
            CompactionEntry()
            | ContextEditEntry()
            | CustomEntry()
            | LabelEntry()
            | ModelChangeEntry()
            | SessionInfoEntry()
            | ThinkingLevelChangeEntry()
            | UnknownEntry()
        ):
            return None
        case _:
            assert_never(entry)


def apply_edit(message: Message, edit: ContextEditEntry) -> Message | None:
    """`message` with the content of `edit`; None if the edit omits it.

    A reply keeps its calls unless the edit has calls itself; a result is never omitted completely:
    calls and results stay paired. An image that the edit leaves out leaves a line.
    """
    replacement = edit.replacement
    match message:
        case ToolResultMessage() if replacement is None:
            content: tuple[UserContent, ...] = (TextContent(text=OMITTED_RESULT_TEXT),)
            return message.model_copy(update={"content": content})
        case _ if replacement is None:
            return None
        case UserMessage():
            parts = _user_parts(replacement, images_in(message.content))
            is_text = isinstance(replacement, str) and len(parts) == 1
            return message.model_copy(update={"content": replacement if is_text else parts})
        case ToolResultMessage():
            parts = _user_parts(replacement, images_in(message.content))
            return message.model_copy(update={"content": parts})
        case AssistantMessage():
            return message.model_copy(update={"content": _reply_parts(message, replacement)})
        case BashExecutionMessage():
            output = "\n".join(
                part.text for part in _user_parts(replacement) if isinstance(part, TextContent)
            )
            return message.model_copy(update={"output": output})
        case _:
            assert_never(message)


def _user_parts(
    replacement: str | tuple[UserContent | AssistantContent, ...],
    images: Sequence[ImageContent] = (),
) -> tuple[UserContent, ...]:
    """The parts of `replacement`, and a line for each of the `images` that it leaves out."""
    given = (TextContent(text=replacement),) if isinstance(replacement, str) else replacement
    parts = [part for part in given if isinstance(part, TextContent | ImageContent)]
    left_out = len(images) - sum(isinstance(part, ImageContent) for part in parts)
    return (*parts, *(TextContent(text=IMAGE_MARK) for _ in range(left_out)))


def _reply_parts(
    message: AssistantMessage, replacement: str | tuple[UserContent | AssistantContent, ...]
) -> tuple[AssistantContent, ...]:
    given: tuple[AssistantContent, ...]
    if isinstance(replacement, str):
        given = (TextContent(text=replacement),) if replacement else ()
    else:
        given = tuple(
            part
            for part in replacement
            if isinstance(part, TextContent | ThinkingContent | ToolCall)
        )
    if any(isinstance(part, ToolCall) for part in given):
        return given
    return (*given, *message.tool_calls)


def newest_model(path: Sequence[Entry]) -> tuple[str, str]:
    """Provider and model id of the newest model change on `path`; empty if the header's apply."""
    for entry in reversed(path):
        if isinstance(entry, ModelChangeEntry):
            return entry.provider, entry.model_id
    return "", ""


def newest_base_url(path: Sequence[Entry], header: Header) -> str:
    """The server address of the newest model on `path`; empty for its usual address."""
    for entry in reversed(path):
        if isinstance(entry, ModelChangeEntry):
            return entry.base_url or ""
    return header.base_url or ""


def newest_thinking_level(path: Sequence[Entry]) -> str:
    """The newest thinking level set on `path`; empty if the header's applies."""
    for entry in reversed(path):
        if isinstance(entry, ThinkingLevelChangeEntry):
            return entry.thinking_level
    return ""


def messages_to_send(context: Context) -> tuple[Message, ...]:
    """The messages of the next request: those of `context` with the notes that still hold.

    Only the model sees a note as part of its result; nothing else takes it for output. Notes from
    before a compaction or an edit describe another context and are left out.
    """
    noted = dict(_notes(context))
    messages = [item.message for item in context.messages]
    for index, note in noted.items():
        result = messages[index]
        assert isinstance(result, ToolResultMessage)
        content = (*result.content, TextContent(text=note.text))
        messages[index] = result.model_copy(update={"content": content})
    return tuple(messages)


def newest_note(context: Context) -> ContextNote | None:
    """The last note to the model of `context` about how full it is."""
    return next((note for _, note in _notes(context)), None)


def _notes(context: Context) -> Iterator[tuple[int, ContextNote]]:
    """The notes that still hold, newest first, with the indexes of their messages."""
    compaction = context.compaction
    since_ms = milliseconds(compaction.timestamp) if compaction is not None else 0
    for index in range(len(context.messages) - 1, context.fresh_from - 1, -1):
        message = context.messages[index].message
        if isinstance(message, ToolResultMessage) and message.timestamp >= since_ms:
            note = message.context_note
            if note is not None:
                yield index, note
