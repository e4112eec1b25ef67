"""The user's marks: messages that stay in the context, and messages that leave it.

A mark is a separate entry that names one message; the newest one for a message counts, and nothing
is ever removed from the log. Going back to before a mark undoes it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeGuard

from agent_tui.messages import AssistantMessage, Stored, ToolResultMessage
from agent_tui.sessions.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    custom_entry,
    custom_value,
)

Mark: TypeAlias = Literal["keep", "pin", "drop"]
"""``keep``: whole through the next compaction. ``pin``: whole through every compaction. ``drop``:
the model no longer sees it."""

_MARK = "context_mark"


class _Marked(Stored):
    target_id: str
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks in force. All keys and members are ids of entries.

    A reply and the results of its calls are kept, pinned and left out together; a result may be
    removed alone; then its call is answered with a line that says so.

    Args:
        by_id: The mark of each message that has one.
        staying: Messages that the next compaction keeps whole.
        standing: Messages that were marked ``keep`` before the newest compaction.
        dropped: Messages that the model does not see.
        emptied: Results whose text the model does not see.
        sources: The newest mark entry that set each of `by_id`.
    """

    by_id: Mapping[str, Mark] = field(default_factory=dict[str, Mark])
    staying: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    sources: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def whole(self) -> frozenset[str]:
        """Messages that are in the context as written, whatever shortened them before."""
        return self.staying | self.standing


def mark_entry(target_id: str, mark: Mark | None) -> CustomEntry:
    """The entry that marks the message `target_id`; None removes its mark."""
    return custom_entry(_MARK, _Marked(target_id=target_id, mark=mark))


def is_mark(entry: Entry) -> TypeGuard[CustomEntry]:
    """Whether `entry` marks a message."""
    return isinstance(entry, CustomEntry) and entry.custom_type == _MARK


def read_marks(path: Sequence[Entry]) -> Marks:
    """The marks in force on `path`: root to leaf, without what was undone."""
    if not any(map(is_mark, path)):
        return Marks()
    reply_of = dict(replies_of_results(path))
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for result, reply in reply_of.items():
        groups[reply].append(result)
    set_by: dict[str, tuple[Mark, str]] = {}
    standing: frozenset[str] = frozenset()
    for entry in path:
        if isinstance(entry, CompactionEntry):
            kept = {key for key, (mark, _) in set_by.items() if mark == "keep"}
            set_by = {key: found for key, found in set_by.items() if key not in kept}
            standing = frozenset(_with_results(kept, groups))
        elif marked := custom_value(entry, _MARK, _Marked):
            target = marked.target_id
            head = reply_of.get(target, target)
            reply_mark = set_by.get(head, (None, ""))[0]
            is_alone = target != head and reply_mark != "drop"
            if is_alone and marked.mark == "drop":
                set_by[target] = ("drop", entry.id)
            elif is_alone and marked.mark is None and set_by.get(target, ("", ""))[0] == "drop":
                _set(set_by, (target,), set_by.get(head))
            else:
                found = (marked.mark, entry.id) if marked.mark is not None else None
                _set(set_by, (head, *groups[head]), found)
                standing -= {head, *groups[head]}
    by_id: dict[str, Mark] = {key: mark for key, (mark, _) in set_by.items()}
    drop = {key for key, mark in by_id.items() if mark == "drop"}
    emptied = frozenset(key for key in drop if key in reply_of and reply_of[key] not in drop)
    return Marks(
        by_id,
        frozenset(_with_results(by_id.keys() - drop, groups)),
        standing,
        frozenset(drop - emptied),
        emptied,
        {key: source for key, (_, source) in set_by.items()},
    )


def _with_results(ids: Set[str], groups: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key in ids:
        yield key
        yield from groups.get(key, ())


def _set(
    set_by: dict[str, tuple[Mark, str]], keys: Sequence[str], found: tuple[Mark, str] | None
) -> None:
    for key in keys:
        set_by.pop(key, None)
        if found is not None:
            set_by[key] = found


def replies_of_results(path: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Each result with the newest reply before it that waits for it, by their entries' ids."""
    waiting: defaultdict[str, list[str]] = defaultdict(list)
    for entry in path:
        message = entry.message if isinstance(entry, MessageEntry) else None
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                waiting[call.id].append(entry.id)
        elif isinstance(message, ToolResultMessage) and waiting[message.tool_call_id]:
            yield entry.id, waiting[message.tool_call_id].pop()
