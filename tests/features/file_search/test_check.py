import pytest

from agent_tui.commands.core.checks import Check
from agent_tui.features.doctor.check import read_environment
from agent_tui.features.file_search.check import check_ripgrep
from tests.features.doctor.conftest import home, programs

__all__ = ["home", "programs"]


def checked() -> Check:
    (check,) = check_ripgrep(read_environment(server_ports={}))
    return check


def test_the_version_of_ripgrep_is_shown(programs):
    programs("rg", "echo 'ripgrep 14.1.0\nfeatures:+pcre2'")
    assert (checked().state, checked().found) == ("ok", "ripgrep 14.1.0")


def test_without_a_ripgrep_of_the_users_that_of_the_wheel_is_shown(programs):
    assert (checked().state, checked().found[:8]) == ("ok", "ripgrep ")


def test_without_any_ripgrep_the_advice_is_to_install(programs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agent_tui.features.file_search.ripgrep.WHEEL", "no-such-package")
    assert checked().state == "bad"
    assert "pip install" in checked().advice
