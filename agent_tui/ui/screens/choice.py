"""Ask one question: with a few answers, or for a line of text."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key, Paste
from textual.timer import Timer
from textual.types import CSSPathType
from textual.widgets import Static, TextArea

from agent_tui.commands.core.front import Question
from agent_tui.drafts.draft import Draft
from agent_tui.safe_text import safe_text
from agent_tui.ui.lines_field import LinesField, new_line_hint
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.prompt.draft_keeper import SAVE_S
from agent_tui.ui.questions import (
    QUIET_S,
    SCROLL_KEYS,
    AnswerBurst,
    AnswerLine,
    AnswerList,
    AnswerRow,
    EarlyKeys,
)
from agent_tui.ui.screens.modal import QuestionScreen

AnswerT = TypeVar("AnswerT")


class ChoiceScreen(QuestionScreen[AnswerT], Generic[AnswerT]):
    """Returns the value of the chosen answer, None after Esc.

    Enter gives the marked answer only after a pause: a second Enter after a command must not answer
    the command's question. A question that writing may meet (`early`) leaves
    the prompt in sight, and Enter after such writing sends it.

    Args:
        question: What is asked.
        early: Where letters must wait for that moment, too: what becomes of those that do not.
        quiet_s: How long that moment is, in seconds.
        clock: Monotonic seconds.
        answered_by: Told the key that answers, as it may be pressed twice.
        take_paste: Given what is pasted: it is no answer, and must not get lost. It may belong
            to the field that an answer opens.
        send: Sends the message in the prompt, if it was written while the question was open.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "choice.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("up", "mark(-1)", "The answer above", show=False),
        Binding("down", "mark(1)", "The answer below", show=False),
        Binding("k", "scroll(-1)", "Scroll up", show=False),
        Binding("j", "scroll(1)", "Scroll down", show=False),
        Binding("pageup", "scroll(-8)", "Page up", show=False),
        Binding("pagedown", "scroll(8)", "Page down", show=False),
        Binding("home,ctrl+home", "scroll(-100000)", "To the start", show=False),
        Binding("end,ctrl+end", "scroll(100000)", "To the end", show=False),
    ]

    own_scroll = "#choice-scroll"

    def __init__(
        self,
        question: Question[AnswerT],
        early: EarlyKeys | None = None,
        *,
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
        answered_by: Callable[[str], object] = str,
        take_paste: Callable[[Paste], object] | None = None,
        send: Callable[[], object] = bool,
    ) -> None:
        super().__init__()
        self.question = question
        self._early = early
        self._quiet_s = quiet_s
        self._clock = clock
        self._quiet_since_s = clock()
        self._answered_by = answered_by
        self._take_paste = take_paste
        self._send = send
        self._enter_does = "answers"
        self._scrolls = False
        burst_s = (lambda: early.burst_s) if early is not None else float
        self._burst = AnswerBurst(self._give, self.set_timer, burst_s)

    def compose(self) -> ComposeResult:
        """The facts scroll, so that the answers stay in sight however much there is to know."""
        question = self.question
        rows = [AnswerRow(choice.key, choice.label) for choice in question.choices]
        with Vertical(id="choice", classes="question"):
            yield Static(safe_text(question.title), id="page-title", markup=False)
            with VerticalScroll(id="choice-scroll", can_focus=False) as scroll:
                scroll.display = bool(question.facts)
                facts = safe_text("\n".join(question.facts))
                yield Static(facts, id="choice-facts", markup=False)
            yield AnswerList(rows, question.marked)
            yield KeysLine(self._keys, id="page-keys")

    @property
    def _keys(self) -> str:
        scroll = "j/k scroll · " if self._scrolls else ""
        return f"↑↓ move · enter {self._enter_does} · {scroll}esc {self.question.unanswered}"

    def _show_keys(self, enter_does: str) -> None:
        self._enter_does = enter_does
        self._scrolls = self.query_one("#choice-scroll").max_scroll_y > 0
        self.query_one(KeysLine).update(self._keys)

    def on_mount(self) -> None:
        """Remove from the prompt a letter that was meant as the answer."""
        if self._early is not None:
            self._early.begin(self._list.keys)
            self._show_what_enter_does(self._early)
        self._stay_above_prompt()

    def on_resize(self) -> None:
        """Adjust to the new place of the prompt, and to whether all facts are in sight."""
        self.when_drawn(lambda: self._show_keys(self._enter_does))
        self._stay_above_prompt()

    def _stay_above_prompt(self) -> None:
        if self._early is not None:
            self.when_drawn(self._move_above_prompt, self._early)

    def _move_above_prompt(self, early: EarlyKeys) -> None:
        """Keep the prompt visible if there is space for it below the question."""
        panel, rows = self.query_one("#choice"), self.outer_size.height
        room = rows - panel.outer_size.height
        panel.styles.margin = (0, 0, max(min(rows - early.prompt_top, room), 0), 0)

    def on_unmount(self) -> None:
        """Drop held keys: they were an answer."""
        if self._early is not None:
            self._early.end()

    async def on_key(self, event: Key) -> None:
        """Answer by key; keys that are too early, or no answer, are passed on."""
        early, is_quiet = self._early, self._is_quiet
        was_held = self._burst.is_holding
        letters = self._burst.follow(event)
        if early is not None and letters:
            early.write_held()
            await self._take((*letters, event), early)
        if letters or was_held:
            event.stop()
            event.prevent_default()
            return
        number = self._list.number_for(event.key)
        if number is not None and (is_quiet or (early is None and event.key != "enter")):
            event.stop()
            self._list.mark(number)
            give = self._burst.hold if event.is_printable else self._give
            give(event)
        elif event.key == "enter" and early is not None and self._sends(early, is_quiet=is_quiet):
            event.stop()
            self._send()
            self._quiet_since_s = self._clock()  # a second Enter must not answer
            self._show_what_enter_does(early)
        elif early is not None and (event.is_printable or early.deletes(event.key)):
            await self._write(event, early)

    def _sends(self, early: EarlyKeys, *, is_quiet: bool) -> bool:
        """Whether Enter sends the draft: at once if it was typed, behind a paste after a pause."""
        return early.is_message_written and (is_quiet or self._list.marked is None)

    def _give(self, event: Key) -> None:
        if (number := self._list.number_for(event.key)) is not None:
            self._answered_by(event.key)
            self._answer(number)

    async def _write(self, event: Key, early: EarlyKeys) -> None:
        """Change the draft with a key that is no answer."""
        if self._is_quiet:
            early.pause()
            if event.key in SCROLL_KEYS:
                self._burst.note_scroll(event)
                return
        event.stop()
        event.prevent_default()
        await self._take((event,), early)

    async def _take(self, events: Sequence[Key], early: EarlyKeys) -> None:
        self._quiet_since_s = self._clock()
        for event in events:
            await early.take(event)
        self._show_what_enter_does(early)
        self._stay_above_prompt()

    def _show_what_enter_does(self, early: EarlyKeys) -> None:
        """Mark no answer while the prompt has a message: Enter sends that."""
        if early.is_message_written:
            self._list.mark(None)
            self._show_keys("sends your message")
        elif self._list.marked is None:
            self._list.mark(self.question.marked)
            self._show_keys("answers")

    async def on_paste(self, event: Paste) -> None:
        """Pass on pasted text after typed keys; keys wait for a pause again."""
        event.stop()
        self._quiet_since_s = self._clock()
        letters = self._burst.follow(event)
        if self._early is not None:
            self._early.write_held()
            if letters:
                await self._take(letters, self._early)
        if self._take_paste is not None:
            self._take_paste(Paste(event.text))
        self._stay_above_prompt()

    @on(AnswerLine.Clicked)
    def _take_click(self, event: AnswerLine.Clicked) -> None:
        event.stop()
        if self._early is None or self._is_quiet:
            self._answer(event.number)

    @property
    def _is_quiet(self) -> bool:
        return self._clock() - self._quiet_since_s >= self._quiet_s

    @property
    def _list(self) -> AnswerList:
        return self.query_one(AnswerList)

    def _answer(self, number: int) -> None:
        self.dismiss(self.question.choices[number].value)

    def action_mark(self, step: int) -> None:
        """Mark the answer above or below."""
        self._list.move(step)
        self._show_keys("answers")

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


class LineInputScreen(QuestionScreen[str]):
    """Returns the typed text, stripped; None after Esc.

    Args:
        title: The question.
        about: Its purpose: one line, or several if the text is checked.
        present: The initial text.
        empty_means: What an empty text does; empty if nothing special.
        is_selected: Whether the first key replaces the initial text.
        keep_unsent: Given what was written when it is closed without an answer. Such a text may
            have several lines, and is kept until it is sent. None: lines are joined by blanks.
        problem_of: Why a text cannot be used, empty if it can; asked at every key.
        last_look: The same, after a look at all that takes longer; called in a thread.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "line_input.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Close")]
    _keeps_while_writing = False

    def __init__(
        self,
        title: str,
        about: str,
        present: str,
        *,
        empty_means: str = "",
        is_selected: bool = True,
        keep_unsent: Callable[[Draft], object] | None = None,
        problem_of: Callable[[str], str] | None = None,
        last_look: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        texts = (title, about, present, empty_means)
        self._texts = tuple(safe_text(text, keep_newlines=False) for text in texts)
        self._is_selected = is_selected
        self._keep_unsent = keep_unsent
        self._saving: Timer | None = None
        self._problem_of = problem_of
        self._last_look = last_look

    def compose(self) -> ComposeResult:
        """Title, what it is about, a field, what is wrong, the keys."""
        title, about, present, empty_means = self._texts
        is_checked = self._problem_of is not None
        hint = "" if is_checked else "a few words"
        empty = f"empty {empty_means} · " if empty_means else ""
        classes = "question -field -checked" if is_checked else "question -field"
        with Vertical(id="line", classes=classes):
            yield Static(title, id="page-title", markup=False)
            yield Static(about, id="line-about", markup=False)
            field = LinesField(
                present,
                placeholder=hint,
                id="line-text",
                is_selected=self._is_selected,
                is_kept=self._keep_unsent is not None and not self._keeps_while_writing,
            )
            yield FieldRow(field)
            if is_checked:
                yield Static(id="line-problem", markup=False)
            lines = f"{new_line_hint()} · " if self._keep_unsent else ""
            yield KeysLine(f"enter save · {lines}{empty}esc close", id="page-keys")

    @on(TextArea.Changed)
    def _check_text(self) -> None:
        if self._problem_of is not None:
            text = self.query_one(LinesField).draft.sent_text
            self._say(self._problem_of(self._value_of(text)))
        if self._keeps_while_writing and self._saving is None:
            self._saving = self.set_timer(SAVE_S, self._keep_written)

    def _keep_written(self) -> None:
        self._saving = None
        draft = self.query_one(LinesField).draft
        if self._keep_unsent is not None and self.is_mounted and draft.text != self._texts[2]:
            self._keep_unsent(draft.trim())

    @on(LinesField.Submitted)
    def _take_text(self, event: LinesField.Submitted) -> None:
        event.stop()
        text = self._value_of(event.text)
        if self._problem_of is None:
            self._leave_with(text.strip())
        elif not self._problem_of(text):
            self.run_worker(self._keep(text), exclusive=True)

    def _value_of(self, written: str) -> str:
        return written if self._keep_unsent else " ".join(written.splitlines())

    async def _keep(self, text: str) -> None:
        self._say("Checking…")
        problem = await asyncio.to_thread(self._last_look, text) if self._last_look else ""
        self._say(problem)
        if not problem:
            self._leave_with(text.strip())

    def _say(self, problem: str) -> None:
        self.query_one("#line-problem", Static).update(safe_text(problem, keep_newlines=False))
        self.query_one("#line-text").set_class(bool(problem), "-refused")

    def action_leave(self) -> None:
        """Close and leave everything as it is."""
        unsent = self.query_one(LinesField).unsent
        if self._keeps_while_writing:
            self._keep_written()
        elif self._keep_unsent is not None and not unsent.is_empty:
            self._keep_unsent(unsent)
        self._leave_with(None)

    def _leave_with(self, text: str | None) -> None:
        if self._saving is not None:
            self._saving.stop()
        self._keeps_while_writing = False
        self.query_one(LinesField).load(Draft())  # it is not kept any more
        self.dismiss(text)


class KeptInputScreen(LineInputScreen):
    """Gives `keep_unsent` what is written within a second of each change, too.

    The draft of the prompt does not have it then.
    """

    _keeps_while_writing = True
