"""Files of the person and the project, as they are named on the screen and in commands."""

from pathlib import Path

from agent_tui.ui.status.status_bar import short_path


def shown_file(path: Path, cwd: Path) -> str:
    """`path` as one would write it in `cwd`: from there, from the home folder, or whole."""
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    return short_path(path, Path.home())
