"""The files a command changed, where that was found out after its result was recorded.

What git says of a large work tree takes long; the model is not kept waiting for it. An entry of
its own says it then, and whoever reads the session finds it in the details of the result.
"""

from collections.abc import Mapping

from agent_tui.messages import FileTouches, Stored, ToolResultMessage
from agent_tui.sessions.entries import (
    CustomEntry,
    Entry,
    MessageEntry,
    custom_entry,
    custom_value,
)

COMMAND_CHANGES = "command_changes"
"""The custom type of the entry."""


class CommandChanges(Stored):
    """The ``files`` that the command changed whose result is entry ``target_id``."""

    target_id: str
    files: FileTouches


def changes_entry(target_id: str, files: FileTouches) -> CustomEntry:
    """What records that the command whose result is entry `target_id` changed `files`."""
    return custom_entry(COMMAND_CHANGES, CommandChanges(target_id=target_id, files=files))


def result_changed(entry: Entry) -> str:
    """The id of the result that `entry` tells the changes of; empty for any other entry."""
    changes = _changes_in(entry)
    return changes.target_id if changes is not None else ""


def completed_result(entry: Entry, by_id: Mapping[str, Entry]) -> MessageEntry | None:
    """The result that `entry` tells the changes of, among those `by_id`, with them; else None."""
    changes = _changes_in(entry)
    if changes is None:
        return None
    match by_id.get(changes.target_id):
        case MessageEntry(message=ToolResultMessage() as result) as recorded:
            details = result.details if isinstance(result.details, dict) else {}
            files = changes.files.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            completed = result.model_copy(update={"details": {**details, "files": files}})
            return recorded.model_copy(update={"message": completed})
        case _:
            return None


def _changes_in(entry: Entry) -> CommandChanges | None:
    return custom_value(entry, COMMAND_CHANGES, CommandChanges)
