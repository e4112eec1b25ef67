"""What ``agent-tui doctor`` says about the sandbox."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.features.sandbox import checks, walls
from agent_tui.features.sandbox.backends import backend_here
from agent_tui.features.sandbox.plan import Backend
from tests.features.doctor.conftest import config, environment, find, home, programs

__all__ = ["config", "environment", "find", "home", "programs"]


def without_landlock(
    system: str, machine: str, bubblewrap: Callable[[], str], _landlock: Callable[[], str]
) -> tuple[Backend, str]:
    return backend_here(system, machine, bubblewrap, lambda: "there is no Landlock")


@pytest.mark.parametrize(
    ("mode", "script", "state", "said"),
    [
        ("off", "", "warning", "off; commands run unconfined"),
        (
            "auto",
            "",
            "warning",
            "bubblewrap (bwrap) is not installed; there is no Landlock; commands run",
        ),
        (
            "on",
            "",
            "bad",
            "bubblewrap (bwrap) is not installed; there is no Landlock; the model cannot",
        ),
        (
            "auto",
            "echo why >&2; exit 1",
            "warning",
            "does not work here: why; there is no Landlock; commands",
        ),
        ("auto", "exit 0", "ok", "bubblewrap; commands write only in the working folder"),
    ],
)
def test_it_is_said_which_sandbox_there_is(
    environment, find, programs, monkeypatch, mode, script, state, said
):
    monkeypatch.setenv("AGENT_TUI_SANDBOX", mode)
    monkeypatch.setattr(walls, "backend_here", without_landlock)
    if script:
        programs("bwrap", script)
    check = find(checks.check_sandbox(environment()))["sandbox"]
    assert (check.state, said in check.found) == (state, True)


def test_nothing_is_to_be_installed_where_no_sandbox_would_protect_anything(
    environment, find, programs, monkeypatch, home: Path
):
    monkeypatch.setenv("AGENT_TUI_SANDBOX", "auto")
    programs("bwrap", "exit 0")
    monkeypatch.chdir(home)
    check = find(checks.check_sandbox(environment()))["sandbox"]
    assert "would protect nothing" in check.found
    assert check.advice == "Start agent-tui in the folder of a project."


def test_the_size_of_the_separate_caches_is_shown(environment, find, home: Path):
    cached = home / "cache/packages/.cache/uv/x"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"x" * 2_000_000)
    check = find(checks.check_caches(environment()))["caches"]
    assert (check.state, "2.0 MB in ~/cache/packages" in check.found) == ("info", True)


@pytest.mark.parametrize("setting", ["", 'sandbox_caches = [".npm"]\n'])
def test_the_size_of_what_commands_keep_at_home_is_shown(
    environment, find, home: Path, config: Path, setting: str
):
    config.write_text(setting)
    assert "homes of commands" not in find(checks.check_caches(environment()))
    kept = home / "cache/sandbox/homes/x-0/python/x"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x" * 3_000_000)
    check = find(checks.check_caches(environment()))["homes of commands"]
    assert (check.state, "3.0 MB in ~/cache/sandbox/homes" in check.found) == ("info", True)


def test_a_cache_of_the_user_that_commands_write_is_a_warning(environment, find, config: Path):
    config.write_text('sandbox_caches = [".npm"]\n')
    check = find(checks.check_caches(environment()))["caches"]
    assert (check.state, "write ~/.npm" in check.found) == ("warning", True)
    assert "config unset sandbox_caches" in check.advice
