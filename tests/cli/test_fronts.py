import io

import pytest

from agent_tui.cli import fronts
from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.main import run
from agent_tui.feature import Feature


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_there", [True, False])
def test_a_terminal_without_a_screen_is_told_of_the_fronts_that_are_there(
    is_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if not is_there:
        monkeypatch.setattr(fronts, "own_features", lambda: (Feature("other"),))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert run([]) == 2
    told = capsys.readouterr().err
    assert "TERM=dumb" in told
    assert ("--plain to chat line by line" in told) is is_there
    assert "-p to run one prompt" in told


def test_without_a_front_for_the_terminal_the_screen_is_used(monkeypatch: pytest.MonkeyPatch):
    arguments = parse_arguments(["--plain"])
    assert fronts.chosen_front(arguments) is fronts.terminal_front() is not None
    monkeypatch.setattr(fronts, "own_features", lambda: (Feature("other"),))
    assert fronts.chosen_front(arguments) is fronts.terminal_front() is None
