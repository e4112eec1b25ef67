"""Dispatch: a subcommand, one printed turn, or the screen."""

import contextlib
import os
import sys
from collections.abc import Sequence

from agent_tui.cli.streams import settle_standard_streams
from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.errors import AgentTuiError, UsageError


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv` (without the program's name); returns the exit code."""
    settle_standard_streams()
    try:
        if argv and (subcommand := SUBCOMMANDS.get(argv[0])) is not None:
            return subcommand.load().run_command(argv[1:])
        return _run_agent(argv)
    except UsageError as error:
        _complain(error)
        return 2
    except AgentTuiError as error:
        _complain(error)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has left; without this, Python complains at its exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost: whatever it was is told without keys
        from agent_tui.cli.complaints import report_crash

        report_crash(error)
        return 1


def _complain(error: AgentTuiError) -> None:
    from agent_tui.cli.complaints import complain

    complain(str(error))


def _run_agent(argv: Sequence[str]) -> int:
    from agent_tui.cli.arguments import parse_arguments

    arguments = parse_arguments(argv)
    if arguments.is_headless:
        from agent_tui.cli.print_command import run_print

        return run_print(arguments)
    from agent_tui.cli.plain_choice import wants_plain

    if wants_plain(arguments):
        from agent_tui.cli.plain_command import run_lines

        return run_lines(arguments)
    from agent_tui.cli.screen_command import run_screen

    return run_screen(arguments)
