"""What all questions share: answers as rows, and what becomes of keys that come too early."""

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.errors import NoWidget
from textual.events import Key, Paste
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from agent_tui.drafts.draft import Draft
from agent_tui.safe_text import safe_text
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.terminal.input import PASTE_GAP_S

QUIET_S = 1.0
"""Seconds without typing before a question takes a key: one meant for the prompt must not trust a
folder or start a program."""

SCROLL_KEYS = frozenset("jk")
"""Keys that scroll a question; they are not text while it is open."""


_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer.

    Attributes:
        key: Its letter; empty if only its digit works.
        label: What the user reads.
        details: Its effect, muted after the label.
    """

    key: str
    label: str
    details: str = ""


class AnswerLine(Static):
    """A row on the screen, which can be clicked. Long ones wrap below their label."""

    @dataclass
    class Clicked(Message):
        """The row was clicked."""

        number: int

    def __init__(self, number: int) -> None:
        super().__init__(classes="answer", markup=False)
        self._number = number
        self._sign, self._words = Content(), Content()

    def show(self, row: AnswerRow | None, *, is_marked: bool) -> None:
        """Draw `row`; None hides the line."""
        self.display = row is not None
        self.set_class(is_marked, "-marked")
        if row is None:
            return
        sign = "›" if is_marked else " "
        details = safe_text(row.details, keep_newlines=False)
        key = row.key or self._number + 1
        self._sign = Content.assemble((f"{sign}{key} ", "bold $primary"), " ")
        self._words = Content.assemble(
            safe_text(row.label, keep_newlines=False),
            (f"   {details}" if details else "", "$foreground-muted"),
        )
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The number of lines of the answer."""
        return len(self._lines(width))

    def render(self) -> Content:
        """The answer, wrapped."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> list[Content]:
        indent = self._sign.cell_length
        first, *others = self._words.wrap(width - indent) if width > indent else [self._words]
        return [self._sign + first, *(line.pad_left(indent) for line in others)]

    def on_click(self, event: events.Click) -> None:
        """Report the click to the list."""
        event.stop()
        self.post_message(self.Clicked(self._number))


class AnswerList(Vertical):
    """Rows of which one is marked. It takes no focus: who asks hands it the keys."""

    def __init__(self, rows: Sequence[AnswerRow] = (), marked: int | None = 0) -> None:
        super().__init__(id="answers")
        self._rows = tuple(rows)
        self.marked = marked

    def on_mount(self) -> None:
        """Draw the rows that were there from the start."""
        self._draw()

    def show(self, rows: Sequence[AnswerRow], marked: int | None = 0) -> None:
        """Show other rows."""
        self._rows, self.marked = tuple(rows), marked
        self._draw()

    def mark(self, number: int | None) -> None:
        """Mark another row; None marks none, so that Enter gives no answer."""
        self.marked = number
        self._draw()

    def move(self, step: int) -> None:
        """Mark the row below or above, wrapping at the ends."""
        first = 0 if step > 0 else len(self._rows) - 1
        self.mark(first if self.marked is None else (self.marked + step) % len(self._rows))

    @property
    def rows(self) -> tuple[AnswerRow, ...]:
        """All answers."""
        return self._rows

    @property
    def keys(self) -> frozenset[str]:
        """Every letter and digit that is an answer."""
        digits = (str(number + 1) for number in range(min(len(self._rows), _MOST_DIGITS)))
        return frozenset({*digits, *(row.key for row in self._rows if row.key)})

    def number_for(self, key: str) -> int | None:
        """The index of the answer for `key`: a letter, a digit, or Enter for the marked one."""
        if key == "enter":
            return self.marked if self._shows_mark() else None
        if key not in self.keys:
            return None
        if key.isdecimal():
            return int(key) - 1
        return next(number for number, row in enumerate(self._rows) if row.key == key)

    def keep_mark_in_sight(self) -> None:
        """Scroll what holds the list so that the marked row is seen."""
        lines = list(self.query(AnswerLine))
        if self.marked is not None and self.marked < len(lines):
            lines[self.marked].scroll_visible(animate=False)

    def _shows_mark(self) -> bool:
        """Whether the marked row is in sight; else scroll to it, so that it can be read first."""
        lines = list(self.query(AnswerLine))
        if self.marked is None or self.marked >= len(lines):
            return False
        with contextlib.suppress(NoWidget):  # just drawn: nobody has seen it
            if self.screen.find_widget(lines[self.marked]).visible_region.height:
                return True
        self.keep_mark_in_sight()
        return False

    def _draw(self) -> None:
        if not self.is_attached:
            return
        lines = list(self.query(AnswerLine))
        added = [AnswerLine(number) for number in range(len(lines), len(self._rows))]
        if added:
            self.mount_all(added)
        for number, line in enumerate([*lines, *added]):
            row = self._rows[number] if number < len(self._rows) else None
            line.show(row, is_marked=number == self.marked)


class AnswerBurst:
    """Tells an answer from the first letter of a message.

    A letter waits for `burst_s`. If another letter comes within that time, by the times of the
    events, both are text; so is a letter that came at once with a paste, but a paste that follows
    is an action of its own. The same letter again is a key that was pressed twice. Letters that
    scroll take effect at once, and are text if a word follows them.

    Args:
        give: Gives the answer of a letter.
        set_timer: Calls a function after so many seconds.
        burst_s: Returns the seconds; 0 gives each answer at once.
    """

    def __init__(
        self,
        give: Callable[[Key], None],
        set_timer: Callable[[float, Callable[[], None]], Timer],
        burst_s: Callable[[], float],
    ) -> None:
        self._give = give
        self._set_timer = set_timer
        self._burst_s = burst_s
        self._held: Key | None = None
        self._scrolled: list[Key] = []
        self._timer: Timer | None = None

    @property
    def is_holding(self) -> bool:
        """Whether a letter waits to become an answer or text."""
        return self._held is not None

    def hold(self, event: Key) -> None:
        """Give the answer of `event` unless a word turns out to begin with it."""
        if (burst_s := self._burst_s()) <= 0:
            self._give(event)
            return
        self._held = event
        self._timer = self._set_timer(burst_s, self._settle)

    def note_scroll(self, event: Key) -> None:
        """Note a letter that scrolled."""
        self._scrolled.append(event)

    def follow(self, event: Key | Paste) -> tuple[Key, ...]:
        """The letters before `event` that are text with it; else a held answer is given.

        Backspace and Escape take a held answer back.
        """
        held, scrolled = self._held, self._scrolled
        letters = (*scrolled, held) if held is not None else tuple(scrolled)
        key, within_s, is_letter = "", PASTE_GAP_S, True
        if isinstance(event, Key):
            key, within_s = event.key, self._burst_s()
            is_letter = bool(event.character) and event.is_printable
        is_burst = bool(letters) and event.time - letters[-1].time <= within_s
        if not is_burst or key not in SCROLL_KEYS:
            self._scrolled = []
        if held is None:
            is_text = is_burst and is_letter and key not in SCROLL_KEYS
            return letters if is_text else ()
        self.drop()
        if is_burst and is_letter and key != held.key:
            return letters
        if key not in ("backspace", "escape"):
            self._give(held)
        return ()

    def drop(self) -> None:
        """Give no held answer."""
        self._held = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _settle(self) -> None:
        held = self._held
        self.drop()
        if held is not None:
            self._give(held)


class EarlyKeys:
    """Holds back what may be an answer until it is known to be more.

    Answer letters are held, however many. Another character makes them writing: all of it goes
    into the prompt, in order. If a pause comes instead, they were answers given too early and are
    dropped, and the user sees which. While the user is writing already, nothing is held; deleting
    some of a draft is writing. A prompt with nothing but answers from before the question keeps
    them until the question ends: then they were too early, too.

    Args:
        prompt: Where writing goes.
        quiet_s: How long a pause is, in seconds.
    """

    def __init__(self, prompt: Prompt, quiet_s: float = QUIET_S) -> None:
        self._prompt = prompt
        self._quiet_s = quiet_s
        self._answers: frozenset[str] = frozenset()
        self._held = ""
        self._is_writing = False
        self._has_written = False
        self._has_deleted = False

    @property
    def prompt_top(self) -> int:
        """The row where the prompt begins."""
        return self._prompt.region.y

    @property
    def burst_s(self) -> float:
        """Seconds within which a letter behind an answer makes both of them text."""
        return self._prompt.area.burst_s

    @property
    def is_message_written(self) -> bool:
        """Whether the prompt has a message, whenever it was typed: Enter sends it."""
        return not self._prompt.draft.trim().is_empty

    async def take(self, event: Key) -> None:
        """Hold or write a letter, or delete, while the prompt lacks the focus."""
        if not self.holds(event):
            await self._prompt.area.take(event)

    def deletes(self, key: str) -> bool:
        """Whether `key` deletes something of the text or of held keys."""
        area = self._prompt.area
        # Typed text may still be on its way to the prompt.
        is_any = bool(self._held or self._is_writing or area.text)
        return is_any and area.deletes(key)

    def begin(self, answers: Iterable[str]) -> None:
        """Begin a question that the characters `answers` answer.

        If the prompt has nothing but answers, typed just before, they are taken out and held.
        """
        self._answers = SCROLL_KEYS.union(answers)
        self._held = ""
        text = self._prompt.area.text
        is_fresh = time.monotonic() - self._prompt.changed_at < self._quiet_s
        if is_fresh and self._is_answer(text):
            self._held = text
            self._prompt.load(Draft())
        self._is_writing = self._has_written = is_fresh and bool(text) and not self._held

    def pause(self) -> None:
        """Drop held keys after a pause: they were an answer given too early."""
        self._tell_dropped(self._held)
        self._held = ""
        self._is_writing = False

    def end(self) -> None:
        """End the question; drop answers that the prompt had before it and that nothing follows."""
        self.pause()
        text = self._prompt.area.text
        if self._is_answer(text) and not self._has_written:
            self._prompt.load(Draft())
            self._tell_dropped(text)
        self._answers = frozenset()
        self._has_written = False

    def keep(self, draft: Draft) -> None:
        """Put `draft`, written for the question and not sent, into the prompt."""
        if not draft.is_empty:
            self._prompt.put_before((draft,))

    def holds(self, event: Key) -> bool:
        """Whether `event` is used up; if not, held keys are first written to the prompt."""
        if not self._answers:
            return False
        match event.key:
            case "enter" | "up" | "down":
                return bool(self._held) or not self._prompt.area.text
            case "backspace" if self._held:
                self._held = self._held[:-1]
                return True
            case "escape":
                return False
            case _:
                return self._holds_writing(event)

    def write_held(self) -> None:
        """Write held keys as text, because a key that is no answer follows."""
        self._let_held_go()
        self._is_writing = self._has_written = bool(self._answers)
        self._has_deleted = False

    def _tell_dropped(self, answers: str) -> None:
        if answers:
            said = f"Typed too early and removed from the prompt: {answers}"
            self._prompt.notify(said, markup=False)

    def _let_held_go(self) -> None:
        held, self._held = self._held, ""
        for character in held:
            self._prompt.area.write(Key(character, character))

    def _holds_writing(self, event: Key) -> bool:
        character = event.character if event.is_printable else None
        is_emptied = self._has_deleted and not self._prompt.area.text
        is_writing = self._is_writing and not is_emptied
        if character and not is_writing and self._is_answer(self._held + character):
            self._held += character
            return True
        self._let_held_go()
        if character or self.deletes(event.key):
            self._is_writing = self._has_written = True
            self._has_deleted = not character
        return False

    def _is_answer(self, text: str) -> bool:
        return bool(text) and self._answers.issuperset(text)
