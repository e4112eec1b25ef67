"""What a helper changed in its own worktree, as a value."""

from dataclasses import dataclass
from pathlib import Path

from agent_tui.tools.git.worktree import Worktree


@dataclass(frozen=True, slots=True)
class HelperChange:
    """A file that a helper changed, relative to the top of the repository.

    `before` is its content when the helper began, None if it did not exist; `after` is None if the
    helper deleted it. Both are as git checks them out, with its line endings; no filter runs.
    """

    name: str
    before: bytes | None
    after: bytes | None
    is_program: bool = False


@dataclass(frozen=True, slots=True)
class HelperWork:
    """What a helper did.

    Attributes:
        worktree: Where it worked; the folder is gone, the branch stays.
        top: The top folder of the user's worktree, to which the changes belong.
        base: The commit it began at, with the user's uncommitted changes.
        tip: The newest commit of its branch.
        changes: The files it changed.
        left_out: Changes that only git can bring over, such as those to links and modes.
    """

    worktree: Worktree
    top: Path
    base: str
    tip: str
    changes: tuple[HelperChange, ...]
    left_out: tuple[str, ...]
