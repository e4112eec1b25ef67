"""Creates worktrees, each with its own branch, and removes those that hold no work.

Nothing that is not committed and merged is ever removed: git checks the files, and a branch is
deleted only while it is at the commit that was checked. Ignored files stay, too, unless they are
elsewhere or some program makes them again.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.errors import WorktreeError
from agent_tui.features.helpers.helper_git import HelperGit
from agent_tui.features.helpers.ignored_files import find_ignored_work
from agent_tui.features.helpers.large_files import holds_large_file
from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import cwd_slug
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import printable_line
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv, order_git
from agent_tui.tools.git.private_folder import ask_about_files, change_files, find_filtered
from agent_tui.tools.git.trees import read_blobs
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.git.worktree_records import WorktreeRecords
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

_HEADS = "refs/heads/"
_SUFFIX = ".worktrees"
_ELSEWHERE = "Start in a repository, or without --worktree."
_MOST_NAMED = 5
_SUBMODULE = "160000 "
_MOST_BYTES = 20_000_000
"""Enough for the names of 200,000 ignored files."""

_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository around a folder.

    Attributes:
        main: The top folder of its main worktree.
        top: That of the worktree around the folder.
        branch: The branch that is checked out there.
        head: Its newest commit.
        uncommitted: How many files differ from that commit.
    """

    main: Path
    top: Path
    branch: str
    head: str
    uncommitted: int


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """What a worktree holds that is nowhere else.

    Attributes:
        uncommitted: The number of changed and untracked files.
        commits: The number of commits that are not in the branch it began from, in the branch of
            the main worktree, or in the remote's default branch.
        tip: The branch's newest commit; empty if the branch is gone.
        why: Why git could not say, or would not remove it; empty if it did.
        ignored: Ignored files and folders that nothing makes again.
        branch: Why the branch stays though the worktree was removed; empty if it does not.
    """

    uncommitted: int = 0
    commits: int = 0
    tip: str = ""
    why: str = ""
    ignored: tuple[str, ...] = ()
    branch: str = ""

    @property
    def is_any(self) -> bool:
        """Whether there is work, or might be."""
        return bool(self.uncommitted or self.commits or self.why or self.ignored)

    def __str__(self) -> str:
        named = ", ".join(map(printable_line, self.ignored[:_MOST_NAMED]))
        more = ", ..." * (len(self.ignored) > _MOST_NAMED)
        parts = [
            _counted(self.commits, "unmerged commit"),
            _counted(self.uncommitted, "uncommitted file"),
            f"{_counted(len(self.ignored), 'ignored file')} ({named}{more})" * bool(self.ignored),
            self.why,
        ]
        return ", ".join(filter(None, parts)) or "no work"


class Worktrees:
    """The worktrees that agent-tui creates.

    Args:
        keeper: Starts git.
        environ: The environment of commands here.
        records: Which worktrees there are.
        folder: Where to create them; None for a folder beside each repository.

    Attributes:
        records: See above.
        helpers: The git calls around a helper's work.
    """

    def __init__(
        self,
        keeper: ProcessKeeper,
        environ: Mapping[str, str],
        records: WorktreeRecords,
        folder: Path | None = None,
    ) -> None:
        self.records = records
        self._keeper = keeper
        self._environ = {k: v for k, v in environ.items() if k not in _REPOSITORY_VARIABLES}
        self._folder = folder
        self.helpers = HelperGit(keeper, self._environ)

    def path_of(self, main: Path, name: str) -> Path:
        """Where the worktree `name` of the repository at `main` is, or would be.

        Beside the repository, ``../NAME.worktrees/``: inside it, its own tools would find every
        file twice, and the worktree would have the settings of the folder around it.
        """
        above = (
            self._folder / cwd_slug(main) if self._folder else main.with_name(main.name + _SUFFIX)
        )
        return above / name.replace("/", "-")

    async def repository(self, cwd: Path) -> Repository:
        """The repository around `cwd`.

        Raises:
            WorktreeError: There is none, or git cannot add a useful worktree to it.
        """
        if shutil.which("git", path=git_environ(self._environ)["PATH"]) is None:
            raise WorktreeError("Git is not installed.", "Install it, or start without --worktree.")
        try:
            is_bare = await self._ask(cwd, "rev-parse", "--is-bare-repository")
        except GitSilentError as error:
            raise WorktreeError(f"{cwd} is in no git repository.", _ELSEWHERE) from error
        if is_bare == "true":
            raise WorktreeError(
                f"{cwd} is a bare repository, without files to work on.",
                "Start in one of its worktrees, or without --worktree.",
            )
        try:
            return await self._described(cwd)
        except GitSilentError as error:
            raise WorktreeError(f"Git cannot read the repository in {cwd}: {error}.") from error

    async def create(
        self, cwd: Path, name: str, *, runs_filters: bool = False
    ) -> tuple[Worktree, FileLock]:
        """Create the worktree `name` from the branch at `cwd`, or return the existing one.

        A branch `name` that exists is checked out there; otherwise it is created. The lock says
        that the worktree is in use.

        Args:
            cwd: A folder in a work tree of the repository.
            name: Of the worktree, and of its branch.
            runs_filters: Whether files are written through the filters of the user's own settings,
                in the new worktree. Without, those that need one are as the commit has them.

        Raises:
            WorktreeError: It cannot be created, or another program uses it.
        """
        repository = await self.repository(cwd)
        await self._require_name(repository, name)
        path = self.path_of(repository.main, name)
        try:
            lock = await asyncio.to_thread(self.records.lock, path)
        except LockHeldError as error:
            raise WorktreeError(
                f"The worktree {name} is in use: {error.owner}.", "Choose another name."
            ) from error
        except OSError as error:
            raise WorktreeError(f"Cannot lock {path}: {error.strerror}.") from error
        try:
            return await self._open(repository, name, path, runs_filters=runs_filters), lock
        except BaseException:
            lock.release()
            raise

    async def has_branch(self, worktree: Worktree) -> bool:
        """Whether the branch of `worktree` exists.

        Raises:
            GitSilentError: Git cannot tell.
        """
        return bool(await self._commit(worktree.repository, _HEADS + worktree.branch))

    async def work_left(self, worktree: Worktree) -> WorkLeft:
        """What `worktree` holds that is nowhere else; `why` if git cannot tell."""
        main = worktree.repository
        try:
            tip = await self._commit(main, _HEADS + worktree.branch)
            heads = [tip] if tip else []
            files = WorkLeft()
            if await asyncio.to_thread(lambda: worktree.exists):
                files = await self._files_left(worktree)
                heads.append(await self._commit(worktree.path, "HEAD"))
            into = ("HEAD", _HEADS + worktree.base, "refs/remotes/origin/HEAD")
            known = [await self._commit(main, ref) for ref in into]
            merged = filter(None, [worktree.start, *known])
            if not worktree.owns_branch:  # it stays, with its commits
                merged = [*merged, *filter(None, [tip])]
            counting = ("rev-list", "--count", *filter(None, heads), "--not", *merged)
            commits = int(await self._ask(main, *counting)) if any(heads) else 0
        except (GitSilentError, ValueError) as error:
            return WorkLeft(why=f"git cannot tell ({printable_line(str(error))})")
        return replace(files, commits=commits, tip=tip)

    async def _files_left(self, worktree: Worktree, *, is_complete: bool = True) -> WorkLeft:
        """The files of `worktree` that are in no commit. No filter runs: commands wrote there.

        Args:
            worktree: Its folder exists.
            is_complete: Whether git wrote all its files, so that a missing one was deleted.

        Raises:
            GitSilentError: Git cannot tell.
        """
        status = ("--no-renames", "--untracked-files=all", "--ignored=matching")
        answer = await self._status(worktree.path, *status)
        rows = [(row[:2], row[3:]) for row in answer.split("\0") if row]
        ignored = [name for state, name in rows if state == "!!"]
        place = worktree.path, worktree.repository
        listed = (await self._ask(worktree.path, "ls-files", "--stage", "-z")).split("\0")
        has_submodule = any(row.startswith(_SUBMODULE) for row in listed)
        same = await self._large_files(
            worktree.path, [name for state, name in rows if state == " M"], listed
        )
        rows = [(state, name) for state, name in rows if name not in same]
        return WorkLeft(
            sum(state != "!!" and (is_complete or "D" not in state) for state, _ in rows),
            why="it has a submodule" if has_submodule else "",
            ignored=await asyncio.to_thread(find_ignored_work, *place, ignored),
        )

    async def _large_files(self, top: Path, names: list[str], listed: list[str]) -> set[str]:
        """Those of the `names` in the worktree `top` that Git LFS would store as `listed`.

        Args:
            top: The top folder.
            names: Of files that look changed without the filter of Git LFS.
            listed: The rows of ``git ls-files --stage``.
        """
        filtered = await find_filtered(self._keeper, top, self._environ, names)
        rows = (row.partition("\t") for row in listed)
        ids = {name: head.split(" ")[1] for head, _, name in rows if name in filtered}
        blobs = await read_blobs(self._keeper, top, ids.values(), self._environ)
        return await asyncio.to_thread(
            lambda: {
                name
                for name, blob in ids.items()
                if holds_large_file(top / name, blobs.get(blob, b""))
            }
        )

    async def take_away(self, worktree: Worktree) -> WorkLeft:
        """Remove `worktree` and the branch created with it if they hold no work.

        Returns what is left, so that it stays; or what became of the branch.
        """
        left = await self.work_left(worktree)
        try:
            if not left.is_any and await asyncio.to_thread(lambda: worktree.exists):
                await self._remove(worktree)
        except GitSilentError as error:
            left = replace(left, why=f"git would not remove it ({printable_line(str(error))})")
        if left.is_any:
            with suppress(OSError):
                await asyncio.to_thread(self.records.store, worktree, "kept")
            return left
        left = replace(left, branch=await self._delete_branch(worktree, left.tip))
        await self._forget(worktree)
        return left

    async def remove_folder(self, worktree: Worktree) -> WorkLeft:
        """Remove the folder of `worktree` unless files in it are in no commit; the branch stays.

        Returns what is left, so that it stays.
        """
        left = WorkLeft()
        try:
            left = await self._files_left(worktree)
            if not left.is_any:
                await self._remove(worktree)
        except GitSilentError as error:
            left = replace(left, why=f"git would not remove it ({printable_line(str(error))})")
        with suppress(OSError):
            await asyncio.to_thread(self.records.store, worktree, "kept")
        with suppress(OSError):  # other worktrees are in it
            await asyncio.to_thread(worktree.path.parent.rmdir)
        return left

    async def drop_branch(self, worktree: Worktree, tip: str) -> None:
        """Delete the branch of `worktree`, which has no folder, if it is still at `tip`."""
        if not await self._delete_branch(worktree, tip):
            await self._forget(worktree)

    async def clean_up(
        self, main: Path, is_used: Callable[[Worktree], bool]
    ) -> list[tuple[Worktree, WorkLeft]]:
        """Settle what killed programs left in the repository at `main`.

        Worktrees without work are removed; the others stay for the user. Returns both.

        Args:
            main: The folder of the main worktree.
            is_used: Whether somebody works in a worktree, which is then left alone. Blocking.
        """
        settled: list[tuple[Worktree, WorkLeft]] = []
        for worktree in await asyncio.to_thread(self.records.of_repository, main):
            if worktree.state == "kept" or await asyncio.to_thread(is_used, worktree):
                continue
            try:
                lock = await asyncio.to_thread(self.records.lock, worktree.path)
            except (LockHeldError, OSError):
                continue  # in use
            try:
                if worktree.state == "creating":
                    settled.append((worktree, await self._discard(worktree)))
                else:
                    settled.append((worktree, await self.take_away(worktree)))
            finally:
                lock.release()
        return settled

    async def _described(self, cwd: Path) -> Repository:
        shown = ("--path-format=absolute", "--show-toplevel", "--git-common-dir")
        lines = (await self._ask(cwd, "rev-parse", *shown)).split("\n")
        top, common = await asyncio.to_thread(lambda: [real_path(line) for line in lines[:2]])
        if await self._ask(cwd, "rev-parse", "--show-superproject-working-tree"):
            raise WorktreeError(f"{top} is a submodule.", "Start in the repository around it.")
        if common.name != ".git":
            raise WorktreeError(
                f"The git folder of {top} is {common}, apart from its files.", _ELSEWHERE
            )
        if await asyncio.to_thread(os.path.lexists, top / ".gitmodules"):
            raise WorktreeError(
                f"{top} has submodules, which git leaves out of a new worktree.",
                "Clone the repository again to work in a second copy.",
            )
        head = await self._commit(cwd, "HEAD")
        if not head:
            raise WorktreeError(f"{top} has no commit yet.", "Commit something first.")
        branch = await self._ask(cwd, "symbolic-ref", "-q", "--short", "HEAD", allowed=(0, 1))
        if not branch:
            raise WorktreeError(
                f"HEAD is detached at {head[:10]}: there is no branch to merge into later.",
                "Switch to a branch first: git switch BRANCH.",
            )
        dirty = await self._status(top, "--untracked-files=normal", "--no-renames")
        return Repository(common.parent, top, branch, head, dirty.count("\0"))

    async def _require_name(self, repository: Repository, name: str) -> None:
        """Refuse a name that cannot be a branch or is one that is checked out.

        Raises:
            WorktreeError: See above.
        """
        shown = printable_line(name)
        checked = ("check-ref-format", _HEADS + name)
        try:
            await self._ask(repository.main, *checked)
            is_valid = not name.startswith("-") and name != "HEAD"
        except (GitSilentError, ValueError):
            is_valid = False
        if not is_valid:
            raise WorktreeError(
                f"{shown!r} cannot be the name of a branch.",
                "Use letters, digits, - and _, such as fix-login.",
            )
        path = self.path_of(repository.main, name)
        listed = await self._ask(repository.main, "worktree", "list", "--porcelain")
        for place, branch in _checked_out(listed):
            if branch == name and place != path:
                raise WorktreeError(
                    f"The branch {shown} is checked out in {place}.",
                    "Work there, or choose another name.",
                )

    async def _open(
        self, repository: Repository, name: str, path: Path, *, runs_filters: bool
    ) -> Worktree:
        """The worktree at `path`, whose lock is held; created if it does not exist."""
        known = await asyncio.to_thread(self.records.at, path)
        if known is not None and known.state == "creating":
            await self._discard(known)
        elif known is not None and known.exists and known.name == name:
            return await self._store(known)
        if await asyncio.to_thread(os.path.lexists, path):
            raise WorktreeError(f"{path} already exists.", "Choose another name.")
        there = await self._commit(repository.main, _HEADS + name)
        worktree = Worktree(
            name=name,
            path=path,
            repository=repository.main,
            branch=name,
            base=repository.branch,
            start=there or repository.head,
            owns_branch=not there,
        )
        if there and known is not None and known.branch == name:
            # The branch of an earlier worktree of this name: its commits may not be merged.
            worktree = replace(
                worktree, base=known.base, start=known.start, owns_branch=known.owns_branch
            )
        try:
            await asyncio.to_thread(self.records.store, worktree, "creating")
            await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
            made = (str(path), name) if there else ("-b", name, str(path), repository.head)
            adding = ("worktree", "add", "--quiet", "--no-checkout", *made)
            await self._order(repository.main, *adding)
            words = ("read-tree", "--reset", "-u", "HEAD")
            await change_files(self._keeper, path, self._environ, *words, runs_filters=runs_filters)
        except OSError as error:
            raise WorktreeError(
                f"Cannot create {path}: {error.strerror}.",
                "Set worktrees_folder to a folder that you can write to.",
            ) from error
        except GitSilentError as error:
            await self._discard(worktree)
            raise WorktreeError(f"Git did not create the worktree: {error}.") from error
        return await self._store(worktree)

    async def _store(self, worktree: Worktree) -> Worktree:
        try:
            return await asyncio.to_thread(self.records.store, worktree, "in use")
        except OSError as error:
            raise WorktreeError(
                f"Cannot record the worktree {worktree.name}: {error.strerror}."
            ) from error

    async def _discard(self, worktree: Worktree) -> WorkLeft:
        """Remove a worktree whose creation did not finish, unless somebody has worked in it.

        Returns what is left, so that it stays.
        """
        left = await self._work_in_unfinished(worktree)
        if left.is_any:
            with suppress(OSError):
                await asyncio.to_thread(self.records.store, worktree, "kept")
            return left
        with suppress(OSError):
            await asyncio.to_thread(worktree.path.rmdir)
        with suppress(GitSilentError):  # git may not know it yet
            await self._remove(worktree, "--force")  # also if it is locked, as while it is added
        left = replace(left, branch=await self._delete_branch(worktree, worktree.start))
        await self._forget(worktree)
        return left

    async def _work_in_unfinished(self, worktree: Worktree) -> WorkLeft:
        """What was added or changed in a worktree that git may not have filled completely."""
        if not await asyncio.to_thread(lambda: (worktree.path / ".git").is_file()):
            return WorkLeft()
        try:
            index = Path(await self._ask(worktree.path, "rev-parse", "--git-path", "index"))
            if not await asyncio.to_thread((worktree.path / index).exists):
                await self._order(worktree.path, "read-tree", "HEAD")
            return await self._files_left(worktree, is_complete=False)
        except GitSilentError as error:
            return WorkLeft(why=f"git cannot tell ({printable_line(str(error))})")

    async def _forget(self, worktree: Worktree) -> None:
        """Record that `worktree` was removed: a branch that gets its name later is the user's."""
        gone = replace(worktree, owns_branch=False)
        with suppress(OSError):
            await asyncio.to_thread(self.records.store, gone, "kept")
        with suppress(OSError):  # other worktrees are in it
            await asyncio.to_thread(worktree.path.parent.rmdir)

    async def _delete_branch(self, worktree: Worktree, tip: str) -> str:
        """Delete the branch if it was created with `worktree` and is still at the commit `tip`.

        Returns why it stays; empty if it does not.
        """
        if not worktree.owns_branch:
            return "it existed before"
        if not tip:
            return ""
        main = worktree.repository
        try:
            listed = await self._ask(main, "worktree", "list", "--porcelain")
            for place, branch in _checked_out(listed):
                if branch == worktree.branch:
                    return f"it is checked out in {place}"
            await self._order(main, "update-ref", "-d", _HEADS + worktree.branch, tip)
        except GitSilentError as error:
            return f"git did not delete it: {printable_line(str(error))}"
        return ""

    async def _commit(self, cwd: Path, ref: str) -> str:
        """The id of the commit that `ref` names; empty if there is none."""
        verify = ("rev-parse", "-q", "--verify", f"{ref}^{{commit}}")
        return await self._ask(cwd, *verify, allowed=(0, 1))

    async def _ask(
        self, cwd: Path, command: str, *arguments: str, allowed: tuple[int, ...] = (0,)
    ) -> str:
        argv = git_argv(command, *arguments)
        answer = await ask_git(
            self._keeper, argv, cwd, self._environ, allowed=allowed, most_bytes=_MOST_BYTES
        )
        return os.fsdecode(answer).strip("\n")

    async def _status(self, top: Path, *options: str) -> str:
        """What git says about each file of the work tree `top`, with a NUL after it."""
        words = ("status", "--porcelain", "-z", *options)
        where = self._keeper, top, self._environ
        answer = await ask_about_files(*where, *words, most_bytes=_MOST_BYTES)
        return os.fsdecode(answer)

    async def _remove(self, worktree: Worktree, *options: str) -> None:
        """Remove the folder of `worktree`, in which `_files_left` found nothing.

        Without ``--force``, git would look at the files again, through the repository's filters.
        """
        removing = ("worktree", "remove", "--force", *options, str(worktree.path))
        await self._order(worktree.repository, *removing)

    async def _order(self, cwd: Path, command: str, *arguments: str) -> None:
        await order_git(self._keeper, git_argv(command, *arguments), cwd, self._environ)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}" if number else ""


def _checked_out(listed: str) -> Iterator[tuple[Path, str]]:
    """The folder and branch of each worktree in the output of ``git worktree list``."""
    for part in listed.split("\n\n"):
        facts: dict[str, str] = {}
        for line in part.splitlines():
            key, _, value = line.partition(" ")
            facts[key] = value
        if facts.get("branch", "").startswith(_HEADS):
            yield Path(facts["worktree"]), facts["branch"].removeprefix(_HEADS)
