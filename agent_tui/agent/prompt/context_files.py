"""AGENTS.md files: what the person and the project tell every conversation."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TypeAlias

from agent_tui.permissions.project_files import (
    context_candidates,
    local_candidate,
    project_folders,
)
from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import is_file, resolve_path
from agent_tui.tools.files.protected import is_secret_name

MAX_FILE_CHARS = 40_000
"""About 10,000 tokens: more than any real file of this kind. Small windows get less of it."""

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
        not_imported: What it names with ``@`` and is there, but may not be told.
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
    ``CLAUDE.local.md``. What a file names as ``@path`` follows it. Unreadable ones are passed by.

    Args:
        user_dir: The person's own folder; what is there is always obeyed.
        cwd: The workspace.
        may_obey: Whether a file of the project may be read; asked before it is opened.
    """
    reader = _Reader()
    found = list(reader.first_of(context_candidates(user_dir), _is_below(user_dir)))
    for folder in project_folders(cwd):
        found += _of_folder(reader, folder, may_obey)
    return tuple(found)


def load_folder_instructions(folder: Path, may_obey: MayObey) -> tuple[ContextFile, ...]:
    """Those of `folder` alone, with what they import."""
    return tuple(_of_folder(_Reader(), folder, may_obey))


def _of_folder(reader: "_Reader", folder: Path, may_obey: MayObey) -> Iterator[ContextFile]:
    yield from reader.first_of(filter(may_obey, context_candidates(folder)), may_obey)
    yield from reader.first_of(filter(may_obey, local_candidate(folder)), may_obey)


class _Reader:
    """Reads files with what they import, each once."""

    def __init__(self) -> None:
        self._read: set[Path] = set()

    def first_of(self, candidates: Iterable[Path], may_import: MayObey) -> Iterator[ContextFile]:
        """The first of `candidates` that says something, and what it imports."""
        for path in candidates:
            found = list(self._with_imports(path, may_import, 0))
            if found:
                return iter(found)
        return iter(())

    def _with_imports(self, path: Path, may_import: MayObey, depth: int) -> Iterator[ContextFile]:
        real = path.resolve()
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
    """What the file says, one character more than is used of a longer one; empty if unreadable."""
    try:
        with TextIOWrapper(open_regular_file(path), "utf-8", "replace") as file:
            return file.read(MAX_FILE_CHARS + 1)
    except OSError:
        return ""


def _is_below(folder: Path) -> MayObey:
    root = folder.resolve()
    return lambda file: file.is_relative_to(root)
