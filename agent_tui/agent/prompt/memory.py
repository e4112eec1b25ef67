"""What conversations are told from files: where it stands, what it takes, and adding to it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.prompt.context_files import ContextFile
from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.errors import ConfigError
from agent_tui.paths import make_private_dir
from agent_tui.permissions.project_files import CONTEXT_NAMES, context_candidates, project_folders
from agent_tui.permissions.trust import FolderTrust
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.disk import sync_folder
from agent_tui.text import repair_text

Change: TypeAlias = Literal["changed", "new", "gone"]

_LIST_MARKS = ("- ", "* ", "+ ")
_EDIT_IT = "Edit it with /memory edit."


@dataclass(frozen=True, slots=True)
class FileInForce:
    """A file that the model is given, and what it takes of the window."""

    file: ContextFile
    tokens: int


def files_in_force(
    files: Sequence[ContextFile], count: Callable[[str], int]
) -> tuple[FileInForce, ...]:
    """Each file with its size. Slow the first time `count` is asked."""
    return tuple(FileInForce(file, count(file.text)) for file in files)


def changes_on_disk(
    in_force: Sequence[ContextFile], on_disk: Sequence[ContextFile]
) -> tuple[tuple[Path, Change], ...]:
    """What is not in force as it is in the files now."""
    before = {file.path: file.text for file in in_force}
    now = {file.path: file.text for file in on_disk}
    changes: list[tuple[Path, Change]] = []
    for path in [*before, *(path for path in now if path not in before)]:
        if path not in now:
            changes.append((path, "gone"))
        elif path not in before:
            changes.append((path, "new"))
        elif before[path] != now[path]:
            changes.append((path, "changed"))
    return tuple(changes)


def own_file(user_dir: Path) -> Path:
    """The person's own instructions, there or not."""
    return _file_of(user_dir) or user_dir / CONTEXT_NAMES[0]


def project_file(cwd: Path) -> Path:
    """The project's instructions nearest to `cwd`, or where its first ones belong: at its root."""
    folders = project_folders(cwd)
    found = (_file_of(folder) for folder in reversed(folders))
    return next((file for file in found if file is not None), folders[0] / CONTEXT_NAMES[0])


def why_not_obeyed(file: Path, trust: FolderTrust) -> str:
    """Why instructions of a project would not be obeyed; empty where they would, once asked."""
    if file.exists() or file.is_symlink():
        return trust.why_not(file)
    folder = file.parent
    if trust.state_of(folder) == "not asked" and trust.is_too_broad(folder):
        return f"{folder} is too broad to be trusted"
    return f"{folder} is not trusted" if trust.state_of(folder) == "not trusted" else ""


def add_line(file: Path, text: str) -> None:
    """Put `text` as one more item at the end of `file`, which is made if it is not there.

    In one step: whatever happens, the file is there as it was or with the line. Its mode, line
    ends and links stay.

    Raises:
        ConfigError: It is not UTF-8 text, changed meanwhile, or cannot be written.
    """
    try:
        real = file.resolve()
        before = read_regular_file(real) if real.exists() else None
        try:
            present = (before or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file} is not UTF-8 text.", _EDIT_IT) from error
        _replace(real, with_line(present, text).encode("utf-8"), before)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{file} cannot be written: {why}.") from error


def make_folder(file: Path) -> None:
    """Make the folder of the person's own `file`, so that an editor can write there.

    Raises:
        ConfigError: It cannot be made.
    """
    try:
        make_private_dir(file.parent)
    except OSError as error:
        raise ConfigError(f"{file.parent} cannot be created: {error.strerror}.") from error


def with_line(present: str, text: str) -> str:
    """`present` with `text` as an item below its last one, in the same marks and line ends."""
    newline = "\r\n" if "\r\n" in present else "\n"
    line = " ".join(repair_text(text).split())
    line = line[2:] if line.startswith(_LIST_MARKS) else line
    kept = present.rstrip()
    if not kept:
        return f"- {line}{newline}"
    last = kept.replace("\r", "\n").rpartition("\n")[2].lstrip()
    mark = last[:2] if last.startswith(_LIST_MARKS) else ""
    gap = newline if mark else newline * 2
    return f"{kept}{gap}{mark or '- '}{line}{newline}"


def _file_of(folder: Path) -> Path | None:
    return next(context_candidates(folder), None)


def _replace(path: Path, data: bytes, before: bytes | None) -> None:
    """Put `data` in place of `before`; None is a file that is not there yet.

    Raises:
        ConfigError: The file is not as it was any more.
        OSError: Nothing was changed.
    """
    if not path.parent.exists():
        make_private_dir(path.parent)
    with scratch_beside(path) as scratch:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                os.fchmod(descriptor, path.stat().st_mode & 0o7777)
            file.write(data)
            file.flush()
            sync_file(descriptor)
        if (read_regular_file(path) if path.exists() else None) != before:
            raise ConfigError(f"{path} changed in the meantime; nothing was added.", "Try again.")
        scratch.replace(path)
    sync_folder(path.parent)
