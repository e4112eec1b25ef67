"""A scrolling view of a review. It draws only the rows in sight, whatever their number."""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Final, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual import events, getters
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent_tui.commands.core.short_words import count_text
from agent_tui.features.review.changes import FileChange, Hunk, Side, function_above
from agent_tui.features.review.comments import Comment
from agent_tui.features.review.layout import Item, lay_out
from agent_tui.features.review.sources import Review
from agent_tui.safe_text import safe_text
from agent_tui.ui.diff_view import DiffRow, Marks, RowKind, draw_row, mark_changed_words
from agent_tui.ui.parts import any_app
from agent_tui.ui.styled_lines import MAX_LINE_CHARS, Line, clip, pad_line, prefix_lines, wrap
from agent_tui.ui.theme.palette import Palette, palette_of
from agent_tui.ui.transcript.code import CodePainter

SPLIT_COLUMNS = 140
"""From this width of the screen on, old and new lines are side by side."""

_MOST_COLOURED_CHARS = 400_000
"""Of one file; a larger one has no colours of its language."""

_ABOVE_HEADING = 2
"""Rows that stay in sight above a file or a hunk that a key goes to."""

_MOST_LIST_CELLS, _LIST_EDGE = 36, 3
"""Cells of the list of files, and of its border with a scrollbar."""

_MOST_QUOTED = 3
"""Lines of code above a comment that is not at its lines."""

_MOST_DRAWN = 3_000
_NO_END = " (no newline at the end)"
_KINDS: dict[str, RowKind] = {" ": "unchanged", "-": "removed", "+": "added"}
_NEAR = 10
"""Lines within which a line with the same text counts as the same one."""

_STATES = {
    "found": "a keeps, d drops it",
    "open": "not sent yet",
    "draft": "not finished: c continues, d drops it",
    "sent": "sent",
    "resolved": "resolved",
    "dropped": "dropped",
}


class _Place(NamedTuple):
    """What an item is recognized by: its file and kind, its line, the comment, and where it is.

    ``old`` counts lines before the change, which edits do not move.
    """

    name: str
    kind: str
    key: str = ""
    comment: str = ""
    text: str = ""
    old: int = 0
    new: int = 0


def _nearest(place: _Place, present: Sequence[_Place]) -> int:
    """The index of the place in `present` that is `place`, or is nearest to it."""

    def rank(one: _Place) -> tuple[bool, bool, bool, bool, int, int]:
        old = abs(one.old - place.old)
        return (
            bool(one.comment) and one.comment == place.comment,
            one.kind == ("line" if place.kind == "comment" else place.kind),
            one.key == place.key,
            one.text == place.text and old <= _NEAR,
            -old,
            -abs(one.new - place.new),
        )

    own = [index for index, one in enumerate(present) if one.name == place.name]
    if not own:  # the file is gone: the heading of the next one
        files = [index for index, one in enumerate(present) if one.kind == "file"]
        after = (index for index in files if present[index].name > place.name)
        return next(after, files[-1] if files else 0)
    return max(own, key=lambda index: rank(present[index]))


class ReviewView(ScrollView, can_focus=False):
    """Shows the items of a review, and holds the cursor.

    Attributes:
        items: What is shown, in order.
        cursor: The index of the item that keys act on.
        mark: The index of the item where a selection began; None for none.
        folded: The names of files that are folded.
    """

    app = getters.app(any_app)

    @dataclass
    class CursorMoved(Message):
        """The cursor is on another item."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.items: list[Item] = []
        self.cursor = 0
        self.mark: int | None = None
        self.folded: set[str] = set()
        self._reviewed: set[str] = set()
        self._found: set[str] = set()
        self._review: Review | None = None
        self._tops: list[int] = [0]
        self._drawn: dict[int, list[Line]] = {}
        self._texts: dict[tuple[int, int], list[str]] = {}
        self._marks: dict[tuple[int, int], dict[int, Marks]] = {}
        self._inks: dict[tuple[str, Side], Sequence[Sequence[Segment]]] = {}
        self._to_colour: dict[tuple[str, Side], FileChange] = {}
        self._is_colouring = False
        self._laid_out_for: tuple[int, bool] = (0, False)
        self._palette = Palette()

    # What is shown

    def show(self, review: Review) -> None:
        """Show `review`, the cursor where it was as far as possible; fold reviewed files.

        A folded file is unfolded for a new finding of a helper.
        """
        places, before = self._places(), self._review
        self._review = review
        if before is None or before.changes != review.changes:
            self._texts.clear()
            self._marks.clear()
            self._inks.clear()
            self._to_colour.clear()
        for change in review.changes:
            if (is_reviewed := review.state.is_reviewed(change)) != (change.name in self._reviewed):
                for names in (self._reviewed, self.folded):
                    (names.add if is_reviewed else names.discard)(change.name)
        found = {one.id: one.path for one in review.state.shown() if one.state == "found"}
        self.folded -= {path for new, path in found.items() if new not in self._found}
        self._found |= found.keys()
        self._lay_out_again(places)

    def _lay_out(self) -> None:
        """Make the items for the present width, and find their heights."""
        if self._review is None or not self.size.width:
            return  # every line would be wrapped for a width that it never has
        self._palette = palette_of(self.app)
        is_split = self.app.size.width >= SPLIT_COLUMNS
        width = self._width
        self._laid_out_for = (width, is_split)
        self._drawn.clear()
        review = self._review
        self.items = lay_out(
            review.changes,
            review.state,
            self.folded,
            is_split=is_split,
            left_out=review.left_out,
            is_read=review.is_read,
            sources={"new": review.source_of("new"), "old": review.source_of("old")},
        )
        self.cursor = min(self.cursor, max(len(self.items) - 1, 0))
        heights = (self._height(index, item) for index, item in enumerate(self.items))
        self._tops = list(accumulate(heights, initial=0))
        self.virtual_size = Size(width, self._tops[-1])
        self.refresh()

    @property
    def _width(self) -> int:
        return max(self.scrollable_content_region.width, 20)

    @property
    def is_split(self) -> bool:
        """Whether old and new lines are side by side."""
        return self._laid_out_for[1]

    def on_resize(self) -> None:
        """Lay out for another width."""
        is_split = self.app.size.width >= SPLIT_COLUMNS
        if self._review is not None and (self._width, is_split) != self._laid_out_for:
            self._lay_out_again(self._places())

    def on_mount(self) -> None:
        """Follow theme changes."""
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._retheme())

    def _retheme(self) -> None:
        self._inks.clear()
        self._lay_out()

    def fold(self, name: str, *, is_folded: bool) -> None:
        """Fold or unfold a file."""
        (self.folded.add if is_folded else self.folded.discard)(name)
        self._lay_out_again(self._places())

    # The cursor

    @property
    def item(self) -> Item | None:
        """The item that the cursor is on."""
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    @property
    def selection(self) -> Sequence[Item]:
        """The selected items, at least that of the cursor."""
        first, last = sorted((self.cursor, self.cursor if self.mark is None else self.mark))
        return self.items[first : last + 1]

    def move(self, to: int, *, selects: bool = False) -> None:
        """Put the cursor on the item `to`; with `selects`, select up to it within its file."""
        to = max(0, min(to, len(self.items) - 1))
        if not self.items:
            return
        if selects and self.items[to].file == self.items[self.cursor].file:
            self.mark = self.cursor if self.mark is None else self.mark
            self.cursor = to
        elif not selects:
            self.mark, self.cursor = None, to
        self.show_cursor()

    def move_to(self, kinds: Sequence[str], step: int) -> None:
        """Put the cursor on the next item of one of these kinds in the direction of `step`."""
        at = self._next_of(kinds, self.cursor, step)
        if 0 <= at < len(self.items):
            self.move_to_section(at)

    def move_to_section(self, at: int) -> None:
        """Put the cursor on the heading `at`, with as much below it in sight as possible."""
        self.move(at)
        end = self._next_of((self.items[at].kind, "file"), at, 1)
        top, bottom = self._tops[at], self._tops[end]
        first = int(self.scroll_offset.y)
        if top < first + _ABOVE_HEADING or bottom > first + self.size.height:
            self.scroll_to(y=max(top - _ABOVE_HEADING, 0), animate=False, force=True)

    def _next_of(self, kinds: Sequence[str], at: int, step: int) -> int:
        """The index of the next item of one of these kinds; beside all of them if there is none."""
        at += step
        while 0 <= at < len(self.items) and self.items[at].kind not in kinds:
            at += step
        return at

    def find(self, text: str, step: int) -> bool:
        """Put the cursor on the next line, file name or comment with `text`; false if none has it.

        Goes on at the other end. Capitals count if `text` has some. Of a folded file, only its name
        is searched.
        """
        folds = text == text.lower()
        for offset in range(1, len(self.items) + 1):
            at = (self.cursor + step * offset) % len(self.items)
            words = self._words(self.items[at])
            if text in (words.lower() if folds else words):
                self.move(at)
                return True
        return False

    def _words(self, item: Item) -> str:
        """What `item` says."""
        if item.comment is not None:
            return item.comment.text
        if self._review is None or item.file < 0:
            return item.text
        if item.kind == "line":
            lines = self._hunk_texts(item.file, item.hunk)
            return "\n".join(lines[at] for at in {item.old, item.new} if at >= 0)
        return self._review.changes[item.file].name if item.kind == "file" else item.text

    def move_page(self, step: int) -> None:
        """Move the cursor by a screen."""
        row = self._tops[self.cursor] + step * max(self.size.height - 2, 1)
        self.move(self._item_at(row))

    def show_cursor(self) -> None:
        """Scroll until the cursor is in sight."""
        if self.cursor + 1 < len(self._tops):
            top, end = self._tops[self.cursor], self._tops[self.cursor + 1]
            region = Region(0, top, 1, max(end - top, 1))
            self.scroll_to_region(region, animate=False, force=True)
        self.refresh()
        self.post_message(self.CursorMoved())

    def _places(self) -> list[_Place]:
        """What the cursor and the beginning of a selection are on."""
        indices = [self.cursor] if self.mark is None else [self.cursor, self.mark]
        places = [*self._all_places()]
        return [places[index] for index in indices if index < len(places)]

    def _lay_out_again(self, places: Sequence[_Place]) -> None:
        """Lay out with the cursor and the selection at `places`, or as near as possible.

        The cursor stays in the same row of the screen.
        """
        row = self._tops[min(self.cursor, len(self._tops) - 1)] - int(self.scroll_offset.y)
        self._lay_out()
        present = [*self._all_places()]
        found = [_nearest(place, present) for place in places]
        if found:
            self.cursor, self.mark = found[0], found[1] if len(found) > 1 else None
        if 0 <= row < self.size.height and self.items:
            y = max(self._tops[self.cursor] - row, 0)
            self.scroll_to(y=y, animate=False, force=True)
        self.show_cursor()

    def _all_places(self) -> Iterator[_Place]:
        """What each item is recognized by."""
        old = new = 0
        text = ""
        for item in self.items:
            if self._review is None or item.file < 0:
                yield _Place("", item.kind)
                continue
            change = self._review.changes[item.file]
            hunk = change.hunks[item.hunk] if item.hunk >= 0 else None
            if hunk is None:
                old, new, text = 0, 0, ""
            elif item.kind == "hunk":
                old, new, text = hunk.old_start, hunk.new_start, ""
            elif item.kind == "line":
                line = hunk.lines[item.new if item.new >= 0 else item.old]
                old, new, text = line.old or old, line.new or new, line.text
            comment = item.comment.id if item.comment else ""
            at = max(item.old, item.new) if hunk is not None else -1
            key = f"{hunk.key}:{at}" if hunk is not None else ""
            yield _Place(change.name, item.kind, key, comment, text, old, new)

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on what was clicked; a click on a file folds it."""
        event.stop()
        at = self._item_at(self.scroll_offset.y + event.y)
        if at >= len(self.items) or (self.mark is not None and not event.shift):
            return  # the end of a drag
        item = self.items[at]
        self.move(at, selects=event.shift)
        if item.kind == "file" and self._review is not None:
            name = self._review.changes[item.file].name
            self.fold(name, is_folded=name not in self.folded)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a selection of lines."""
        at = self._item_at(self.scroll_offset.y + event.y)
        if not event.shift and at < len(self.items):
            self.mark = None
            if self.items[at].kind == "line":
                self.move(at)
                self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Select up to the line under the pressed mouse."""
        if self.app.mouse_captured is self:
            at = self._item_at(self.scroll_offset.y + event.y)
            if at != self.cursor:
                self.move(at, selects=True)

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """End a selection of lines."""
        self.release_mouse()

    def _item_at(self, row: int) -> int:
        return max(0, min(bisect_right(self._tops, row) - 1, len(self.items) - 1))

    # Drawing

    def render_line(self, y: int) -> Strip:
        """The row `y` of the screen."""
        width, row = self.size.width, self.scroll_offset.y + y
        if row >= self._tops[-1] or not self.items:
            return Strip.blank(width, self.rich_style)
        index = self._item_at(row)
        lines = self._lines(index)
        line = lines[min(row - self._tops[index], len(lines) - 1)]
        first, last = sorted((self.cursor, self.cursor if self.mark is None else self.mark))
        is_marked = first <= index <= last
        edge = Segment("▌ " if is_marked else "  ", self._palette.accent)
        strip = Strip([edge, *line.segments]).adjust_cell_length(width)
        return strip.apply_style(self.rich_style)

    def _lines(self, index: int) -> list[Line]:
        lines = self._drawn.get(index)
        if lines is None:
            if len(self._drawn) > _MOST_DRAWN:
                self._drawn.clear()
            lines = self._drawn[index] = self._draw(self.items[index])
        return lines

    def _height(self, index: int, item: Item) -> int:
        if item.kind == "hunk" or (item.kind == "line" and self._is_short(item)):
            return 1
        return len(self._lines(index))

    def _is_short(self, item: Item) -> bool:
        """Whether a line certainly takes one row."""
        texts = self._hunk_texts(item.file, item.hunk)
        room = self._room(item.file) - 12
        return all(
            len(texts[at]) < room and texts[at].isascii() for at in (item.old, item.new) if at >= 0
        )

    def _room(self, file: int) -> int:
        """Cells for a line of code with its number: of a file that is new or gone, all of them."""
        assert self._review is not None
        inner = self._width - 2
        is_split = self.is_split and self._review.changes[file].has_both
        return (inner - 1) // 2 if is_split else inner

    def _draw(self, item: Item) -> list[Line]:
        assert self._review is not None
        width, palette = self._width - 2, self._palette
        match item.kind:
            case "file":
                return [self._draw_file(self._review.changes[item.file], width)]
            case "hunk":
                change = self._review.changes[item.file]
                hunk = change.hunks[item.hunk]
                words = Segment(f"⋯ {_range_words(hunk)}", palette.hunk)
                about = function_above(change.lines("old"), hunk)
                name = Segment(f"  {_one_line(about)}" if about else "", palette.muted)
                return [Line((words, self._draw_mark(change.name, hunk.key), name))]
            case "line":
                return self._draw_lines(item)
            case "comment":
                assert item.comment is not None
                return list(
                    draw_comment(
                        item.comment,
                        width,
                        palette,
                        is_changed=item.is_changed,
                        is_at_lines=item.hunk >= 0,
                    )
                )
            case "note":
                return wrap([Segment(_one_line(item.text), palette.muted)], width)

    def _draw_file(self, change: FileChange, width: int) -> Line:
        assert self._review is not None
        palette = self._palette
        is_reviewed = self._review.state.is_reviewed(change)
        added, removed = change.counts
        sign = "▸" if change.name in self.folded else "▾"
        tail = [
            Segment(f"  +{added}", palette.success),
            Segment(f" -{removed}", palette.error),
            Segment("".join(f"  {_one_line(word)}" for word in _words_on(change)), palette.muted),
            self._draw_mark(change.name, ""),
            Segment("  ✓ reviewed" if is_reviewed else "", palette.success),
        ]
        room = width - sum(len(one.text) for one in tail) - 2
        name = _cut_start(_one_line(change.name), max(room, 12))
        style = palette.code + palette.strong
        runs = [Segment(f"{sign} ", style), Segment(name, style)]
        runs += (Segment(one.text, palette.code + (one.style or Style())) for one in tail)
        return pad_line(Line(tuple(runs)), width, palette.code)

    def _draw_mark(self, name: str, key: str) -> Segment:
        """What git's index has of a hunk, or of a file if `key` is empty."""
        assert self._review is not None
        mark = self._review.in_index.get((name, key), "")
        style = self._palette.error if mark == "conflict" else self._palette.success
        return Segment(f"  {mark}" if mark else "", style)

    def _draw_lines(self, item: Item) -> list[Line]:
        digits, room = self._digits(item.file), self._room(item.file)
        if room == self._width - 2:
            at = item.new if item.new >= 0 else item.old
            return self._draw_line(item, at, "new" if item.new >= 0 else "old", digits, room)
        sides: tuple[tuple[int, Side], ...] = ((item.old, "old"), (item.new, "new"))
        halves = [
            self._draw_line(item, at, side, digits, room) if at >= 0 else [] for at, side in sides
        ]
        blank = Line((Segment(" " * room, self._palette.ground),))
        bar = Segment("│", self._palette.faint)
        return [
            Line((*left.segments, bar, *right.segments))
            for left, right in zip_longest(*halves, fillvalue=blank)
        ]

    def _draw_line(self, item: Item, at: int, side: Side, digits: int, width: int) -> list[Line]:
        assert self._review is not None
        line = self._review.changes[item.file].hunks[item.hunk].lines[at]
        number = line.old if side == "old" else line.new
        text = self._hunk_texts(item.file, item.hunk)[at]
        row = DiffRow(_KINDS[line.sign], text, number)
        runs = self._runs(item.file, side, number, text)
        marks = self._hunk_marks(item.file, item.hunk).get(at, ())
        return draw_row(row, runs, marks, digits, width, self._palette)

    def _digits(self, file: int) -> int:
        assert self._review is not None
        hunks = self._review.changes[file].hunks
        last = hunks[-1].lines[-1] if hunks else None
        return len(str(max(last.old, last.new))) if last else 1

    def _hunk_texts(self, file: int, hunk: int) -> list[str]:
        """The lines of a hunk as they are shown."""
        if (file, hunk) not in self._texts:
            assert self._review is not None
            lines = self._review.changes[file].hunks[hunk].lines
            self._texts[file, hunk] = list(_shown(line.text for line in lines))
        return self._texts[file, hunk]

    def _hunk_marks(self, file: int, hunk: int) -> dict[int, Marks]:
        if (file, hunk) not in self._marks:
            assert self._review is not None
            lines = self._review.changes[file].hunks[hunk].lines
            texts = self._hunk_texts(file, hunk)
            rows = [DiffRow(_KINDS[line.sign], "") for line in lines]
            self._marks[file, hunk] = mark_changed_words(rows, texts)
        return self._marks[file, hunk]

    # Colours

    def _runs(self, file: int, side: Side, number: int, text: str) -> Sequence[Segment]:
        """A line in the colours of its language, once the whole file is coloured."""
        assert self._review is not None
        change = self._review.changes[file]
        plain = (Segment(text, Style()),)
        if self._palette.added.bgcolor is None:
            return plain  # the colour of the text has to tell added from removed lines
        inks = self._inks.get((change.name, side))
        if inks is None:
            self._to_colour[change.name, side] = change
            self._inks[change.name, side] = ()  # until it is coloured
            if not self._is_colouring:
                self._is_colouring = True
                self.run_worker(self._colour, group="colour")
            return plain
        runs = inks[number - 1] if 0 < number <= len(inks) else ()
        return runs if "".join(run.text for run in runs) == text else plain

    @property
    def is_coloured(self) -> bool:
        """Whether all that was drawn has the colours of its language."""
        return not self._is_colouring

    async def _colour(self) -> None:
        """Colour the files in sight, each as a whole: a line inside a string is part of it."""
        while self._to_colour:
            painter, (key, change) = CodePainter(self._palette), self._to_colour.popitem()
            inks = await asyncio.to_thread(_coloured, painter, change, key[1])
            if self._review is not None and change in self._review.changes:
                self._inks[key] = inks
                self._drawn.clear()
                self.refresh()
        self._is_colouring = False


def _coloured(painter: CodePainter, change: FileChange, side: Side) -> Sequence[Sequence[Segment]]:
    """The lines of one side in the colours of their language; none for a large file."""
    lines = change.lines(side)
    if sum(map(len, lines)) > _MOST_COLOURED_CHARS:
        return ()
    name = change.was if side == "old" and change.was else change.name
    return painter.inks("\n".join(_shown(lines)), name.rpartition("/")[2])


def _shown(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    """Lines as they are drawn: harmless, and without their ends."""
    for line in lines:
        text = line.removesuffix("\n").removesuffix("\r")
        text += "" if line.endswith("\n") else _NO_END
        yield clip(safe_text(text, keep_newlines=False), MAX_LINE_CHARS)


def draw_comment(
    comment: Comment, width: int, palette: Palette, *, is_changed: bool, is_at_lines: bool
) -> Iterator[Line]:
    """A comment beside a bar: who wrote it and what became of it, then its text.

    Unless it is at its lines, its place and the first of its lines are above the text.
    """
    facts = [
        "" if is_at_lines else comment.place,
        f"a {comment.by}" if comment.by else "you",
        _STATES[comment.state],
    ]
    facts.append("its lines changed since" if is_changed and comment.lines else "")
    is_done = comment.state == "resolved"
    bar = [Segment("  ┃ ", palette.faint if is_done else palette.running)]
    head = _one_line(" · ".join(filter(None, facts)))
    yield from prefix_lines(wrap([Segment(head, palette.muted)], width - 4), bar)
    style = palette.muted if is_done else palette.text
    for number, line in enumerate(() if is_at_lines else comment.lines[:_MOST_QUOTED]):
        row = clip(_one_line(f"{comment.line + number}  {line}"), width - 4)
        yield from prefix_lines([Line((Segment(row, palette.muted),))], bar)
    for line in safe_text(comment.text).split("\n"):
        yield from prefix_lines(wrap([Segment(line, style)], width - 4), bar)


def _range_words(hunk: Hunk) -> str:
    numbers = [line.new or line.old for line in hunk.lines]
    return f"{min(numbers)}-{max(numbers)}" if numbers else ""


def _words_on(change: FileChange) -> list[str]:
    return [word for word in (change.kind, change.note) if word]


def _one_line(text: str) -> str:
    return safe_text(text, keep_newlines=False)


def _cut_start(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[1 - most :]}"


_INDEX_SIGNS: Final = {"staged": " S", "partly staged": " s", "conflict": " !"}


def list_files(review: Review, current: int, width: int, palette: Palette) -> list[Line]:
    """The list of files: a mark for reviewed ones, the name, counts, comments and git's index."""
    rows: list[Line] = []
    comments = review.state.shown()
    for number, change in enumerate(review.changes):
        added, removed = change.counts
        open_count = sum(one.path == change.name and one.state != "resolved" for one in comments)
        mark = "✓ " if review.state.is_reviewed(change) else "  "
        tail = f" +{added} -{removed}" + (f" ┃{open_count}" if open_count else "")
        tail += _INDEX_SIGNS.get(review.in_index.get((change.name, ""), ""), "")
        name = _cut_start(_one_line(change.name), max(width - len(tail) - 2, 6))
        style = palette.strong if number == current else palette.muted
        gap = " " * max(width - len(name) - len(tail) - 2, 0)
        segments = (
            Segment(mark, palette.success),
            Segment(name, style),
            Segment(gap + tail, palette.muted),
        )
        rows.append(Line(segments))
    return rows


def width_of_list(review: Review) -> int:
    """Cells that the list of files needs to show all names, within bounds."""
    rows = list_files(review, -1, _MOST_LIST_CELLS, Palette())
    texts = [[part.text for part in row.segments] for row in rows]
    needed = [len(mark) + len(name) + 1 + len(tail.strip()) for mark, name, tail in texts]
    return min(max(needed, default=0) + _LIST_EDGE, _MOST_LIST_CELLS)


def count_words(review: Review) -> str:
    """Numbers of files, lines, and comments that are not sent."""
    added = sum(change.counts[0] for change in review.changes)
    removed = sum(change.counts[1] for change in review.changes)
    words = [f"{count_text(len(review.changes), 'file')} +{added:,} -{removed:,}"]
    marks = [mark for (_, key), mark in review.in_index.items() if not key]
    if conflicts := marks.count("conflict"):
        words.append(f"{conflicts} in conflict")
    if staged := len(marks) - conflicts:
        words.append(f"{staged} staged")
    if found := sum(one.state == "found" for one in review.state.shown()):
        words.append(f"{count_text(found, 'finding')} undecided")
    if unsent := len(review.state.unsent()):
        words.append(f"{count_text(unsent, 'comment')} to send")
    if done := sum(map(review.state.is_reviewed, review.changes)):
        words.append(f"{done} reviewed")
    return " · ".join(words)
