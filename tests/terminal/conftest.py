import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with folders of its own and no provider key."""
    kept = {n: v for n, v in os.environ.items() if not n.endswith("_API_KEY")}
    own = {f"AGENT_TUI_{n}_DIR": str(tmp_path / n.lower()) for n in ("CONFIG", "DATA", "CACHE")}
    return {**kept, **own, "COLORTERM": "truecolor"}


@pytest.fixture
def demo(tmp_path: Path) -> list[str]:
    return [sys.executable, "-m", "agent_tui", "--demo"]
