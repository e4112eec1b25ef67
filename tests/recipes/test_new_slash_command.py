"""New slash command: one decorated function in ``commands/``, and no second list."""

import pytest

from tests.recipes.program_copy import ProgramCopy

MODULE = '''\
"""Greetings."""

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.front import Choice, Question

_WHOM = Question("Greet whom?", (), (Choice("Ada", "Ada", "a"), Choice("Grace", "Grace", "g")))


@command(
    "[name]",
    aliases=("hail",),
    completions=lambda _front: (Completion("Ada", "the first of us"), Completion("Grace")),
)
async def greet(front: Front, argument: str) -> None:
    """Greet somebody politely."""
    name = argument or await front.ask(_WHOM)
    front.say(f"Welcome, {name}!" if name else "Then not.")
'''


@pytest.fixture
def copy(tmp_path) -> ProgramCopy:
    made = ProgramCopy(tmp_path, "New slash command")
    made.add_file("agent_tui/commands/greet.py", MODULE)
    return made


def prompt_file(copy: ProgramCopy) -> None:
    """A prompt file of the person's with the name of the command."""
    file = copy.config_file.parent / "commands" / "greet.md"
    file.parent.mkdir()
    file.write_text("Say that nobody is there.", encoding="utf-8")


@pytest.mark.thorough
def test_the_screen_offers_it_with_its_arguments_and_runs_it(copy):
    with copy.typing("--demo") as screen:
        screen.wait_for("scripted tour")
        screen.send("/gre")
        screen.wait_for("Greet somebody politely")
        screen.send("et ")
        screen.wait_for("the first of us")
        screen.send("Grace\r")
        screen.wait_for("Welcome, Grace!")
        screen.send("/hail\r")
        screen.wait_for("Greet whom?")


@pytest.mark.thorough
def test_plain_runs_it_asks_and_lists_it_in_the_help(copy):
    with copy.typing("--demo", "--plain") as person:
        person.wait_for("] > ")
        person.send("/greet Grace\r")
        person.wait_for("Welcome, Grace!")
        person.send("/hail\r")
        person.wait_for("Greet whom?")
        person.send("a\r")
        person.wait_for("Welcome, Ada!")
        person.send("/help\r")
        person.wait_for("Greet somebody politely")


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["/greet Grace", "/hail Grace", "/greet\nGrace"])
def test_a_script_runs_it_also_where_a_prompt_file_has_its_name(copy, line):
    prompt_file(copy)
    done = copy.run("-m", "scripted/tour", "-p", line)
    assert (done.returncode, done.stdout.strip()) == (0, "Welcome, Grace!"), done.stderr


@pytest.mark.thorough
def test_a_script_is_told_that_nobody_answers_and_what_was_meant(copy):
    unanswered = copy.run("-m", "scripted/tour", "-p", "/greet")
    assert unanswered.returncode == 2
    assert "Greet whom: -p cannot ask questions." in unanswered.stderr
    misspelt = copy.run("-m", "scripted/tour", "-p", "/greot Ada")
    assert misspelt.returncode != 0
    assert "/greet" in misspelt.stderr
