"""Keys typed before a question accepts any: an early answer, or continued text."""

import time
from collections.abc import Iterable

from textual.events import Key

from agent_tui.drafts.draft import Draft
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.questions import QUIET_S, SCROLL_KEYS


class EarlyKeys:
    """Holds back what may be an answer until it is known to be more.

    Answer letters are held, however many. Another character makes them writing: all of it goes
    into the prompt, in order. If a pause comes instead, they were answers given too early and are
    dropped. While the user is writing already, nothing is held; deleting some of a draft is
    writing.

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
    def is_message_written(self) -> bool:
        """Whether the prompt has text that was typed while the question was open."""
        return self._has_written and bool(self._prompt.area.text)

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
        """A question came up that is answered by the characters `answers`.

        Nothing but answers, typed just before, is taken out of the prompt and held.
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
        self._held = ""
        self._is_writing = False

    def end(self) -> None:
        """End the question."""
        self.pause()
        self._answers = frozenset()
        self._has_written = False

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
