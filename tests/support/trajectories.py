"""Where recorded sessions of real agents are, on machines that have them."""

import os
from pathlib import Path

import pytest

_SUFFIXES = (".jsonl", ".json", ".traj")


def trajectory(name: str) -> Path:
    """A recorded session by its path in the folder; skips the test where it is missing."""
    path = _folder() / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return path


def trajectories() -> list[str]:
    """The names of all recorded sessions; none where there is no folder."""
    root = _folder()
    files = (file for file in root.glob("*/*") if file.suffix in _SUFFIXES)
    return sorted(str(file.relative_to(root)) for file in files)


def some_trajectories():
    """All of them as test parameters; the default run takes every third."""
    slow = pytest.mark.slow
    return [
        pytest.param(name, marks=[slow] if number % 3 else [])
        for number, name in enumerate(trajectories() or ["none"])
    ]


def _folder() -> Path:
    default = Path(__file__).parents[2].parent / "shared" / "trajectories"
    return Path(os.environ.get("AGENT_TUI_TRAJECTORIES") or default)
