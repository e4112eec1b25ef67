"""Which worktrees agent-tui created, of which repository, as files in the user's data folder.

Commands of the model cannot write there, so a record proves that a worktree belongs to its
repository: what a user decided about the repository holds in the worktree too.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast, get_args

from agent_tui.atomic_files import replace_private_file
from agent_tui.file_locks import FileLock, LockHeldError, LockOwner
from agent_tui.paths import cwd_slug, make_private_dir
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import git_entry, is_folder, real_path
from agent_tui.tools.git.places import git_place
from agent_tui.tools.git.worktree import Worktree, WorktreeState

_SUFFIX = ".json"


class WorktreeRecords:
    """The records, one file for each worktree, named for its path.

    The record stays when a worktree is removed: its sessions still belong to the repository.

    Args:
        folder: Where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def at(self, path: Path) -> Worktree | None:
        """The worktree whose top folder is `path`; None if agent-tui created none there."""
        try:
            return _worktree(read_regular_file(self._file(path)))
        except (OSError, ValueError, RecursionError):
            return None

    def around(self, folder: Path) -> Worktree | None:
        """The worktree that contains `folder`, which is resolved; None if there is none.

        It counts only if git's files agree on both sides.
        """
        if not is_folder(self._folder) or (entry := git_entry(folder)) is None:
            return None
        found = self.at(entry.parent)
        if found is None or not entry.is_file():
            return None
        place = git_place(entry.parent)
        is_linked = place is not None and place.folder == found.repository / ".git"
        return found if is_linked else None

    def home_of(self, folder: Path) -> Path | None:
        """The folder of the main worktree that `folder`, in one of ours, stands for."""
        found = self.around(folder)
        return None if found is None else found.repository / folder.relative_to(found.path)

    def removed_around(self, folder: Path) -> Worktree | None:
        """The worktree that contained `folder` and was removed; None if there was none."""
        found = next(filter(None, map(self.at, (folder, *folder.parents))), None)
        return None if found is None or found.exists else found

    def all(self) -> Iterator[Worktree]:
        """All worktrees, also those that were removed."""
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with suppress(OSError, ValueError, RecursionError):
                yield _worktree(read_regular_file(file))

    def of_repository(self, repository: Path) -> tuple[Worktree, ...]:
        """The worktrees of the repository whose main worktree is `repository`, by name."""
        ours = (found for found in self.all() if found.repository == repository)
        return tuple(sorted(ours, key=lambda found: found.name))

    def store(self, worktree: Worktree, state: WorktreeState) -> Worktree:
        """Record `worktree` in `state`; returns it so.

        Raises:
            OSError: The record cannot be written.
        """
        stored = replace(worktree, state=state)
        make_private_dir(self._folder)
        values = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(stored).items()
        }
        text = json.dumps(values, indent=2) + "\n"
        replace_private_file(self._file(worktree.path), text.encode("ascii"))
        return stored

    def lock(self, path: Path) -> FileLock:
        """The lock on the worktree at `path`, held by the program that creates or uses it.

        Raises:
            LockHeldError: Another program has it.
            OSError: It cannot be created.
        """
        make_private_dir(self._folder)
        return FileLock(self._file(path).with_suffix(".lock"))

    def user_of(self, path: Path) -> LockOwner | None:
        """The program that holds `lock`; None if none does."""
        if not is_folder(self._folder):
            return None
        try:
            self.lock(path).release()
        except LockHeldError as error:
            return error.owner
        except OSError:
            pass
        return None

    def _file(self, path: Path) -> Path:
        return self._folder / f"{cwd_slug(path)}{_SUFFIX}"


def project_folders_elsewhere(records: WorktreeRecords, cwd: Path) -> tuple[Path, ...]:
    """The top folders of the other worktrees of the repository around `cwd`, also removed ones.

    Sessions in them are of the same project. Only reads files; git is not run.
    """
    resolved = real_path(cwd)
    place = git_place(resolved)
    if place is None:
        return ()
    tops = [file.parent for file in place.seen]
    if place.folder.name == ".git":
        main = place.folder.parent
        tops += [main, *(found.path for found in records.of_repository(main))]
    return tuple(dict.fromkeys(top for top in tops if top != place.top))


def main_folder(folder: Path) -> Path:
    """The top folder of the main worktree of the repository around `folder`; else `folder` itself.

    Only reads files; git is not run.
    """
    place = git_place(real_path(folder))
    return place.folder.parent if place is not None and place.folder.name == ".git" else folder


def _worktree(text: bytes) -> Worktree:
    stored = cast("object", json.loads(text))
    if not isinstance(stored, dict):
        raise ValueError("not an object")
    values = cast("dict[str, object]", stored)

    def word(name: str) -> str:
        value = values.get(name)
        if not isinstance(value, str):
            raise ValueError(f"no {name}")
        return value

    state = word("state")
    if state not in get_args(WorktreeState):
        raise ValueError(f"unknown state {state}")
    return Worktree(
        name=word("name"),
        path=Path(word("path")),
        repository=Path(word("repository")),
        branch=word("branch"),
        base=word("base"),
        start=word("start"),
        owns_branch=values.get("owns_branch") is True,
        state=cast("WorktreeState", state),
    )
