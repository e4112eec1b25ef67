import pytest

from agent_tui.cli.arguments import parse_arguments
from agent_tui.features.print.options import PrintOptions
from tests.support.rows import each_row


def test_a_prompt_after_two_dashes_is_never_an_option():
    arguments = parse_arguments(["-p", "--", "--demo is what?"])
    assert (PrintOptions.of(arguments).prompt, arguments.prompt) == ("", "--demo is what?")
    assert not arguments.is_demo


def test_the_help_says_how_to_pass_a_prompt_that_begins_with_a_dash(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "agent-tui -p -- " in capsys.readouterr().out


@pytest.mark.parametrize(("given", "seconds"), [("90", 90), ("10m", 600), ("1h", 3600)])
def test_a_run_may_be_bounded_in_time(given, seconds):
    arguments = parse_arguments(["-p", "hi", "--max-time", given])
    assert PrintOptions.of(arguments).max_time_s == seconds


@pytest.mark.parametrize(
    "option", [["--max-time", "1m"], ["--fail-on-refusal"], ["--json-schema", "{}"]]
)
def test_what_is_for_runs_without_a_screen_is_refused_on_it(option, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(option)
    assert ended.value.code == 2
    assert "requires -p" in capsys.readouterr().err


def test_a_time_of_nothing_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["-p", "hi", "--max-time", "0"])
    assert ended.value.code == 2
    assert "is not a duration" in capsys.readouterr().err


def test_what_is_not_given_has_its_default():
    assert PrintOptions.of(parse_arguments(["-p"])) == ("", "text", "text", None, None, False)
    assert not parse_arguments(["hi"]).is_headless
    assert parse_arguments(["-p"]).is_headless


@each_row(
    ("argv", "told"),
    [
        (("-p", "hi"), "--goal cannot be combined with a prompt"),
        (("-p", "--json-schema", "{}"), "--goal cannot be combined with --input-format or"),
        (
            ("-p", "--output-format", "stream-json", "--input-format", "stream-json"),
            "--goal cannot be combined with --input-format or",
        ),
    ],
)
def test_an_option_that_makes_the_prompt_takes_no_other(argv, told, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([*argv, "--goal", "green"])
    assert told in capsys.readouterr().err
