"""``agent-tui completion``: prints the script with which a shell completes the command line."""

import argparse
from collections.abc import Sequence
from typing import cast

from argcomplete.shell_integration import shellcode

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.output import write_text
from agent_tui.installation import COMMAND

_SHELLS = ("bash", "zsh", "fish")
_DESCRIPTION = "Print the completion script for your shell."
_EPILOG = """\
Add one of these lines to your shell's startup file:
  ~/.bashrc                    eval "$(agent-tui completion bash)"
  ~/.zshrc, after compinit     source <(agent-tui completion zsh)
  ~/.config/fish/config.fish   agent-tui completion fish | source

For a faster start, save the script (agent-tui completion bash > FILE) and
load FILE instead. Commands, options, models and sessions are looked up on
this machine as you type."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui completion``."""
    parser = subcommand_parser("completion", _DESCRIPTION, _EPILOG)
    parser.add_argument("shell", choices=_SHELLS, help="shell to print the script for")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui completion`` with the arguments after that word; returns the exit code."""
    shell = cast(str, build_parser().parse_args(list(argv)).shell)
    write_text(shellcode([COMMAND], shell=shell))
    return 0
