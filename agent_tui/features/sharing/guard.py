"""What is taken from entries that somebody else wrote: the conversation, but no decision.

A session decides things when it is opened: the permission mode, an open goal, a wait for a limit,
the model. From another machine such an entry is kept in its place, so that the tree stays whole,
but under a type that nothing reads.
"""

import re
from pathlib import PurePosixPath
from typing import Final

from agent_tui.features.sharing.form import PROJECT
from agent_tui.sessions.entries import (
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    custom_entry,
    sound_timestamp,
)
from agent_tui.sessions.replay.changes import EDIT_REPORT, UNDO
from agent_tui.sessions.replay.file_changes import (
    COMMAND_CHANGES,
    FILE_CHANGES,
    NOT_PULLED,
    FileChanges,
    FileVersion,
    RecordedFileChange,
    file_changes_in,
)
from agent_tui.sessions.replay.notes import AGENT_RUN, TURN_FACTS

FOREIGN: Final = "foreign/"
"""Begins the type of an entry that takes no effect here."""

TAKEN_STATE: Final = frozenset(
    (
        *(COMMAND_CHANGES, FILE_CHANGES, EDIT_REPORT, UNDO, TURN_FACTS, AGENT_RUN),
        *("context_mark", "unpinned", "imported"),
        *("scope_enter", "scope_step", "scope_break", "scope_pending", "scope_exit"),
    )
)
"""Custom entries that say what happened or what the model sees; all others decide something."""

_DECIDING_MESSAGES = frozenset(("pinned",))
"""Custom messages that stay in force, such as instructions of a folder or a goal."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{3,99}")
_LINK = 0o120000


def is_session_id(text: str) -> bool:
    """Whether `text` can be the id of a session, and part of the name of a ref and of a file."""
    return _SESSION_ID.fullmatch(text) is not None


def is_sound(entry: Entry) -> bool:
    """Whether the ids of `entry` can be those of an entry."""
    parent = entry.parent_id
    return bool(_ID.fullmatch(entry.id)) and (parent is None or bool(_ID.fullmatch(parent)))


def admit_entry(entry: Entry) -> Entry:
    """`entry` of another clone, still with `PROJECT` as its folder, without what it decides.

    The result of an admitted entry is the same entry, but for `pulled_from`, which the caller sets.
    """
    if entry.pulled_from is not None:
        entry = entry.model_copy(update={"pulled_from": None})
    match entry:
        case ModelChangeEntry() | ThinkingLevelChangeEntry():
            kept = custom_entry(f"{FOREIGN}{entry.type}", entry)
            return _in_place_of(entry, kept)
        case CustomEntry(custom_type="file_changes"):
            return _admit_changes(entry)
        case CustomEntry(custom_type=kind) if kind not in TAKEN_STATE:
            return entry.model_copy(update={"custom_type": _foreign(kind)})
        case CustomMessageEntry(custom_type=kind) if kind in _DECIDING_MESSAGES:
            return entry.model_copy(update={"custom_type": _foreign(kind)})
        case MessageEntry():
            return entry
        case _:
            return entry


def admit_header(header: Header) -> Header:
    """`header` of another clone without values that could name a file elsewhere."""
    parent = header.parent_session
    changes: dict[str, object] = {
        "timestamp": sound_timestamp(header.timestamp),
        "parent_session": parent if parent and is_session_id(parent) else None,
        "origin": "print" if header.origin == "print" else None,
    }
    return header.model_copy(update=changes)


def _foreign(kind: str) -> str:
    return kind if kind.startswith(FOREIGN) else f"{FOREIGN}{kind}"


def _in_place_of(entry: Entry, kept: CustomEntry) -> CustomEntry:
    place = {"id": entry.id, "parent_id": entry.parent_id, "timestamp": entry.timestamp}
    return kept.model_copy(update=place)


def _admit_changes(entry: CustomEntry) -> Entry:
    """`entry` with changes of files in the project only, whose contents may be missing here."""
    recorded = file_changes_in(entry)
    if recorded is None:
        return entry.model_copy(update={"custom_type": _foreign(entry.custom_type)})
    changes = tuple(
        RecordedFileChange(
            path=change.path,
            before=_admit_version(change.before),
            after=_admit_version(change.after),
        )
        for change in recorded.changes
        if _is_in_project(change)
    )
    admitted = FileChanges(changes=changes, is_restore=recorded.is_restore)
    return _in_place_of(entry, custom_entry(FILE_CHANGES, admitted))


def _is_in_project(change: RecordedFileChange) -> bool:
    """Whether an undo may restore it: a file of the work tree, without links on either side."""
    is_link = _LINK in (change.before.mode, change.after.mode)
    return not is_link and is_project_path(change.path)


def is_project_path(path: str) -> bool:
    """Whether `path`, in the form in which it travels, is a file of the work tree."""
    inside = PurePosixPath(path).parts[2:] if path.startswith(f"{PROJECT}/") else ()
    return bool(inside) and not {"..", ".git"} & {part.lower() for part in inside}


def _admit_version(version: FileVersion) -> FileVersion:
    why = NOT_PULLED if version.is_kept else version.why_not
    return version.model_copy(update={"why_not": why})
