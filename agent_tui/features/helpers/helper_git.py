"""Git around a helper's work: from the user's state to a branch with commits.

No filter runs, not even those of the user's own settings: a filter runs outside the sandbox, in the
folder in which the helper's commands wrote, and an interpreter loads what it finds there. What
needs a filter is not stored, as it would be stored unconverted: a large file, or a secret.
"""

import asyncio
import os
import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent_tui.errors import WorktreeError
from agent_tui.features.helpers.helper_work import HelperChange, HelperWork
from agent_tui.regular_files import open_in
from agent_tui.safe_paths import is_file, open_folder, real_path
from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.files.versions import FILE, PROGRAM
from agent_tui.tools.git.command import ORDER_S, GitSilentError, ask_git, git_argv
from agent_tui.tools.git.private_folder import (
    ask_about_files,
    change_index,
    find_filtered,
    stage_files,
)
from agent_tui.tools.git.status import TreeDifference, diff_trees, read_work_tree
from agent_tui.tools.git.trees import MOST_CHANGES, MOST_FILE_BYTES
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_READ_BYTES = 100_000_000
_IDENTITY = ("user.name=agent-tui", "user.email=agent-tui@localhost", "commit.gpgSign=false")
_ANY_LINE_ENDS = ("core.safecrlf=false",)
"""Otherwise git may refuse a file whose line endings it would convert."""


class HelperGit:
    """The git calls around a helper's work.

    Args:
        keeper: Starts git.
        environ: The environment of commands here.
    """

    def __init__(self, keeper: ProcessKeeper, environ: Mapping[str, str]) -> None:
        self._keeper = keeper
        self._environ = environ

    async def begin(self, worktree: Worktree, top: Path) -> str:
        """Bring the user's uncommitted changes into `worktree`; returns the commit to work from.

        Left out are ignored files, files above 5 MB, those that a filter converts, and untracked
        ones whose names suggest keys.

        Raises:
            WorktreeError: There are too many, or git failed.
        """
        try:
            dirty = (await read_work_tree(self._keeper, top, self._environ)).dirty
            if len(dirty) > MOST_CHANGES:
                raise WorktreeError(
                    f"{len(dirty):,} files are not committed, too many to copy for a helper.",
                    "Commit them, or add build results to .gitignore.",
                )
            names = [name for name, blob in dirty.items() if blob or not _is_secret(name)]
            names = await self._without_filters(top, names)
            await asyncio.to_thread(_copy, top, worktree.path, names)
            return await self.commit(worktree, "Uncommitted changes when the helper began")
        except (GitSilentError, OSError) as error:
            raise WorktreeError(f"Cannot prepare the helper's worktree: {error}.") from error

    async def commit(self, worktree: Worktree, message: str) -> str:
        """Commit what is in `worktree` but what a filter converts; returns the newest commit.

        Raises:
            GitSilentError: Git failed.
        """
        keeper, path, environ = self._keeper, worktree.path, self._environ
        tree = await read_work_tree(keeper, path, environ, most_bytes=_MOST_READ_BYTES)
        names = [*tree.dirty, *(name.rstrip("/") for name in tree.left_out)]
        names = await self._without_filters(path, names)
        await stage_files(keeper, path, environ, names, settings=_ANY_LINE_ENDS)
        try:
            await ask_git(keeper, git_argv("diff", "--cached", "--quiet"), path, environ)
        except GitSilentError:
            words = ("commit", "--quiet", "--no-verify", "--message", message)
            await change_index(keeper, path, environ, *words, settings=_IDENTITY)
        head = await ask_git(keeper, git_argv("rev-parse", "HEAD"), path, environ)
        return os.fsdecode(head).strip()

    async def _without_filters(self, top: Path, names: list[str]) -> list[str]:
        """Those of the `names` in the worktree `top` that are no file, or that no filter converts.

        Raises:
            GitSilentError: Git cannot tell.
        """
        filtered = await find_filtered(self._keeper, top, self._environ, names)
        left = await asyncio.to_thread(
            lambda: {name for name in filtered if _is_content(top / name)}
        )
        return [name for name in names if name not in left]

    async def work(self, worktree: Worktree, top: Path, base: str, tip: str) -> HelperWork:
        """The changes from `base` to `tip`; a content that a filter converts is left out.

        Raises:
            GitSilentError: Git failed, or there are too many.
        """
        found = await diff_trees(self._keeper, worktree.repository, base, tip, self._environ)
        written = [one.name for one in found if one.after_id]
        filtered = await find_filtered(self._keeper, top, self._environ, written)
        whole = [one for one in found if _is_of_file(one) and one.name not in filtered]
        old = await self._checkouts(top, {one.name: one.before_id for one in whole})
        new = await self._checkouts(worktree.path, {one.name: one.after_id for one in whole})
        changes = tuple(
            HelperChange(one.name, old.get(one.name), new.get(one.name), one.after_mode == PROGRAM)
            for one in whole
        )
        names = {one.name for one in whole}
        left_out = tuple(one.name for one in found if one.name not in names or _is_of_mode(one))
        return HelperWork(worktree, top, base, tip, changes, left_out)

    async def _checkouts(self, top: Path, ids: Mapping[str, str]) -> dict[str, bytes]:
        """What git would write into the worktree `top`, by name, for the objects `ids`.

        Line endings are those of its attributes. No filter and no hook runs.
        """
        asked = {name: blob for name, blob in ids.items() if blob}
        if not asked:
            return {}
        # Git gives the size before conversion: a line that no content holds begins each file.
        mark = secrets.token_hex(16)
        answer = await ask_about_files(
            self._keeper,
            top,
            self._environ,
            *("cat-file", "--filters", f"--batch={mark}"),
            stdin=b"".join(os.fsencode(f"{blob} {name}\n") for name, blob in asked.items()),
            most_bytes=_MOST_READ_BYTES,
            patience_s=ORDER_S,
        )
        contents = answer.split(f"{mark}\n".encode())[1:]
        if len(contents) != len(asked):
            raise GitSilentError("objects of the repository are missing")
        return {
            name: content.removesuffix(b"\n") for name, content in zip(asked, contents, strict=True)
        }


def _is_of_file(change: TreeDifference) -> bool:
    """Whether the change is about a file whose content git can be asked for by its name."""
    name, modes = change.name, {change.before_mode, change.after_mode}
    can_ask = "\n" not in name and name == name.lstrip()  # in a line, after a blank
    return can_ask and modes <= {0, FILE, PROGRAM}


def _is_of_mode(change: TreeDifference) -> bool:
    """Whether a file became a program, or no longer is one."""
    return sorted((change.before_mode, change.after_mode)) == [FILE, PROGRAM]


def _is_secret(name: str) -> bool:
    """Whether the file, or a folder that it is in, has a name that suggests keys."""
    return any(map(is_secret_name, name.split("/")))


def _is_content(file: Path) -> bool:
    """Whether a regular file is at `file`, and no link."""
    return is_file(file) and not file.is_symlink()


def _is_copied(file: Path) -> bool:
    """Whether `file`, which exists, is copied for a helper: a link, or a file that is not large."""
    kind = file.lstat()
    is_small = stat.S_ISREG(kind.st_mode) and kind.st_size <= MOST_FILE_BYTES
    return is_small or stat.S_ISLNK(kind.st_mode)


def _copy(source: Path, target: Path, names: Sequence[str]) -> None:
    """Make the files `names` below `target` as they are below `source`. Follows no links.

    What is not copied stays as it was in `target`.
    """
    there = [name for name in names if os.path.lexists(source / name)]
    copied = [name for name in there if _is_copied(source / name)]
    for name in {*names} - {*there} | {*copied}:
        if not _is_reached(target / name, target):
            continue
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            (target / name).unlink()
    with open_folder(real_path(source)) as opened:
        for name in copied:
            if _is_reached(target / name, target):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                _copy_entry(opened, Path(name), target / name)


def _copy_entry(source: int, name: Path, place: Path) -> None:
    """Copy the file or link `name` of the open folder `source` to `place`.

    Raises:
        OSError: A folder on the way is a link by now, or the file cannot be copied.
    """
    with open_folder(name.parent, around=source) as folder:
        kind = os.stat(name.name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(kind.st_mode):
            place.symlink_to(os.readlink(name.name, dir_fd=folder))
            return
        with open_in(folder, name) as file, place.open("xb") as copy:
            shutil.copyfileobj(file, copy)
            os.fchmod(copy.fileno(), stat.S_IMODE(kind.st_mode))
        os.utime(place, ns=(kind.st_atime_ns, kind.st_mtime_ns))


def _is_reached(file: Path, folder: Path) -> bool:
    """Whether `file` is in `folder` and no link leads to it; one that leads there is removed.

    A link is where `file` needs a folder if a link of the repository was replaced by a folder.
    """
    for parent in reversed(file.relative_to(folder).parents):
        if (folder / parent).is_symlink():
            (folder / parent).unlink()
            break
    return real_path(file.parent).is_relative_to(folder)
