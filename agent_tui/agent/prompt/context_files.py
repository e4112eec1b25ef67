"""AGENTS.md files: what the person and the project tell every conversation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from agent_tui.permissions.project_files import context_candidates, project_folders

MAX_FILE_CHARS = 40_000
"""About 10,000 tokens: more than any real file of this kind. Small windows get less of it."""


@dataclass(frozen=True, slots=True)
class ContextFile:
    """One file in force. `was_cut`: only its first `MAX_FILE_CHARS` are used."""

    path: Path
    text: str
    was_cut: bool = False


def load_context_files(
    user_dir: Path, cwd: Path, may_obey: Callable[[Path], bool]
) -> tuple[ContextFile, ...]:
    """The files in force for `cwd`, the most general first.

    Looks into the user's folder, then from the repository root (the nearest folder upward
    with ``.git``) down to `cwd`; without a repository only into `cwd`. In each folder
    ``AGENTS.md``, or ``CLAUDE.md`` where there is none. Unreadable files are passed over.

    Args:
        user_dir: The person's own folder; what is there is always obeyed.
        cwd: The workspace.
        may_obey: Whether a file of the project may be read; asked before it is opened.
    """
    found = [_first_of(context_candidates(user_dir))]
    for folder in project_folders(cwd):
        found.append(_first_of(file for file in context_candidates(folder) if may_obey(file)))
    return tuple(file for file in found if file is not None)


def _first_of(candidates: Iterable[Path]) -> ContextFile | None:
    for path in candidates:
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_FILE_CHARS + 1)
        except OSError:
            continue
        if text.strip():
            return ContextFile(path, text[:MAX_FILE_CHARS], len(text) > MAX_FILE_CHARS)
    return None
