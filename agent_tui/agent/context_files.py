"""AGENTS.md files: what the person and the project tell every conversation."""

from dataclasses import dataclass
from pathlib import Path

MAX_FILE_CHARS = 40_000
"""About 10,000 tokens: more than any real file of this kind. Small windows get less of it."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One file in force. `was_cut`: only its first `MAX_FILE_CHARS` are used."""

    path: Path
    text: str
    was_cut: bool = False


def load_context_files(user_dir: Path, cwd: Path) -> tuple[ContextFile, ...]:
    """The files in force for `cwd`, the most general first.

    Looks into the user's folder, then from the repository root (the nearest folder upward
    with ``.git``) down to `cwd`; without a repository only into `cwd`. In each folder
    ``AGENTS.md``, or ``CLAUDE.md`` where there is none. Unreadable files are passed over.
    """
    found = [_load_from(folder) for folder in (user_dir, *_project_folders(cwd))]
    return tuple(file for file in found if file is not None)


def _project_folders(cwd: Path) -> list[Path]:
    above = [cwd, *cwd.parents]
    for depth, folder in enumerate(above):
        if (folder / ".git").exists():
            return list(reversed(above[: depth + 1]))
    return [cwd]


def _load_from(folder: Path) -> ContextFile | None:
    for name in ("AGENTS.md", "CLAUDE.md"):
        path = folder / name
        try:
            if not path.is_file():  # opening a pipe would wait for its other end
                continue
            with path.open(encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_FILE_CHARS + 1)
        except OSError:
            continue
        if text.strip():
            return ContextFile(path, text[:MAX_FILE_CHARS], len(text) > MAX_FILE_CHARS)
    return None
