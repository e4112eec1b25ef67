"""Giving every entry of a file an id of its own and a parent that exists."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.sessions.entries import CompactionEntry, Entry

_MADE_IDS = 0xF000_0000
"""Ids made from line numbers begin here, so that they are not those of lost entries."""


@dataclass(frozen=True, slots=True)
class UnlinkedEntry:
    """An entry as it stands on line `number`, not yet part of the tree.

    `index` counts the lines that are not blank, the header being 0: version 1 names the first
    kept entry of a compaction (`first_kept_index`) that way.
    """

    number: int
    index: int
    entry: Entry
    names_parent: bool
    first_kept_index: int | None


@dataclass(frozen=True, slots=True)
class LinkedEntries:
    """Entries in file order, parents before children, and what had to be repaired."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


def link_entries(found: Sequence[UnlinkedEntry], *, has_ids: bool) -> LinkedEntries:
    """Make a tree of `found`.

    An entry without an id gets one made from its line number, so that the same file always
    gives the same ids. An entry whose parent is lost becomes a child of the entry before it;
    one that stands before its parent is moved behind it; one with the id of another is told
    apart, unless it is the very same entry, which is left out.

    Args:
        found: The readable entries, in file order.
        has_ids: False for version 1, where no entry has an id and all form one line.
    """
    linker = _Linker(found, has_ids)
    for item in found:
        linker.take(item)
    linker.place_waiting()
    return LinkedEntries(tuple(linker.placed.values()), tuple(linker.warnings))


class _Linker:
    def __init__(self, found: Sequence[UnlinkedEntry], has_ids: bool) -> None:
        self.placed: dict[str, Entry] = {}
        self.warnings: list[str] = []
        self._has_ids = has_ids
        self._last_line_of = {item.entry.id: item.number for item in found}
        self._present_id: dict[str, str] = {}
        self._substitute_parent: dict[str, str | None] = {}
        self._waiting: dict[str, list[UnlinkedEntry]] = {}
        self._newest: str | None = None
        self._found = found
        self._id_by_index: dict[int, str] = {}

    def take(self, item: UnlinkedEntry) -> None:
        """Place `item`, or keep it until its parent comes."""
        parent = item.entry.parent_id
        if (
            parent is not None
            and parent not in self._present_id
            and self._last_line_of.get(parent, 0) > item.number
        ):
            self.warnings.append(f"line {item.number}: comes before its parent; moved after it")
            self._waiting.setdefault(parent, []).append(item)
            return
        self._place_with_followers(item)

    def place_waiting(self) -> None:
        """Place what is left: entries that name each other as parents."""
        while self._waiting:
            parent = next(iter(self._waiting))
            item = self._waiting[parent].pop(0)
            if not self._waiting[parent]:
                del self._waiting[parent]
            self._place_with_followers(item)

    def _place_with_followers(self, item: UnlinkedEntry) -> None:
        ready = [item]
        while ready:
            present = ready.pop()
            self._place(present)
            ready += reversed(self._waiting.pop(present.entry.id, []))

    def _place(self, item: UnlinkedEntry) -> None:
        entry = item.entry
        twin = self.placed.get(self._present_id.get(entry.id, ""))
        if twin is not None and entry.id and twin == entry:
            self.warnings.append(f"line {item.number}: repeats entry {entry.id}; left out")
            return
        changes: dict[str, object] = {}
        parent = self._parent(item)
        if parent != entry.parent_id:
            changes["parent_id"] = parent
        own_id = self._own_id(item)
        if own_id != entry.id:
            changes["id"] = own_id
        if isinstance(entry, CompactionEntry) and not entry.first_kept_entry_id:
            changes["first_kept_entry_id"] = self._first_kept(item.first_kept_index) or own_id
        self.placed[own_id] = entry.model_copy(update=changes) if changes else entry
        self._present_id[entry.id] = own_id
        self._present_id.setdefault(own_id, own_id)  # what was appended to it names it so
        self._id_by_index[item.index] = own_id
        self._newest = own_id

    def _own_id(self, item: UnlinkedEntry) -> str:
        entry_id = item.entry.id
        if entry_id and entry_id not in self.placed:
            return entry_id
        serial = _MADE_IDS + item.number
        while (made := f"{serial:08x}") in self.placed or made in self._last_line_of:
            serial += 0x10_0000
        if entry_id:
            self.warnings.append(f"line {item.number}: id {entry_id} is taken; now {made}")
        elif self._has_ids:
            self.warnings.append(f"line {item.number}: has no id; now {made}")
        return made

    def _parent(self, item: UnlinkedEntry) -> str | None:
        wanted = item.entry.parent_id
        if wanted is None:
            if not item.names_parent and self._has_ids:
                self.warnings.append(f"line {item.number}: names no parent; {self._linked_to()}")
            return None if item.names_parent else self._newest
        if wanted in self._present_id:
            return self._present_id[wanted]
        if wanted not in self._substitute_parent:
            self.warnings.append(
                f"line {item.number}: parent {wanted} is missing; {self._linked_to()}"
            )
            self._substitute_parent[wanted] = self._newest
        return self._substitute_parent[wanted]

    def _linked_to(self) -> str:
        return f"linked to {self._newest}" if self._newest else "made the first entry"

    def _first_kept(self, index: int | None) -> str | None:
        """The id at `index`, or of the next line after it that could be read."""
        if index is None:
            return None
        later = (item.index for item in self._found if item.index >= index)
        return self._id_by_index.get(next(later, -1))
