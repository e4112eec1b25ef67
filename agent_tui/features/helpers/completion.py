"""Completes the names of worktrees."""

from collections.abc import Iterator

from agent_tui.cli.folders import present_folder, worktree_records
from agent_tui.safe_paths import real_path
from agent_tui.tools.git.places import git_place


def worktree_names(program: str) -> Iterator[tuple[str, str]]:
    """The worktrees of this repository, then the names of earlier ones. Git is not run.

    Args:
        program: ``agent-tui`` with the subcommand; one to be removed must exist.
    """
    place = git_place(real_path(present_folder()))
    if place is None or place.folder.name != ".git":
        return
    known = worktree_records().of_repository(place.folder.parent)
    yield from ((tree.name, f"branch {tree.branch}") for tree in known if tree.exists)
    if program != "agent-tui worktrees remove":
        yield from ((tree.name, "removed earlier") for tree in known if not tree.exists)
