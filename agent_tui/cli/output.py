"""What the subcommands print and ask: any character, whatever the locale; no keys."""

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING

from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import safe_json, strip_control_characters
from agent_tui.secret_text import mask_secrets

if TYPE_CHECKING:  # pydantic would double the time of a shell's completion
    from pydantic import JsonValue


def write_text(text: str) -> None:
    """Write `text` to standard output as UTF-8."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def write_json(value: "JsonValue") -> None:
    """Write `value` to standard output as indented JSON."""
    write_text(safe_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def ask(question: str, *, is_yes_usual: bool) -> bool:
    """Ask a yes/no question on the terminal; returns true if standard input is not a terminal."""
    if not sys.stdin.isatty():
        return True
    print(question, "[Y/n]" if is_yes_usual else "[y/N]", end=" ", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        return False
    return answer.strip().lower() in (("", "y", "yes") if is_yes_usual else ("y", "yes"))


def complain(text: str) -> None:
    """Print `text` on standard error, after the program's name."""
    print(f"agent-tui: {_safe_to_show(text)}", file=sys.stderr)


def report_crash(error: BaseException) -> None:
    """Print the traceback of an internal error and ask the user to report it."""
    trace = "".join(traceback.format_exception(error))
    print(_safe_to_show(trace), end="", file=sys.stderr)
    complain("Internal error. Please report it. The session is saved as last shown.")


def _safe_to_show(text: str) -> str:
    """`text` without keys and without terminal control characters."""
    return mask_secrets(strip_control_characters(text), secret_values(os.environ))
