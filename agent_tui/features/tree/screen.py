"""The tree of messages: go back to an earlier one, fork from it, label or mark it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.types import CSSPathType
from textual.widgets import Input

from agent_tui.commands.core.front import Choice, Question
from agent_tui.errors import AgentTuiError
from agent_tui.features.tree.branches import Branches
from agent_tui.features.tree.choice import TreeAction, TreeChoice
from agent_tui.features.tree.rows import MessageTree, TreeRow, TreeRowKind
from agent_tui.safe_text import safe_text
from agent_tui.sessions.lineage.entry_text import entry_text
from agent_tui.sessions.lineage.joined import JoinedTree
from agent_tui.sessions.replay.marks import Mark
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.parts import KeysLine, any_app
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.screens.session_preview import preview_lines
from agent_tui.ui.transcript.blocks import AssistantBlock, Block, NoticeBlock

_PREVIEW_ROWS = 60
"""Of the message, and of its answer."""

_RESULT_CHARS = 3_000
_KEYS = "enter go back · s summarise · f fork · l label · m mark · t {filter} · esc close"
_SEARCH_KEYS = "↑↓ move · enter go back · esc end the search"
_MARKS: tuple[Choice[Mark | Literal["none"]], ...] = (
    Choice("keep", "keep it whole in the next compaction", "n"),
    Choice("pin", "keep it whole in every compaction", "e"),
    Choice("drop", "leave it out: the model no longer sees it", "d"),
    Choice("none", "clear the mark", "c"),
)
_KIND_NAMES: dict[TreeRowKind, str] = {
    "person": "you",
    "command": "your command",
    "reply": "the model",
    "result": "a result",
    "compaction": "a compaction",
    "branch summary": "a branch you left",
    "note": "a note",
}
_ROW_SIGNS: dict[TreeRowKind, tuple[str, str]] = {
    "person": ("›", "$primary"),
    "command": ("!", "$text-warning"),
    "reply": (" ", ""),
    "result": ("↳", "$foreground-disabled"),
    "compaction": ("≡", "$text-accent"),
    "branch summary": ("≡", "$text-accent"),
    "note": ("i", "$text-accent"),
}
"""The sign before the text, and its colour."""

MARK_NAMES: dict[Mark, str] = {"keep": "kept", "pin": "always kept", "drop": "left out"}
_HERE = "  here"


class TreeScreen(PickerScreen[TreeChoice]):
    """Returns what is to be done, or nothing.

    Args:
        branches: The session, with those it was compacted from.

    Attributes:
        tree_rows: The messages that are shown.
    """

    app = getters.app(any_app)
    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/picker.tcss",
        "screen.tcss",
    ]
    heading = "Go back to an earlier message"
    placeholder = "/ searches messages"
    nothing = "No messages yet."
    has_preview = True
    searches_at_once = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    keeps_place = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose('go back')", "Go back"),
        Binding("s", "choose('summarise')", "Go back with a summary"),
        Binding("f", "choose('fork')", "Fork"),
        Binding("l", "label", "Label"),
        Binding("m", "mark", "Keep or leave out"),
        Binding("t", "toggle_filter", "Everything"),
        Binding("slash", "search", "Search"),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self._branches = branches
        self._tree: MessageTree | None = None
        self.tree_rows: list[TreeRow] = []
        self._shows_everything = False

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        if self._field.has_focus:
            return _SEARCH_KEYS
        return _KEYS.format(filter="less" if self._shows_everything else "all")

    async def _load(self) -> None:
        """Show the present session at once, and what was before compactions when it is read."""
        trees = self._branches.trees()
        await self._show_tree(next(trees))
        if (whole := await asyncio.to_thread(_last, trees)) is not None:
            await self._show_tree(whole)

    async def _show_tree(self, tree: JoinedTree) -> None:
        self._tree = await asyncio.to_thread(MessageTree, tree.entries, tree.leaf_id)
        self.standing_note = tree.unread
        await self._fill()

    async def _fill(self) -> None:
        """Show the rows that are wanted now."""
        assert self._tree is not None
        everything = self._shows_everything
        self.tree_rows = await asyncio.to_thread(
            self._tree.rows, everything=everything, wanted=self.wanted
        )
        self.show_rows([_row(row) for row in self.tree_rows])

    def search(self) -> None:
        """Look for the text in a thread: there may be a great many messages."""
        if self._tree is not None:  # otherwise the loader fills in the rows
            self.run_worker(self._fill, group="tree", exclusive=True)

    def matching(self, wanted: str) -> Sequence[PickerRow[TreeChoice]]:
        """The rows unchanged: they were searched when they were made."""
        return self._rows

    def first_row(self, rows: Sequence[PickerRow[TreeChoice]]) -> int:
        """The row of the conversation's present place."""
        return next((i for i, row in enumerate(self.tree_rows) if row.is_here), len(rows) - 1)

    def take_click(self, index: int) -> None:
        """Move to a row; a click on the current one goes back to it."""
        if index == self._list.current:
            self.action_choose("go back")
        else:
            self._list.move_to(index)

    @property
    def _current(self) -> TreeRow | None:
        return self.tree_rows[self._list.current] if self.present_row is not None else None

    @on(Input.Blurred, "#picker-search")
    def _search_left(self) -> None:
        self._show_keys()

    def action_search(self) -> None:
        """Type into the search field."""
        super().action_search()
        self.call_after_refresh(self._show_keys)

    def action_choose(self, action: TreeAction) -> None:
        """Close with the current row."""
        if (row := self._current) is not None:
            self.dismiss(TreeChoice(row.entry.id, action))

    def action_toggle_filter(self) -> None:
        """Show everything, or only what one goes back to."""
        self._shows_everything = not self._shows_everything
        self._show_keys()
        self.search()

    def action_label(self) -> None:
        """Ask for the label of the current row."""
        if (row := self._current) is not None:
            screen = LineInputScreen(
                "Label this message", row.title, row.label, empty_means="removes it"
            )
            self.app.push_screen(screen, lambda text: self._label(row, text))

    def _label(self, row: TreeRow, text: str | None) -> None:
        if text is not None and text != row.label:
            self._change(partial(self._branches.label, row.entry.id, text))

    def _change(self, change: Callable[[], Awaitable[object]]) -> None:
        """Change an entry, and show the tree as it is then."""
        self.run_worker(self._load_after(change), group="tree", exclusive=True)

    async def _load_after(self, change: Callable[[], Awaitable[object]]) -> None:
        try:
            await change()
        except AgentTuiError as error:
            self.notify(str(error), severity="error", markup=False)
        await self._load()

    def action_mark(self) -> None:
        """Ask how to mark the current message."""
        if (row := self._current) is not None:
            marked = next((i for i, one in enumerate(_MARKS) if one.value == row.mark), 0)
            title, facts = "What becomes of this message?", (row.title,)
            screen = ChoiceScreen(Question(title, facts, _MARKS, marked=marked))
            self.app.push_screen(screen, lambda mark: self._mark(row, mark))

    def _mark(self, row: TreeRow, mark: Mark | Literal["none"] | None) -> None:
        if mark is not None:
            wanted = mark if mark != "none" else None
            self._change(partial(self._branches.mark, row.entry.id, wanted))

    def _show_keys(self) -> None:
        self.query_one("#picker-keys", KeysLine).update(self.keys_hint)

    def row_highlighted(self, row: PickerRow[TreeChoice]) -> None:
        """Show the message beside the tree, and its answer."""
        if (shown := self._current) is not None and self._tree is not None:
            blocks = preview_blocks(shown, self._tree)
            paint = partial(preview_lines, blocks, self.wanted, most_rows=_PREVIEW_ROWS)
            self.preview_end.show(paint)


def _row(row: TreeRow) -> PickerRow[TreeChoice]:
    choice = TreeChoice(row.entry.id, "go back")
    return PickerRow(choice, "", preview=Content(preview_head(row)), line=partial(row_content, row))


def preview_head(row: TreeRow) -> str:
    """The role of the message or who pushed it, its branch, and its label."""
    pulled_from = row.entry.pulled_from
    parts = [pulled_from if pulled_from and row.kind == "person" else _KIND_NAMES[row.kind]]
    if not row.is_on_path:
        parts.append("on another branch")
    if row.label:
        parts.append(row.label)
    if row.mark:
        parts.append(MARK_NAMES[row.mark])
    return safe_text(" · ".join(parts), keep_newlines=False)


def preview_blocks(row: TreeRow, tree: MessageTree) -> Sequence[Block]:
    """The message as the chat shows it, and for one of the user's what the model answered."""
    entries = tree.with_results(row.entry)
    blocks = blocks_of(entries) or [NoticeBlock("info", entry_text(row.entry, _RESULT_CHARS))]
    if row.kind == "person" and (answer := tree.answer_to(row.entry.id)):
        blocks.append(AssistantBlock(answer.strip()))
    return blocks


def _last(trees: Iterator[JoinedTree]) -> JoinedTree | None:
    """The last of `trees`; None if there are no more. Reads files."""
    return next(iter(deque(trees, maxlen=1)), None)


def row_content(row: TreeRow, width: int) -> Content:
    """One row, exactly `width` cells wide."""
    mark, mark_style = ("•", "$primary") if row.is_on_path else (" ", "")
    sign, sign_style = _ROW_SIGNS[row.kind]
    text_style = "$foreground" if row.is_on_path else "$foreground-muted"
    if row.kind not in ("person", "command"):
        text_style = "$foreground-muted"
    label = safe_text(row.label, keep_newlines=False)
    left = Content.assemble(
        (f"{mark} ", mark_style),
        (row.guide, "$foreground-disabled"),
        (f"{sign} ", sign_style),
        (f"[{label}] " if label else "", "bold $text-success"),
        (f"({MARK_NAMES[row.mark]}) " if row.mark else "", "$text-warning"),
        (safe_text(row.title, keep_newlines=False), text_style),
    )
    end = Content.assemble((_HERE, "$foreground-muted")) if row.is_here else Content("")
    room = max(width - end.cell_length, 1)
    return Content.assemble(left.truncate(room, ellipsis=True, pad=True), end)
