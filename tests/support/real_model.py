"""The small real model, pulled once for all tests that need it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_model_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with ``smollm2`` pulled into it, shared by all workers.

    ``AGENT_TUI_TEST_DATA`` names one that is there already, to save the download.
    """
    pytest.importorskip("xllamacpp", reason='needs the extra: pip install -e ".[local]"')
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = Path(os.environ.get("AGENT_TUI_TEST_DATA") or shared / "real-model-data")
    pulling = subprocess.run(
        [sys.executable, "-m", "agent_tui", "models", "pull", "smollm2", "--json"],
        env={**os.environ, "AGENT_TUI_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert pulling.returncode == 0, pulling.stderr
    assert Path(json.loads(pulling.stdout)["path"]).is_file()
    return folder


@pytest.fixture(scope="session")
def real_model_file(real_model_data: Path) -> Path:
    """Its GGUF."""
    (path,) = (real_model_data / "models").rglob("*.gguf")
    return path
