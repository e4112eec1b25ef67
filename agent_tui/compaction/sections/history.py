"""A conversation as messages, replies and actions, whatever program wrote it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent_tui.attachments import AttachedFile, find_attached_files, without_attachments
from agent_tui.compaction.tiers.model import Action, Output
from agent_tui.compaction.tiers.outputs import read_outputs
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.omissions import IMAGE_MARK
from agent_tui.sessions.entries import Entry, MessageEntry


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user's; each of its images is a line."""

    entry_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Replied:
    """The text of one reply, which may be empty."""

    entry_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """An action and its output. `entry_id` is that of the output.

    `changed` are the files seen to change meanwhile.
    """

    entry_id: str
    output: Output
    changed: tuple[str, ...] = ()


HistoryEvent: TypeAlias = Said | Replied | Done


def read_history(path: Sequence[Entry]) -> tuple[HistoryEvent, ...]:
    """The events of `path` in order, without those hidden from the model."""
    messages = (entry for entry in path if isinstance(entry, MessageEntry))
    entries = _results_after_their_calls(e for e in messages if not _is_hidden(e.message))
    outputs = read_outputs([entry.message for entry in entries])
    events: list[HistoryEvent] = []
    for entry, output in zip(entries, outputs, strict=True):
        if output is not None:
            events.append(Done(entry.id, output, _files_of_changes(entry.message)))
        elif isinstance(entry.message, UserMessage):
            written = without_attachments(entry.message.text).strip()
            if text := "\n".join((written, *(IMAGE_MARK for _ in entry.message.images))).strip():
                events.append(Said(entry.id, text))
            events += [
                Done(entry.id, _read(file)) for file in find_attached_files(entry.message.text)
            ]
        elif isinstance(entry.message, AssistantMessage):
            events.append(Replied(entry.id, entry.message.text.strip()))
    return tuple(events)


def _read(file: AttachedFile) -> Output:
    """An attached file as the output of a read at that time."""
    part = {} if file.is_whole else {"offset": file.first}
    action = Action("read", "read", file.path, arguments={"path": file.path, **part})
    return Output(action, file.text, has_failed=False)


def _results_after_their_calls(entries: Iterable[MessageEntry]) -> list[MessageEntry]:
    """`entries` with each result after the reply that made its call, as the model sees them."""
    groups: list[list[MessageEntry]] = []
    by_call: dict[str, list[MessageEntry]] = {}
    for entry in entries:
        message = entry.message
        if isinstance(message, ToolResultMessage) and message.tool_call_id in by_call:
            by_call[message.tool_call_id].append(entry)
            continue
        group = [entry]
        groups.append(group)
        if isinstance(message, AssistantMessage):
            by_call.update((call.id, group) for call in message.tool_calls)
    return [entry for group in groups for entry in group]


def _files_of_changes(message: Message) -> tuple[str, ...]:
    match message:
        case ToolResultMessage():
            files = message.tool_details.files
        case BashExecutionMessage():
            files = message.files
        case _:
            files = None
    return (*files.written, *files.edited) if files is not None else ()


def _is_hidden(message: Message) -> bool:
    return isinstance(message, BashExecutionMessage) and message.exclude_from_context
