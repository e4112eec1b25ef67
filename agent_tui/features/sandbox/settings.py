"""The settings of the sandbox."""

from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, Field

from agent_tui.config.section import OnlyStricter

SandboxMode: TypeAlias = Literal["off", "auto", "on"]

SANDBOX_CACHES = (
    *(".cache/pip", ".cache/uv", ".cache/pre-commit", ".cache/go-build", ".cache/yarn"),
    *(".npm", ".local/share/pnpm/store", ".bun/install/cache", ".cargo/registry", ".cargo/git"),
    *("go/pkg", ".m2/repository", ".gradle/caches", ".gradle/wrapper"),
)
"""Where package managers keep what they downloaded and built."""


def _below_home(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or {"..", "~"} & {*path.parts}:
        raise ValueError("give a path below the home folder, such as .cache/pip")
    return str(path)


FolderBelowHome: TypeAlias = Annotated[str, AfterValidator(_below_home)]


class SandboxSettings(BaseModel):
    """Whether the model's commands run in a sandbox, and which caches they see.

    `sandbox`: ``auto`` uses one for the model's commands if that works here, ``on`` runs no command
    without one. In the default folders of `sandbox_caches`, commands see separate caches of
    agent-tui's; one that the user names is the user's own, and not created.
    """

    sandbox: Annotated[SandboxMode, OnlyStricter(("on", "auto", "off"))] = Field(
        default="auto",
        description="Run the model's commands in a sandbox: where this machine can (auto), run "
        "none without it (on), or never (off)",
    )
    sandbox_caches: tuple[FolderBelowHome, ...] = Field(
        default=SANDBOX_CACHES,
        description="Package caches below your home folder: commands in the sandbox see separate "
        "ones, and write your own if you name them here",
    )
