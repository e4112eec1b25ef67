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


@pytest.fixture
def project(workspace: Path) -> Path:
    files = {
        ".gitignore": "*.log\n/build/\n!keep.log\n",
        "src/app.py": "import os\n\ndef main():\n    return 'needle'\n",
        "src/app_test.py": "# needle one\n# needle two\n",
        "src/.gitignore": "generated.py\n",
        "src/generated.py": "needle\n",
        "docs/guide.md": "A Needle in the docs\n",
        "build/out.py": "needle\n",
        "debug.log": "needle\n",
        "keep.log": "needle kept\n",
        ".env": "KEY=needle\n",
        ".github/ci.yml": "needle: yes\n",
        ".git/config": "needle\n",
    }
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (workspace / "data.bin").write_bytes(b"\0needle\n")
    return workspace
