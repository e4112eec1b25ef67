"""``agent-tui completion``: the script with which a shell completes our command line."""

import argparse
from collections.abc import Sequence
from typing import cast

from agent_tui.cli.arguments import build_parser as build_program_parser
from agent_tui.cli.command_parser import CommandParser
from agent_tui.cli.completion.scripts import SCRIPTS
from agent_tui.cli.completion.tree import command_tree
from agent_tui.cli.completion.words import WORD_KINDS, WordKind, words_of
from agent_tui.cli.output import write_text
from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.safe_text import safe_text

_DESCRIPTION = "Print the completion script for your shell."
_EPILOG = """\
Add one of these lines to your shell's startup file:
  ~/.bashrc                    eval "$(agent-tui completion bash)"
  ~/.zshrc, after compinit     source <(agent-tui completion zsh)
  ~/.config/fish/config.fish   agent-tui completion fish | source

For a faster start, save the script (agent-tui completion bash > FILE) and
load FILE instead. Save it again after an update. Models and sessions are
looked up on this machine as you type."""


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui completion``."""
    parser = CommandParser(
        prog="agent-tui completion",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="shell to print the script for")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui completion`` with the arguments after that word; returns the exit code."""
    if argv[:1] == ["--list"]:
        return _list(argv[1:])
    shell = cast(str, build_parser().parse_args(list(argv)).shell)
    tree = command_tree(
        build_program_parser(),
        [(name, subcommand.load().build_parser()) for name, subcommand in SUBCOMMANDS.items()],
    )
    write_text(SCRIPTS[shell](tree))
    return 0


def _list(argv: Sequence[str]) -> int:
    """What the scripts ask: ``KIND -- WORDS``, the words of the command line so far."""
    parser = CommandParser(prog="agent-tui completion --list", allow_abbrev=False)
    parser.add_argument("kind", choices=WORD_KINDS)
    parser.add_argument("before", nargs="*")
    arguments = parser.parse_args(list(argv))
    rows = words_of(cast(WordKind, arguments.kind), cast("list[str]", arguments.before))
    lines = ("\t".join(safe_text(part, keep_newlines=False) for part in row) for row in rows)
    write_text("".join(f"{line}\n" for line in lines))
    return 0
