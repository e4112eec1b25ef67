import sys
from importlib.metadata import PackageNotFoundError
from typing import NoReturn

import pytest

from agent_tui.features.local import checks
from agent_tui.installation import install_command
from tests.features.doctor.conftest import config, environment, find, home, probed

__all__ = ["config", "environment", "find", "home", "probed"]


def not_installed(name: str) -> NoReturn:
    raise PackageNotFoundError(name)


def test_without_the_extra_the_way_to_it_is_told(environment, find, monkeypatch):
    monkeypatch.setattr(checks, "version", not_installed)
    check = find(checks.check_server_package(environment()))["llama.cpp"]
    assert check.state == "info"
    assert install_command("local") in check.advice


def test_on_musl_no_wheel_is_promised(environment, find, monkeypatch):
    monkeypatch.setattr(checks, "version", not_installed)
    monkeypatch.setattr("platform.libc_ver", lambda: ("musl", "1.2"))
    check = find(checks.check_server_package(environment()))["llama.cpp"]
    assert "pip" not in check.advice
    assert "Ollama" in check.advice


@pytest.mark.parametrize(
    ("source", "state", "said"),
    [
        ("", "ok", "xllamacpp 1.2"),
        ("raise ImportError('no libgomp.so.1')", "bad", "no libgomp.so.1"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "bad", "SIGILL"),
        ("import time; time.sleep(60)", "warning", "took longer"),
    ],
)
def test_a_wheel_that_breaks_when_imported_does_not_take_us_with_it(
    environment, find, monkeypatch, tmp_path, source, state, said
):
    (tmp_path / "xllamacpp.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(checks, "version", lambda name: "1.2")
    limit_s = 0.05 if state == "warning" else 60
    monkeypatch.setattr(checks, "_IMPORT_WITHIN_S", limit_s)
    check = find(checks.check_server_package(environment()))["llama.cpp"]
    assert check.state == state
    assert said in check.found
    assert "xllamacpp" not in sys.modules


def test_a_module_of_the_project_is_not_taken_for_the_wheel(environment, find, home, monkeypatch):
    (home / "work" / "xllamacpp.py").write_text("raise SystemExit('the project ran')")
    monkeypatch.setattr(checks, "version", lambda name: "1.2")
    check = find(checks.check_server_package(environment()))["llama.cpp"]
    assert "the project ran" not in str(check)


def test_a_local_model_that_the_settings_name_must_be_there(probed, config):
    config.write_text('[local]\nmodel = "gone"\n')
    check = probed(checks.check_local_model, "with --local")
    assert check.state == "bad"
    assert "'gone'" in check.found
    assert "models pull" in check.advice
