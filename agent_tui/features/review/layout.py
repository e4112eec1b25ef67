"""The rows of a review in order: files, hunks, lines and comments. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from agent_tui.features.review.changes import FileChange, Hunk, HunkLine, Side
from agent_tui.features.review.comments import Comment, ReviewState, place_comment

ItemKind: TypeAlias = Literal["file", "hunk", "line", "comment", "note"]


@dataclass(frozen=True, slots=True)
class Item:
    """Something that the cursor can be on.

    Attributes:
        kind: What it is.
        file: The index of its file; -1 for none.
        hunk: The index of its hunk in the file; -1 for none.
        old: Its line before the change, as the index in the hunk; -1 for none.
        new: That after the change; the same for an unchanged line.
        comment: The comment.
        is_changed: Whether the lines of the comment changed since.
        text: What a note says.
    """

    kind: ItemKind
    file: int = -1
    hunk: int = -1
    old: int = -1
    new: int = -1
    comment: Comment | None = None
    is_changed: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Placed:
    comment: Comment
    last: int
    is_changed: bool


def lay_out(
    changes: Sequence[FileChange],
    state: ReviewState,
    folded: Collection[str],
    *,
    is_split: bool,
    left_out: str = "",
    is_read: bool = True,
    sources: Mapping[Side, str] = {"new": "", "old": ""},
) -> list[Item]:
    """All items in order.

    Args:
        changes: The files.
        state: The comments.
        folded: Names of files whose hunks are not shown.
        is_split: Whether old and new lines are side by side.
        left_out: What changed and is not shown; empty for nothing.
        is_read: Whether all changes are known.
        sources: The `Comment.source` that comments have on lines of each side.
    """
    if not is_read:
        return [Item("note", text="Reading the changes…")]
    items: list[Item] = []
    comments = state.shown()
    for number, change in enumerate(changes):
        items.append(Item("file", number))
        if change.name not in folded:
            own = [one for one in comments if one.path == change.name]
            items += _file_items(number, change, own, is_split, sources)
    if not changes:
        items.append(Item("note", text="Nothing changed here."))
    if left_out:
        items.append(Item("note", text=left_out))
    known = {change.name for change in changes}
    if left := [one for one in comments if one.path not in known and one.state != "resolved"]:
        items.append(Item("note", text="Comments on files that are not among these changes"))
        items += (Item("comment", comment=one) for one in left)
    return items


def _file_items(
    number: int,
    change: FileChange,
    comments: Sequence[Comment],
    is_split: bool,
    sources: Mapping[Side, str],
) -> Iterator[Item]:
    placed = _place_all(change, comments, sources)
    shown = {
        (side, line)
        for hunk in change.hunks
        for row in hunk.lines
        for side, line in (("old", row.old), ("new", row.new))
    }
    for one in placed:
        if not one.last or (one.comment.side, one.last) not in shown:
            yield Item("comment", number, comment=one.comment, is_changed=one.is_changed)
    if not (change.hunks or change.note or change.kind):
        yield Item("note", number, text="No line is changed.")
    pairs = _split_pairs if is_split and change.has_both else _unified_pairs
    for index, hunk in enumerate(change.hunks):
        yield Item("hunk", number, index)
        for old, new in pairs(hunk):
            yield Item("line", number, index, old, new)
            for one in placed:
                side: Side = one.comment.side
                at = old if side == "old" else new
                if at >= 0 and one.last and _number(hunk.lines[at], side) == one.last:
                    yield Item("comment", number, index, -1, -1, one.comment, one.is_changed)


def _number(line: HunkLine, side: Side) -> int:
    return line.old if side == "old" else line.new


def _place_all(
    change: FileChange, comments: Sequence[Comment], sources: Mapping[Side, str]
) -> list[_Placed]:
    """Where comments lie; one on lines of other changes lies nowhere if they are not here."""
    sides: set[Side] = {comment.side for comment in comments}
    lines = {side: change.lines(side) for side in sides}
    found: list[_Placed] = []
    for comment in comments:
        place = place_comment(comment, lines[comment.side])
        size = 1 if place.is_changed else len(comment.lines)
        last = place.line + size - 1 if place.line else 0
        is_elsewhere = place.is_changed and comment.source != sources[comment.side]
        found.append(
            _Placed(comment, 0, is_changed=False)
            if is_elsewhere
            else _Placed(comment, last, place.is_changed)
        )
    return found


def _unified_pairs(hunk: Hunk) -> Iterator[tuple[int, int]]:
    for n, line in enumerate(hunk.lines):
        yield (n if line.sign != "+" else -1), (n if line.sign != "-" else -1)


def _split_pairs(hunk: Hunk) -> Iterator[tuple[int, int]]:
    """Unchanged lines beside themselves, and removed lines beside the added ones after them."""
    removed: list[int] = []
    added: list[int] = []
    for n, line in enumerate(hunk.lines):
        if line.sign == " " or (line.sign == "-" and added):
            yield from zip_longest(removed, added, fillvalue=-1)
            removed, added = [], []
        if line.sign == " ":
            yield n, n
        else:
            (removed if line.sign == "-" else added).append(n)
    yield from zip_longest(removed, added, fillvalue=-1)


def line_at(item: Item, changes: Sequence[FileChange]) -> HunkLine | None:
    """The line of an item: the new one if there is one."""
    if item.kind != "line":
        return None
    return changes[item.file].hunks[item.hunk].lines[item.new if item.new >= 0 else item.old]


def selected_lines(
    items: Sequence[Item], changes: Sequence[FileChange]
) -> tuple[Side, int, int] | None:
    """The lines that selected items of one file are about: a side, the first and the last.

    The new side counts if one of the lines is there. None without lines.
    """
    rows = [changes[one.file].hunks[one.hunk] for one in items if one.kind == "line"]
    pairs = list(zip(rows, (one for one in items if one.kind == "line"), strict=True))
    sides: tuple[tuple[Side, Callable[[Item], int]], ...] = (
        ("new", lambda one: one.new),
        ("old", lambda one: one.old),
    )
    for side, at in sides:
        numbers = [_number(hunk.lines[at(one)], side) for hunk, one in pairs if at(one) >= 0]
        if numbers:
            return side, min(numbers), max(numbers)
    return None
