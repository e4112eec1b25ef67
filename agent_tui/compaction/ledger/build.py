"""Build the ledger: facts taken from a session by code, so that no summary need be trusted."""

from collections.abc import Iterable, Sequence

from agent_tui.compaction.ledger.files import Touched, files_of, follow_files
from agent_tui.compaction.ledger.pinned import find_rules, fit_pins, is_strong
from agent_tui.compaction.sections.failures import open_errors
from agent_tui.compaction.sections.history import Done, Said, read_history
from agent_tui.messages import Todo, ToolResultMessage
from agent_tui.omissions import one_line
from agent_tui.sessions.entries import Carryover, CompactionEntry, Entry, Ledger, MessageEntry
from agent_tui.sessions.replay.changes import newest_compaction

MAX_USER_MESSAGES_CHARS = 200_000
LONG_CHARS = 2_000
"""A longer message is usually pasted text, which is left out before the others."""

MAX_TODOS = 40


def build_ledger(
    entries: Iterable[Entry], *, folders: Sequence[str], previous: Ledger | None
) -> Ledger:
    """The ledger at the last of `entries`, including everything in `previous`.

    Args:
        entries: Entries, oldest first; they may overlap with those that `previous` was made from.
        folders: Paths of the working folder (as given, and with links resolved).
        previous: The ledger carried over, or None.
    """
    path, earlier = tuple(entries), previous or Ledger()
    events = read_history(path)
    said = [event for event in events if isinstance(event, Said)]
    unmarked = {form for event in said if event.is_stopped for form in event.forms}
    last = {event.about: event for event in said if event.about}
    found = [(event, rule) for event in said for rule in find_rules(event.own_words)]
    newest = {rule for event, rule in found if last.get(event.about, event) == event}
    # a preference on a file's change is over once more was said on those without repeating it
    over = {rule for _, rule in found if rule not in newest and not is_strong(rule)}
    rules = [rule for _, rule in found if rule not in over]
    listed = (entry.details for entry in path if isinstance(entry, CompactionEntry))
    steps = (
        Touched(earlier.read_files[::-1], earlier.modified_files[::-1]),
        *(Touched(details.read_files, details.modified_files) for details in listed),
        *(files_of(event) for event in events if isinstance(event, Done)),
    )
    files = follow_files(steps, folders)
    todos = _open_todos(path)
    return Ledger(
        user_messages=_within(
            _newest_first(
                [event.recorded for event in said],
                [text for text in earlier.user_messages if text not in unmarked],
            ),
            MAX_USER_MESSAGES_CHARS,
        ),
        pinned=fit_pins(_newest_first(rules, [one for one in earlier.pinned if one not in over])),
        read_files=files.read,
        modified_files=files.modified,
        errors=open_errors(events, earlier.errors[::-1], folders)[::-1],
        open_todos=earlier.open_todos if todos is None else todos[:MAX_TODOS],
    )


def earlier_ledger(path: Sequence[Entry], carryover: Carryover | None) -> Ledger | None:
    """The ledger of earlier compactions: of the newest one on `path`, else of the session's header.

    Includes file lists outside the ledger, as other programs write only those.
    """
    newest = newest_compaction(path)
    details = newest.details if newest is not None else carryover
    if details is None:
        return None
    ledger = details.ledger or Ledger()
    return ledger.model_copy(
        update={
            "read_files": tuple(dict.fromkeys((*ledger.read_files, *details.read_files))),
            "modified_files": tuple(
                dict.fromkeys((*ledger.modified_files, *details.modified_files))
            ),
        }
    )


def entries_to_record(path: Sequence[Entry]) -> Sequence[Entry]:
    """The entries that the newest compaction's ledger may lack: all from its first kept entry.

    If a compaction was prepared in advance, its ledger is older than itself, but never older than
    the first entry it kept. Without a ledger, returns all of `path`.
    """
    newest = newest_compaction(path)
    if newest is None or newest.details.ledger is None:
        return path
    ids = [entry.id for entry in path]
    at = ids.index(newest.id)
    first = newest.first_kept_entry_id
    return path[ids.index(first) if first in ids[:at] else at :]


def _newest_first(later: Sequence[str], earlier: Sequence[str]) -> tuple[str, ...]:
    """`later` (oldest first) and `earlier` (newest first), newest first and each text once."""
    return tuple(dict.fromkeys((*reversed(later), *earlier)))


def _open_todos(path: Sequence[Entry]) -> tuple[str, ...] | None:
    """The open items of the newest plan in `path`; None if there is no plan."""
    for entry in reversed(path):
        if isinstance(entry, MessageEntry) and isinstance(entry.message, ToolResultMessage):
            todos = entry.message.tool_details.todos
            if todos is not None and not entry.message.is_error:
                return tuple(_todo_line(todo) for todo in todos if todo.status != "completed")
    return None


def _within(newest_first: Sequence[str], max_chars: int) -> tuple[str, ...]:
    """The texts that fit: the oldest one, which states the goal, then short ones, then long ones.

    Of each kind, newer ones have priority.
    """
    taken = set(newest_first[-1:])
    max_chars -= sum(map(len, taken))
    for text in sorted(newest_first[:-1], key=lambda text: len(text) > LONG_CHARS):
        max_chars -= len(text)
        if max_chars < 0:
            break
        taken.add(text)
    return tuple(text for text in newest_first if text in taken)


def _todo_line(todo: Todo) -> str:
    return f"{one_line(todo.text, 200)}{' (in progress)' if todo.status == 'in_progress' else ''}"
