"""Joins a session with entries of another clone: a union by id, in which local entries stay."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_tui.sessions.entries import CustomEntry, Entry, MessageEntry, milliseconds
from agent_tui.sessions.sharing.guard import MERGED


@dataclass(frozen=True, slots=True)
class Merge:
    """What to append to a session.

    Attributes:
        added: The new entries, parents before children.
        differing: Ids of local entries that differ from the incoming entry with the same id.
        waiting: Number of incoming entries whose parent is neither here nor readable.
        has_branched: Whether both sides had continued the session.
    """

    added: tuple[Entry, ...]
    differing: tuple[str, ...] = ()
    waiting: int = 0
    has_branched: bool = False


def merge_entries(
    local: Sequence[Entry], incoming: Sequence[Entry], is_copy: Callable[[Entry, Entry], bool]
) -> Merge:
    """Find the entries to append to `local`, so that it holds those of `incoming`, too.

    Every clone continues on the branch whose last message is the newest. If that one is not the
    last in the file, an entry is added to it whose content depends on nothing else: clones that
    need the same one add equal entries, and another merge adds none.

    Args:
        local: The entries of the session here, in the order of the file; none for a new one.
        incoming: Those of the other clone; of several with one id, the first counts.
        is_copy: Whether the second entry is a copy of the first, a local one.
    """
    known = {entry.id: entry for entry in local}
    differing: list[str] = []
    fresh: dict[str, Entry] = {}
    for entry in incoming:
        if (own := known.get(entry.id)) is not None:
            if not is_copy(own, entry):
                differing.append(entry.id)
        else:
            fresh.setdefault(entry.id, entry)
    added = _parents_first(fresh, set(known))
    waiting = len(fresh) - len(added)
    has_branched = bool(local and added) and not _continues(local[-1].id, added, known)
    if added and (mark := _mark_of_newest([*local, *added])) is not None:
        added.append(mark)
    return Merge(tuple(added), tuple(dict.fromkeys(differing)), waiting, has_branched)


def _parents_first(fresh: dict[str, Entry], known: set[str]) -> list[Entry]:
    """`fresh` in its order, but each after its parent; those without a readable parent are left."""
    waiting: dict[str, list[Entry]] = {}
    placed: list[Entry] = []
    for entry in fresh.values():
        parent = entry.parent_id
        if parent is not None and parent not in known:
            waiting.setdefault(parent, []).append(entry)
            continue
        ready = [entry]
        while ready:
            present = ready.pop()
            placed.append(present)
            known.add(present.id)
            ready += reversed(waiting.pop(present.id, []))
    return placed


def _continues(leaf_id: str, added: Sequence[Entry], known: dict[str, Entry]) -> bool:
    """Whether everything in `added` follows the leaf of the session here."""
    below = {leaf_id}
    for entry in added:
        if entry.parent_id not in below:
            return False
        below.add(entry.id)
    return True


def _mark_of_newest(entries: Sequence[Entry]) -> CustomEntry | None:
    """The entry to append so that the newest message is on the branch that a reader continues."""
    by_id = {entry.id: entry for entry in entries}
    newest = max(_last_messages(entries), key=_age, default=None)
    present: Entry | None = entries[-1]
    while present is not None and present is not newest:
        present = by_id.get(present.parent_id or "")
    if newest is None or present is newest:
        return None
    tip, below = newest, {newest.id}
    for entry in entries:
        if entry.parent_id in below:
            below.add(entry.id)
            tip = entry
    made_id = hashlib.sha256(f"{MERGED} {tip.id}".encode()).hexdigest()[:8]
    while made_id in by_id:
        made_id = hashlib.sha256(made_id.encode()).hexdigest()[:8]
    return CustomEntry(id=made_id, parent_id=tip.id, timestamp=tip.timestamp, custom_type=MERGED)


def _last_messages(entries: Sequence[Entry]) -> list[Entry]:
    """The messages that no other message follows. `entries` has parents before children."""
    answered: set[str | None] = set()
    last: list[Entry] = []
    for entry in reversed(entries):
        is_message = isinstance(entry, MessageEntry)
        if is_message and entry.id not in answered:
            last.append(entry)
        if is_message or entry.id in answered:
            answered.add(entry.parent_id)
    return last


def _age(entry: Entry) -> tuple[int, str]:
    return milliseconds(entry.timestamp), entry.id
