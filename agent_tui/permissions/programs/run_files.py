"""Which files a command runs, or reads settings from, as far as its text names them.

That is a program, an interpreter's script, the ``Makefile`` of ``make``, and what a variable or an
option names: ``node tools/clean``, ``PATH=./bin make``, ``make SHELL=./x``, ``ssh -F ./config
host``. Other words name data.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.permissions.programs.offered_rules import runs_scripts
from agent_tui.permissions.shell.words import CommandPart
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_file
from agent_tui.tools.files.obeyed import is_run_by
from agent_tui.tools.git.user_settings import find_programs, names_in

_BYTES: Final = 8_192


def find_run_files(part: CommandPart, folders: Sequence[Path], home: Path | None) -> Iterator[Path]:
    """The existing files that `part` may run or follow; archives and other binary data are none.

    Args:
        part: One part of a command.
        folders: Where it may run.
        home: For ``~``.
    """
    names = names_in(shlex.join(_deciding_words(part)), home)
    program = part.program
    for folder in folders:
        implied = (folder / name for name in _names_in(folder) if is_run_by(program, name))
        for path in (*implied, *find_programs(folder, names)):
            if is_file(path) and _may_run(path):
                yield path


def _names_in(folder: Path) -> list[str]:
    with suppress(OSError):
        return [entry.name for entry in folder.iterdir()]
    return []


def _deciding_words(part: CommandPart) -> Iterator[str]:
    """The words of `part` that may name a program or settings."""
    name = part.program
    is_git = name == "git"  # what its options name is a part of its own
    yield from (word.value for word in (part.values if is_git else part.assigned) if word.value)
    yield part.name
    if is_git:
        return
    is_named = runs_scripts(name)  # the script is the first word that is no option
    before = ""
    for word in part.arguments:
        text = word.value or ""
        is_option = text.startswith("-")
        if is_option or before.startswith("-") or is_named:
            yield text
        is_named = is_named and is_option
        before = text


def _may_run(path: Path) -> bool:
    """Whether the file at `path` is a program, or text that could be a script or settings."""
    with suppress(OSError):
        if path.stat().st_mode & 0o111:
            return True
        with open_regular_file(path) as file:
            return b"\0" not in file.read(_BYTES)
    return False
