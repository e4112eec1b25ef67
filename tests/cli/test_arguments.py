import pytest

from agent_tui.cli.arguments import parse_arguments


def test_a_prompt_after_two_dashes_is_never_an_option():
    arguments = parse_arguments(["-p", "--", "--demo is what?"])
    assert (arguments.print_prompt, arguments.prompt) == ("", "--demo is what?")
    assert not arguments.is_demo


def test_the_help_says_how_to_pass_a_prompt_that_begins_with_a_dash(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert "agent-tui -p -- " in capsys.readouterr().out
