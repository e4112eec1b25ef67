"""The settings of helpers and of their worktrees."""

from pydantic import BaseModel, Field


class HelperSettings(BaseModel):
    """Whether helpers write, and where worktrees are."""

    writing_helpers: bool = Field(
        default=False,
        description="Offer the model helpers that change files, each in its own git worktree; you "
        "decide whether a helper's diff is merged",
    )
    worktrees_folder: str = Field(
        default="",
        description="Folder for the worktrees of --worktree; empty: NAME.worktrees beside each "
        "repository",
    )
