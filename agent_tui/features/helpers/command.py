"""``agent-tui worktrees``: lists the worktrees of this repository and removes empty ones."""

import argparse
import asyncio
import shlex
from collections.abc import Sequence
from typing import cast

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import load_trust, present_folder
from agent_tui.cli.output import write_json, write_text
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.errors import WorktreeError
from agent_tui.features.helpers.services import (
    open_worktrees,
    removal_line,
    require_git,
    session_in,
)
from agent_tui.features.helpers.worktrees import WorkLeft, Worktrees
from agent_tui.file_locks import LockHeldError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import safe_text
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.worktree import Worktree

_DESCRIPTION = """\
List the worktrees that agent-tui created in this repository with --worktree and
for helpers, and remove those without work. One with uncommitted files, unmerged
commits, or ignored files that nothing makes again is never removed."""
_JSON = """\
With --json:
  [{"name", "path", "branch", "base", "uncommittedFiles", "unmergedCommits",
    "ignoredFiles", "inUse", "problem"}]
"inUse" says which program works there and "problem" why git cannot tell what
is left; both are empty if they do not apply."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui worktrees``."""
    parser = subcommand_parser("worktrees", _DESCRIPTION)
    add = parser.verb_adder()
    listing = add("list", "list the worktrees, and what each holds", _JSON)
    removing = add("remove", "remove a worktree that holds no work, with its branch")
    removing.add_argument("worktree", metavar="NAME", help="name of the worktree")
    listing.add_json()
    for each in (listing, removing):
        add_session_dir(each)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui worktrees`` with the arguments after that word; returns the exit code.

    Raises:
        WorktreeError: There is no repository, no such worktree, or it holds work.
    """
    arguments = build_parser().parse_args(list(argv))
    settings = read_settings(cast("str | None", arguments.session_dir))
    cwd = present_folder()
    require_git(load_trust(), cwd)
    worktrees, store = open_worktrees(settings), SessionStore(session_root(settings))
    if arguments.verb == "list":
        found = asyncio.run(_look(worktrees, store))
        if arguments.is_json:
            write_json([_row_json(*row) for row in found])
        else:
            lines = [_row(*row) for row in found] or ["No worktrees. --worktree NAME creates one."]
            write_text(safe_text("\n".join(lines)) + "\n")
        return 0
    write_text(safe_text(asyncio.run(_remove(worktrees, store, arguments.worktree))) + "\n")
    return 0


async def _existing(worktrees: Worktrees) -> list[Worktree]:
    repository = await worktrees.repository(present_folder())
    known = worktrees.records.of_repository

    def existing() -> list[Worktree]:
        return [worktree for worktree in known(repository.main) if worktree.exists]

    return await asyncio.to_thread(existing)


async def _look(worktrees: Worktrees, store: SessionStore) -> list[tuple[Worktree, WorkLeft, str]]:
    return [
        (worktree, await worktrees.work_left(worktree), await _user(worktrees, store, worktree))
        for worktree in await _existing(worktrees)
    ]


async def _user(worktrees: Worktrees, store: SessionStore, worktree: Worktree) -> str:
    """Which program works in `worktree`; empty if none does."""
    owner = await asyncio.to_thread(worktrees.records.user_of, worktree.path)
    if owner is not None:
        return str(owner)
    return await asyncio.to_thread(session_in, store, worktree)


async def _remove(worktrees: Worktrees, store: SessionStore, name: str) -> str:
    """Remove the worktree `name`; returns what to tell the user."""
    known = {worktree.name: worktree for worktree in await _existing(worktrees)}
    worktree = known.get(name)
    if worktree is None:
        names = ", ".join(known) or "none"
        raise WorktreeError(f"There is no worktree {name!r}.", f"Worktrees here: {names}.")
    try:
        lock = await asyncio.to_thread(worktrees.records.lock, worktree.path)
    except LockHeldError as error:
        raise WorktreeError(f"{error.owner} works in {name}.", "Leave it there first.") from error
    try:
        if who := await asyncio.to_thread(session_in, store, worktree):
            raise WorktreeError(f"{who} works in {name}.", "Leave it there first.")
        left = await worktrees.take_away(worktree)
    finally:
        lock.release()
    if left.is_any:
        discarding = f"git worktree remove --force {shlex.quote(str(worktree.path))}"
        if worktree.owns_branch:
            discarding += f" && git branch -D {shlex.quote(worktree.branch)}"
        raise WorktreeError(
            f"The worktree {name} is not removed: {left}.",
            f"Commit and merge (git merge {shlex.quote(worktree.branch)}) or copy what you need. "
            f"To discard the rest: {discarding}",
        )
    return f"{removal_line(worktree, left)}."


def _row(worktree: Worktree, left: WorkLeft, used_by: str) -> str:
    facts = f"{left}, in use by {used_by}" if used_by else str(left)
    return f"{worktree.name}  {facts}\n    {worktree.path}"


def _row_json(worktree: Worktree, left: WorkLeft, used_by: str) -> JsonObject:
    return {
        "name": worktree.name,
        "path": str(worktree.path),
        "branch": worktree.branch,
        "base": worktree.base,
        "uncommittedFiles": left.uncommitted,
        "unmergedCommits": left.commits,
        "ignoredFiles": list(left.ignored),
        "inUse": used_by,
        "problem": left.why,
    }
