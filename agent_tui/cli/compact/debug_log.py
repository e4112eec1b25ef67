"""The log of what compaction does to each message, written if AGENT_TUI_DEBUG_CONTEXT is 1."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_tui.providers.log_file import append_to_log

VARIABLE = "AGENT_TUI_DEBUG_CONTEXT"

_LINES_AT_ONCE = 500
"""Lines per log entry; an entry's size is limited, and a long session has more lines."""


def context_debug_log(
    environ: Mapping[str, str], log_path: Path
) -> Callable[[Sequence[str]], None] | None:
    """A function that writes decisions to `log_path`; None unless the variable is 1.

    A log that cannot be written stops nothing.
    """
    if environ.get(VARIABLE) != "1":
        return None

    def write(decisions: Sequence[str]) -> None:
        with contextlib.suppress(OSError):
            for start in range(0, len(decisions), _LINES_AT_ONCE):
                some = decisions[start : start + _LINES_AT_ONCE]
                append_to_log(log_path, "\n".join(f"context: {line}" for line in some))

    return write
