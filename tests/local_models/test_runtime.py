import sys
from pathlib import Path

import pytest

from agent_tui.local_models.runtime import can_run_models, install_command

EXTRA = '"agent-tui[local]"'


def a_python(folder: Path) -> Path:
    folder.mkdir(parents=True)
    python = folder / "python"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return python


def test_python_is_enough_where_it_is_the_one_that_runs_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = a_python(tmp_path / "bin")
    monkeypatch.setattr(sys, "executable", str(python.with_name("python3")))
    monkeypatch.setenv("PATH", str(python.parent))
    assert install_command() == f"python -m pip install {EXTRA}"


def test_another_python_on_the_path_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = a_python(tmp_path / "my env" / "bin")
    monkeypatch.setattr(sys, "executable", str(ours))
    monkeypatch.setenv("PATH", str(a_python(tmp_path / "bin").parent))
    assert install_command() == f"'{ours}' -m pip install {EXTRA}"


def test_where_pip_is_missing_uv_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr(sys, "executable", "/env/bin/python")
    assert install_command() == f"uv pip install {EXTRA} --python /env/bin/python"


@pytest.mark.parametrize("is_there", [True, False])
def test_models_run_where_the_package_is_there(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = type(sys)("xllamacpp")
    module.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "xllamacpp", module if is_there else None)
    assert can_run_models() == is_there
