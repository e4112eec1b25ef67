"""``agent-tui --worktree NAME``: runs the program in a worktree, and removes it if it is empty."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_tui.cli.arguments import Arguments, Start
from agent_tui.cli.folders import folder_trust, launch_folder
from agent_tui.cli.fronts import terminal_front
from agent_tui.cli.output import complain
from agent_tui.cli.settings import read_settings, session_root
from agent_tui.errors import AgentTuiError
from agent_tui.features.helpers.services import (
    open_worktrees,
    removal_line,
    require_git,
    session_in,
)
from agent_tui.features.helpers.worktrees import Repository, WorkLeft, Worktrees
from agent_tui.file_locks import FileLock
from agent_tui.permissions.trust import FolderTrust
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import safe_text
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.places import git_place
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.git.worktree_records import WorktreeRecords


@dataclass(frozen=True, slots=True)
class _Entered:
    """A worktree in use by this program, the lock that says so, and what to tell the user."""

    worktree: Worktree
    lock: FileLock
    cwd: Path
    notices: tuple[str, ...]


def run_in_worktree(arguments: Arguments, name: str, start: Start) -> int:
    """Run `start` in the worktree `name`; returns its exit code.

    At the end, the worktree is removed if it holds no work; otherwise the user learns what it
    holds.

    Raises:
        WorktreeError: It cannot be created or used.
    """
    folder = launch_folder(arguments)
    trust = folder_trust(arguments)
    is_trusted_now = _ask_for_trust(arguments, trust)
    require_git(trust, folder)
    settings = read_settings(arguments.session_dir)
    worktrees = open_worktrees(settings)
    store = SessionStore(session_root(settings))
    entered = asyncio.run(_enter(worktrees, store, folder, name))
    try:
        return start(
            arguments._replace(
                cwd=entered.cwd,
                trusts_folder=arguments.trusts_folder or is_trusted_now,
                notices=entered.notices,
            )
        )
    finally:
        try:
            ending = asyncio.run(_leave(worktrees, store, entered.worktree))
        finally:
            entered.lock.release()
        if arguments.is_headless:
            complain(ending)
        else:
            print(safe_text(ending), flush=True)


def remove_empty_worktrees(arguments: Arguments) -> tuple[str, ...]:
    """Settle what killed programs left in the repository around the folder of this run.

    Returns lines for the user. Never fails: the next start tries again.
    """
    with suppress(AgentTuiError, OSError):
        folder = launch_folder(arguments)
        trust = folder_trust(arguments)
        settings = read_settings(arguments.session_dir)
        worktrees = open_worktrees(settings)
        if _has_abandoned(worktrees.records, folder) and trust.may_run_git(folder):
            store = SessionStore(session_root(settings))
            settled = asyncio.run(_settle(worktrees, store, folder))
            return tuple(
                f"Interrupted earlier: {_ending_line(worktree, left)}" for worktree, left in settled
            )
    return ()


def _has_abandoned(records: WorktreeRecords, folder: Path) -> bool:
    """Whether a killed program left a worktree of the repository around `folder`. No git is run."""
    place = git_place(folder)
    if place is None:
        return False
    known = records.of_repository(place.folder.parent)
    return any(one.state != "kept" and records.user_of(one.path) is None for one in known)


async def _settle(
    worktrees: Worktrees, store: SessionStore, folder: Path
) -> list[tuple[Worktree, WorkLeft]]:
    repository = await worktrees.repository(folder)

    def is_used(worktree: Worktree) -> bool:
        is_here = real_path(folder).is_relative_to(worktree.path)
        return is_here or bool(session_in(store, worktree))

    return await worktrees.clean_up(repository.main, is_used)


def _ask_for_trust(arguments: Arguments, trust: FolderTrust) -> bool:
    """Ask about the folder before git runs there; returns whether it is trusted now."""
    folder = launch_folder(arguments)
    if arguments.is_headless or not sys.stdin.isatty() or trust.question(folder) is None:
        return False
    if (front := terminal_front()) is None:
        return False
    front.ask_for_trust(trust, arguments)
    return trust.state_of(folder) == "trusted"


async def _enter(worktrees: Worktrees, store: SessionStore, folder: Path, name: str) -> _Entered:
    repository = await worktrees.repository(folder)
    settled = await _settle(worktrees, store, folder)
    worktree, lock = await worktrees.create(folder, name, runs_filters=True)
    below = worktree.path / folder.relative_to(repository.top)
    cwd = below if await asyncio.to_thread(below.is_dir) else worktree.path
    notices = (
        *(f"Interrupted earlier: {_ending_line(*one)}" for one in settled if one[0].name != name),
        _beginning(worktree, repository),
    )
    return _Entered(worktree, lock, cwd, notices)


def _beginning(worktree: Worktree, repository: Repository) -> str:
    line = f"Worktree {worktree.path}, branch {worktree.branch}, from {worktree.base}."
    if repository.uncommitted and repository.top != worktree.path:
        line += f" Uncommitted changes in {repository.top} stay there."
    return line


async def _leave(worktrees: Worktrees, store: SessionStore, worktree: Worktree) -> str:
    if who := await asyncio.to_thread(session_in, store, worktree):
        await asyncio.to_thread(worktrees.records.store, worktree, "kept")
        return f"The worktree {worktree.name} is kept: {who} works in it."
    return _ending_line(worktree, await worktrees.take_away(worktree))


def _ending_line(worktree: Worktree, left: WorkLeft) -> str:
    if not left.is_any:
        return f"{removal_line(worktree, left)}: it held no unmerged work."
    lines = [
        f"The worktree {worktree.name} is kept: {left}.",
        f"  {worktree.path}",
        f"To continue there: agent-tui --worktree {worktree.name} -c",
    ]
    if left.commits:
        lines.append(f"To merge it into {worktree.base}: git merge {worktree.branch}")
    return "\n".join(lines)
