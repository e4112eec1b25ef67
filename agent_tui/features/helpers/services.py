"""What both command lines need: the worktrees, and whether git may run and sessions are open."""

import os
from collections.abc import Mapping
from pathlib import Path

from agent_tui.cli.folders import worktree_records
from agent_tui.config import Settings
from agent_tui.errors import UsageError, WorktreeError
from agent_tui.features.helpers.settings import HelperSettings
from agent_tui.features.helpers.worktrees import WorkLeft, Worktrees
from agent_tui.permissions.trust import FolderTrust
from agent_tui.safe_paths import real_path
from agent_tui.sessions.file.writer import session_status
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.worktree import Worktree
from agent_tui.tools.processes.keeper import ProcessKeeper


def open_worktrees(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    keeper: ProcessKeeper | None = None,
) -> Worktrees:
    """The worktrees, in the folder of the settings.

    Args:
        settings: The user's.
        environ: The environment of git.
        keeper: Starts git; None creates one.

    Raises:
        UsageError: The folder is not an absolute path.
    """
    folder = worktrees_folder(settings.of(HelperSettings).worktrees_folder.strip())
    return Worktrees(keeper or ProcessKeeper(), environ, worktree_records(), folder)


def worktrees_folder(name: str) -> Path | None:
    """The folder of that `name`; None, if it is empty, for one beside each repository.

    Raises:
        UsageError: It is not an absolute path.
    """
    if not name:
        return None
    try:
        folder = Path(name).expanduser()
    except RuntimeError:
        folder = Path()
    if not folder.is_absolute():
        raise UsageError(
            f"worktrees_folder {name!r} is not an absolute path.",
            "Write it like ~/worktrees.",
        )
    return real_path(folder)


def require_git(trust: FolderTrust, folder: Path) -> None:
    """Refuse to run git in a folder that is not trusted.

    Raises:
        WorktreeError: Its settings could make git run programs.
    """
    if not trust.may_run_git(folder):
        raise WorktreeError(
            f"Git does not run in {folder}: the folder is not trusted.",
            "To trust it: agent-tui trust add, or --trust for one run.",
        )


def session_in(store: SessionStore, worktree: Worktree) -> str:
    """The program that has a session open in `worktree`, such as ``pid 42``; empty if none."""
    for path, running in store.running().items():
        cwd = session_status(path).cwd
        if cwd is not None and cwd.is_relative_to(worktree.path):
            return f"agent-tui (pid {running.pid})"
    return ""


def removal_line(worktree: Worktree, left: WorkLeft) -> str:
    """What was removed: the worktree, with its branch or without.

    Args:
        worktree: It held no work.
        left: From its removal.
    """
    branch = f"; branch {worktree.branch} stays ({left.branch})" if left.branch else ""
    return f"Removed the worktree {worktree.name}{branch or ' with its branch'}"
