import threading
from collections.abc import Iterator

import pytest

from agent_tui.commands.core.checks import Check
from agent_tui.errors import ModelFileError
from agent_tui.features.doctor.check import Probe, run_probes
from tests.support.patience import PATIENCE_S

FINE = Check("git", "ok", "2.39", section="tools")


@pytest.mark.parametrize("state", ["warning", "bad"])
def test_what_is_wrong_must_come_with_advice(state):
    with pytest.raises(ValueError, match="no advice"):
        Check("git", state, "not found")


def test_the_order_is_that_of_the_probes_whatever_ends_first():
    second_is_done = threading.Event()

    def first() -> Iterator[Check]:
        assert second_is_done.wait(timeout=PATIENCE_S)
        yield Check("first", "ok", "")

    def second() -> Iterator[Check]:
        yield Check("second", "ok", "")
        second_is_done.set()

    checks = run_probes([Probe("a", "first", first), Probe("a", "second", second)], 60)
    assert [(check.section, check.name) for check in checks] == [("a", "first"), ("a", "second")]


@pytest.mark.parametrize(
    ("error", "state", "said", "advice"),
    [
        (
            ZeroDivisionError("a bug"),
            "warning",
            "check failed: ZeroDivisionError: a bug",
            "report it",
        ),
        (
            PermissionError(13, "Permission denied", "/x/y"),
            "warning",
            "check failed: /x/y: Permission denied",
            "Check that path",
        ),
        (
            ModelFileError("x.json is damaged.", "Remove it."),
            "bad",
            "x.json is damaged.",
            "Remove it.",
        ),
    ],
)
def test_a_check_that_raises_is_a_line_and_hides_no_other(error, state, said, advice):
    def broken() -> Iterator[Check]:
        yield FINE
        raise error

    checks = run_probes([Probe("a", "broken", broken), Probe("tools", "git", lambda: (FINE,))], 60)
    assert [check.name for check in checks] == ["broken", "git"]
    assert (checks[0].state, checks[0].found) == (state, said)
    assert advice in checks[0].advice
    assert checks[1] == FINE


def test_a_check_that_hangs_is_a_line_and_holds_nothing_up():
    release = threading.Event()

    def hanging() -> Iterator[Check]:
        release.wait()
        yield FINE

    checks = run_probes([Probe("disk", "nfs", hanging)], 0.01)
    release.set()
    assert [(check.section, check.name, check.state) for check in checks] == [
        ("disk", "nfs", "warning")
    ]
    assert "no answer within 0.01 s" in checks[0].found


def test_a_probe_with_nothing_to_say_says_nothing():
    assert run_probes([Probe("a", "silent", tuple)], 60) == ()
