"""Comments on lines of changes: where they lie now, how they are kept, and how they are sent."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, Literal, NamedTuple, TypeAlias

from agent_tui.features.review.changes import FileChange, Side
from agent_tui.messages import Stored
from agent_tui.sessions.entries import CustomEntry, Entry, custom_entry, custom_value

COMMENT: Final = "review_comment"
REVIEWED: Final = "review_mark"
"""Custom types of entries. The newest entry about a comment or a file counts."""

CommentState: TypeAlias = Literal["found", "open", "sent", "resolved", "dropped", "draft"]
"""``found``: by a helper, and the user has not decided; ``open``: sent with the next message;
``draft``: the user has not finished it."""

DRAFT: Final = "-draft"
"""The end of the id of an unfinished change of a comment."""

_CONTEXT = 3
_MOST_LINES = 40
_MOST_CHARS = 400
"""Of one line in a message; the model can read the rest in the file."""


class Comment(Stored):
    """A comment.

    ``line`` is the number of the first of ``lines``, from 1, on its ``side`` of the change; without
    lines, it is about the whole file. ``above`` and ``below`` are the lines around them. ``by`` is
    empty for the user's own. ``source`` names the changes if the lines are not those of the present
    file, such as those of a commit or those before the change.
    """

    id: str
    path: str
    side: Side = "new"
    line: int = 0
    lines: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    text: str = ""
    by: str = ""
    state: CommentState = "open"
    source: str = ""

    @property
    def place(self) -> str:
        """The file with the lines: ``a.py:3-5``, ``a.py:3 (old)``."""
        last = self.line + len(self.lines) - 1
        lines = f":{self.line}" + (f"-{last}" if last > self.line else "") if self.lines else ""
        return f"{self.path}{lines}{' (old)' if self.side == 'old' else ''}"


class ReviewedFile(Stored):
    """Whether the user has reviewed the file at ``path`` with the content of this digest."""

    path: str
    digest: str
    is_reviewed: bool = True


class Placed(NamedTuple):
    """Where a comment lies now: a number of a line, and whether its lines have changed since."""

    line: int
    is_changed: bool


@dataclass(slots=True)
class ReviewState:
    """The comments by id, oldest first, and the digests of reviewed files by name."""

    comments: dict[str, Comment] = field(default_factory=dict[str, Comment])
    reviewed: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, entry: Entry) -> None:
        """Take over what `entry` records; entries of other clones decide nothing."""
        if entry.pulled_from is not None:
            return
        if (comment := custom_value(entry, COMMENT, Comment)) is not None:
            self.comments[comment.id] = comment
        elif (mark := custom_value(entry, REVIEWED, ReviewedFile)) is not None:
            self.reviewed[mark.path] = mark.digest if mark.is_reviewed else ""

    def is_reviewed(self, change: FileChange) -> bool:
        """Whether the user has reviewed the file as it is."""
        return self.reviewed.get(change.name) == change.digest

    def shown(self) -> list[Comment]:
        """The comments that are not dropped."""
        return [one for one in self.comments.values() if one.state != "dropped"]

    def draft_like(self, comment: Comment) -> Comment | None:
        """The unfinished comment on the lines of `comment`, or the unfinished change of it."""
        if (changed := self.comments.get(comment.id + DRAFT)) and changed.state == "draft":
            return changed
        about = comment.path, comment.side, comment.lines
        found = [
            one
            for one in self.comments.values()
            if one.state == "draft" and (one.path, one.side, one.lines) == about
            if not one.id.endswith(DRAFT)
        ]
        return min(found, key=lambda one: abs(one.line - comment.line), default=None)

    def unsent(self) -> list[Comment]:
        """The comments for the next message, by file and line."""
        found = [one for one in self.comments.values() if one.state == "open"]
        return sorted(found, key=lambda one: (one.path, one.line))


def read_state(entries: Iterable[Entry]) -> ReviewState:
    """What `entries`, oldest first, record."""
    state = ReviewState()
    for entry in entries:
        state.take(entry)
    return state


def comment_entry(comment: Comment) -> CustomEntry:
    """The entry that records `comment`."""
    return custom_entry(COMMENT, comment)


def reviewed_entry(mark: ReviewedFile) -> CustomEntry:
    """The entry that records `mark`."""
    return custom_entry(REVIEWED, mark)


def comment_on(
    change: FileChange, side: Side, first: int, last: int, text: str, comment_id: str
) -> Comment:
    """A comment on the lines `first` to `last` of one side; on the file if `first` is 0."""
    lines = [line.removesuffix("\n") for line in change.lines(side)]
    about = range(first - 1, min(last, len(lines))) if first else range(0)
    return Comment(
        id=comment_id,
        path=change.name,
        side=side,
        line=first if about else 0,
        lines=tuple(lines[n] for n in about),
        above=tuple(lines[max(first - 1 - _CONTEXT, 0) : first - 1]) if about else (),
        below=tuple(lines[about.stop : about.stop + _CONTEXT]) if about else (),
        text=text,
    )


def place_comment(comment: Comment, lines: Sequence[str]) -> Placed:
    """Where `comment` lies in `lines`, those of its side of the change now.

    Its lines are looked for: of several places, the one with the most of the lines around them,
    and then the nearest. If they are gone, it lies after the lines that were above them.
    """
    wanted = comment.lines
    if not wanted:
        return Placed(0, is_changed=False)
    present = [line.removesuffix("\n") for line in lines]
    size, was = len(wanted), comment.line - 1

    def rank(start: int) -> tuple[int, int]:
        above = _alike_lines(reversed(present[:start]), reversed(comment.above))
        below = _alike_lines(present[start + size :], comment.below)
        return -above - below, abs(start - was)

    first = wanted[0]
    places = [
        n
        for n, line in enumerate(present)
        if line == first and tuple(present[n : n + size]) == wanted
    ]
    if places:
        return Placed(min(places, key=rank) + 1, is_changed=False)
    after = [n for n in range(1, len(present) + 1) if present[n - 1 : n] == [*comment.above[-1:]]]
    if not after:
        return Placed(max(min(comment.line, len(present)), 1), is_changed=True)

    def rank_gap(end: int) -> tuple[int, int]:
        return -_alike_lines(reversed(present[:end]), reversed(comment.above)), abs(end - was)

    return Placed(min(min(after, key=rank_gap) + 1, len(present)), is_changed=True)


def _alike_lines(left: Iterable[str], right: Iterable[str]) -> int:
    """How many lines at the beginning are the same."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def review_message(comments: Sequence[Comment]) -> str:
    """The one message with all `comments`: file, line, side and the lines of each, and its text."""
    count = len(comments)
    head = f"I reviewed the changes and have {count} comment{'s' * (count != 1)}:"
    parts = [head]
    for number, comment in enumerate(comments, start=1):
        parts.append("\n".join([f"{number}. {_place(comment)}", *_quoted(comment), comment.text]))
    parts.append("Address each comment, or say why not.")
    return "\n\n".join(parts)


def _place(comment: Comment) -> str:
    name = comment.path if comment.path.isprintable() else json.dumps(comment.path)
    if not comment.lines:
        return f"{name}, the whole file"
    last = comment.line + len(comment.lines) - 1
    lines = f"lines {comment.line}-{last}" if last > comment.line else f"line {comment.line}"
    side = "before the change" if comment.side == "old" else "after the change"
    return f"{name}, {lines} {side}"


def _quoted(comment: Comment) -> list[str]:
    quoted = [
        f"    {number}| {line[:_MOST_CHARS]}"
        for number, line in enumerate(comment.lines[:_MOST_LINES], start=comment.line)
    ]
    more = len(comment.lines) - _MOST_LINES
    return [*quoted, f"    ... and {more} more lines"] if more > 0 else quoted
