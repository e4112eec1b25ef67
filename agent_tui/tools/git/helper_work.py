"""What a helper changes in its own worktree: from the user's state to a branch with commits."""

import asyncio
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import WorktreeError
from agent_tui.tools.files.protected import is_secret_name
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv, order_git
from agent_tui.tools.git.status import read_work_tree
from agent_tui.tools.git.trees import MOST_CHANGES, MOST_FILE_BYTES
from agent_tui.tools.git.worktree_records import Worktree
from agent_tui.tools.processes.keeper import ProcessKeeper

_MOST_READ_BYTES = 100_000_000
_IDENTITY = ("user.name=agent-tui", "user.email=agent-tui@localhost", "commit.gpgSign=false")
_FILE_MODES = frozenset({"100644", "100755"})


@dataclass(frozen=True, slots=True)
class HelperChange:
    """A file that a helper changed, relative to the top of the repository.

    `before` is its content when the helper began, None if it did not exist; `after` is None if the
    helper deleted it.
    """

    name: str
    before: bytes | None
    after: bytes | None
    is_program: bool = False


@dataclass(frozen=True, slots=True)
class HelperWork:
    """What a helper did.

    Attributes:
        worktree: Where it worked; the folder is gone, the branch stays.
        top: The top folder of the user's worktree, to which the changes belong.
        base: The commit it began at, with the user's uncommitted changes.
        tip: The newest commit of its branch.
        changes: The files it changed.
        left_out: Changes that only git can bring over, such as those to links.
    """

    worktree: Worktree
    top: Path
    base: str
    tip: str
    changes: tuple[HelperChange, ...]
    left_out: tuple[str, ...]


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

        Left out are ignored files, files above 5 MB and untracked ones whose names suggest keys.

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
            await asyncio.to_thread(_copy, top, worktree.path, names)
            return await self.commit(worktree, "Uncommitted changes when the helper began")
        except (GitSilentError, OSError) as error:
            raise WorktreeError(f"Cannot prepare the helper's worktree: {error}.") from error

    async def commit(self, worktree: Worktree, message: str) -> str:
        """Commit everything in `worktree`; returns the newest commit.

        Raises:
            GitSilentError: Git failed.
        """
        path = worktree.path
        await self._order(path, "add", "--all")
        staged = git_argv("diff", "--cached", "--quiet")
        try:
            await ask_git(self._keeper, staged, path, self._environ)
        except GitSilentError:
            committing = ("--quiet", "--no-verify", "--message", message)
            await self._order(path, "commit", *committing)
        head = await self._ask(path, "rev-parse", "HEAD")
        return os.fsdecode(head).strip()

    async def work(self, worktree: Worktree, top: Path, base: str, tip: str) -> HelperWork:
        """The changes from `base` to `tip`.

        Raises:
            GitSilentError: Git failed, or there are too many.
        """
        listing = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames", base, tip)
        answer = await self._ask(worktree.repository, "diff-tree", *listing)
        fields = answer.split(b"\0")[:-1]
        rows: list[tuple[str, list[str]]] = []
        for about, name in zip(fields[0::2], fields[1::2], strict=True):
            rows.append((os.fsdecode(name), about.decode("ascii")[1:].split(" ")))
        ids = [id for _, (_, _, old, new, _) in rows for id in (old, new) if id.strip("0")]
        contents = await self._contents(worktree.repository, ids)
        changes: list[HelperChange] = []
        left_out: list[str] = []
        for name, (old_mode, new_mode, old, new, _) in rows:
            if {old_mode, new_mode} <= _FILE_MODES | {"000000"}:
                is_program = new_mode == "100755"
                changes.append(HelperChange(name, contents.get(old), contents.get(new), is_program))
            else:
                left_out.append(name)
        return HelperWork(worktree, top, base, tip, tuple(changes), tuple(left_out))

    async def _contents(self, cwd: Path, ids: Iterable[str]) -> dict[str, bytes]:
        asked = "".join(f"{one}\n" for one in dict.fromkeys(ids)).encode()
        argv = git_argv("cat-file", "--batch")
        answer = await ask_git(
            self._keeper, argv, cwd, self._environ, stdin=asked, most_bytes=_MOST_READ_BYTES
        )
        found: dict[str, bytes] = {}
        at = 0
        while at < len(answer):
            head, _, _ = answer[at : at + 200].partition(b"\n")
            at += len(head) + 1
            one, _, size = head.decode("ascii").split(" ")
            found[one] = answer[at : at + int(size)]
            at += int(size) + 1
        return found

    async def _ask(self, cwd: Path, command: str, *arguments: str) -> bytes:
        return await ask_git(self._keeper, git_argv(command, *arguments), cwd, self._environ)

    async def _order(self, cwd: Path, command: str, *arguments: str) -> None:
        argv = git_argv(command, *arguments, settings=_IDENTITY)
        await order_git(self._keeper, argv, cwd, self._environ)


def _is_secret(name: str) -> bool:
    """Whether the file, or a folder that it is in, has a name that suggests keys."""
    return any(map(is_secret_name, name.split("/")))


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
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            (target / name).unlink()
    for name in copied:
        kind = (source / name).lstat()
        place = target / name
        if not place.parent.resolve().is_relative_to(target):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(kind.st_mode):
            place.symlink_to((source / name).readlink())
        else:
            shutil.copy2(source / name, place, follow_symlinks=False)
