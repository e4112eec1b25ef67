"""The request of ``/init``: have the model write or improve the project's AGENTS.md."""

from importlib import resources
from pathlib import Path

from agent_tui.attachments import instructions_block
from agent_tui.permissions.project_files import CONTEXT_NAMES, project_folders


def init_target(cwd: Path) -> Path:
    """The AGENTS.md nearest to `cwd`, or where the first one belongs: at the project's root."""
    folders = project_folders(cwd)
    files = [folder / CONTEXT_NAMES[0] for folder in folders]
    return next((file for file in reversed(files) if _has_text(file)), files[0])


def init_prompt(cwd: Path, focus: str = "") -> str:
    """What is sent; its first lines alone are shown to the person.

    Args:
        cwd: The workspace.
        focus: What the person wants it to say or stress; empty for nothing special.
    """
    file = init_target(cwd)
    shown = str(file.relative_to(cwd)) if file.is_relative_to(cwd) else str(file)
    task, details = _text("init_prompt.md").replace("{file}", shown).split("\n\n", 1)
    if focus:
        task += f"\n\nIn particular: {focus}"
    if _has_text(file):
        details += "\n\n" + _text("init_again_prompt.md").replace("{file}", shown)
    return f"{task}\n\n{instructions_block(details)}"


def _text(name: str) -> str:
    return resources.files("agent_tui.agent.prompt").joinpath(name).read_text("utf-8").strip()


def _has_text(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size > 0
    except OSError:
        return False
