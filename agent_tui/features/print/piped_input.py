"""Reads what was piped into ``agent-tui -p``, but not input meant for another program."""

import os
import select
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FIRST_BYTE_S = 3.0
"""Seconds to wait for a pipe when there is also a written prompt; Claude Code waits as long."""

_SHELLS = frozenset({"ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"})

_LEFT = "Standard input not read: another program is reading it. Add - to the prompt to read it."
_SILENT = (
    "No data on standard input yet; continuing without it. Add - to the prompt to wait for it."
)


@dataclass(frozen=True, slots=True)
class GivenPrompt:
    """What ``-p`` was given.

    Attributes:
        written: The words on the command line.
        piped: The text on standard input, if it was read.
        note: Why standard input was not read, for the user; empty if there is nothing to say.
    """

    written: str
    piped: str
    note: str = ""


def read_prompt(words: Sequence[str], *, first_byte_s: float = _FIRST_BYTE_S) -> GivenPrompt:
    """Read standard input if it is meant for agent-tui.

    With ``-`` or without a written prompt, it is read to its end. With a prompt, it is read if it
    is not a terminal, data comes soon, and nothing else reads it: the rest of a ``while read``
    loop, or of a script piped into ``sh``, belongs to that.

    Args:
        words: The words written on the command line.
        first_byte_s: Seconds to wait for the first byte.
    """
    written = "\n\n".join(word for word in words if word not in ("", "-"))
    if "-" in words or not (written or sys.stdin.isatty()):
        return GivenPrompt(written, _read())
    if sys.stdin.isatty():
        return GivenPrompt(written, "")
    if _is_of_another_reader():
        return GivenPrompt(written, "", _LEFT if _has_more(0) else "")
    if not _has_more(first_byte_s):
        return GivenPrompt(written, "", _SILENT)
    return GivenPrompt(written, _read())


def _read() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()


def _has_more(timeout_s: float) -> bool:
    """Whether data or the end comes within `timeout_s`; a file read to its end has no more."""
    number = sys.stdin.fileno()
    state = os.fstat(number)
    if stat.S_ISREG(state.st_mode):
        return os.lseek(number, 0, os.SEEK_CUR) < state.st_size
    return bool(select.select([number], [], [], timeout_s)[0])


def _is_of_another_reader() -> bool:
    """Whether another program reads our standard input: a file partly read, or a shell's pipe.

    Programs between us and the shell (``timeout``, ``uv run``) pass on their own input. Without
    ``/proc`` a pipe counts as ours.
    """
    number = sys.stdin.fileno()
    ours = os.fstat(number)
    if stat.S_ISREG(ours.st_mode):
        return os.lseek(number, 0, os.SEEK_CUR) > 0
    if stat.S_ISCHR(ours.st_mode):  # the null device is shared and has nothing to lose
        return False
    process = Path("/proc") / str(os.getppid())
    try:
        while os.path.samestat((process / "fd" / "0").stat(), ours):
            if (process / "exe").readlink().name in _SHELLS:
                return True
            # After the name in brackets, which may hold anything: state, parent, ...
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            process = process.with_name(parent)
    except OSError:  # another user's process, an ended one, no /proc
        pass
    return False
