"""Asking git which files differ from the last commit, and letting it run nothing for that.

A repository's own configuration can make git run programs. What our calls could run, and what
stops it:

- ``core.fsmonitor`` and hooks are switched off on the command line;
- filters (``filter.*.clean`` and ``.process``, which ``git status`` feeds files to) are read
  from the configuration first and switched off one by one. Large files kept elsewhere then
  look changed when they were only touched;
- a submodule is asked by a git of its own, which would run its filters: they are left out;
- objects missing from a partial clone are fetched with programs the remote names: no protocol
  is allowed;
- pagers, external diffs and text conversions are not used by what is asked here, and are off.

No lock is taken and the index is not refreshed on disk, so nobody else's git is disturbed.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.processes import child_group

MAX_OUTPUT_BYTES = 400_000
"""Some 2,000 changed files; of a work tree with more, nothing is told."""

MAX_HASHED_BYTES = 2_000_000
"""Larger files are not read to see whether they are still the same."""

_QUIET_GIT = (
    *("git", "--no-optional-locks", "--no-pager"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
)
_STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"),
    *("--untracked-files=all", "--ignored=no", "--no-renames", "--ignore-submodules=all"),
)
_DIFF = (
    *("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"),
    *("--ignore-submodules=all", "--no-ext-diff", "--no-textconv"),
)
_QUIET_ENVIRON = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_MAX_FILTERS = 50


class GitSilentError(Exception):
    """Git is missing, does not answer here, or says more than is of use."""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """A work tree as git sees it.

    Args:
        root: Its top folder, absolute and with links followed.
        head: The commit it is on; empty when there is none yet.
        dirty: Files that are not as in that commit, relative to `root`, those git ignores left
            out: to the id of their content there, empty for those that are not in it.
    """

    root: Path
    head: str
    dirty: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Committed:
    """The ids of a file's content in two commits; empty where it is not in it."""

    before: str
    after: str


async def top_folder(cwd: Path, environ: Mapping[str, str]) -> Path:
    """The top of the work tree that `cwd` is in.

    Raises:
        GitSilentError: none, or not one git works in (bare, or another user's).
    """
    if not _may_be_repository(cwd, environ):
        raise GitSilentError("no repository")
    answer = await _ask(("rev-parse", "--show-toplevel"), cwd, environ)
    return Path(os.fsdecode(answer.removesuffix(b"\n")))


async def read_work_tree(root: Path, environ: Mapping[str, str]) -> WorkTree:
    """The state of the work tree whose top is `root`.

    Raises:
        GitSilentError: see there.
    """
    found = await _ask(
        ("config", "-z", "--name-only", "--get-regexp", r"^filter\."), root, environ, allowed=(0, 1)
    )
    answer = await _ask((*_without_filters(found), *_STATUS), root, environ)
    try:
        return _work_tree(root, answer)
    except ValueError as error:
        raise GitSilentError("not what git status says") from error


async def committed_changes(
    root: Path, before: str, after: str, environ: Mapping[str, str]
) -> dict[str, Committed]:
    """What differs between two commits (empty: before the first one), relative to `root`.

    Raises:
        GitSilentError: see there.
    """
    if before == after:
        return {}
    nothing = object_id("tree", b"", like=before or after)
    answer = await _ask((*_DIFF, before or nothing, after or nothing), root, environ)
    try:
        return _commit_changes(answer)
    except ValueError as error:
        raise GitSilentError("not what git diff-tree says") from error


def object_id(kind: str, content: bytes, *, like: str) -> str:
    """The id git gives `content`, in the kind of hash that `like` is one of."""
    algorithm = "sha256" if len(like) == 64 else "sha1"
    header = f"{kind} {len(content)}\0".encode()
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


def has_content(path: Path, blob: str) -> bool:
    """Whether the file (or link) at `path` holds what git knows as `blob`.

    False as well where git changes line endings on the way, and for large and unreadable files.
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
    return object_id("blob", content, like=blob) == blob


def _content(path: Path) -> bytes:
    """All of a regular file; what has taken its place meanwhile neither blocks nor leads on."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_HASHED_BYTES + 1)


def _may_be_repository(cwd: Path, environ: Mapping[str, str]) -> bool:
    """Whether asking git is of use: elsewhere no process has to be started."""
    return "GIT_DIR" in environ or any(
        os.path.lexists(folder / ".git") for folder in (cwd, *cwd.parents)
    )


async def _ask(
    arguments: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    allowed: tuple[int, ...] = (0,),
) -> bytes:
    argv = (*_QUIET_GIT, *arguments)
    answer = bytearray()
    try:
        async with child_group(
            argv, cwd=cwd, environ={**environ, **_QUIET_ENVIRON}, keeps_stderr=False
        ) as child:
            async with aclosing(child.read_until_exit()) as chunks:
                async for chunk in chunks:
                    answer += chunk
                    if len(answer) > MAX_OUTPUT_BYTES:
                        raise GitSilentError("too long an answer")
            if child.process.returncode not in allowed:
                raise GitSilentError(f"git ended with {child.process.returncode}")
    except (OSError, ToolError) as error:
        raise GitSilentError(str(error)) from error
    return bytes(answer)


def _without_filters(found: bytes) -> Iterator[str]:
    """Options that switch off the filters among the keys `found` in the configuration."""
    keys = (key.split(".", 1)[1] for key in os.fsdecode(found).split("\0") if key.count(".") > 1)
    names = dict.fromkeys(key.rpartition(".")[0] for key in keys)
    if len(names) > _MAX_FILTERS or any("=" in name for name in names):
        raise GitSilentError("filters that cannot be switched off")
    for name in names:
        for setting in ("clean=", "process=", "required=false"):
            yield from ("-c", f"filter.{name}.{setting}")


def _work_tree(root: Path, answer: bytes) -> WorkTree:
    """`git status` in its second format: ``#`` headers, ``1`` changed, ``u`` in conflict, ``?``."""
    head = ""
    dirty: dict[str, str] = {}
    for record in answer.split(b"\0"):
        kind, _, rest = record.partition(b" ")
        match kind:
            case b"#" if rest.startswith(b"branch.oid "):
                oid = rest.removeprefix(b"branch.oid ").decode("ascii")
                head = "" if oid == "(initial)" else oid
                continue
            case b"1":
                *_, blob, _, path = rest.split(b" ", 7)
            case b"u":
                *_, blob, _, path = rest.split(b" ", 9)
            case b"?":
                blob, path = b"", rest
            case _:
                continue
        if not path.endswith(b"/"):  # else another repository
            name = os.fsdecode(path)
            dirty[name] = dirty.get(name) or _id(blob.decode("ascii"))
    return WorkTree(root, head, dirty)


def _commit_changes(answer: bytes) -> dict[str, Committed]:
    """`git diff-tree` in its raw format: modes, ids and what happened, then the path."""
    fields = iter(answer.split(b"\0")[:-1])
    changes: dict[str, Committed] = {}
    for change, path in zip(fields, fields, strict=True):
        _, _, old, new, _ = change.decode("ascii").split(" ")
        changes[os.fsdecode(path)] = Committed(_id(old), _id(new))
    return changes


def _id(text: str) -> str:
    """An object id; git writes "none" as zeros."""
    return text if text.strip("0") else ""
