"""A worktree that agent-tui created, as a value."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.safe_paths import is_folder

WorktreeState: TypeAlias = Literal["creating", "in use", "kept"]
"""`creating` until git is done, `in use` until the session ends, then `kept` if there is work."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that agent-tui created.

    Attributes:
        name: The name that the user or a helper chose.
        path: Its top folder, resolved.
        repository: The top folder of the main worktree, resolved.
        branch: Its branch, without ``refs/heads/``.
        base: The branch it began from.
        start: The commit it began at.
        owns_branch: Whether the branch was created with it.
        state: What is known of its session.
    """

    name: str
    path: Path
    repository: Path
    branch: str
    base: str
    start: str
    owns_branch: bool
    state: WorktreeState = "creating"

    @property
    def exists(self) -> bool:
        """Whether its folder is there."""
        return is_folder(self.path)
