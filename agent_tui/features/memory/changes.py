"""How the files of instructions differ from what is in force."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.prompt.context_files import ContextFile

FileChangeKind: TypeAlias = Literal["changed", "new", "gone"]


@dataclass(frozen=True, slots=True)
class FileInForce:
    """A file that the model is given, and its size in tokens."""

    file: ContextFile
    tokens: int


def files_in_force(
    files: Sequence[ContextFile], count: Callable[[str], int]
) -> tuple[FileInForce, ...]:
    """Each file with its size. The first call of `count` is slow."""
    return tuple(FileInForce(file, count(file.text)) for file in files)


def changes_on_disk(
    in_force: Sequence[ContextFile], on_disk: Sequence[ContextFile]
) -> tuple[tuple[Path, FileChangeKind], ...]:
    """The files whose text on disk differs from the one in force, and how."""
    before = {file.path: file.text for file in in_force}
    now = {file.path: file.text for file in on_disk}
    changes: list[tuple[Path, FileChangeKind]] = []
    for path in [*before, *(path for path in now if path not in before)]:
        if path not in now:
            changes.append((path, "gone"))
        elif path not in before:
            changes.append((path, "new"))
        elif before[path] != now[path]:
            changes.append((path, "changed"))
    return tuple(changes)
