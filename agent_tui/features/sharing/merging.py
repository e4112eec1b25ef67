"""Joins a session with entries of another clone: a union by id, in which local entries stay."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_tui.sessions.entries import Entry


@dataclass(frozen=True, slots=True)
class Merge:
    """What to append to a session.

    Attributes:
        added: The new entries, parents before children.
        differing: Ids of local entries that differ from the incoming entry with the same id.
        waiting: Number of incoming entries whose parent is neither here nor readable.
        stays: Whether entries are added to a session that was written here, too: it continues
            where its user left it.
    """

    added: tuple[Entry, ...]
    differing: tuple[str, ...] = ()
    waiting: int = 0
    stays: bool = False


def merge_entries(
    local: Sequence[Entry], incoming: Sequence[Entry], is_copy: Callable[[Entry, Entry], bool]
) -> Merge:
    """Find the entries to append to `local`, so that it holds those of `incoming`, too.

    They don't move the place where the session continues, whatever their times are, as
    `leaf_of` looks for an entry that was written here.

    Args:
        local: The entries of the session here, in the order of the file; none for a new one.
        incoming: Those of the other clone; of several with one id, the first counts whose parent
            is here or among them. So nobody keeps an entry out by pushing another one with its id.
        is_copy: Whether the second entry is a copy of the first, a local one.
    """
    known = {entry.id: entry for entry in local}
    differing: list[str] = []
    fresh: list[Entry] = []
    for entry in incoming:
        if (own := known.get(entry.id)) is not None:
            if not is_copy(own, entry):
                differing.append(entry.id)
        else:
            fresh.append(entry)
    added = _parents_first(fresh, set(known))
    return Merge(
        tuple(added),
        tuple(dict.fromkeys(differing)),
        waiting=len({entry.id for entry in fresh}) - len(added),
        stays=bool(added) and any(entry.pulled_from is None for entry in local),
    )


def _parents_first(fresh: Sequence[Entry], known: set[str]) -> list[Entry]:
    """`fresh` in its order, but each after its parent; those without a readable parent are left."""
    waiting: dict[str, list[Entry]] = {}
    placed: list[Entry] = []
    for entry in fresh:
        parent = entry.parent_id
        if parent is not None and parent not in known:
            waiting.setdefault(parent, []).append(entry)
            continue
        ready = [entry]
        while ready:
            present = ready.pop()
            if present.id not in known:
                placed.append(present)
                known.add(present.id)
                ready += reversed(waiting.pop(present.id, []))
    return placed
