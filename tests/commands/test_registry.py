"""Which command a name calls when prompt files have names of the program's commands."""

from agent_tui.commands.core.command import Command, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.registry import CommandRegistry, UnknownCommand, UnusableFile


@command(gives_way=True)
async def review(_front: Front, _argument: str) -> None:
    """Review."""


@command()
async def help_(_front: Front, _argument: str) -> None:
    """Help."""


def of_file(name: str) -> Command:
    return Command(name, "Mine", "", review.run, source="user")


def test_a_prompt_file_replaces_only_a_command_that_gives_way():
    registry = CommandRegistry([review, help_])
    assert registry.own_names == {"help"}
    registry.use_found([of_file("review"), of_file("help")])
    assert registry.find("review") == of_file("review")
    assert registry.find("help") is help_
    assert registry.commands.count(review) == 0
    registry.use_found([])
    assert registry.find("review") is review


def test_a_prompt_file_that_cannot_be_used_is_named_instead_of_the_command_in_its_place():
    registry = CommandRegistry([review])
    registry.use_found([], [UnusableFile("~/review.md", "is binary, not text", "review")])
    assert registry.read("/review") == UnknownCommand("~/review.md is binary, not text.")


def test_a_file_of_an_untrusted_folder_is_named_and_takes_no_place():
    registry = CommandRegistry([review])
    registry.use_found([], find_withheld=[lambda name: UnusableFile("x.md", "is ignored", name)])
    assert registry.find("review") is review
    assert registry.read("/ship it") == UnknownCommand("x.md is ignored.")
