"""Finding text in the chat: the view goes to matches, unfolds what hides them, and comes back."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

from textual.theme import Theme
from textual.timer import Timer

from agent_tui.ui.transcript.blocks import BlockId
from agent_tui.ui.transcript.finder import Finder, FindState
from agent_tui.ui.transcript.stack import RowAnchor, can_toggle
from agent_tui.ui.transcript.stack_view import StackView

_COUNT_INTERVAL_S = 0.03
_COUNT_SLICE_S = 0.01
"""Reading 5,000 messages for the first time takes a few slices; a key never waits longer."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What the view showed when the search began."""

    place: RowAnchor | None
    width: int
    is_following: bool


class FindingView(StackView):
    """A `StackView` that can be searched; while it is, nothing but the search moves it."""

    def __init__(self) -> None:
        super().__init__()
        self._tell: Callable[[FindState], None] = lambda _state: None
        self._before: _Before | None = None
        self._counting: Iterator[None] | None = None
        self._count_timer: Timer | None = None
        self._wants_match = False
        self._unfolded: BlockId | None = None

    def begin_find(self, tell: Callable[[FindState], None]) -> None:
        """Stand still from now on, and `tell` where the search stands whenever that changes."""
        width = self._stack.painter.width
        self._tell = tell
        self._finder = Finder(self._stack, self._palette)
        self._before = _Before(self._place, width, self._is_following)
        self._set_following(False)
        self._count_timer = self.set_interval(_COUNT_INTERVAL_S, self._count_on)

    def find(self, text: str) -> None:
        """Look for `text` in a search that was begun; the nearest match becomes current."""
        finder = self._finder
        if finder is not None:
            finder.look_for(text)
            self._counting, self._wants_match = finder.counting(), bool(text)
            self._count_on()
            self.refresh()

    def find_next(self, direction: int) -> None:
        """Go to the next match, or with -1 to the previous one."""
        if self._finder is not None:
            self._finder.step(direction)
            self._show_match()

    def end_find(self, *, stays: bool) -> None:
        """End the search at the current match or where it began."""
        finder, before = self._finder, self._before
        if finder is None or before is None:
            return
        stays = stays and finder.current is not None
        if not stays:
            self._fold_again()
        self._finder = self._before = self._counting = self._unfolded = None
        if self._count_timer is not None:
            self._count_timer.stop()
        if stays:
            height = self.scrollable_content_region.height
            self._set_following(self.scroll_offset.y >= self._stack.total_rows - height)
        elif before.is_following:
            self.follow_end()
        else:
            self._place = before.place
            self._settle(is_rewrapped=before.width != self._stack.painter.width)
        self.refresh()

    def _retheme(self, theme: Theme) -> None:
        super()._retheme(theme)
        if self._finder is not None:
            self._finder.palette = self._palette

    def _count_on(self) -> None:
        """Count for a few milliseconds; go to a match if one is wanted and all are known."""
        finder = self._finder
        if finder is None:
            return
        if self._counting is None:
            if not finder.is_stale:
                return
            self._counting = finder.counting()
        deadline = perf_counter() + _COUNT_SLICE_S
        for number, _ in enumerate(self._counting):
            if not number % 50 and perf_counter() > deadline:
                break
        else:
            self._counting = None
            if self._wants_match:
                self._wants_match = False
                finder.start_at(self._start_block())
                self._show_match()
                return
        self._tell(finder.state())

    def _start_block(self) -> BlockId:
        """The first visible block when the search began."""
        place = self._before.place if self._before is not None else None
        return 0 if place is None else place.id

    def _show_match(self) -> None:
        """Scroll just enough to show the current match, unfolded."""
        finder = self._finder
        if finder is None:
            return
        current = finder.current
        if current is None or current.id != self._unfolded:
            self._fold_again()
        if current is not None:
            index = self._stack.index(current.id)
            if index is not None and not finder.is_drawn(current):
                self._unfold(index)
            self._reveal(current.id, finder.row_of(current))
        self._tell(finder.state())
        self.refresh()

    def _unfold(self, index: int) -> None:
        item = self._stack[index]
        if can_toggle(item.block) and not item.is_expanded:
            item.is_expanded = True
            self._stack.invalidate(index)
            self._unfolded = item.id

    def _fold_again(self) -> None:
        """Fold the block that was unfolded only to show a match."""
        index = None if self._unfolded is None else self._stack.index(self._unfolded)
        self._unfolded = None
        if index is not None and self._stack[index].is_expanded:
            self._stack[index].is_expanded = False
            self._stack.invalidate(index)

    def _reveal(self, block_id: BlockId, row: int) -> None:
        """Scroll a row of a block into view; does nothing if it is visible."""
        stack, height = self._stack, self.scrollable_content_region.height
        index = stack.index(block_id)
        if index is None or not height:
            return
        seen = stack.find(self._place, is_rewrapped=False) if self._place is not None else 0
        wanted, y = -1, seen
        while wanted != (target := stack.top(index) + stack.gap(index) + row):
            wanted = target
            y = seen if seen < target < seen + height - 1 else max(0, target - height // 3)
            y = max(0, min(y, stack.total_rows - height))
            stack.measure(y, height)
        self._put(y)
