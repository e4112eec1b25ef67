"""A question that no letter meant for the prompt can answer."""

import time
from collections.abc import Callable
from typing import Generic

from textual.events import Key

from agent_tui.commands.core.questions import Question
from agent_tui.ui.screens.choice import AnswerT, ChoiceScreen

QUIET_S = 1.0
"""No letter answers this soon after the screen came up or another was typed: what was meant for
the prompt must not trust a folder or start a program."""


class QuietChoiceScreen(ChoiceScreen[AnswerT], Generic[AnswerT]):
    """Returns the answer, None after Esc.

    Args:
        question: What is asked.
        pass_on: Gets the letters that were meant for the prompt.
        quiet_s: Seconds without a letter before one answers.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        question: Question[AnswerT],
        pass_on: Callable[[str], object],
        *,
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(question)
        self._pass_on = pass_on
        self._quiet_s = quiet_s
        self._clock = clock
        self._quiet_since_s = clock()

    def on_key(self, event: Key) -> None:
        """Pass on what is typed before there was a pause, and letters that answer nothing."""
        if not event.is_printable or event.character is None:
            return
        is_quiet = self._clock() - self._quiet_since_s >= self._quiet_s
        if is_quiet and event.key in {choice.key for choice in self.question.choices}:
            return
        event.prevent_default()
        event.stop()
        self._quiet_since_s = self._clock()
        self._pass_on(event.character)
