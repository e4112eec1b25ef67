"""Where recorded sessions of real agents are, on machines that have them."""

import os
from pathlib import Path

import pytest


def trajectory(name: str) -> Path:
    """A recorded session by its path in the folder; skips the test where it is missing."""
    default = Path(__file__).parents[2].parent / "shared" / "trajectories"
    path = Path(os.environ.get("AGENT_TUI_TRAJECTORIES") or default) / name
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    return path
