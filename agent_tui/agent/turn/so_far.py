"""What a running call has put out so far, which stays if the user interrupts it."""

from agent_tui.messages import ToolDetails
from agent_tui.omissions import omission_mark
from agent_tui.tools.base import EmitOutput, ToolOutput
from agent_tui.tools.processes.shell import interruption_of
from agent_tui.tools.shorten import OutputLimits, keep_ends, plain_text

_NOT_BEGUN = "Not run: the user interrupted before it started."


class OutputSoFar:
    """Passes on what a call puts out, and keeps the end of it.

    Args:
        emit: Receives everything.
        limits: How much of it the model may get if the call is interrupted.

    Attributes:
        result: A better result than that end, from the call itself; None if it gave none.
        began_s: When the call began, on the clock of its caller; None before.
    """

    def __init__(self, emit: EmitOutput, limits: OutputLimits) -> None:
        self._emit = emit
        self.limits = limits
        self.result: ToolOutput | None = None
        self.began_s: float | None = None
        self._end = ""
        self._line_ends = 0

    def __call__(self, text: str, skipped_lines: int = 0, /) -> None:
        """Take `text`, before which `skipped_lines` lines were left out."""
        self._line_ends += text.count("\n") + skipped_lines
        self._end = (self._end + text)[-self.limits.max_bytes :]
        self._emit(text, skipped_lines)

    def interrupted(self, now_s: float) -> ToolOutput:
        """The result of the call if the user interrupts it at `now_s`."""
        details = ToolDetails(ending="cancelled")
        if self.began_s is None:
            return ToolOutput(_NOT_BEGUN, details, is_error=True)
        if self.result is not None:
            return self.result
        ending, in_full = interruption_of(now_s - self.began_s)
        text = plain_text(self._end).rstrip("\n")
        if not text.strip():
            return ToolOutput(f"I{in_full[1:]}.", details, is_error=True)
        lines = self._line_ends + (not self._end.endswith("\n"))
        missing = lines - text.count("\n") - 1
        if missing > 0:
            text = f"{omission_mark(f'{missing} lines')}\n{text}"
        limits = self.limits
        kept = keep_ends(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
        shown = details.model_copy(
            update={"summary": ending, "printed_lines": lines, "truncated": kept.is_cut}
        )
        return ToolOutput(f"{kept.text}\n[{in_full}]", shown, is_error=True)
