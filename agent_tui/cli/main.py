"""Dispatches to a subcommand, a front of a feature, or the screen."""

import contextlib
import gc
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.errors import IN_SHELL, AgentTuiError, UsageError
from agent_tui.feature import headless_function, load_object, own_features
from agent_tui.paths import ensure_home
from agent_tui.safe_paths import distrust_programs_around

if TYPE_CHECKING:
    from agent_tui.cli.arguments import Arguments, Start
    from agent_tui.feature import Subcommand


_ALIKE = 0.8
"""How alike a word and a subcommand must be, by difflib's ratio."""


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv` (without the program's name); returns the exit code."""
    _repair_standard_streams()
    ensure_home()
    _distrust_working_folder()
    try:
        if "_ARGCOMPLETE" in os.environ:  # a shell requests completions
            for name in (each.shell_answer for each in own_features() if each.shell_answer):
                cast("Callable[[], None]", load_object(name))()
        if argv and (subcommand := _subcommand(argv[0]) or _meant_subcommand(argv)) is not None:
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
        # The reader of our output has left; without this, Python complains at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost: reports it without keys
        from agent_tui.cli.output import report_crash

        report_crash(error)
        return 1


def _subcommand(word: str) -> "Subcommand | None":
    """The subcommand of this name; those of plugins come after the program's own."""
    if word in SUBCOMMANDS or not re.fullmatch(r"[a-z][a-z0-9_-]*", word):
        return SUBCOMMANDS.get(word)
    from agent_tui.cli.early_settings import names_plugins

    if not names_plugins():
        return None
    from agent_tui.cli.plugins import brought_subcommands

    return brought_subcommands().get(word)


def _meant_subcommand(argv: Sequence[str]) -> "Subcommand | None":
    """The subcommand that the user meant by a mistyped word alone, after asking them."""
    if len(argv) != 1 or not re.fullmatch(r"[a-z]{4,}", argv[0]) or not sys.stdin.isatty():
        return None
    from difflib import get_close_matches

    from agent_tui.cli.output import ask

    near = next(iter(get_close_matches(argv[0], SUBCOMMANDS, n=1, cutoff=_ALIKE)), "")
    question = f"Did you mean agent-tui {near}? If not, {argv[0]} is sent to the model."
    return SUBCOMMANDS[near] if near and ask(question, is_yes_usual=True) else None


def _commands_of_plugins() -> "Iterable[tuple[str, str]]":
    """The names of the subcommands of plugins, and what they are."""
    from agent_tui.cli.early_settings import names_plugins

    if not names_plugins():
        return ()
    from agent_tui.cli.plugins import named_subcommands

    return named_subcommands()


def _distrust_working_folder() -> None:
    """Run no program of the working folder, whatever we do there."""
    with contextlib.suppress(OSError, RuntimeError):  # it was removed; or there is no home folder
        distrust_programs_around(Path.cwd(), Path.home())


def _complain(error: AgentTuiError) -> None:
    from agent_tui.cli.output import complain

    error.ways = IN_SHELL
    complain(str(error))


def _run_agent(argv: Sequence[str]) -> int:
    # What imports make stays to the end, and scanning it for cycles is a part of the time to the
    # first paint. The screen goes without the collector until all is loaded.
    gc.disable()
    try:
        return _run_front(argv)
    finally:
        gc.enable()


def _run_front(argv: Sequence[str]) -> int:
    from agent_tui.cli.arguments import parse_arguments

    arguments = parse_arguments(argv, _commands_of_plugins)
    start: Start = _start
    for name in (feature.around for feature in own_features() if feature.around):
        start = partial(cast("Callable[[Start, Arguments], int]", load_object(name)), start)
    return start(arguments)


def _start(arguments: "Arguments") -> int:
    """Run without a user, or hold the conversation; returns the exit code."""
    if name := headless_function(arguments.option_values):
        gc.enable()
        return cast("Start", load_object(name))(arguments)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # A shell without job control makes background jobs, and their children, ignore Ctrl+C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    from agent_tui.cli.fronts import chosen_front

    if (front := chosen_front(arguments)) is not None:
        gc.enable()
        return front.run_front(arguments)
    from agent_tui.cli.screen_command import run_screen

    return run_screen(arguments)


def _repair_standard_streams() -> None:
    """Open the null device for a closed standard stream, and make standard output UTF-8.

    Otherwise the next opened file would get a closed stream's descriptor, and output would land in
    it. Output may hold any character, whatever the locale says.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        cast("io.TextIOWrapper", stdout).reconfigure(encoding="utf-8", errors="replace")
