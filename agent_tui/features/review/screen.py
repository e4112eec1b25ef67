"""The screen of a review: files and their changes, and what is done with them."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import ClassVar

from textual import events, getters, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Region
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.core.front import Front, Page, PageSection, TextQuestion, loss_question
from agent_tui.commands.core.registry import load_commands
from agent_tui.commands.core.short_words import count_text
from agent_tui.errors import AgentTuiError
from agent_tui.events import Notice
from agent_tui.features.review.actions import ReviewActions
from agent_tui.features.review.changes import FileChange, Hunk
from agent_tui.features.review.comments import (
    Comment,
    CommentState,
    comment_on,
)
from agent_tui.features.review.layout import line_at, selected_lines
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.features.review.view import ReviewView, count_words, list_files
from agent_tui.safe_text import safe_text
from agent_tui.text_editor import edit_text
from agent_tui.ui.parts import KeysLine, PaintedLines, any_app
from agent_tui.ui.screens.modal import Modal, PageScreen
from agent_tui.ui.terminal.scrollback import wait_for_enter
from agent_tui.ui.window import edit_file

_LOOK_S = 2.0
"""Seconds between looks whether the files changed."""

_WITH_FILES = 100
"""From this width of the screen on, the files are also listed beside the changes."""

_REMARK = "# Lines with # are left out. An empty message stops the commit."
_NEXT = {"last": "session", "session": "git", "git": "last"}
_KEYS: tuple[tuple[str, str], ...] = (
    ("↑ ↓, j k", "move; with shift, select lines"),
    ("n, p", "next and previous hunk"),
    ("], [", "next and previous file"),
    ("space", "mark the file as reviewed; the mark goes when the file changes"),
    ("enter", "fold and unfold a file"),
    ("c", "comment on the line, the selected lines or the file; on a comment, change it"),
    ("m", "send all comments to the model as one message"),
    ("r", "mark a comment as resolved, or open it again"),
    ("a, d", "keep what the helper found; drop a comment"),
    ("x", "take the hunk back; /undo offers to redo it"),
    ("s", "stage the hunk or the file, or unstage it"),
    ("C", "commit what is staged"),
    ("e", "open the editor there"),
    ("w", "ask /why about the line"),
    ("t", "show the changes since your last message, of the session, or not committed"),
    ("esc, q", "close"),
)


class ReviewScreen(Modal[None]):
    """Shows changes, and lets the user act on them.

    Args:
        front: Where questions are asked.
        loader: Finds the changes again.
        actions: Acts on them.
        review: What is shown first.

    Attributes:
        review: What is shown.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["../../ui/screens/modal.tcss", "screen.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close"),
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("shift+up,K", "select(-1)", "Select", show=False),
        Binding("shift+down,J", "select(1)", "Select", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "end(-1)", "First", show=False),
        Binding("end,G", "end(1)", "Last", show=False),
        Binding("n", "go('hunk', 1)", "Next hunk"),
        Binding("p", "go('hunk', -1)", "Previous hunk"),
        Binding("right_square_bracket,tab", "go('file', 1)", "Next file"),
        Binding("left_square_bracket,shift+tab", "go('file', -1)", "Previous file"),
        Binding("space", "review", "Reviewed"),
        Binding("enter", "open", "Fold, or change a comment"),
        Binding("c", "comment", "Comment"),
        Binding("m", "send", "Send"),
        Binding("r", "resolve", "Resolved"),
        Binding("a", "set('open')", "Keep"),
        Binding("d", "set('dropped')", "Drop"),
        Binding("x", "take_back", "Take back"),
        Binding("s", "stage", "Stage"),
        Binding("C", "commit", "Commit"),
        Binding("e", "edit", "Edit"),
        Binding("w", "why", "Why"),
        Binding("t", "turn", "Other changes"),
        Binding("question_mark", "help", "Keys"),
    ]
    app = getters.app(any_app)

    def __init__(
        self, front: Front, loader: ReviewLoader, actions: ReviewActions, review: Review
    ) -> None:
        super().__init__()
        self._front = front
        self._loader = loader
        self._actions = actions
        self.review = review
        self._seen: object = None
        self._uncommitted = ""
        self._drafts: dict[str, str] = {}

    # Drawing

    def compose(self) -> ComposeResult:
        """Title, files, changes, keys."""
        with Vertical(id="review", classes="frame"):
            yield Static(id="page-title", markup=False)
            with Horizontal(id="review-body"):
                with VerticalScroll(id="review-files", can_focus=False):
                    yield FileList(id="review-list")
                yield ReviewView(id="review-view")
            yield KeysLine(id="page-keys")

    def on_mount(self) -> None:
        """Show the first changes, and look for later ones."""
        self._draw()
        self.set_interval(_LOOK_S, self.look)

    def on_resize(self) -> None:
        """Show the list of files if there is room."""
        self.set_class(self.app.size.width >= _WITH_FILES, "-with-files")
        self.when_drawn(self._draw_frame)

    @property
    def _view(self) -> ReviewView:
        return self.query_one(ReviewView)

    def _draw(self) -> None:
        if self.query(ReviewView):  # what was begun may end after the screen was closed
            self._view.show(self.review)
            self._draw_frame()

    def _draw_frame(self) -> None:
        title = f"Changes {self.review.title} · {count_words(self.review)}"
        self.query_one("#page-title", Static).update(safe_text(title, keep_newlines=False))
        self.query_one("#page-keys", KeysLine).update(self._hint())
        number = self._file_number
        self.query_one(FileList).show_files(self.review, number)
        if number >= 0:
            self.query_one("#review-files").scroll_to_region(
                Region(0, number, 1, 1), animate=False, force=True
            )

    def _hint(self) -> str:
        item = self._view.item
        keys = ["c comment", "space reviewed", "x take back", "s stage"]
        if item is not None and item.comment is not None:
            state = item.comment.state
            keys = ["c change", "d drop", "a keep" if state == "found" else "r resolved"]
        if self.review.state.unsent():
            keys.insert(0, "m send")
        return " · ".join([*keys, "t other changes", "? keys", "esc close"])

    @property
    def _file_number(self) -> int:
        item = self._view.item
        return item.file if item is not None else -1

    @on(ReviewView.CursorMoved)
    def _follow_cursor(self) -> None:
        self._draw_frame()

    # What the cursor is on

    @property
    def _change(self) -> FileChange | None:
        number = self._file_number
        return self.review.changes[number] if number >= 0 else None

    @property
    def _hunk(self) -> Hunk | None:
        item, change = self._view.item, self._change
        if item is None or change is None or item.hunk < 0:
            return None
        return change.hunks[item.hunk]

    @property
    def _comment(self) -> Comment | None:
        item = self._view.item
        return item.comment if item is not None else None

    # Moving

    def action_move(self, step: int) -> None:
        """Move by one item."""
        self._view.move(self._view.cursor + step)

    def action_select(self, step: int) -> None:
        """Select one more item."""
        self._view.move(self._view.cursor + step, selects=True)

    def action_page(self, step: int) -> None:
        """Move by a screen."""
        self._view.move_page(step)

    def action_end(self, step: int) -> None:
        """Move to the first or the last item."""
        self._view.move(0 if step < 0 else len(self._view.items))

    def action_go(self, kind: str, step: int) -> None:
        """Move to the next hunk or file."""
        self._view.move_to(("hunk", "note") if kind == "hunk" else (kind,), step)

    @on(events.Click, "#review-list")
    def _go_to_file(self, event: events.Click) -> None:
        self.go_to_file(event.y)

    def go_to_file(self, number: int) -> None:
        """Put the cursor on a file."""
        items = enumerate(self._view.items)
        at = next((n for n, one in items if one.kind == "file" and one.file == number), None)
        if at is not None:
            self._view.move(at)

    def action_open(self) -> None:
        """Fold or unfold the file, or change the comment."""
        if self._comment is not None:
            self.action_comment()
        elif (change := self._change) is not None:
            self._view.fold(change.name, is_folded=change.name not in self._view.folded)

    def action_leave(self) -> None:
        """End a selection, or close; comments that were not finished return to the prompt."""
        if self._view.mark is not None:
            self._view.move(self._view.cursor)
            return
        with self._front.hold_answers() as held:
            for text in self._drafts.values():
                held.add(text)
        self.dismiss(None)

    # Comments

    def action_comment(self) -> None:
        """Write a comment, or change one."""
        self._do(self._write_comment())

    async def _write_comment(self) -> None:
        old, change = self._comment, self._change
        draft_of = old.id if old is not None else ""
        if old is None and change is None:
            return
        if old is None and change is not None:
            lines = selected_lines(self._view.selection, self.review.changes)
            side, first, last = lines or ("new", 0, 0)
            comment_id = self._actions.new_id(self.review.state)
            old = comment_on(change, side, first, last, "", comment_id)
        assert old is not None
        about = old.lines[0].strip() if old.lines else "the whole file"
        draft_of = draft_of or old.place
        question = TextQuestion(
            f"Comment on {old.place}",
            about,
            self._drafts.get(draft_of, old.text),
            "",
            is_edited=True,
            keep_unsent=lambda draft: self._drafts.update({draft_of: draft}),
        )
        text = await self._front.ask_text(question)
        if text is not None:
            self._drafts.pop(draft_of, None)
        if text:
            changed = {"text": text, "state": "open", "by": "" if old.text != text else old.by}
            self._actions.keep(self.review.state, old.model_copy(update=changed))
            self._view.mark = None
            self._draw()

    def action_set(self, to: CommentState) -> None:
        """Keep or drop a comment."""
        comment = self._comment
        if comment is not None and (to == "dropped" or comment.state == "found"):
            self._set(comment, to)

    def action_resolve(self) -> None:
        """Mark a comment as resolved, or open it again."""
        if (comment := self._comment) is not None:
            self._set(comment, "open" if comment.state == "resolved" else "resolved")

    def _set(self, comment: Comment, to: CommentState) -> None:
        async def keep() -> None:
            self._actions.keep(self.review.state, comment.model_copy(update={"state": to}))
            self._draw()

        self._do(keep())

    def action_send(self) -> None:
        """Send all comments as one message."""
        self._do(self._send())

    async def _send(self) -> None:
        count = len(self.review.state.unsent())
        message = self._actions.write_message(self.review.state)
        if not message:
            self._tell("No comments to send. c writes one.", is_problem=True)
            return
        self._tell(f"Sent {count_text(count, 'comment')}.")
        self._draw()
        await self._front.send(message)

    def action_review(self) -> None:
        """Mark the file as reviewed and fold it, or the opposite."""
        if (change := self._change) is None:
            return
        is_reviewed = not self.review.state.is_reviewed(change)

        async def mark() -> None:
            self._actions.mark_reviewed(self.review.state, change, is_reviewed=is_reviewed)
            self._draw()
            if is_reviewed:
                self._view.move_to(("file",), 1)

        self._do(mark())

    # Files

    def action_take_back(self) -> None:
        """Take the hunk back."""
        self._do(self._take_back())

    async def _take_back(self) -> None:
        change, hunk = self._present_change(), self._hunk
        if change is None:
            return
        hunks = change.hunks if hunk is None else (hunk,)
        if not hunks or (hunk is None and change.was):
            self._tell("Only changed lines can be taken back here.", is_problem=True)
            return
        if hunk is None:
            title = f"Take all changes of {change.name} back?"
            about = f"{count_text(len(hunks), 'hunk')}. /undo offers to redo it."
            if not await self._front.ask(loss_question(title, about)):
                return
        events = await self._actions.take_back(change, hunks)
        self._front.show_events(events)
        for event in events:
            if isinstance(event, Notice):
                self._tell(event.text, is_problem=event.level != "info")
        await self.reload()

    def action_stage(self) -> None:
        """Stage the hunk or the file, or unstage it."""
        self._do(self._stage())

    async def _stage(self) -> None:
        change, hunk = self._present_change(), self._hunk
        if change is None:
            return
        done = await self._actions.stage(change, hunk)
        what = change.name if hunk is None else "The hunk"
        self._tell(f"{what} is {done}. {'C commits.' if done == 'staged' else ''}".rstrip())
        await self.reload()

    def action_commit(self) -> None:
        """Commit what is staged."""
        self._do(self._commit())

    async def _commit(self) -> None:
        root, names = await self._actions.staged()
        if not names:
            self._tell("Nothing is staged. s stages a hunk or a file.", is_problem=True)
            return
        listed = "".join(f"#   {safe_text(name, keep_newlines=False)}\n" for name in names)
        draft = f"{self._uncommitted}\n\n{_REMARK}\n{listed}"
        written = edit_text(draft.rstrip("\n"), lambda file: edit_file(self.app, file))
        if written is None:
            return  # the editor failed, which was said
        lines = [line for line in written.splitlines() if not line.startswith("#")]
        if not (message := "\n".join(lines).strip()):
            self._tell("Not committed: the message is empty.", is_problem=True)
            return
        is_done = self._run_commit(root, message)
        self._uncommitted = "" if is_done else message
        if is_done:
            self._tell(f"Committed {count_text(len(names), 'file')}.")
        else:
            self._tell("Git did not commit.", is_problem=True)
        await self.reload()

    def _run_commit(self, root: Path, message: str) -> bool:
        """Run git in the terminal, where hooks print and gpg asks; whether it committed."""
        with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
            file = Path(folder) / "message"
            file.write_text(f"{message}\n", "utf-8")
            argv = self._actions.commit_argv(root, file)
            environ = _with_terminal(self._front.runtime.services.person_environ)
            try:
                with self.app.suspend():
                    done = subprocess.run(argv, cwd=root, env=environ, check=False)
                    if done.returncode:
                        print("\nEnter returns to agent-tui.", flush=True)
                        wait_for_enter()
            except SuspendNotSupported as error:
                raise AgentTuiError("This terminal cannot run git in its place.") from error
            except OSError as error:
                self._uncommitted = message
                raise AgentTuiError(f"Git cannot be started: {error.strerror}.") from error
        return done.returncode == 0

    def action_edit(self) -> None:
        """Open the editor at the line."""
        self._do(self._edit())

    async def _edit(self) -> None:
        if (change := self._present_change()) is None:
            return
        edit_file(self.app, change.path, self._line)
        await self.reload()

    def action_why(self) -> None:
        """Ask ``/why`` about the line."""
        if (change := self._present_change()) is not None and self._line:
            self._do(self._explain(f"{change.name}:{self._line}"))

    async def _explain(self, place: str) -> None:
        why = load_commands(self._front.services.plugins).find("why")
        if why is None:
            raise AgentTuiError("There is no /why here.")
        await why.run(self._front, place)

    @property
    def _line(self) -> int:
        """The number of the present line at the cursor; 0 if there is none."""
        item, hunk = self._view.item, self._hunk
        if item is None or hunk is None:
            return 0
        line = line_at(item, self.review.changes)
        if line is not None and line.new:
            return line.new
        return next((one.new for one in hunk.lines if one.new and one.sign == "+"), 0) or (
            hunk.new_start + 1
        )

    def _present_change(self) -> FileChange | None:
        """The file at the cursor; None, which was said, if these are changes of commits."""
        if not self.review.is_present:
            self._tell("These are commits: they can only be read and commented.", is_problem=True)
            return None
        return self._change

    # Other changes

    def action_turn(self) -> None:
        """Show other changes."""
        what = _NEXT.get(self.review.what, "last")
        self._do(self._load(what))

    async def _load(self, what: str) -> None:
        try:
            review = await self._loader.load(what)
        except AgentTuiError:
            if what != "git":
                raise
            review = await self._loader.load("last")  # there is no repository
        self._show(review)

    async def reload(self) -> None:
        """Find the changes again, and show them."""
        try:
            self._show(await self._loader.load(self.review.what))
        except AgentTuiError as error:
            self._tell_problem(error)

    def _show(self, review: Review) -> None:
        for entry in self._front.runtime.conversation.log.entries:
            review.state.take(entry)  # comments may have been written while it was loaded
        if review != self.review:
            self.review = review
            self._draw()

    async def look(self) -> None:
        """Load again if a file or the session changed."""
        leaf = self._front.runtime.conversation.log.leaf_id
        seen = (leaf, await asyncio.to_thread(self._stamps))
        if self._seen is None:
            self._seen = seen
        elif seen != self._seen and self.is_current:  # not while a question is above
            self._seen = seen
            await self.reload()

    def _stamps(self) -> list[tuple[int, int]]:
        return [_stamp(change.path) for change in self.review.changes]

    def action_help(self) -> None:
        """Show all keys."""
        self.app.push_screen(PageScreen(Page("Keys of a review", (PageSection("", _KEYS),))))

    # Doing

    def _do(self, work: Coroutine[object, object, None]) -> None:
        """Run `work`; say why it failed."""

        async def run() -> None:
            try:
                await work
            except AgentTuiError as error:
                self._tell_problem(error)
                await self.reload()

        self.run_worker(run(), group="review")

    def _tell_problem(self, error: AgentTuiError) -> None:
        self._tell(self._front.runtime.services.ways.fill(str(error)), is_problem=True)

    def _tell(self, text: str, *, is_problem: bool = False) -> None:
        severity = "warning" if is_problem else "information"
        self.notify(safe_text(text), severity=severity, markup=False)


class FileList(PaintedLines):
    """The files, one a row."""

    def show_files(self, review: Review, current: int) -> None:
        """Show the files of `review`; `current` is the one that the cursor is in."""
        self.show(lambda width, palette: list_files(review, current, width, palette))


def _with_terminal(environ: Mapping[str, str]) -> Mapping[str, str]:
    """`environ` with the name of the terminal, where gpg asks for a passphrase."""
    try:
        return {"GPG_TTY": os.ttyname(0), **environ}
    except OSError:
        return environ


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size
