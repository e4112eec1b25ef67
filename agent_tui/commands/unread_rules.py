"""The question at a start when deny rules cannot be read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.commands.core.front import Choice, Question
from agent_tui.permissions.rule_book import UnreadRules
from agent_tui.safe_text import safe_text

UnreadAnswer: TypeAlias = Literal["open", "leave", "ask"]
_MAX_SHOWN = 3
_ANSWERS: tuple[Choice[UnreadAnswer], ...] = (
    Choice("open", "open the file in your editor", "o"),
    Choice("leave", "leave", "l"),
    Choice("ask", "continue without them, in mode ask", "c"),
)


def unread_question(unread: Sequence[UnreadRules]) -> Question[UnreadAnswer]:
    """The question what to do without rules that cannot be read; `unread` has at least one.

    The first file among them is the one that "open" means.
    """
    facts = [safe_text(one.problem, keep_newlines=False) for one in unread[:_MAX_SHOWN]]
    if (more := len(unread) - _MAX_SHOWN) > 0:
        facts.append(f"… and {more} more")
    return Question(
        "Some of your deny rules cannot be read",
        (*facts, "", "Without them, what you forbade could run."),
        _ANSWERS if file_to_open(unread) is not None else _ANSWERS[1:],
        is_grave=True,
        unanswered="leave",
    )


def file_to_open(unread: Sequence[UnreadRules]) -> Path | None:
    """The first file to correct; None if only variables are wrong."""
    return next((one.file for one in unread if one.file is not None), None)
