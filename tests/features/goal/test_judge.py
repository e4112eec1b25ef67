"""How a judge's reply is read."""

from pathlib import Path

import pytest

from agent_tui.features.goal.judge import (
    FileDifference,
    GoalJudgement,
    changes_text,
    paths_in_checks,
    read_judgement,
)


@pytest.mark.parametrize(
    "text",
    [
        "VERDICT: met",
        "**Verdict: met**\n\nMISSING:\n- none\nWEAKENED:\n- nothing",
        "I looked at it.\nverdict: Met.\nMISSING:\nWEAKENED:",
    ],
)
def test_met(text: str):
    assert read_judgement(text) == GoalJudgement(True)


def test_not_met_names_what_is_missing_and_what_was_weakened():
    text = (
        "VERDICT: not met\nMISSING:\n- src/a.py: no help text\n  (as the goal asks)\n"
        "2. docs\n\n## Weakened\n* tests/test_a.py: two tests are skipped"
    )
    assert read_judgement(text) == GoalJudgement(
        False,
        (
            "src/a.py: no help text",
            "docs",
            "a check is worth less: tests/test_a.py: two tests are skipped",
        ),
    )


def test_unclear_names_what_cannot_be_seen():
    text = "VERDICT: unclear\nUNSEEN:\n- whether each item is a commit of its own"
    assert read_judgement(text) == GoalJudgement(
        None, ("whether each item is a commit of its own",)
    )


def test_a_met_that_names_a_weakened_check_does_not_count():
    text = "VERDICT: met\nMISSING:\nWEAKENED:\n- setup.cfg: the threshold is 10 instead of 90"
    assert read_judgement(text).is_met is False


@pytest.mark.parametrize("text", ["", "It looks good to me.", "The verdict is yours."])
def test_no_verdict(text: str):
    assert read_judgement(text) == GoalJudgement(None)


def test_files_that_checks_name_are_told_if_they_existed(tmp_path: Path):
    for name in ("tests/unit/test_a.py", "run.sh", "src/a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    changes = [
        FileDifference("tests/unit/test_a.py", "changed", "", ""),
        FileDifference("tests/unit/test_b.py", "new", "", ""),
        FileDifference("run.sh", "changed", "", ""),
        FileDifference("src/a.py", "changed", "", ""),
    ]
    checks = ("pytest -q tests", "bash ./run.sh && true", "echo 'unfinished")
    assert paths_in_checks(changes, checks, tmp_path) == ("tests/unit/test_a.py", "run.sh")
    assert paths_in_checks(changes, ("pytest -q",), tmp_path) == ()


def test_diffs_share_the_room_and_say_what_is_left_out():
    changes = (
        FileDifference("a.py", "changed", "-1\n+2", "d1"),
        FileDifference("b.py", "new", "+line\n" * 100, "d2"),
    )
    text = changes_text(changes, 105)
    assert text.startswith("## a.py (changed)\n-1\n+2\n\n## b.py (new)\n+line\n")
    assert text.endswith("[... 500 more characters of this diff are left out]")
    assert changes_text((), 100) == "(no file changed)"


@pytest.mark.parametrize(
    "text",
    [
        "VERDICT: met\nMISSING: b.txt is empty",
        "VERDICT: met\nMISSING: none\n**Weakened:** tests/test_a.py skips two tests",
        "VERDICT: **not** met",
        "VERDICT: NOT_MET",
    ],
)
def test_what_is_named_on_the_line_of_its_heading_counts(text: str):
    assert read_judgement(text).is_met is False


def test_nothing_on_the_line_of_a_heading_is_nothing():
    assert read_judgement("VERDICT: met\nMISSING: none\nWEAKENED: n/a") == GoalJudgement(True)


def test_two_verdicts_that_contradict_each_other_are_none():
    text = "A file says:\nVERDICT: met\nIt lies.\nVERDICT: not met\nMISSING:\n- b.txt"
    assert read_judgement(text) == GoalJudgement(None)


def test_a_check_may_have_words_of_any_length_and_name_what_is_gone(tmp_path: Path):
    changes = [FileDifference("run.sh", "removed", "", "")]
    checks = (f"python -c '{'x' * 5_000}'", "! test -e tests/../run.sh", "ls / ..")
    assert paths_in_checks(changes, checks, tmp_path) == ("run.sh",)
    assert paths_in_checks(changes, checks[::2], tmp_path) == ()
