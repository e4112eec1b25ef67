"""``agent-tui compact``: compact a session file from the shell, ours or another agent's."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from agent_tui.agent.opening import last_model_name
from agent_tui.cli.compact_input import open_input
from agent_tui.cli.compact_models import BY_CODE, summary_models
from agent_tui.cli.compact_output import PhaseLines, print_report
from agent_tui.cli.compact_run import CompactionReport, FileCompaction
from agent_tui.cli.complaints import complain
from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import write_json
from agent_tui.cli.session_root import add_session_dir, read_settings, session_root
from agent_tui.compaction.service import CompactionService
from agent_tui.config import Settings
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import UNKNOWN_WINDOW
from agent_tui.sessions.importers.foreign import FORMATS, ForeignFormat
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter

_DESCRIPTION = """\
Compact a session and write what comes of it as a new session that goes on from there; its path
is printed. The file itself is never changed. Sizes are estimates, without system prompt and
tools."""

_STRATEGY = "tiered"
_STRATEGIES_TO_COME = ("hybrid", "agent")
_MOST_DIGITS = 12


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui compact`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The model does not exist.
        SessionError: The session does not exist or cannot be read, or the new one not written.
        CompactionError: There is nothing to compact.
    """
    parser = argparse.ArgumentParser(
        prog="agent-tui compact", description=_DESCRIPTION, allow_abbrev=False
    )
    _add_arguments(parser)
    return run(parser.parse_args(list(argv)))


def run(arguments: argparse.Namespace) -> int:
    """Carry out what was parsed; returns the exit code. Raises as `run_command`."""
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability)
    written_by = cast("ForeignFormat | None", arguments.written_by)
    log = open_input(cast(str, arguments.session), written_by, store, present_folder())
    for warning in log.warnings:
        complain(f"warning: {warning}")
    report = asyncio.run(_compact(arguments, settings, store, log))
    if report.note:
        complain(report.note)
    if arguments.is_json:
        write_json(report.to_json())
    else:
        print_report(report)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="FILE", help="file, id, start of an id, or name of a session")
    add("--focus", metavar="TEXT", default="", help="what the summary is to pay attention to")
    add(
        "--strategy",
        type=_strategy,
        default=_STRATEGY,
        metavar="NAME",
        help=f"how to compact; {_STRATEGY} is the one there is",
    )
    add(
        "--model",
        metavar="NAME",
        help=f"who summarises, else as the settings say; {BY_CODE}: by code, without a network",
    )
    add(
        "--window",
        type=_tokens,
        metavar="TOKENS",
        help="size of the context window; else that of the session's model",
    )
    add(
        "--target",
        type=_fraction,
        metavar="FRACTION",
        help="part of the window to come down to, such as 0.4; else as the settings say",
    )
    add("--dry-run", action="store_true", dest="is_dry_run", help="write nothing")
    add("--json", action="store_true", dest="is_json", help="print JSON")
    add(
        "--from",
        choices=FORMATS,
        dest="written_by",
        help="the program that wrote FILE; else told by what it holds",
    )
    add_session_dir(parser)


def _strategy(text: str) -> str:
    if text in _STRATEGIES_TO_COME:
        raise argparse.ArgumentTypeError(f"{text!r} is not built yet; {_STRATEGY} is")
    if text != _STRATEGY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a strategy; {_STRATEGY} is")
    return text


def _tokens(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens")
    return int(text)


def _fraction(text: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a fraction between 0 and 1")
    return fraction


async def _compact(
    arguments: argparse.Namespace, settings: Settings, store: SessionStore, log: SessionLog
) -> CompactionReport:
    wanted = cast("str | None", arguments.model)
    compaction = settings.compaction
    if wanted not in (None, BY_CODE):
        compaction = compaction.model_copy(update={"model": wanted})
    async with summary_models(wanted, settings, cast("str | None", arguments.session_dir)) as who:
        for notice in who.notices:
            complain(notice)
        used = last_model_name(log)
        info = who.catalog.info(ModelRef(used) if used else who.default)
        counter = TokenCounter()
        job = FileCompaction(
            CompactionService(who.provider, counter, who.catalog, compaction),
            counter,
            compaction,
            window=cast("int | None", arguments.window) or info.window or UNKNOWN_WINDOW,
            max_output=info.max_output,
            target=cast("float | None", arguments.target) or compaction.target,
        )
        return await job.run(
            log,
            model=who.default,
            focus=cast(str, arguments.focus),
            cwd=Path(log.header.cwd) if log.header.cwd else present_folder(),
            store=None if arguments.is_dry_run else store,
            on_progress=PhaseLines(),
        )
