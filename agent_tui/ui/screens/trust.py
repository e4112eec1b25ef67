"""The question whether a folder is trusted, with what would be obeyed there."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from agent_tui.permissions.project_files import COMMANDS_FOLDER
from agent_tui.permissions.trust import Answer, TrustQuestion, TrustState
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.choice import Choice
from agent_tui.ui.screens.quiet_choice import QuietChoiceScreen, ignore_letter

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


class TrustScreen(QuietChoiceScreen[Answer]):
    """Returns the answer, None after Esc.

    Args:
        question: What is asked.
        take_stray: Gets the letters that were meant for the prompt.
    """

    KEYS_HINT: ClassVar[str] = "esc go on without; it is asked again"

    def __init__(
        self, question: TrustQuestion, take_stray: Callable[[str], object] = ignore_letter
    ) -> None:
        super().__init__("Trust this folder?", trust_facts(question), _CHOICES, take_stray)


def trust_facts(question: TrustQuestion) -> str:
    """What there is to know before answering; short enough for the answers to stay in sight."""
    lines = [_short(str(question.folder), MAX_PATH_CHARS), ""]
    if question.files:
        lines.append("What would be obeyed:")
        lines += [f"  {_shown(file, question)}" for file in question.files[:MAX_FILES_SHOWN]]
        more = len(question.files) - MAX_FILES_SHOWN
        lines += [f"  … and {more} more"] if more > 0 else []
    else:
        lines.append("It holds no AGENTS.md, settings or commands of ours now.")
    if question.git_doubt:
        doubt = question.git_doubt.replace(f"{question.folder}/", "")
        lines.append(_short(f"What git would obey: {doubt}", MAX_PATH_CHARS))
    elif question.has_repository:
        lines.append("Git would be asked which files a command changed.")
    return "\n".join([*lines, _STATES[question.state]])


def _shown(file: Path, question: TrustQuestion) -> str:
    """A file; of a folder of prompt files, which is not listed before, what it may hold."""
    name = str(file.relative_to(question.folder))
    of_prompts = file.parts[-2:] == COMMANDS_FOLDER.parts
    return _short(name, MAX_NAME_CHARS) + ("/*.md (commands)" if of_prompts else "")


def _short(text: str, limit: int) -> str:
    """`text` in one line; of a long one the beginning and the end."""
    line = safe_text(text, keep_newlines=False)
    if len(line) <= limit:
        return line
    return f"{line[: limit // 2]}…{line[-(limit // 2) :]}"
