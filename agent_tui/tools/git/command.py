"""The only way we call git: it runs no program the repository names.

A repository's own configuration can make git run programs. What our calls could run, and how
it is prevented, whatever somebody changes in the repository meanwhile:

- filters, which git pipes files of the work tree through: the commands here look at no file. Those
  that do are given a git folder in which the repository has no filters (`git.private_folder`);
- commands in submodules, which have settings of their own: only which commit is checked out there
  is looked at;

- ``core.fsmonitor``, hooks and pagers are switched off on the command line, and aliases cannot
  take the place of git's own commands;
- signatures, for which ``gpg.program`` is run, are not verified;
- external diffs and text conversions are refused to every command that knows them;
- objects missing from a partial clone are fetched with programs the remote names: no protocol
  is allowed;
- variables in the caller's environment that configure git are left out, except those that say
  where the repository is.

No optional lock is taken and the index is not refreshed on disk, so other git processes are not
disturbed.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.tools.processes.environment import git_environ
from agent_tui.tools.processes.keeper import ProcessKeeper

MAX_OUTPUT_BYTES = 400_000
"""About 2,000 changed files; for a work tree with more, nothing is reported."""

PATIENCE_S = 10.0
"""Seconds; a command may have left a pipe where git expects a file, and git would hang."""

ORDER_S = 600.0
"""Seconds for a change, such as checking out all files of a large repository."""

_QUIET = (
    *("git", "--no-optional-locks", "--no-pager"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "log.showSignature=false"),
)
_KNOW_DIFFS = frozenset({"diff", "diff-index", "diff-tree", "log", "show"})
_IN_NO_SUBMODULE = {"status": ("--ignore-submodules=dirty",)}

_LOOK_AT_NO_FILE = frozenset(
    (
        *("cat-file", "check-attr", "check-ref-format", "config", "diff-tree", "fast-import"),
        *("fetch", "for-each-ref", "gc", "init", "log", "ls-files", "ls-remote", "merge-base"),
        *("push", "read-tree", "remote", "rev-list", "rev-parse", "show", "symbolic-ref"),
        *("update-ref", "worktree", "write-tree"),
    )
)
_LOOK_AT_NONE_WITH: Mapping[str, Mapping[str, str]] = {
    "blame": {"": "HEAD"},
    "diff": {"": "--cached"},
    "diff-index": {"": "--cached"},
    "worktree": {"add": "--no-checkout", "remove": "--force"},
}
"""What a command, or a verb of it, must have among its arguments to look at no file."""

_LOOK_WITH: Mapping[str, frozenset[str]] = {
    "cat-file": frozenset({"--filters", "--textconv"}),
    "ls-files": frozenset({"-m", "--modified", "-d", "--deleted"}),
    "read-tree": frozenset({"-m", "-u", "--reset", "--prefix"}),
}


class GitSilentError(Exception):
    """Git is missing, does not respond, or prints too much."""


class GitRefusedError(GitSilentError):
    """Git refused to make a change; the text is its explanation."""


def git_argv(
    *words: str, settings: tuple[str, ...] = (), is_in_private_folder: bool = False
) -> tuple[str, ...]:
    """The command line for a git command.

    Args:
        words: A git subcommand, such as ``log``, with its arguments, and options of git before it.
        settings: ``key=value`` configuration overrides.
        is_in_private_folder: Whether `git.private_folder` runs it.

    Raises:
        ValueError: The command looks at files of the work tree, outside a private folder.
    """
    overridden = (word for setting in settings for word in ("-c", setting))
    at = 0
    while words[at].startswith("-"):
        at += 2 if words[at] == "-c" else 1
    command, arguments = words[at], words[at + 1 :]
    if not is_in_private_folder and _looks_at_files(command, arguments):
        raise ValueError(f"git {command} looks at files: run it through git.private_folder")
    no_programs = ("--no-ext-diff", "--no-textconv") if command in _KNOW_DIFFS else ()
    more = (*no_programs, *_IN_NO_SUBMODULE.get(command, ()))
    return (*_QUIET, *overridden, *words[: at + 1], *more, *arguments)


def _looks_at_files(command: str, arguments: tuple[str, ...]) -> bool:
    """Whether git may read or write files of the work tree, and so run filters."""
    required = _LOOK_AT_NONE_WITH.get(command, {})
    for verb, option in required.items():
        if verb in ("", *arguments[:1]):
            return option not in arguments
    found = {argument.partition("=")[0] for argument in arguments}
    return command not in _LOOK_AT_NO_FILE or bool(found & _LOOK_WITH.get(command, frozenset()))


def object_header(content: bytes, kind: str = "blob") -> bytes:
    """What git puts before `content` in an object."""
    return f"{kind} {len(content)}\0".encode()


def object_id(content: bytes, *, like: str, kind: str = "blob") -> str:
    """The id git gives `content`, with the same hash algorithm as the id `like`."""
    algorithm = "sha256" if len(like) == 64 else "sha1"
    header = object_header(content, kind)
    return hashlib.new(algorithm, header + content, usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """How a git command ended, and what it printed."""

    exit_code: int
    output: bytes


async def run_git(
    keeper: ProcessKeeper,
    argv: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    most_bytes: int = MAX_OUTPUT_BYTES,
    patience_s: float = PATIENCE_S,
    keeps_stderr: bool = False,
) -> GitAnswer:
    """Run git in exactly the environment `environ`.

    Args:
        keeper: Starts the process.
        argv: From `git_argv`.
        cwd: Working folder.
        environ: From a function in `processes.environment`.
        stdin: Its input.
        most_bytes: Limit on the output.
        patience_s: Limit on the time in seconds.
        keeps_stderr: Whether the output includes what git prints about errors.

    Raises:
        GitSilentError: No git, a timeout, or too much output.
    """
    answer = bytearray()
    try:
        async with (
            asyncio.timeout(patience_s),
            keeper.child_group(
                argv, cwd=cwd, environ=environ, stdin=stdin, keeps_stderr=keeps_stderr
            ) as child,
        ):
            async with aclosing(child.read_until_exit()) as chunks:
                async for chunk in chunks:
                    answer += chunk
                    if len(answer) > most_bytes:
                        raise GitSilentError("too long an answer")
            exit_code = child.exit_code
    except TimeoutError as error:
        raise GitSilentError(f"no answer within {patience_s:g} s") from error
    except (OSError, ToolError) as error:
        raise GitSilentError(str(error)) from error
    return GitAnswer(-1 if exit_code is None else exit_code, bytes(answer))


async def ask_git(
    keeper: ProcessKeeper,
    argv: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    allowed: tuple[int, ...] = (0,),
    stdin: bytes | None = None,
    most_bytes: int | None = None,
    patience_s: float = PATIENCE_S,
) -> bytes:
    """Run git without a network and return its output.

    Args:
        keeper: Starts the process.
        argv: From `git_argv`.
        cwd: Working folder.
        environ: The environment of commands here.
        allowed: Exit codes that count as success.
        stdin: Its input.
        most_bytes: Limit on the output; None for `MAX_OUTPUT_BYTES`.
        patience_s: Limit on the time in seconds.

    Raises:
        GitSilentError: Another exit code, no git, a timeout, or too much output.
    """
    answer = await run_git(
        keeper,
        argv,
        cwd,
        git_environ(environ),
        stdin=stdin,
        most_bytes=most_bytes or MAX_OUTPUT_BYTES,
        patience_s=patience_s,
    )
    if answer.exit_code not in allowed:
        raise GitSilentError(f"git ended with {answer.exit_code}")
    return answer.output


async def order_git(
    keeper: ProcessKeeper,
    argv: tuple[str, ...],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    stdin: bytes | None = None,
) -> bytes:
    """Have git change something, which may take minutes; returns its output.

    Args are those of `ask_git`.

    Raises:
        GitRefusedError: Git refused; holds its words.
        GitSilentError: No git, a timeout, or too much output.
    """
    answer = await run_git(
        keeper,
        argv,
        cwd,
        git_environ(environ),
        stdin=stdin,
        patience_s=ORDER_S,
        keeps_stderr=True,
    )
    if answer.exit_code != 0:
        raise GitRefusedError(_words(answer.output) or f"git ended with {answer.exit_code}")
    return answer.output


def _words(answer: bytes) -> str:
    """Git's explanation: its errors without their prefix, or else its last line."""
    lines = [line.strip() for line in answer.decode("utf-8", "replace").splitlines()]
    errors = [line.partition(": ")[2] for line in lines if line.startswith(("fatal: ", "error: "))]
    return " ".join(errors) or next((line for line in reversed(lines) if line), "")
