"""The argument of ``/goal``."""

import pytest

from agent_tui.cli.arguments import parse_arguments
from agent_tui.errors import UsageError
from agent_tui.features.goal.parse import MOST_CHARS, parse_goal
from agent_tui.features.goal.settings import GoalSettings
from tests.support.rows import each_row

SETTINGS = GoalSettings(max_turns=7, max_hours=1.5)


def test_text_checks_and_bounds():
    goal = parse_goal(
        'the suite passes and coverage is above 90 % --check "pytest -q" '
        "--check 'coverage report --fail-under=90' --turns 3 --time 20m --cost 2.5 --outside",
        SETTINGS,
    )
    assert goal.text == "the suite passes and coverage is above 90 %"
    assert goal.checks == ("pytest -q", "coverage report --fail-under=90")
    assert (goal.max_turns, goal.max_s, goal.max_cost_usd) == (3, 1_200.0, 2.5)
    assert goal.runs_outside


def test_bounds_come_from_the_settings():
    goal = parse_goal("done", SETTINGS)
    assert (goal.max_turns, goal.max_s, goal.max_cost_usd) == (7, 5_400.0, None)
    assert goal.checks == ()
    assert not goal.runs_outside


def test_the_text_may_have_other_options_quotes_and_lines():
    goal = parse_goal('`tool --verbose` doesn\'t crash\nand says "why" --check true', SETTINGS)
    assert goal.text == '`tool --verbose` doesn\'t crash\nand says "why"'
    assert goal.checks == ("true",)


@each_row(
    ("text", "why"),
    [
        ("--check true", "no text"),
        ("x --check", "expected one argument"),
        ('x --check "', "No closing quotation"),
        ("x --check ''", "A check is empty"),
        ("x --turns 0", "must be positive"),
        ("x --turns many", "invalid int"),
        ("x --time soon", "must be positive"),
        ("x --cost -1", "must be positive"),
        ("x --check true --coverage 90", "unrecognized arguments: --coverage"),
    ],
)
def test_what_is_no_goal_says_why(text: str, why: str):
    with pytest.raises(UsageError, match=why):
        parse_goal(text, SETTINGS)


def test_a_text_that_a_program_hands_over_is_never_read_as_a_command_or_an_option():
    odd = "stop --check 'rm -rf x' --outside\nsays \"done\""
    for text in (odd, "stop", "go", "-x", "--text=y"):
        given = parse_arguments(["--goal=" + text, "--check", "test 'a b' = x"]).prompt
        name, _, argument = given.partition(" ")
        goal = parse_goal(argument, SETTINGS)
        assert (name, goal.text, goal.checks) == ("/goal", text, ("test 'a b' = x",))
        assert not goal.runs_outside


def test_an_empty_goal_on_the_command_line_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        parse_arguments(["--goal", " "])
    assert "--goal is empty" in capsys.readouterr().err


@pytest.mark.parametrize("bound", ["--cost nan", "--cost inf", f"--time {'9' * 400}"])
def test_a_bound_that_bounds_nothing_is_refused(bound: str):
    with pytest.raises(UsageError, match="must be positive"):
        parse_goal(f"x {bound}", SETTINGS)


def test_any_bound_of_the_settings_is_taken():
    assert parse_goal("x", GoalSettings(max_hours=1e-05)).max_s == pytest.approx(0.036)


def test_a_text_too_long_for_every_request_says_what_to_do():
    with pytest.raises(UsageError, match="name the file in the goal"):
        parse_goal("x" * (MOST_CHARS + 1), SETTINGS)
