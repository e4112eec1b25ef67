import sys
from importlib.metadata import PackageNotFoundError
from typing import NoReturn

import pytest

from agent_tui.cli.doctor import models
from agent_tui.installation import install_command
from agent_tui.local_models.library import LibraryListing, ModelLibrary
from agent_tui.local_models.model import LocalModel


def not_installed(name: str) -> NoReturn:
    raise PackageNotFoundError(name)


@pytest.fixture
def one_model(home, monkeypatch):
    """A library with one pulled model of ten bytes."""
    file = home / "data" / "models" / "files" / "smollm2.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF567890")
    model = LocalModel("smollm2", file, 10, trained_window=8_192, is_ours=True)
    monkeypatch.setattr(ModelLibrary, "listing", lambda self: LibraryListing((model,), ()))
    return file


def test_without_models_the_way_to_one_is_told_with_its_size(environment, find):
    check = find(models.check_library(environment()))["library"]
    assert check.state == "info"
    assert "agent-tui models pull smollm2 (92.9 MB)" in check.advice


def test_a_model_is_told_with_size_and_window(environment, find, one_model):
    check = find(models.check_library(environment()))["smollm2"]
    assert check.state == "ok"
    assert check.found == "10 bytes, window 8,192 tokens, ~/data/models/files/smollm2.gguf"


def test_a_model_whose_file_is_gone_says_how_to_get_it_back(environment, find, one_model):
    one_model.unlink()
    check = find(models.check_library(environment()))["smollm2"]
    assert (check.state, check.found) == ("warning", "~/data/models/files/smollm2.gguf is gone")
    assert "pull it again" in check.advice


def test_a_damaged_description_is_bad_and_says_how_to_be_rid_of_it(environment, home):
    root = home / "data" / "models"
    root.mkdir(parents=True)
    (root / "odd.json").write_text("{")
    problem = next(iter(models.check_library(environment())))
    assert problem.state == "bad"
    assert "odd.json" in problem.found


def test_without_the_extra_the_way_to_it_is_told(environment, find, monkeypatch):
    monkeypatch.setattr(models, "version", not_installed)
    check = find(models.check_server_package(environment()))["llama.cpp"]
    assert check.state == "info"
    assert install_command("local") in check.advice


def test_on_musl_no_wheel_is_promised(environment, find, monkeypatch):
    monkeypatch.setattr(models, "version", not_installed)
    monkeypatch.setattr("platform.libc_ver", lambda: ("musl", "1.2"))
    check = find(models.check_server_package(environment()))["llama.cpp"]
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
    monkeypatch.setattr(models, "version", lambda name: "1.2")
    limit_s = 0.05 if state == "warning" else 60
    monkeypatch.setattr(models, "_IMPORT_WITHIN_S", limit_s)
    check = find(models.check_server_package(environment()))["llama.cpp"]
    assert check.state == state
    assert said in check.found
    assert "xllamacpp" not in sys.modules


def test_a_module_of_the_project_is_not_taken_for_the_wheel(environment, find, home, monkeypatch):
    (home / "work" / "xllamacpp.py").write_text("raise SystemExit('the project ran')")
    monkeypatch.setattr(models, "version", lambda name: "1.2")
    check = find(models.check_server_package(environment()))["llama.cpp"]
    assert "the project ran" not in str(check)


def test_nothing_is_made_by_looking(environment, home):
    list(models.check_library(environment()))
    assert not (home / "data").exists()
