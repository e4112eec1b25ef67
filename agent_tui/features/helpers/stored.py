"""The worktrees on this machine, for ``agent-tui clean``."""

from collections.abc import Iterator

from agent_tui.cli.folders import worktree_records
from agent_tui.feature import StoredElsewhere


def list_worktrees() -> Iterator[StoredElsewhere]:
    """The worktrees that agent-tui created and that exist, of all repositories. Blocking."""
    for found in worktree_records().all():
        if found.exists:
            yield StoredElsewhere(
                str(found.path),
                found.path,
                f"work on the branch {found.branch}",
                f"agent-tui worktrees remove {found.name}, in {found.repository}",
            )
