"""Questions with answers to choose from, one after the other on one screen."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key, Paste
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.drafts.draft import Draft
from agent_tui.safe_text import safe_text
from agent_tui.tools.form import FormField
from agent_tui.ui.lines_field import LinesField, new_line_hint
from agent_tui.ui.parts import FieldRow, KeysLine
from agent_tui.ui.questions import QUIET_S, AnswerLine, AnswerList, AnswerRow
from agent_tui.ui.screens.modal import QuestionScreen

if TYPE_CHECKING:
    from agent_tui.messages import JsonObject

_WRITE = "or write your own answer"
_SEND = "Send these answers"
_NOTHING = "Choose an answer or write one."


class FormScreen(QuestionScreen["JsonObject"]):
    """Returns what was chosen and written for each field, by name; None if the user left.

    Keys choose in the list of answers, or write in the field below it, which takes any letter.
    One question with one answer is sent at once; others are shown again before they are sent.

    Args:
        fields: The questions: fields of choices that take a text, too.
        keep_unsent: Given what was written if the user leaves.
        quiet_s: Seconds after the opening before a key gives an answer: one meant for the prompt
            must not.
        clock: Monotonic seconds.
    """

    AUTO_FOCUS: ClassVar[str | None] = ""
    CSS_PATH: ClassVar[CSSPathType | None] = ["modal.tcss", "page.tcss", "form.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Do not answer", priority=True),
        Binding("tab", "turn(1)", "The next question", show=False, priority=True),
        Binding("shift+tab", "turn(-1)", "The question before", show=False, priority=True),
        Binding("up", "mark(-1)", "The answer above", show=False, priority=True),
        Binding("down", "mark(1)", "The answer below", show=False, priority=True),
        Binding("pageup", "scroll(-8)", "Page up", show=False, priority=True),
        Binding("pagedown", "scroll(8)", "Page down", show=False, priority=True),
    ]

    own_scroll = "#form-scroll"

    def __init__(
        self,
        fields: Sequence[FormField],
        keep_unsent: Callable[[Sequence[Draft]], object],
        *,
        heading: str = "The model asks",
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._heading = heading
        self._fields: tuple[FormField, ...] = tuple(fields)
        self._keep_unsent = keep_unsent
        self._quiet_s = quiet_s
        self._clock = clock
        self._opened_at = clock()
        self._page = 0
        self._chosen = [set[int]() for _ in fields]
        self._texts = [
            LinesField(id=f"form-text-{number}", placeholder=_WRITE)
            for number, _ in enumerate(fields)
        ]
        self._rows = [FieldRow(text) for text in self._texts]

    def compose(self) -> ComposeResult:
        """Where one is, the question, its answers, a field, what is wrong, the keys."""
        with Vertical(id="form", classes="question -field"):
            yield Static(id="page-title", markup=False)
            with VerticalScroll(id="form-scroll", can_focus=False):
                yield Static(id="form-question", markup=False)
                yield AnswerList()
            yield from self._rows
            yield Static(id="form-problem", markup=False)
            yield KeysLine(id="page-keys")

    def on_mount(self) -> None:
        """Show the first question."""
        self._show(0)

    # What is shown

    @property
    def _has_review(self) -> bool:
        return len(self._fields) > 1 or any(field.kind == "some of" for field in self._fields)

    @property
    def _is_review(self) -> bool:
        return self._page == len(self._fields)

    @property
    def _text(self) -> LinesField | None:
        """The field of the question that is shown, if it takes a text."""
        if self._is_review or not self._fields[self._page].takes_text:
            return None
        return self._texts[self._page]

    @property
    def _list(self) -> AnswerList:
        return self.query_one(AnswerList)

    def _show(self, page: int) -> None:
        """Show another question, or all answers."""
        self._page = page
        for number, row in enumerate(self._rows):
            row.display = number == page and self._fields[number].takes_text
        self.set_focus(None)
        if self._is_review:
            self._draw(marked=len(self._fields))
        else:
            self._draw(marked=min(self._chosen[page], default=self._recommended(page)))
        self._say("")
        self.query_one("#form-scroll").scroll_home(animate=False)

    def _recommended(self, page: int) -> int:
        field = self._fields[page]
        values = [value for value, _ in field.choices]
        return values.index(field.present) if field.present in values else 0

    def _draw(self, marked: int | None) -> None:
        count = len(self._fields)
        if self._is_review:
            title, question = "Your answers", ""
            rows = [
                AnswerRow("", field.title, self._shown(number) or "not answered")
                for number, field in enumerate(self._fields)
            ]
            rows.append(AnswerRow("", _SEND))
        else:
            title = f"Question {self._page + 1} of {count}" if count > 1 else self._heading
            question = self._fields[self._page].title
            rows = self._answer_rows()
        self.query_one("#page-title", Static).update(title)
        self.query_one("#form-question", Static).update(safe_text(question))
        self.query_one("#form-question").display = bool(question)
        self._list.show(rows, marked)
        self._say_keys()
        self.when_drawn(self._list.keep_mark_in_sight)

    def _answer_rows(self) -> list[AnswerRow]:
        field, chosen = self._fields[self._page], self._chosen[self._page]
        rows: list[AnswerRow] = []
        for number, (value, label) in enumerate(field.choices):
            is_chosen = number in chosen
            box = ("[x] " if is_chosen else "[ ] ") if field.kind == "some of" else ""
            facts = ("recommended" if value == field.present else "", "chosen" if is_chosen else "")
            details = ", ".join(filter(None, facts[: 1 if box else 2]))
            rows.append(AnswerRow("", f"{box}{label}", details))
        return rows

    def _say_keys(self) -> None:
        leave = "esc do not answer"
        turn = "tab next question · " if len(self._fields) > 1 else ""
        if self._is_review:
            keys = f"↑↓ move · enter sends, or changes an answer · {leave}"
        elif self._is_writing:
            keys = f"enter answers · {new_line_hint()} · ↑ answers above · {turn}{leave}"
        elif self._fields[self._page].kind == "some of":
            keys = f"↑↓ move · space chooses · enter continues · {turn}{leave}"
        else:
            keys = f"↑↓ move · enter answers · {turn}{leave}"
        self.query_one(KeysLine).update(keys)

    def _say(self, problem: str) -> None:
        self.query_one("#form-problem", Static).update(problem)
        self.query_one("#form-problem").display = bool(problem)

    def on_resize(self) -> None:
        """Keep the marked answer in sight."""
        self.when_drawn(self._list.keep_mark_in_sight)

    # Keys

    @property
    def _is_writing(self) -> bool:
        return self._text is not None and self.focused is self._text

    @property
    def _takes_answers(self) -> bool:
        return self._clock() - self._opened_at >= self._quiet_s

    async def on_key(self, event: Key) -> None:
        """Choose by key; any other letter begins to write, with those that came behind it."""
        is_enter, text = event.key == "enter", self._text
        is_letter = event.is_printable and event.character is not None
        if text is not None and self._is_writing:
            if is_letter:
                text.insert(event.character or "")
            elif not await text.take_key(event):
                return
            event.stop()
            event.prevent_default()
            return
        number = self._list.number_for(event.key)
        if event.key == "space":
            number = self._list.marked
        if is_enter or number is not None:
            event.stop()
            event.prevent_default()
            if self._takes_answers and number is not None:
                self._list.mark(number)
                answer = self._confirm if is_enter else partial(self._choose, number)
                answer()
        elif text is not None and (is_letter or event.key == "backspace"):
            event.stop()
            event.prevent_default()
            self._write()
            text.move_cursor(text.document.end)
            if is_letter:
                text.insert(event.character or "")
            else:
                text.action_delete_left()

    def on_paste(self, event: Paste) -> None:
        """Write what is pasted."""
        event.stop()
        if (text := self._text) is not None:
            self._write()
            text.post_message(Paste(event.text))

    def _write(self) -> None:
        if (text := self._text) is not None:
            self.set_focus(text)  # at once: the next letter may be a space
            self._list.mark(None)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Mark no answer while one is written."""
        if event.widget is self._text:
            self._list.mark(None)
            self._say_keys()

    def action_mark(self, step: int) -> None:
        """Mark the answer above or below; the field comes after the last one."""
        text, rows = self._text, len(self._list.rows)
        if text is not None and self._is_writing:
            row, _ = text.cursor_location
            if 0 <= row + step < text.document.line_count:
                move = text.action_cursor_down if step > 0 else text.action_cursor_up
                move()
                return
            self.set_focus(None)
            self._list.mark(0 if step > 0 else rows - 1)
        elif text is not None and not 0 <= (self._list.marked or 0) + step < rows:
            self._write()
        else:
            self._list.move(step)
        self._say_keys()
        self._list.keep_mark_in_sight()

    def action_turn(self, step: int) -> None:
        """Show the question after or before this one; all answers come after the last.

        Of a single question, go to its answers or to the field.
        """
        pages = len(self._fields) + self._has_review
        if len(self._fields) > 1:
            self._show((self._page + step) % pages)
        elif self._is_writing or self._is_review:
            self._show(0)
        else:
            self._write()

    @on(AnswerLine.Clicked)
    def _take_click(self, event: AnswerLine.Clicked) -> None:
        event.stop()
        if self._takes_answers:
            self.set_focus(None)
            self._list.mark(event.number)
            self._choose(event.number)

    @on(LinesField.Submitted)
    def _take_text(self, event: LinesField.Submitted) -> None:
        event.stop()
        if not self._takes_answers:
            return
        if self._written(self._page) and self._fields[self._page].kind != "some of":
            self._chosen[self._page].clear()
        self._go_on()

    # Answers

    def _choose(self, number: int) -> None:
        """Choose an answer by its number or a click; of several, it can be taken back."""
        if self._is_review:
            self._confirm()
            return
        chosen = self._chosen[self._page]
        if self._fields[self._page].kind == "some of":
            chosen ^= {number}
            self._draw(number)
            return
        self._chosen[self._page] = {number}
        self._go_on()

    def _confirm(self) -> None:
        """Take the marked answer, or those that are chosen."""
        marked = self._list.marked
        assert marked is not None
        if self._is_review and marked == len(self._fields):
            self._send()
        elif self._is_review:
            self._show(marked)
        elif self._fields[self._page].kind != "some of":
            self._choose(marked)
        else:
            if not self._answers(self._page):
                self._chosen[self._page].add(marked)
            self._go_on()

    def _go_on(self) -> None:
        """Show what comes next, or send the only answer."""
        most = self._fields[self._page].most
        if not self._answers(self._page):
            self._say(_NOTHING)
        elif most is not None and len(self._written(self._page)) > most:
            self._say(f"At most {most:,.0f} characters.")
        elif self._has_review:
            self._show(self._page + 1)
        else:
            self._send()

    def _written(self, number: int) -> str:
        return self._texts[number].draft.sent_text.strip()

    def _answers(self, number: int) -> list[str]:
        """What was chosen, in the order of the answers, and what was written."""
        choices = self._fields[number].choices
        chosen = [choices[at][0] for at in sorted(self._chosen[number])]
        return [*chosen, *filter(None, (self._written(number),))]

    def _shown(self, number: int) -> str:
        return ", ".join(" ".join(answer.split()) for answer in self._answers(number))

    def _send(self) -> None:
        content: JsonObject = {
            field.name: [*self._answers(number)]
            for number, field in enumerate(self._fields)
            if self._answers(number)
        }
        if not content:
            self._say(_NOTHING)
            return
        for field in self.query(LinesField):
            field.load(Draft())  # it is not kept any more
        self.dismiss(content)

    def action_leave(self) -> None:
        """Close without answers."""
        self._keep_unsent([text.unsent for text in self._texts if not text.unsent.is_empty])
        for field in self.query(LinesField):
            field.load(Draft())
        self.dismiss(None)
