"""The request of ``/init``: have the model write or improve the project's AGENTS.md."""

from importlib import resources
from pathlib import Path

from agent_tui.permissions.project_files import CONTEXT_NAMES, project_folders


def init_target(cwd: Path) -> Path:
    """The AGENTS.md nearest to `cwd`, or where the first one belongs: at the project's root."""
    folders = project_folders(cwd)
    files = [folder / CONTEXT_NAMES[0] for folder in folders]
    return next((file for file in reversed(files) if _has_text(file)), files[0])


def init_prompt(cwd: Path, focus: str = "") -> str:
    """What is sent.

    Args:
        cwd: The workspace.
        focus: What the person wants it to say or stress; empty for nothing special.
    """
    file = init_target(cwd)
    shown = str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file)
    parts = [_text("init_prompt.md")]
    if _has_text(file):
        parts.append(_text("init_again_prompt.md"))
    prompt = "\n\n".join(parts).replace("{file}", shown)
    return f"{prompt}\n\nThe person asks for this in particular: {focus}" if focus else prompt


def _text(name: str) -> str:
    return resources.files("agent_tui.agent.prompt").joinpath(name).read_text("utf-8").strip()


def _has_text(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size > 0
    except OSError:
        return False
