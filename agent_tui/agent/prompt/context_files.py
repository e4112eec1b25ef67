"""AGENTS.md files: the ones in force, what changed in them on disk, and adding a line."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.errors import ConfigError
from agent_tui.paths import make_private_dir
from agent_tui.permissions.project_files import (
    CONTEXT_NAMES,
    context_candidates,
    local_candidate,
    project_folders,
)
from agent_tui.permissions.trust import FolderTrust
from agent_tui.regular_files import open_regular_file, read_regular_file
from agent_tui.safe_paths import is_file, real_path, resolve_path
from agent_tui.sessions.file.disk import sync_folder
from agent_tui.text import close_fence, repair_text
from agent_tui.tools.files.protected import is_secret_name

MAX_FILE_CHARS = 40_000
"""About 10,000 tokens: more than any real instruction file. Small windows get less."""

MOST_IMPORTS = 50
_DEEPEST_IMPORT = 5

_CODE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.M | re.S)
_IMPORT = re.compile(r"(?:^|(?<=[\s(]))@([^\s`]+)", re.M)
_TRAILING = ".,;:!?)"

MayObey: TypeAlias = Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One file in force.

    Attributes:
        path: Where it is.
        text: What it says.
        was_cut: Only its first `MAX_FILE_CHARS` are used.
        not_imported: Existing files it names with ``@`` that may not be read.
    """

    path: Path
    text: str
    was_cut: bool = False
    not_imported: tuple[Path, ...] = ()


def load_context_files(user_dir: Path, cwd: Path, may_obey: MayObey) -> tuple[ContextFile, ...]:
    """The files in force for `cwd`, the most general first.

    Looks into the user's folder, then from the repository root (the nearest folder upward
    with ``.git``) down to `cwd`; without a repository only into `cwd`. In each folder
    ``AGENTS.override.md``, else ``AGENTS.md``, else ``CLAUDE.md``; of a project also
    ``CLAUDE.local.md``. Files that a file names as ``@path`` follow it. Unreadable files are
    skipped.

    Args:
        user_dir: The user's own folder; always read.
        cwd: The workspace.
        may_obey: Whether a file of the project may be read; asked before it is opened.
    """
    reader = _Reader()
    found = list(reader.first_of(context_candidates(user_dir), _is_below(user_dir)))
    for folder in project_folders(cwd):
        found += _of_folder(reader, folder, may_obey)
    return tuple(found)


def load_folder_instructions(folder: Path, may_obey: MayObey) -> tuple[ContextFile, ...]:
    """The files of `folder` alone, with their imports."""
    return tuple(_of_folder(_Reader(), folder, may_obey))


def _of_folder(reader: "_Reader", folder: Path, may_obey: MayObey) -> Iterator[ContextFile]:
    yield from reader.first_of(filter(may_obey, context_candidates(folder)), may_obey)
    yield from reader.first_of(filter(may_obey, local_candidate(folder)), may_obey)


class _Reader:
    """Reads files with what they import, each once."""

    def __init__(self) -> None:
        self._read: set[Path] = set()

    def first_of(self, candidates: Iterable[Path], may_import: MayObey) -> Iterator[ContextFile]:
        """The first of `candidates` that has text, and its imports."""
        for path in candidates:
            found = list(self._with_imports(path, may_import, 0))
            if found:
                return iter(found)
        return iter(())

    def _with_imports(self, path: Path, may_import: MayObey, depth: int) -> Iterator[ContextFile]:
        real = real_path(path)
        text = text_of(path)
        if real in self._read or not text.strip():
            return
        self._read.add(real)
        named = list(_imports(text[:MAX_FILE_CHARS], path.parent))
        allowed = [file for file in named if may_import(file) and not is_secret_name(file.name)]
        refused = tuple(file for file in named if file not in allowed)
        is_cut = len(text) > MAX_FILE_CHARS
        yield ContextFile(path, text[:MAX_FILE_CHARS], is_cut, refused)
        for file in allowed if depth < _DEEPEST_IMPORT else ():
            if len(self._read) < MOST_IMPORTS:
                yield from self._with_imports(file, may_import, depth + 1)


def _imports(text: str, folder: Path) -> Iterator[Path]:
    """The files that `text`, of a file in `folder`, names with ``@``, outside of code."""
    seen: set[Path] = set()
    for written in _IMPORT.findall(_CODE.sub(" ", text)):
        for name in (written, written.rstrip(_TRAILING)):
            file = _file_named(name, folder)
            if file is not None:
                if file not in seen:
                    seen.add(file)
                    yield file
                break


def _file_named(name: str, folder: Path) -> Path | None:
    try:
        file = resolve_path(name, folder)
    except OSError:
        return None
    return file if name and is_file(file) else None


def text_of(path: Path) -> str:
    """The file's text, up to one character beyond `MAX_FILE_CHARS`; empty if unreadable."""
    try:
        with TextIOWrapper(open_regular_file(path), "utf-8", "replace") as file:
            return file.read(MAX_FILE_CHARS + 1)
    except OSError:
        return ""


def _is_below(folder: Path) -> MayObey:
    root = real_path(folder)
    return lambda file: file.is_relative_to(root)


_LIST_MARKS = ("- ", "* ", "+ ")
_EDIT_IT = "Edit it with /memory edit."


def own_file(user_dir: Path) -> Path:
    """The path of the user's own instructions, even if it does not exist yet."""
    return _file_of(user_dir) or user_dir / CONTEXT_NAMES[0]


def project_file(cwd: Path) -> Path:
    """The project's instructions nearest to `cwd`, or where its first ones belong: at its root."""
    folders = project_folders(cwd)
    found = (_file_of(folder) for folder in reversed(folders))
    return next((file for file in found if file is not None), folders[0] / CONTEXT_NAMES[0])


def why_not_obeyed(file: Path, trust: FolderTrust) -> str:
    """Why a project's instructions at `file` would be ignored; empty if they would not be."""
    if file.exists() or file.is_symlink():
        return trust.why_not(file)
    folder = file.parent
    if trust.state_of(folder) == "not asked" and trust.is_too_broad(folder):
        return f"{folder} is too broad to be trusted"
    return f"{folder} is not trusted" if trust.state_of(folder) == "not trusted" else ""


def add_line(file: Path, text: str) -> None:
    """Append `text` as an item to `file`, which is created if it is missing.

    The write is atomic. The file keeps its mode, line ends and links.

    Raises:
        ConfigError: It is not UTF-8 text, has changed meanwhile, or cannot be written.
    """
    try:
        real = real_path(file)
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
    """Create the folder of the user's own `file`, so that an editor can save there.

    Raises:
        ConfigError: It cannot be created.
    """
    try:
        make_private_dir(file.parent)
    except OSError as error:
        raise ConfigError(f"{file.parent} cannot be created: {error.strerror}.") from error


def with_line(present: str, text: str) -> str:
    """Add `text` to `present` as an item after the last one, with the same marker and line ends.

    Fenced code that is open at the end is closed first: in it, the item would be code.
    """
    newline = "\r\n" if "\r\n" in present else "\n"
    line = " ".join(repair_text(text).split())
    line = line[2:] if line.startswith(_LIST_MARKS) else line
    kept = present.rstrip()
    if not kept:
        return f"- {line}{newline}"
    if fence := close_fence(kept):
        kept = f"{kept}{newline}{fence}"
    last = kept.replace("\r", "\n").rpartition("\n")[2].lstrip()
    mark = last[:2] if last.startswith(_LIST_MARKS) else ""
    gap = newline if mark else newline * 2
    return f"{kept}{gap}{mark or '- '}{line}{newline}"


def _file_of(folder: Path) -> Path | None:
    return next(context_candidates(folder), None)


def _replace(path: Path, data: bytes, before: bytes | None) -> None:
    """Replace `before` with `data`; None means that the file does not exist yet.

    Raises:
        ConfigError: The file no longer holds `before`.
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
