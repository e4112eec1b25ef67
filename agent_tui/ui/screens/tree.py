"""The tree of what was said: go back to an earlier message, fork from it, label or mark it."""

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar, Literal

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Input, Static

from agent_tui.agent.session.branches import Branches
from agent_tui.commands.core.questions import Choice, Question
from agent_tui.commands.tree import TreeAction, TreeChoice
from agent_tui.errors import AgentTuiError
from agent_tui.safe_text import safe_text
from agent_tui.sessions.lineage.joined import JoinedTree
from agent_tui.sessions.lineage.message_tree import MessageTree, RowKind, TreeRow, row_text
from agent_tui.sessions.replay.marks import Mark
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.parts import KeysLine, PaintedLines, any_app
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.line_input import LineInputScreen
from agent_tui.ui.screens.picker import MARK_NAMES, FramedList, TreeList
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
_KIND_NAMES: dict[RowKind, str] = {
    "person": "you",
    "command": "your command",
    "reply": "the model",
    "result": "a result",
    "compaction": "a compaction",
    "branch summary": "a branch you left",
    "note": "a note",
}


class TreeScreen(FramedList[TreeChoice]):
    """Returns what is to be done, or nothing.

    Args:
        branches: The session, with those it was compacted from.
    """

    app = getters.app(any_app)

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "picker.tcss", "tree.tcss"]
    AUTO_FOCUS: ClassVar[str | None] = ""
    heading = "Go back to an earlier message"
    placeholder = "/ searches messages"
    has_preview = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close"),
        Binding("enter", "choose('go back')", "Go back"),
        Binding("s", "choose('summarise')", "Go back with a summary"),
        Binding("f", "choose('fork')", "Fork"),
        Binding("l", "label", "Label"),
        Binding("m", "mark", "Keep or leave out"),
        Binding("t", "toggle_filter", "Everything"),
        Binding("slash", "search", "Search"),
        Binding("up", "move(-1)", "Up", priority=True),
        Binding("down", "move(1)", "Down", priority=True),
        Binding("pageup", "move(-8)", "Page up", priority=True),
        Binding("pagedown", "move(8)", "Page down", priority=True),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    def __init__(self, branches: Branches) -> None:
        super().__init__()
        self._branches = branches
        self._tree: MessageTree | None = None
        self._unread = ""
        self._shows_everything = False

    def make_list(self) -> Widget:
        """The tree."""
        return TreeList(id="picker-list")

    def on_mount(self) -> None:
        """Load behind the first paint."""
        self._show_keys()
        self.run_worker(self._load_tree, group="tree", exclusive=True)

    async def _load_tree(self) -> None:
        """Show the present session at once, and what was before compactions when it is read."""
        trees = self._branches.trees()
        await self._show_tree(next(trees))
        if (whole := await asyncio.to_thread(_last, trees)) is not None:
            await self._show_tree(whole)

    async def _show_tree(self, tree: JoinedTree) -> None:
        self._tree = await asyncio.to_thread(MessageTree, tree.entries, tree.leaf_id)
        self._unread = tree.unread
        await self._fill()

    async def _fill(self) -> None:
        """Show the rows that are wanted now; the current one stays if it is among them."""
        tree = self._tree
        assert tree is not None
        wanted = self._search.value
        before = self._list.current
        everything = self._shows_everything
        rows = await asyncio.to_thread(tree.rows, everything=everything, wanted=wanted)
        self._list.show(rows, _start(rows, before))
        message = self.query_one("#picker-message", Static)
        message.display = not rows or bool(self._unread)
        nothing = f"Nothing matches {wanted!r}." if wanted.strip() else "No messages yet."
        shown = (nothing if not rows else "", self._unread)
        message.update("\n".join(filter(None, shown)))
        self._show_preview()

    @property
    def _list(self) -> TreeList:
        return self.query_one("#picker-list", TreeList)

    @property
    def _search(self) -> Input:
        return self.query_one("#picker-search", Input)

    def _refill(self) -> None:
        if self._tree is None:
            return  # what loads it fills in the rows
        self.run_worker(self._fill, group="tree", exclusive=True)

    @on(Input.Changed, "#picker-search")
    def _search_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._refill()

    @on(Input.Submitted, "#picker-search")
    def _search_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_choose("go back")

    @on(Input.Blurred, "#picker-search")
    def _search_left(self) -> None:
        self._show_keys()

    @on(TreeList.Moved)
    def _moved(self, event: TreeList.Moved) -> None:
        event.stop()
        self._show_preview()

    @on(TreeList.Clicked)
    def _clicked(self, event: TreeList.Clicked) -> None:
        event.stop()
        self.action_choose("go back")

    def action_move(self, step: int) -> None:
        """Move to another row, also while the search field has the keys."""
        self._list.move(step)

    def action_choose(self, action: TreeAction) -> None:
        """Close with the current row."""
        if (row := self._list.current) is not None:
            self.dismiss(TreeChoice(row.entry.id, action))

    def action_search(self) -> None:
        """Type into the search field."""
        self._search.focus()
        self._show_keys(is_searching=True)

    def action_leave(self) -> None:
        """End the search, else close."""
        if self._search.has_focus:
            self._search.value = ""
            self.set_focus(None)
        else:
            self.dismiss(None)

    def action_toggle_filter(self) -> None:
        """Show everything, or only what one goes back to."""
        self._shows_everything = not self._shows_everything
        self._show_keys()
        self._refill()

    def action_label(self) -> None:
        """Ask for the label of the current row."""
        if (row := self._list.current) is not None:
            screen = LineInputScreen(
                "Label this message", row.title, row.label, empty_means="removes it"
            )
            self.app.push_screen(screen, lambda text: self._label(row, text))

    def _label(self, row: TreeRow, text: str | None) -> None:
        if text is not None and text != row.label:
            self.run_worker(self._set_label(row.entry.id, text), group="tree", exclusive=True)

    async def _set_label(self, entry_id: str, text: str) -> None:
        try:
            await self._branches.label(entry_id, text)
        except AgentTuiError as error:
            self.notify(str(error), severity="error", markup=False)
        await self._load_tree()

    def action_mark(self) -> None:
        """Ask what is to become of the current message."""
        if (row := self._list.current) is not None:
            marked = next((i for i, one in enumerate(_MARKS) if one.value == row.mark), 0)
            title, facts = "What becomes of this message?", (row.title,)
            screen = ChoiceScreen(Question(title, facts, _MARKS, marked=marked))
            self.app.push_screen(screen, lambda mark: self._mark(row, mark))

    def _mark(self, row: TreeRow, mark: Mark | Literal["none"] | None) -> None:
        if mark is not None:
            wanted = mark if mark != "none" else None
            self.run_worker(self._set_mark(row.entry.id, wanted), group="tree", exclusive=True)

    async def _set_mark(self, entry_id: str, mark: Mark | None) -> None:
        try:
            await self._branches.mark(entry_id, mark)
        except AgentTuiError as error:
            self.notify(str(error), severity="error", markup=False)
        await self._load_tree()

    def _show_keys(self, *, is_searching: bool = False) -> None:
        keys = _KEYS.format(filter="less" if self._shows_everything else "all")
        hint = self.query_one("#picker-keys", KeysLine)
        hint.update(_SEARCH_KEYS if is_searching else keys)

    def _show_preview(self) -> None:
        row, tree = self._list.current, self._tree
        head: str = ""
        blocks: Sequence[Block] = ()
        if row is not None and tree is not None:
            head, blocks = preview_head(row), preview_blocks(row, tree)
        paint = partial(preview_lines, blocks, self._search.value, most_rows=_PREVIEW_ROWS)
        self.query_one("#picker-preview-text", Static).update(head)
        self.query_one("#picker-preview-end", PaintedLines).show(paint)
        self.query_one("#picker-preview").scroll_home(animate=False)


def _start(rows: list[TreeRow], before: TreeRow | None) -> int:
    """The row to begin at: the one that was current, else where the conversation is."""
    ids = [row.entry.id for row in rows]
    if before is not None and before.entry.id in ids:
        return ids.index(before.entry.id)
    return next((i for i, row in enumerate(rows) if row.is_here), len(rows) - 1)


def preview_head(row: TreeRow) -> str:
    """Whose message it is, where it stands, and its label."""
    parts = [_KIND_NAMES[row.kind]]
    if not row.is_on_path:
        parts.append("on another branch")
    if row.label:
        parts.append(row.label)
    if row.mark:
        parts.append(MARK_NAMES[row.mark])
    return safe_text(" · ".join(parts), keep_newlines=False)


def preview_blocks(row: TreeRow, tree: MessageTree) -> Sequence[Block]:
    """The message as the chat shows it, and for one of the person's what the model answered."""
    entries = tree.with_results(row.entry)
    blocks = blocks_of(entries) or [NoticeBlock("info", row_text(row.entry, _RESULT_CHARS))]
    if row.kind == "person" and (answer := tree.answer_to(row.entry.id)):
        blocks.append(AssistantBlock(answer.strip()))
    return blocks


def _last(trees: Iterator[JoinedTree]) -> JoinedTree | None:
    """The last of `trees`; None where there are no more. Reads files."""
    return next(iter(deque(trees, maxlen=1)), None)
