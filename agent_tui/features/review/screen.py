"""The screen of a review: files and their changes, and what is done with them."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Mapping
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
    DRAFT,
    Comment,
    CommentState,
    comment_on,
)
from agent_tui.features.review.layout import line_at, selected_lines
from agent_tui.features.review.sources import Review, ReviewLoader
from agent_tui.features.review.view import ReviewView, count_words, list_files, width_of_list
from agent_tui.safe_text import safe_text
from agent_tui.text_editor import edit_text
from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.parts import KeysLine, PaintedLines, any_app
from agent_tui.ui.screens.modal import Modal, PageScreen
from agent_tui.ui.terminal.scrollback import wait_for_enter
from agent_tui.ui.window import edit_file

_LOOK_S = 2.0
"""Seconds between looks whether the files changed."""

_WITH_FILES = 100
"""From this width of the screen on, the files are also listed beside the changes."""

_NOTHING_TO_TAKE_BACK = "This cannot be taken back as a whole. n goes to a hunk, x takes it back."
_REMARK = "# Lines with # are left out. An empty message stops the commit."
_NEXT = {"last": "session", "session": "git", "git": "last"}
_KEYS: tuple[tuple[str, str], ...] = (
    ("↑ ↓, j k", "move; with shift, select lines"),
    ("n, p", "next and previous hunk"),
    ("], [", "next and previous file"),
    ("N, P", "next and previous comment"),
    ("space", "mark the file as reviewed; the mark goes when the file changes"),
    ("enter", "fold and unfold a file"),
    ("c", "comment on the line, the selected lines or the file; on a comment, change it"),
    ("m", "send all comments to the model as one message"),
    ("r", "mark a comment as resolved, or open it again"),
    ("a, d, D", "keep what the helper found; drop a comment; bring the dropped one back"),
    ("x", "take the hunk back; /undo offers to redo it"),
    ("s", "stage the hunk or the file, or unstage it; in the list S: staged, s: partly"),
    ("C", "commit what is staged"),
    ("e", "open the editor there"),
    ("w", "ask /why about the line"),
    ("t", "show the changes since your last message, of the session, or not committed"),
    ("/ . ,", "search; next and previous match"),
    ("esc, q", "close"),
)


class ReviewScreen(Modal[None]):
    """Shows changes, and lets the user act on them.

    Args:
        front: Where questions are asked.
        loader: Finds the changes again.
        actions: Acts on them.
        review: What is shown first.
        reading: Reads what is shown then; None if `review` is complete.

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
        Binding("N", "go('comment', 1)", "Next comment"),
        Binding("P", "go('comment', -1)", "Previous comment"),
        Binding("right_square_bracket,tab", "go('file', 1)", "Next file"),
        Binding("left_square_bracket,shift+tab", "go('file', -1)", "Previous file"),
        Binding("space", "review", "Reviewed"),
        Binding("enter", "open", "Fold, or change a comment"),
        Binding("c", "comment", "Comment"),
        Binding("m", "send", "Send"),
        Binding("r", "resolve", "Resolved"),
        Binding("a", "set('open')", "Keep"),
        Binding("d", "set('dropped')", "Drop"),
        Binding("D", "bring_back", "Bring back"),
        Binding("x", "take_back", "Take back"),
        Binding("s", "stage", "Stage"),
        Binding("C", "commit", "Commit"),
        Binding("e", "edit", "Edit"),
        Binding("w", "why", "Why"),
        Binding("t", "turn", "Other changes"),
        Binding("slash", "find", "Search"),
        Binding("full_stop", "find_again(1)", "Next match"),
        Binding("comma", "find_again(-1)", "Previous match"),
        Binding("question_mark", "help", "Keys"),
    ]
    app = getters.app(any_app)

    def __init__(
        self,
        front: Front,
        loader: ReviewLoader,
        actions: ReviewActions,
        review: Review,
        reading: asyncio.Task[Review] | None = None,
    ) -> None:
        super().__init__()
        self._front = front
        self._loader = loader
        self._actions = actions
        self.review = review
        self._reading = reading
        self._seen: object = None
        self._uncommitted = ""
        self._dropped: list[Comment] = []
        self._wanted = ""
        self._held_keys: list[events.Key] = []
        self._acts = 0
        self._is_acting = False

    # Keys, one after the other

    async def on_key(self, event: events.Key) -> None:
        """Act by key; a key that comes while an action runs waits until it has ended.

        A second Esc that would wait closes the screen.
        """
        active = self.active_bindings.get(event.key)
        if active is not None and active.node is not self:
            return  # a key of the whole program
        event.stop()
        event.prevent_default()
        if event.key == "escape" and any(one.key == "escape" for one in self._held_keys):
            self.dismiss(None)
            return
        self._held_keys.append(event)
        await self._take_keys()

    async def _take_keys(self) -> None:
        while self._held_keys and not self._is_acting and self.is_current:
            active = self.active_bindings.get(self._held_keys.pop(0).key)
            if active is not None:
                await self.run_action(active.binding.action)

    @on(events.ScreenSuspend)
    def _pass_keys_on(self) -> None:
        """Give keys that wait to the field that opened above; they answer no question."""
        keys, self._held_keys = self._held_keys, []

        def write() -> None:
            if isinstance(self.app.focused, LinesField):
                for key in keys:
                    self.app.post_message(events.Key(key.key, key.character))

        if keys:
            self.app.screen.call_after_refresh(write)

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
        if self._reading is None:
            self.set_interval(_LOOK_S, self.look)
        else:
            self.run_worker(self._read(self._reading))

    async def _read(self, reading: asyncio.Task[Review]) -> None:
        """Show what `reading` finds, or say why it finds nothing and close."""
        try:
            self._show(await reading)
        except AgentTuiError as error:
            self._front.say(str(error), "warning")
            self.dismiss(None)
            return
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
            self.query_one("#review-files").styles.width = width_of_list(self.review)
            self._draw_frame()

    def _draw_frame(self) -> None:
        words = count_words(self.review) if self.review.is_read else "reading…"
        title = " · ".join((f"Changes {self.review.title}".rstrip(), words))
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
        keys = ["c comment", "space reviewed"]
        if self.review.is_present and self._change is not None:
            keys += ["x take back", "s stage"]
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
        """Move to the next hunk, file or comment."""
        self._view.move_to(("hunk", "note") if kind == "hunk" else (kind,), step)

    def action_find(self) -> None:
        """Search for a text."""
        self._do(self._find())

    async def _find(self) -> None:
        about = "In lines, file names and comments."
        question = TextQuestion("Search the changes", about, self._wanted, "", keep_unsent=len)
        if text := await self._front.ask_text(question):
            self._wanted = text
            self.action_find_again(1)

    def action_find_again(self, step: int) -> None:
        """Move to the next or the previous match."""
        if self._wanted and not self._view.find(self._wanted, step):
            self._tell(f"Nothing here has {self._wanted}.", is_problem=True)

    @on(events.Click, "#review-list")
    def _go_to_file(self, event: events.Click) -> None:
        self.go_to_file(event.y)

    def go_to_file(self, number: int) -> None:
        """Put the cursor on a file."""
        items = enumerate(self._view.items)
        at = next((n for n, one in items if one.kind == "file" and one.file == number), None)
        if at is not None:
            self._view.move_to_section(at)

    def action_open(self) -> None:
        """Fold or unfold the file, or change the comment."""
        if self._comment is not None:
            self.action_comment()
        elif (change := self._change) is not None:
            self._view.fold(change.name, is_folded=change.name not in self._view.folded)

    def action_leave(self) -> None:
        """End a selection, or close."""
        if self._view.mark is not None:
            self._view.move(self._view.cursor)
        else:
            self.dismiss(None)

    # Comments

    def action_comment(self) -> None:
        """Write a comment, or change one."""
        comment, change = self._comment, self._change
        if comment is not None:
            self._do(self._write_comment(comment, is_new=False))
        elif change is not None:
            lines = selected_lines(self._view.selection, self.review.changes)
            side, first, last = lines or ("new", 0, 0)
            comment_id = self._actions.new_id(self.review.state)
            made = comment_on(change, side, first, last, "", comment_id)
            made = made.model_copy(update={"source": self.review.source_of(side)})
            self._do(self._write_comment(made, is_new=True))

    async def _write_comment(self, comment: Comment, *, is_new: bool) -> None:
        """Write `comment`; what is written is kept as a draft in the session until it is done."""
        draft = self.review.state.draft_like(comment) if comment.state != "draft" else comment
        if is_new and draft is not None:
            comment = draft
        elif not is_new and draft is not None and draft.id != comment.id + DRAFT:
            draft = comment if comment.state == "draft" else None
        draft_id = comment.id if is_new or comment.state == "draft" else comment.id + DRAFT
        present = draft.text if draft is not None else comment.text

        def keep(text: str, state: CommentState = "draft") -> None:
            change = {"id": draft_id, "text": text, "state": state, "by": ""}
            try:
                self._actions.keep(self.review.state, comment.model_copy(update=change))
            except AgentTuiError as error:
                self._tell_problem(error)

        question = TextQuestion(
            f"Comment on {comment.place}",
            comment.lines[0].strip() if comment.lines else "the whole file",
            present,
            "",
            is_edited=True,
            keep_unsent=keep,
        )
        text = await self._front.ask_text(question)
        if text is not None and draft_id in self.review.state.comments:
            keep(self.review.state.comments[draft_id].text, "dropped")
        if text:
            by = "" if comment.text != text else comment.by
            changed = {"id": draft_id.removesuffix(DRAFT), "text": text, "state": "open", "by": by}
            self._actions.keep(self.review.state, comment.model_copy(update=changed))
            self._view.mark = None
        self._draw()

    def action_set(self, to: CommentState) -> None:
        """Keep or drop a comment."""
        comment = self._comment
        if comment is not None and (to == "dropped" or comment.state == "found"):
            self._set(comment, to)
            if to == "dropped":
                self._dropped.append(comment)
                self._tell("Comment dropped. D brings it back.")

    def action_bring_back(self) -> None:
        """Bring back the comment that was dropped last."""
        if self._dropped:
            comment = self._dropped.pop()
            self._set(comment, comment.state)

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
        if (change := self._present_change()) is not None:
            self._do(self._take_back(change, self._hunk))

    async def _take_back(self, change: FileChange, hunk: Hunk | None) -> None:
        if change.before is None:
            hunk = None  # the file is one change
        hunks = change.hunks if hunk is None else (hunk,)
        mark = self.review.in_index.get((change.name, hunk.key if hunk is not None else ""))
        is_staged = mark == "staged" or (mark == "partly staged" and hunk is None)
        if not (hunks or is_staged) or (hunk is None and change.was):
            self._tell(_NOTHING_TO_TAKE_BACK, is_problem=True)
            return
        if hunk is None:
            title = _loss_title(change)
            count = f"{count_text(len(hunks), 'hunk')}. " if change.has_both else ""
            abouts = [f"{count}/undo offers to redo it."] if hunks else []
            abouts += ["What git's index has of it is unstaged."] if is_staged else []
            if not await self._front.ask(loss_question(title, " ".join(abouts))):
                return
        events = await self._actions.take_back(change, hunks) if hunks else ()
        self._front.show_events(events)
        for event in events:
            if isinstance(event, Notice):
                self._tell(event.text, is_problem=event.level != "info")
        if is_staged:
            await self._actions.unstage(change, hunk)
            self._tell(f"{change.name if hunk is None else 'The hunk'} is unstaged.")
        await self.reload()

    def action_stage(self) -> None:
        """Stage the hunk or the file, or unstage it."""
        if (change := self._present_change()) is not None:
            self._do(self._stage(change, self._hunk))

    async def _stage(self, change: FileChange, hunk: Hunk | None) -> None:
        done = await self._actions.stage(change, hunk)
        what = change.name if hunk is None else "The hunk"
        self._tell(f"{what} is {done}. {'C commits.' if done == 'staged' else ''}".rstrip())
        await self.reload()

    def action_commit(self) -> None:
        """Commit what is staged."""
        self._do(self._commit())

    async def _commit(self) -> None:
        draft = await self._actions.prepare_commit()
        names = draft.names
        listed = "".join(f"#   {safe_text(name, keep_newlines=False)}\n" for name in draft.listed)
        message = self._uncommitted or safe_text(draft.message)
        text = f"{message}\n\n{_REMARK}\n{listed}".rstrip("\n")
        written = edit_text(text, lambda file: edit_file(self.app, file), "COMMIT_EDITMSG")
        if written is None:
            return  # the editor failed, which was said
        lines = [line for line in written.splitlines() if not line.startswith("#")]
        if not (message := "\n".join(lines).strip()):
            self._tell("Not committed: the message is empty.", is_problem=True)
            return
        is_done = self._run_commit(draft.root, message)
        self._uncommitted = "" if is_done else message
        if is_done:
            commit = await self._actions.newest_commit(draft.root)
            done = f"Committed {count_text(len(names), 'file')}{f' as {commit}' if commit else ''}."
            self._tell(done)
            self._front.say(done)
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
        if (change := self._present_change()) is not None:
            self._do(self._edit(change.path, self._line))

    async def _edit(self, path: Path, line: int) -> None:
        edit_file(self.app, path, line)
        await self.reload()

    def action_why(self) -> None:
        """Ask ``/why`` about the line."""
        if (change := self._present_change()) is None:
            return
        if self._line:
            self._do(self._explain(f"{change.name}:{self._line}"))
        else:
            self._tell("No line has changed here that /why could explain.", is_problem=True)

    async def _explain(self, place: str) -> None:
        why = load_commands(self._front.services.plugins).find("why")
        if why is None:
            raise AgentTuiError("There is no /why here.")
        await why.run(self._front, place)

    @property
    def _line(self) -> int:
        """The number of the present line at the cursor; 0 if there is none.

        On a heading, it is that of the first line that changed below it.
        """
        item, hunk, change = self._view.item, self._hunk, self._change
        if hunk is None and change is not None and item is not None and item.kind == "file":
            hunk = next(iter(change.hunks), None)
        if item is None or hunk is None or change is None or change.after is None:
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

    async def reload(self, counts: Callable[[], bool] = lambda: True) -> bool:
        """Find the changes again, and show them if the result still `counts`; whether it did."""
        try:
            review = await self._loader.load(self.review.what)
        except AgentTuiError as error:
            self._tell_problem(error)
            return True
        if is_shown := counts():
            self._show(review)
        return is_shown

    def _show(self, review: Review) -> None:
        for entry in self._front.runtime.conversation.log.entries:
            review.state.take(entry)  # comments may have been written while it was loaded
        if review != self.review:
            self.review = review
            self._draw()

    async def look(self) -> None:
        """Load again if a file, git's index or the session changed."""
        leaf = self._front.runtime.conversation.log.leaf_id
        seen = (leaf, await asyncio.to_thread(self._stamps))
        if self._seen is None:
            self._seen = seen
        elif seen != self._seen and self.is_current:  # not while a question is above
            acts = self._acts
            if not self._is_acting and await self.reload(lambda: acts == self._acts):
                self._seen = seen

    def _stamps(self) -> list[tuple[int, int]]:
        index = self._loader.index_file
        paths = [change.path for change in self.review.changes]
        return [_stamp(path) for path in (*paths, *((index,) if index else ()))]

    def action_help(self) -> None:
        """Show all keys."""
        self.app.push_screen(PageScreen(Page("Keys of a review", (PageSection("", _KEYS),))))

    # Doing

    def _do(self, work: Coroutine[object, object, None]) -> None:
        """Run `work`; say why it failed. Keys wait until it has ended."""
        self._is_acting = True
        self._acts += 1

        async def run() -> None:
            try:
                await work
            except AgentTuiError as error:
                self._tell_problem(error)
                await self.reload()
            finally:
                self._is_acting = False
            await self._take_keys()

        self.run_worker(run(), group="review")

    def _tell_problem(self, error: AgentTuiError) -> None:
        self._tell(self._front.runtime.services.ways.fill(str(error)), is_problem=True)

    def _tell(self, text: str, *, is_problem: bool = False) -> None:
        severity = "warning" if is_problem else "information"
        self.notify(safe_text(text), severity=severity, markup=False)


def _loss_title(change: FileChange) -> str:
    """The question whether to take all changes of a file back."""
    if change.before is None and change.after is not None:
        return f"Delete {change.name}?"
    if change.after is None and change.before is not None:
        return f"Put {change.name} back?"
    return f"Take all changes of {change.name} back?"


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
