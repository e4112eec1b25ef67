from pathlib import Path

import pytest

from agent_tui.tools.base import ToolContext
from agent_tui.tools.files.memory import FileMemory
from tests.support.patience import PATIENCE_S


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def emitted() -> list[str]:
    return []


@pytest.fixture
def context(workspace: Path, tmp_path: Path, emitted: list[str]) -> ToolContext:
    return ToolContext(
        cwd=workspace,
        emit=lambda text, _skipped=0: emitted.append(text),
        files=FileMemory(),
        output_dir=tmp_path / "outputs",
        environ={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        todos=[],
        default_timeout_s=PATIENCE_S,
    )
