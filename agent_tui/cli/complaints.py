"""What goes wrong, on standard error: without keys and without what steers a terminal."""

import os
import sys
import traceback

from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets


def complain(text: str) -> None:
    """Print `text` on standard error, after the program's name."""
    print(f"agent-tui: {_fit_to_show(text)}", file=sys.stderr)


def report_crash(error: BaseException) -> None:
    """Print where the program broke: a fault of ours that should be told to us."""
    trace = "".join(traceback.format_exception(error))
    print(_fit_to_show(trace), end="", file=sys.stderr)
    complain("This is a fault of the program. The session is as it was last shown.")


def _fit_to_show(text: str) -> str:
    return mask_secrets(strip_control_characters(text), secret_values(os.environ))
