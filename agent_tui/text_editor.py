"""The user's own editor, for the prompt and for files."""

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_tui.errors import AgentTuiError
from agent_tui.safe_paths import find_program, resolve_command

_GO_TO = frozenset({"code", "code-insiders", "codium", "cursor", "windsurf"})
_COLON = frozenset({"hx", "helix", "subl", "zed"})
"""Editors that take a line in another way than vi."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """The editor in ``$VISUAL`` or ``$EDITOR`` with its options; else vi, or nano without a vi.

    Raises:
        AgentTuiError: The variable has no command.
    """
    variable = "VISUAL" if environ.get("VISUAL") else "EDITOR"
    named = environ.get(variable)
    if not named:
        return ["nano" if not _is_there("vi", environ) and _is_there("nano", environ) else "vi"]
    problem = "it is blank"
    try:
        if command := shlex.split(named):
            return command
    except ValueError:
        problem = "its quotation marks do not match"
    raise AgentTuiError(f"${variable} is not a command: {problem}.", f"Try export {variable}=vi.")


def run_editor(command: Sequence[str], file: Path, line: int = 0) -> int:
    """Open `file` in the editor `command` and wait until it ends; returns its exit code.

    With a `line`, from 1, the editor opens there.

    Raises:
        AgentTuiError: The editor cannot be started.
    """
    try:
        place = place_in(command[0], file, line)
        return subprocess.run([*resolve_command(command), *place], check=False).returncode
    except OSError as error:
        raise AgentTuiError(
            f"{command[0]} cannot be started: {error.strerror}.", "Set $EDITOR to another editor."
        ) from error


def place_in(editor: str, file: Path, line: int) -> list[str]:
    """The arguments with which `editor` opens `file` at `line`; 0 for no line.

    Editors of terminals follow vi, where ``+12`` is a line.
    """
    name = Path(editor).name
    if line < 1:
        return [str(file)]
    if name in _GO_TO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if name in _COLON else [f"+{line}", str(file)]


def edit_text(text: str, edit: Callable[[Path], bool], name: str = "prompt.md") -> str | None:
    """`text` after the user edited it; None if the editor failed.

    Args:
        text: Written to a temporary file.
        edit: Opens the editor for that file; returns whether it succeeded.
        name: The name of the file, from which editors know what it holds.
    """
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        file = Path(folder) / name
        written = text and text + "\n"  # editors expect a final line end
        file.write_text(written, encoding="utf-8", errors="replace")
        if not edit(file):
            return None
        return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


def _is_there(program: str, environ: Mapping[str, str]) -> bool:
    return find_program(program, environ.get("PATH")) is not None
