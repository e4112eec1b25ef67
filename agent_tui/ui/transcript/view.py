"""The chat: what the program tells it to show, and what the user does with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.reactive import var
from textual.selection import Selection
from textual.timer import Timer

from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    Block,
    BlockId,
    DetailedBlock,
    NoticeBlock,
    ReplyMark,
    SpokenBlock,
    ThinkingBlock,
    ToolBlock,
    WelcomeBlock,
)
from agent_tui.ui.transcript.live_reply import LiveReply, PieceKind, merge_pieces
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.plain import plain_texts
from agent_tui.ui.transcript.stack import Item, RowAnchor, block_selection, can_toggle, word_at
from agent_tui.ui.transcript.stack_view import RowMarker, StackView


@dataclass(frozen=True, slots=True)
class _Before:
    """What the view showed when it was held."""

    place: RowAnchor | None
    width: int
    is_following: bool


class HeldView(StackView):
    """A `StackView` that can be held: then nothing moves it but who holds it."""

    def __init__(self) -> None:
        super().__init__()
        self._before: _Before | None = None

    def hold(self, marker: RowMarker) -> None:
        """Stand still from now on, with what `marker` marks on the rows."""
        self._marker = marker
        self._before = _Before(self._place, self._stack.painter.width, self._is_following)
        self._set_following(False)

    @property
    def held_at(self) -> BlockId:
        """The first visible block when it was held."""
        place = self._before.place if self._before is not None else None
        return 0 if place is None else place.id

    def let_go(self, *, stays: bool) -> None:
        """Hold it no longer: it stays where it is, or returns to where it was held."""
        before = self._before
        if before is None:
            return
        self._marker = self._before = None
        if stays:
            height = self.scrollable_content_region.height
            self._set_following(self.scroll_offset.y >= self._stack.total_rows - height)
        elif before.is_following:
            self.follow_end()
        else:
            self._place = before.place
            self._settle(is_rewrapped=before.width != self._stack.painter.width)
        self.refresh()

    def reveal(self, block_id: BlockId, row: int) -> None:
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


FLUSH_INTERVAL_S = 0.08
"""Streamed text is shown 12 times a second: more would be paid for by the echo of keys."""

_FLUSH_SHARE = 6
"""After a flush, at least this many times its duration is left to everything else."""

_MAX_LIVE_CHARS = 32_000
"""Output of a running command that is kept for the screen."""


class Transcript(HeldView):
    """The whole conversation as one widget."""

    @dataclass
    class StartChosen(Message):
        """Something to begin with was clicked."""

        draft: str

    show_thinking: var[bool] = var(False, init=False)
    """Whether reasoning is shown in full instead of one line."""

    def __init__(self) -> None:
        super().__init__()
        self._by_call: dict[str, BlockId] = {}
        self._details_expanded = False
        self._reply = LiveReply(self._stack)
        self._arrived: list[tuple[PieceKind, str]] = []
        self._live_output: dict[str, list[tuple[str, int]]] = {}
        self._flush_timer: Timer | None = None
        self._next_flush_s = 0.0
        self._pressed_at: Offset | None = None

    # Blocks ------------------------------------------------------------------------------

    def append(self, block: Block) -> BlockId:
        """Put a block at the end; it is in sight at once if the view follows the end."""
        item = self._add(block)
        if not self._is_following:
            self._new_count += 1
            self.post_message(self.FollowChanged(False, self._new_count))
        self._settle_changed()
        return item.id

    def tell(self, notice: NoticeBlock) -> None:
        """Put a notice at the end, in place of the same one among the newest notices."""
        for item in reversed(list(self._stack)):
            if not isinstance(item.block, NoticeBlock):
                break
            if item.block.text == notice.text:
                self.remove_block(item.id)
                break
        self.append(notice)

    def replace(self, block_id: BlockId, block: Block) -> None:
        """Show other data in the place of a block. A block that is gone stays gone."""
        index = self._stack.index(block_id)
        if index is not None:
            self._stack.replace(index, block)
            self._register(block_id, block)
            self._settle_changed()

    def replace_first(self, block: Block) -> None:
        """Show other data in the place of the first block, if there is one."""
        if (first := self._stack.first_id) is not None:
            self.replace(first, block)

    def remove_block(self, block_id: BlockId) -> None:
        """Remove a block."""
        index = self._stack.index(block_id)
        if index is not None:
            self._stack.remove(index)
            self._settle_changed()

    def load(self, blocks: Sequence[Block]) -> None:
        """Show another conversation: its last screen at once, the rest when there is time."""
        self._forget()
        for block in blocks:
            self._add(block)
        self._settle_changed()

    def prepend(self, blocks: Sequence[Block]) -> None:
        """Put what was said before a compaction on top, dimmed; the screen stays as it is."""
        for item in self._stack.prepend(blocks):
            item.is_expanded = self._details_expanded and isinstance(item.block, DetailedBlock)
        self._shift()
        self._wake()

    def dim_above(self, spoken: int) -> None:
        """Dim all but the newest blocks: so many of what was said, and what stands between."""
        index = len(self._stack)
        while index:
            is_spoken = isinstance(self._stack[index - 1].block, SpokenBlock)
            if is_spoken and not spoken:
                break
            index -= 1
            spoken -= is_spoken
        self._stack.dim_above(index)
        self._settle_changed()

    def keep_from(self, block_id: BlockId) -> None:
        """Remove all blocks above one; they must be out of sight."""
        self._stack.remove_above(self._stack.nearest(block_id))
        self._settle_changed()

    @property
    def first_id(self) -> BlockId | None:
        """The block at the top."""
        return self._stack.first_id

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks from top to bottom."""
        return tuple(item.block for item in self._stack)

    @property
    def last_reply_text(self) -> str:
        """The Markdown of the newest reply with text, or nothing."""
        self._flush()
        for block in reversed(self.blocks):
            if isinstance(block, AssistantBlock) and block.markdown.strip():
                return block.markdown
        return ""

    def to_text(self) -> str:
        """The whole conversation as plain text, safe to print."""
        self._flush()
        columns = self.size.width
        return "\n\n".join(plain_texts(self.blocks, columns, newest_first=False))

    # A streaming reply -------------------------------------------------------------------

    def start_reply(self) -> BlockId:
        """Begin a reply; it takes no rows until its first text arrives."""
        return self._reply.begin()

    def stream_text(self, delta: str) -> None:
        """Add visible text to the reply."""
        self._arrived.append(("text", delta))
        self._wake_flush()

    def stream_thinking(self, delta: str) -> None:
        """Add reasoning to the reply."""
        self._arrived.append(("thinking", delta))
        self._wake_flush()

    def finish_reply(self, mark: ReplyMark = "", note: str = "") -> Sequence[BlockId]:
        """Finish the reply; `mark` and `note` say how it ended if it did not end well.

        Returns:
            Its blocks.
        """
        self._flush()
        blocks = self._reply.close(mark, note)
        self._settle_changed()
        return blocks

    def discard_reply(self) -> None:
        """Remove the present reply."""
        self._arrived.clear()
        for block_id in self._reply.forget():
            self.remove_block(block_id)

    def append_tool_output(self, call_id: str, text: str, skipped_lines: int = 0) -> None:
        """Add output of a running tool or command; its last lines are shown.

        `skipped_lines` came before `text` and are only counted.
        """
        self._live_output.setdefault(call_id, []).append((text, skipped_lines))
        self._wake_flush()

    # Folding -----------------------------------------------------------------------------

    def toggle(self, block_id: BlockId) -> None:
        """Unfold or fold a block; the row at the top of the screen stays where it is."""
        index = self._stack.index(block_id)
        if index is None or not can_toggle(self._stack[index].block):
            return
        item = self._stack[index]
        item.is_expanded = not item.is_expanded
        self._stack.invalidate(index)
        self._settle_in_place()

    def toggle_details(self) -> bool:
        """Unfold all output, pastes and summaries, also those to come, or fold them.

        Returns:
            Whether they are unfolded now.
        """
        self._details_expanded = not self._details_expanded
        for index, item in enumerate(self._stack):
            if isinstance(item.block, DetailedBlock) and item.is_expanded != self._details_expanded:
                item.is_expanded = self._details_expanded
                self._stack.invalidate(index)
        self._settle_changed()
        return self._details_expanded

    def watch_show_thinking(self) -> None:
        """Fold or unfold all reasoning."""
        self._stack.painter.show_thinking = self.show_thinking
        for index, item in enumerate(self._stack):
            if isinstance(item.block, ThinkingBlock):
                self._stack.invalidate(index)
        self._settle_changed()

    @property
    def _inset(self) -> int:
        """Centre a greeting until the first message."""
        first = self._stack[0].block if len(self._stack) else None
        if not isinstance(first, WelcomeBlock) or first.is_begun:
            return 0
        return max(0, self.scrollable_content_region.height - self._stack.total_rows) // 2

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where: only a press and release on one cell is a click."""
        self._pressed_at = event.screen_offset

    def on_click(self, event: events.Click) -> None:
        """A click folds or unfolds; two select the word, three the whole block."""
        event.prevent_default()
        found = self._row_at(event.get_content_offset(self))
        if found is None or event.screen_offset != self._pressed_at:
            return
        index, line = found
        block_id = self._stack[index].id
        if line.draft:
            self.post_message(self.StartChosen(line.draft))
        elif line.toggles:
            self.toggle(block_id)
        elif event.chain == 2:
            self._select_word(event)
        elif event.chain == 3:
            self._select(block_selection(block_id, len(self._stack.rows(index))))

    def _select_word(self, event: events.Click) -> None:
        _, offset = self.screen.get_widget_and_offset_at(event.screen_x, event.screen_y)
        found = self._row_at(event.get_content_offset(self))
        if offset is not None and found is not None:
            start, end = word_at(found[1], offset.x)
            self._select(Selection(Offset(start, offset.y), Offset(end, offset.y)))

    def _select(self, selection: Selection) -> None:
        self.screen.selections = {self: selection}

    # Inside ------------------------------------------------------------------------------

    def _painter(self, width: int) -> BlockPainter:
        return BlockPainter(self._palette, self._parser, width, show_thinking=self.show_thinking)

    def on_mount(self) -> None:
        """Begin to show what streams in."""
        self._flush_timer = self.set_interval(FLUSH_INTERVAL_S, self._flush_if_due, pause=True)
        self._wake_flush()

    def _add(self, block: Block) -> Item:
        item = self._stack.append(block)
        item.is_expanded = self._details_expanded and isinstance(block, DetailedBlock)
        self._register(item.id, block)
        return item

    def _register(self, block_id: BlockId, block: Block) -> None:
        if isinstance(block, ToolBlock | BashBlock):
            self._by_call[block.call_id] = block_id
            self._live_output.pop(block.call_id, None)

    def _forget(self) -> None:
        self._stack.clear()
        self._by_call.clear()
        self._reply.forget()
        self._arrived.clear()
        self._live_output.clear()
        self._set_following(True)

    def _settle_changed(self) -> None:
        """Draw what is in sight after blocks came, went or changed."""
        self._settle()
        self._wake()
        self.refresh()

    def _wake_flush(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.resume()

    def _flush_if_due(self) -> None:
        if not (self._arrived or self._live_output) and self._flush_timer is not None:
            self._flush_timer.pause()
        elif perf_counter() >= self._next_flush_s:
            self._flush()

    def _flush(self) -> None:
        """Show everything that arrived; the next flush waits the longer this one takes."""
        started_s = perf_counter()
        arrived, self._arrived = self._arrived, []
        for kind, text in merge_pieces(arrived):
            if (index := self._reply.extend(kind, text)) is not None:
                self._redraw(index)
        outputs, self._live_output = self._live_output, {}
        for call_id, parts in outputs.items():
            text = "".join(text for text, _ in parts)
            self._extend_output(call_id, text, sum(skipped for _, skipped in parts))
        now_s = perf_counter()
        self._next_flush_s = now_s + _FLUSH_SHARE * (now_s - started_s)

    def _extend_output(self, call_id: str, text: str, skipped_lines: int) -> None:
        index = self._stack.index(self._by_call.get(call_id, 0))
        if index is None:
            return
        block = self._stack[index].block
        if isinstance(block, ToolBlock | BashBlock):
            output = whole = block.output + text
            if len(output) > _MAX_LIVE_CHARS:
                output = output[-_MAX_LIVE_CHARS:].partition("\n")[2] or output[-_MAX_LIVE_CHARS:]
            cut = whole.count("\n") - output.count("\n") + skipped_lines
            grown = replace(block, output=output, lines_before=block.lines_before + cut)
            self._stack.grow(index, grown)
            self._redraw(index)

    def _redraw(self, index: int) -> None:
        """Draw a block that grew; only rows that differ are painted again."""
        before = self._stack[index].rows or []
        for _ in self._stack.drawing(index):
            pass
        after = self._stack[index].rows or []
        changed = next(
            (row for row, (old, new) in enumerate(zip(before, after, strict=False)) if old != new),
            min(len(before), len(after)),
        )
        if len(before) != len(after):
            self._settle()
        self._refresh_from(index, changed)
