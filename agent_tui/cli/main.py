"""Dispatch: a subcommand, one printed turn, or the screen."""

import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from agent_tui.cli.streams import settle_standard_streams
from agent_tui.errors import AgentTuiError, UsageError


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv` (without the program's name); returns the exit code."""
    settle_standard_streams()
    try:
        subcommand = _SUBCOMMANDS.get(argv[0]) if argv else None
        if subcommand is not None:
            return subcommand(argv[1:])
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
    from agent_tui.cli.screen_command import run_screen

    return run_screen(arguments)


def _run_sessions(argv: Sequence[str]) -> int:
    from agent_tui.cli.sessions_command import run_command

    return run_command(argv)


def _run_context(argv: Sequence[str]) -> int:
    from agent_tui.cli.context_command import run_command

    return run_command(argv)


def _run_models(argv: Sequence[str]) -> int:
    from agent_tui.cli.models_command import run_command

    return run_command(argv)


def _run_doctor(argv: Sequence[str]) -> int:
    from agent_tui.cli.doctor_command import run_command

    return run_command(argv)


def _run_permissions(argv: Sequence[str]) -> int:
    from agent_tui.cli.permissions_command import run_command

    return run_command(argv)


def _run_trust(argv: Sequence[str]) -> int:
    from agent_tui.cli.trust_command import run_command

    return run_command(argv)


def _run_compact(argv: Sequence[str]) -> int:
    from agent_tui.cli.compact_command import run_command

    return run_command(argv)


_SUBCOMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "sessions": _run_sessions,
    "context": _run_context,
    "compact": _run_compact,
    "models": _run_models,
    "permissions": _run_permissions,
    "trust": _run_trust,
    "doctor": _run_doctor,
}
