"""The question whether a folder is trusted, with what would be obeyed there."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.events import Key

from agent_tui.agent.trust import Answer, TrustQuestion, TrustState
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.choice import Choice, ChoiceScreen

QUIET_S = 1.0
"""No letter answers this soon after the screen came up or another was typed: what was meant for
the prompt must not trust a folder."""

MAX_FILES_SHOWN = 3
MAX_PATH_CHARS = 100
MAX_NAME_CHARS = 46

_CHOICES: tuple[Choice[Answer], ...] = (
    Choice("y", "trust it, and what is below it, from now on", "trust"),
    Choice("o", "only this time", "this run"),
    Choice("n", "go on without: nothing of it is obeyed", "no"),
)
_STATES: dict[TrustState, str] = {
    "trusted": "It is trusted now.",
    "not trusted": "It is not trusted now.",
    "not asked": "Trust it only if you know who made it.",
}


def _ignore(_character: str) -> object:
    return None


class TrustScreen(ChoiceScreen[Answer]):
    """Returns the answer, None after Esc.

    Args:
        question: What is asked.
        take_stray: Gets the letters that were meant for the prompt.
        quiet_s: Seconds without a letter before one answers.
        clock: Monotonic seconds.
    """

    KEYS_HINT: ClassVar[str] = "esc go on without; it is asked again"

    def __init__(
        self,
        question: TrustQuestion,
        take_stray: Callable[[str], object] = _ignore,
        *,
        quiet_s: float = QUIET_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("Trust this folder?", trust_facts(question), _CHOICES)
        self._take_stray = take_stray
        self._quiet_s = quiet_s
        self._clock = clock
        self._quiet_since_s = clock()

    def on_key(self, event: Key) -> None:
        """Pass on what is typed before there was a pause, and letters that answer nothing."""
        if not event.is_printable or event.character is None:
            return
        is_quiet = self._clock() - self._quiet_since_s >= self._quiet_s
        if is_quiet and event.key in {choice.key for choice in _CHOICES}:
            return
        event.prevent_default()
        event.stop()
        self._quiet_since_s = self._clock()
        self._take_stray(event.character)


def trust_facts(question: TrustQuestion) -> str:
    """What there is to know before answering; short enough for the answers to stay in sight."""
    lines = [_short(str(question.folder), MAX_PATH_CHARS), ""]
    if question.files:
        lines.append("What would be obeyed:")
        lines += [f"  {_shown(file, question)}" for file in question.files[:MAX_FILES_SHOWN]]
        more = len(question.files) - MAX_FILES_SHOWN
        lines += [f"  … and {more} more"] if more > 0 else []
    else:
        lines.append("It holds no AGENTS.md and no settings of ours now.")
    if question.git_doubt:
        doubt = question.git_doubt.replace(f"{question.folder}/", "")
        lines.append(_short(f"What git would obey: {doubt}", MAX_PATH_CHARS))
    elif question.has_repository:
        lines.append("Git would be asked which files a command changed.")
    return "\n".join([*lines, _STATES[question.state]])


def _shown(file: Path, question: TrustQuestion) -> str:
    return _short(str(file.relative_to(question.folder)), MAX_NAME_CHARS)


def _short(text: str, limit: int) -> str:
    """`text` in one line; of a long one the beginning and the end."""
    line = safe_text(text, keep_newlines=False)
    if len(line) <= limit:
        return line
    return f"{line[: limit // 2]}…{line[-(limit // 2) :]}"
