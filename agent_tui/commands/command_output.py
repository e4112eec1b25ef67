"""How the output of a command that the model ran is shown: its ending, and a few lines."""

import re
from dataclasses import dataclass

from agent_tui.commands.core.short_words import count_text
from agent_tui.messages import ToolDetails, ToolResultMessage, words_in
from agent_tui.safe_text import safe_output
from agent_tui.tools.processes.shell import extract_printed

SHOWN_LINES = 5
"""Lines of an output shown while it is folded."""

LEAST_FOLDED = 5
"""A line that says how many are folded saves less room than it costs in attention for fewer."""

_LINE_CHARS = 200
_RAN_WELL = "exit 0"
_LEFT_OUT = re.compile(r"^\[\.\.\. (\d+) lines, \d+ bytes left out \.\.\.\]$", re.MULTILINE)
_NAMES_ERROR = re.compile(
    r"^.*(?:\b(?:error|fatal|panic)\b|\w(?:Error|Exception)\b)[^:\n]{0,12}: ?\S.*$",
    re.IGNORECASE | re.MULTILINE,
)
"""``error: ...``, ``a.c:3:5: fatal error: ...``, ``error[E0308]: ...``, ``ValueError: ...``."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a command.

    Attributes:
        text: The part that the model got.
        lines: Number of lines printed.
        result: How it ended and how much it printed, in a few words.
    """

    text: str
    lines: int
    result: str


def command_output(message: ToolResultMessage) -> CommandOutput | None:
    """The output of the command behind a result; None if the call ran no command."""
    details = message.tool_details
    is_job_looked_at = message.tool_name == "job" and details.jobs
    ending = f"job {details.jobs[0].id}: " if is_job_looked_at else details.summary
    text = extract_printed(message.text, ending) if ending else message.text
    lines = details.printed_lines
    if lines is None and message.tool_name == "bash" and text != message.text:
        lines = _count_lines(text)  # a session from an earlier version
    return None if lines is None else CommandOutput(text, lines, _result(details, lines))


def result_text(message: ToolResultMessage) -> str:
    """The text of a result for the user: of a call that they declined, what they said."""
    if message.tool_details.ending != "declined":
        return message.text
    words = message.tool_details.user_words or words_in(message.text)
    return f"You declined this. You said: {words}" if words else "You declined this."


@dataclass(frozen=True, slots=True)
class OutputExcerpt:
    """A few lines of an output.

    Attributes:
        first: Lines before the gap: the line that names the error.
        hidden: Number of lines not shown.
        last: The last lines.
    """

    first: tuple[str, ...]
    hidden: int
    last: tuple[str, ...]


def excerpt(
    output: str, *, lines: int = 0, most: int = SHOWN_LINES, has_failed: bool = False
) -> OutputExcerpt:
    """The end of `output`; for a failed command also the first line that names an error.

    Fewer than `LEAST_FOLDED` lines are shown rather than folded, but never more than twice `most`.

    Args:
        output: The output; a long one may lack its beginning.
        lines: Number of lines printed, if `output` has fewer.
        most: Number of lines to show.
        has_failed: Whether it may contain an error.
    """
    output = output.rstrip()
    held = output.count("\n") + 1 if output else 0
    lines = max(lines, held)
    if lines < most + min(LEAST_FOLDED, most + 1) and lines == held:
        return OutputExcerpt((), 0, tuple(output.split("\n")) if output else ())
    end = output.rsplit("\n", most)
    folded = end.pop(0) if len(end) > most else ""
    hidden = lines - len(end)
    is_error_shown = not has_failed or _NAMES_ERROR.search("\n".join(end))
    if not is_error_shown and (named := _NAMES_ERROR.search(folded)):
        return OutputExcerpt((named[0],), hidden, tuple(end[1:]))
    return OutputExcerpt((), hidden, tuple(end))


def beginning(output: str, most: int = SHOWN_LINES) -> OutputExcerpt:
    """The first `most` lines of `output`, and how many follow; see `excerpt`."""
    lines = output.rstrip().split("\n") if output.strip() else []
    shown = lines if len(lines) < most + LEAST_FOLDED else lines[:most]
    return OutputExcerpt(tuple(shown), len(lines) - len(shown), ())


def excerpt_lines(found: OutputExcerpt) -> list[str]:
    """`found` as harmless lines, for fronts that cannot unfold anything."""
    gap = [f"… +{count_text(found.hidden, 'line')}"] if found.hidden else []
    return [*map(_safe_line, found.first), *gap, *map(_safe_line, found.last)]


def _safe_line(line: str) -> str:
    shown = safe_output(line[: 4 * _LINE_CHARS])
    return shown if len(shown) <= _LINE_CHARS else f"{shown[: _LINE_CHARS - 1]}…"


def _count_lines(text: str) -> int:
    """The number of lines printed, if `text` has the beginning and the end of them."""
    lines = text.count("\n") + 1 if text else 0
    return lines + sum(int(left_out[1]) - 1 for left_out in _LEFT_OUT.finditer(text))


def _result(details: ToolDetails, lines: int) -> str:
    """``412 lines``, ``exit 1 · 412 lines``, ``no output``; success is shown by the mark."""
    ending = details.summary.replace("exit code ", "exit ", 1)
    if details.jobs:
        return ending
    printed = count_text(lines, "line") if lines else "no output"
    return printed if ending in ("", _RAN_WELL) else f"{ending} · {printed}"
