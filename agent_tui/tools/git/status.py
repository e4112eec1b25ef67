"""Asks git which files differ from the last commit, without letting it run any program.

No filter runs: large files stored elsewhere look changed when they were only touched.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_tui.regular_files import open_regular_file
from agent_tui.safe_paths import git_entry
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv, object_id
from agent_tui.tools.git.private_folder import ask_about_files
from agent_tui.tools.processes.keeper import ProcessKeeper

MAX_HASHED_BYTES = 2_000_000
"""Bytes; larger files are not read to check whether they are unchanged."""

_STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"),
    *("--untracked-files=all", "--ignored=no", "--no-renames"),
)
_DIFF = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames")
_SUBMODULE = 0o160000


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A work tree as git sees it.

    Args:
        root: Its top folder, absolute and with links followed.
        head: The current commit; empty if there is none yet.
        dirty: Files that differ from that commit, relative to `root`, without ignored ones, mapped
            to the id of their committed content; empty for those that are not in it.
        branch: The branch; empty if HEAD is detached.
        upstream: The branch that it follows; empty without one.
        modes: The modes of the `dirty` files in that commit; none for those that are not in it.
        left_out: Submodules at another commit and untracked repositories, which `dirty` does not
            have.
        staged: The `dirty` files whose content in the index is not that of the commit.
    """

    root: Path
    head: str
    dirty: Mapping[str, str]
    branch: str = ""
    upstream: str = ""
    modes: Mapping[str, int] = field(default_factory=dict[str, int])
    left_out: tuple[str, ...] = ()
    staged: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """A file that differs between two commits or trees, by the ids and modes that git gives it.

    The `name` is relative to the top folder. In a tree without the file, id is empty and mode 0.
    """

    name: str
    before_mode: int
    after_mode: int
    before_id: str
    after_id: str

    @property
    def is_of_submodule(self) -> bool:
        """Whether a submodule is involved, whose id is that of a commit."""
        return _SUBMODULE in (self.before_mode, self.after_mode)


async def top_folder(keeper: ProcessKeeper, cwd: Path, environ: Mapping[str, str]) -> Path:
    """The top of the work tree that contains `cwd`.

    Raises:
        GitSilentError: There is none, or git does not work in it (bare, or another user's).
    """
    if "GIT_DIR" not in environ and nearest_git(cwd, environ) is None:
        raise GitSilentError("no repository")
    answer = await ask_git(keeper, git_argv("rev-parse", "--show-toplevel"), cwd, environ)
    return Path(os.fsdecode(answer.removesuffix(b"\n")))


async def git_folder(keeper: ProcessKeeper, root: Path, environ: Mapping[str, str]) -> Path:
    """The folder where git keeps the state of the work tree `root`, such as ``.git``.

    Raises:
        GitSilentError: See `ask_git`.
    """
    answer = await ask_git(keeper, git_argv("rev-parse", "--git-dir"), root, environ)
    return root / os.fsdecode(answer.removesuffix(b"\n"))


async def read_work_tree(
    keeper: ProcessKeeper,
    root: Path,
    environ: Mapping[str, str],
    *,
    most_bytes: int | None = None,
) -> WorkTree:
    """The state of the work tree whose top is `root`.

    Args:
        keeper: Starts git.
        root: The top folder.
        environ: The environment of commands here.
        most_bytes: Limit on what git says; None for `MAX_OUTPUT_BYTES`.

    Raises:
        GitSilentError: See `ask_about_files`.
    """
    answer = await ask_about_files(keeper, root, environ, *_STATUS, most_bytes=most_bytes)
    try:
        return _work_tree(root, answer)
    except ValueError as error:
        raise GitSilentError("not what git status says") from error


async def diff_trees(
    keeper: ProcessKeeper, root: Path, before: str, after: str, environ: Mapping[str, str]
) -> tuple[TreeDifference, ...]:
    """The differences between two commits or trees (empty: before the first commit).

    Raises:
        GitSilentError: See `ask_git`.
    """
    if before == after:
        return ()
    nothing = object_id(b"", like=before or after, kind="tree")
    argv = git_argv("diff-tree", *_DIFF, before or nothing, after or nothing)
    answer = await ask_git(keeper, argv, root, environ)
    try:
        return tuple(_differences(answer))
    except ValueError as error:
        raise GitSilentError("not what git diff-tree says") from error


def has_content(path: Path, blob: str) -> bool:
    """Whether the file (or link) at `path` has the content of git's `blob`.

    False too if git converts line endings, and for large and unreadable files.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = os.fsencode(path.readlink())
        elif stat.S_ISREG(status.st_mode) and status.st_size <= MAX_HASHED_BYTES:
            content = _content(path)
        else:
            return False
    except OSError:
        return False
    return object_id(content, like=blob) == blob


def _content(path: Path) -> bytes:
    """The content of a regular file; whatever has replaced it neither blocks nor is followed."""
    with open_regular_file(path, follow_links=False) as file:
        return file.read(MAX_HASHED_BYTES + 1)


def nearest_git(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    """The ``.git`` in or above `cwd`; None if there is none or the environment names another."""
    return None if "GIT_DIR" in environ else git_entry(cwd)


def _work_tree(root: Path, answer: bytes) -> WorkTree:
    """Parse `git status` format 2: ``#`` headers, ``1`` changed, ``u`` in conflict, ``?``."""
    head, names = "", {b"branch.head": "", b"branch.upstream": ""}
    dirty: dict[str, str] = {}
    modes: dict[str, int] = {}
    left_out: list[str] = []
    staged: set[str] = set()
    for record in answer.split(b"\0"):
        kind, _, rest = record.partition(b" ")
        match kind:
            case b"#" if rest.startswith(b"branch.oid "):
                oid = rest.removeprefix(b"branch.oid ").decode("ascii")
                head = "" if oid == "(initial)" else oid
                continue
            case b"#":
                key, _, name = rest.partition(b" ")
                names[key] = os.fsdecode(name)
                continue
            case b"1":
                letters, kind, mode, _, _, blob, _, path = rest.split(b" ", 7)
                if not letters.startswith(b"."):
                    staged.add(os.fsdecode(path))
            case b"u":
                _, kind, _, mode, _, _, _, blob, _, path = rest.split(b" ", 9)
            case b"?":
                kind, mode, blob, path = b"N...", b"0", b"", rest
            case _:
                continue
        name = os.fsdecode(path)
        if kind.startswith(b"S") or name.endswith("/"):
            left_out.append(name)
            continue
        dirty[name] = dirty.get(name) or _id(blob.decode("ascii"))
        if int(mode, 8):
            modes[name] = int(mode, 8)
    branch = names[b"branch.head"].removeprefix("(detached)")
    upstream = names[b"branch.upstream"]
    return WorkTree(root, head, dirty, branch, upstream, modes, tuple(left_out), frozenset(staged))


def _differences(answer: bytes) -> Iterator[TreeDifference]:
    """Parse `git diff-tree` in raw format: modes, ids and status, then the path."""
    fields = iter(answer.split(b"\0")[:-1])
    for change, name in zip(fields, fields, strict=True):
        old_mode, new_mode, old, new, _ = change.decode("ascii").removeprefix(":").split(" ")
        modes = int(old_mode, 8), int(new_mode, 8)
        yield TreeDifference(os.fsdecode(name), *modes, _id(old), _id(new))


def _id(text: str) -> str:
    """An object id; empty for git's all-zero "none"."""
    return text if text.strip("0") else ""
