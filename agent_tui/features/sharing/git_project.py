"""The git side of a project: its folder, the remote, and how the user's git connects to it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import UsageError
from agent_tui.secret_text import without_user
from agent_tui.tools.git.command import GitSilentError, ask_git, git_argv
from agent_tui.tools.processes.keeper import ProcessKeeper

_CONNECTING_KEYS = ("core.sshcommand", "core.gitproxy", "ssh.variant", "protocol.version")
_CONNECTING_SECTIONS = ("credential.", "http.", "safe.directory")


@dataclass(frozen=True, slots=True)
class GitProject:
    """A work tree and the remote through which its sessions travel.

    Attributes:
        root: The top folder of the work tree, links followed.
        remote: The name of the remote.
        fetch_address: Where to fetch from; may hold a login.
        push_address: Where to push to; may hold a login.
        settings: The user's git settings that concern connections, in their order.
        object_format: The hash algorithm of the repository.
        by: Name and email of the user, from their git settings; may be empty.
        elsewhere: The top folders of the other worktrees of its repository, also removed ones.
    """

    root: Path
    remote: str
    fetch_address: str
    push_address: str
    settings: Sequence[tuple[str, str]]
    object_format: str
    by: str
    elsewhere: Sequence[Path] = ()

    @property
    def roots(self) -> Sequence[Path]:
        """The top folders of all its worktrees, this one first."""
        return (self.root, *self.elsewhere)

    @property
    def address(self) -> str:
        """The address to push to, without a login: what the user's choice is about."""
        return without_user(self.push_address)


async def read_git_project(
    keeper: ProcessKeeper, cwd: Path, environ: Mapping[str, str], remote: str | None
) -> GitProject:
    """The project that contains `cwd`. The caller has checked that git may run there.

    Args:
        keeper: Starts git.
        cwd: A folder of the work tree.
        environ: Our environment.
        remote: The name of the remote; None for ``origin``, or the only one.

    Raises:
        UsageError: There is no work tree, or no such remote.
    """

    async def ask(command: str, *arguments: str) -> str:
        answer = await ask_git(keeper, git_argv(command, *arguments), cwd, environ)
        return os.fsdecode(answer)

    try:
        top = await ask("rev-parse", "--show-toplevel", "--show-object-format")
        root, object_format = top.removesuffix("\n").rsplit("\n", 1)
    except (GitSilentError, ValueError) as error:
        raise UsageError(
            f"{cwd} is not in a work tree of git.", "Run this in a clone of the project."
        ) from error
    try:
        settings = _parse_settings(await ask("config", "--null", "--list"))
        name = remote or _only_remote((await ask("remote")).split())
    except GitSilentError as error:
        raise UsageError(f"git does not answer in {cwd}: {error}.") from error
    try:
        fetch_address = (await ask("remote", "get-url", "--", name)).strip("\n")
        push_address = (await ask("remote", "get-url", "--push", "--", name)).strip("\n")
    except GitSilentError as error:
        raise UsageError(
            f"There is no remote {name!r}.", "`git remote -v` lists the remotes."
        ) from error
    values = dict(settings)
    email = values.get("user.email", "")
    return GitProject(
        root=Path(root),
        remote=name,
        fetch_address=fetch_address,
        push_address=push_address,
        settings=tuple(pair for pair in settings if _concerns_connections(pair[0])),
        object_format=object_format,
        by=f"{values.get('user.name', '')} {f'<{email}>' if email else ''}".strip(),
    )


def _only_remote(names: Sequence[str]) -> str:
    if "origin" in names:
        return "origin"
    if len(names) == 1:
        return names[0]
    if not names:
        raise UsageError(
            "This repository has no remote.", "Add one: git remote add origin ADDRESS."
        )
    raise UsageError(
        f"There are several remotes: {', '.join(names)}.", "Choose one with --remote NAME."
    )


def _parse_settings(printed: str) -> list[tuple[str, str]]:
    """Pairs of key and value; a key without a value is true."""
    records = (record.partition("\n") for record in printed.split("\0") if record)
    return [(key, value if between else "true") for key, between, value in records]


def _concerns_connections(key: str) -> bool:
    return key in _CONNECTING_KEYS or key.startswith(_CONNECTING_SECTIONS)
