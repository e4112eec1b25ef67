"""New feature: a folder in ``features/``, and nothing else."""

import shutil

import pytest

from tests.recipes.program_copy import ProgramCopy

FEATURE = '''\
"""Greetings."""

from agent_tui.feature import Feature, Subcommand

FEATURE = Feature(
    "greeting",
    subcommands=(Subcommand("greet", "greet you", "agent_tui.features.greeting.subcommand"),),
    brings={"agent_tui.commands": ("agent_tui.features.greeting.command:greet",)},
)
'''
COMMAND = '''\
"""``/greet``."""

from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Front


@command()
async def greet(front: Front, _argument: str) -> None:
    """Greet you."""
    front.say("Good day to you.")
'''
SUBCOMMAND = '''\
"""``agent-tui greet``."""

from argparse import ArgumentParser
from collections.abc import Sequence


def build_parser() -> ArgumentParser:
    """The parser of ``agent-tui greet``."""
    return ArgumentParser(prog="agent-tui greet")


def run_command(argv: Sequence[str]) -> int:
    """Greet."""
    build_parser().parse_args(list(argv))
    print("Good day from the shell.")
    return 0
'''
FOLDER = "agent_tui/features/greeting"


@pytest.mark.thorough
def test_it_is_there_with_its_folder_and_gone_without_it(tmp_path):
    copy = ProgramCopy(tmp_path, "New feature")
    copy.add_file(f"{FOLDER}/__init__.py", '"""Greetings."""\n')
    copy.add_file(f"{FOLDER}/feature.py", FEATURE)
    copy.add_file(f"{FOLDER}/command.py", COMMAND)
    copy.add_file(f"{FOLDER}/subcommand.py", SUBCOMMAND)
    assert copy.run("greet").stdout == "Good day from the shell.\n"
    assert "greet you" in copy.run("--help").stdout
    asked = copy.run("-p", "/greet", "--model", "openai/gpt-4o", OPENAI_API_KEY="none")
    assert "Good day to you." in asked.stdout + asked.stderr
    shutil.rmtree(tmp_path / "tree" / FOLDER)
    assert "greet you" not in copy.run("--help").stdout
