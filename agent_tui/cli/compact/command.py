"""``agent-tui compact``: compact a session file from the shell, ours or another agent's."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from agent_tui import paths
from agent_tui.agent.session.opening import last_model_name
from agent_tui.cli.command_parser import subcommand_parser, whole_number
from agent_tui.cli.compact.debug_log import context_debug_log
from agent_tui.cli.compact.file_compaction import CompactionReport, FileCompaction
from agent_tui.cli.compact.models import BY_CODE, SummaryModels, summary_models
from agent_tui.cli.compact.session_file import open_input
from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.policy import context_limits, output_reserve_tokens
from agent_tui.config import (
    STRATEGY_NAMES,
    CompactionSettings,
    CompactionStrategy,
    Settings,
    strategy_named,
)
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.catalog import UNKNOWN_WINDOW
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.importers.formats import FORMAT_NAMES
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import describe_statistics
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter

_DESCRIPTION = """\
Compact a session into a new session and print its path. The original file does
not change. Sizes are estimates without the system prompt and the tools."""
_TIER_NAMES = ("superseded", "shortened", "one line each", "summary")
_FEWER_WORDS = "fewer words"


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui compact``."""
    parser = subcommand_parser("compact", _DESCRIPTION)
    add = parser.add_argument
    add("session", metavar="FILE", help="session file, id, start of an id, or name")
    add("--focus", metavar="TEXT", default="", help="what the summary should focus on")
    add(
        "--strategy",
        type=_strategy,
        metavar="NAME",
        help=f"compaction strategy: {', '.join(STRATEGY_NAMES)} (default: from the settings)",
    )
    add(
        "--model",
        metavar="NAME",
        help=f"model that writes the summary, or {BY_CODE} to use no model "
        "(default: from the settings)",
    )
    add(
        "--window",
        type=whole_number("tokens"),
        metavar="TOKENS",
        help="size of the context window (default: that of the session's model)",
    )
    add(
        "--target",
        type=_fraction,
        metavar="FRACTION",
        help="target share of the window, as the setting compaction.target (default: from the "
        "settings)",
    )
    add(
        "--dry-run",
        action="store_true",
        dest="is_dry_run",
        help="print the summary and write nothing",
    )
    parser.add_json()
    add(
        "--from",
        choices=FORMAT_NAMES,
        dest="written_by",
        help="program that wrote FILE (default: detected)",
    )
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui compact`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The model does not exist.
        SessionError: The session does not exist or cannot be read, or the new one not written.
        CompactionError: There is nothing to compact.
    """
    arguments = build_parser().parse_args(list(argv))
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability)
    written_by = cast("str | None", arguments.written_by)
    log = open_input(cast(str, arguments.session), written_by, store, present_folder())
    for warning in log.warnings:
        complain(f"warning: {warning}")
    report = asyncio.run(_compact(arguments, settings, store, log))
    if report.note:
        complain(report.note)
    if arguments.is_json:
        write_json(report.to_json())
    else:
        _print_report(report)
    return 0


def _strategy(text: str) -> CompactionStrategy:
    if strategy := strategy_named(text):
        return strategy
    names = ", ".join(STRATEGY_NAMES)
    raise argparse.ArgumentTypeError(f"{text!r} is not a strategy; choose from {names}")


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
        started_s = time.monotonic()
        report = await _compact_file(arguments, compaction, who, info, store, log)
        return replace(report, seconds=round(time.monotonic() - started_s, 3))


async def _compact_file(
    arguments: argparse.Namespace,
    settings: CompactionSettings,
    who: SummaryModels,
    info: ModelInfo,
    store: SessionStore,
    log: SessionLog,
) -> CompactionReport:
    counter = TokenCounter()
    window = cast("int | None", arguments.window) or info.window or UNKNOWN_WINDOW
    share = cast("float | None", arguments.target)
    reserve = output_reserve_tokens(window, info.max_output)
    settings = settings.model_copy(update={"target": share or settings.target})
    target = context_limits(window, reserve, settings).target
    log_of_decisions = context_debug_log(os.environ, paths.log_file())
    planner = CompactionPlanner(who.client, counter, who.catalog, on_decisions=log_of_decisions)
    job = FileCompaction(planner, counter, settings, window=window, target_tokens=max(target, 1))
    return await job.run(
        log,
        strategy=cast("CompactionStrategy | None", arguments.strategy) or settings.strategy,
        model=who.default,
        focus=cast(str, arguments.focus),
        cwd=Path(log.header.cwd) if log.header.cwd else present_folder(),
        store=None if arguments.is_dry_run else store,
        on_progress=_PhaseLines(),
    )


class _PhaseLines:
    """A line for each step of the work, where a person waits at a terminal."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, phase: str, summary_chars: int) -> None:
        """As `OnProgress`; the characters written so far would need a line that changes."""
        if phase != self._phase and sys.stderr.isatty():
            print(f"Compacting context: {phase} ...", file=sys.stderr)
        self._phase = phase


def _print_report(report: CompactionReport) -> None:
    """The path of the new session, or of a dry run the summary; figures beside it."""
    saved = 100 * (report.tokens_before - report.tokens_after) // max(report.tokens_before, 1)
    figures = f"{report.tokens_before:,} -> {report.tokens_after:,} tokens"
    lines = [f"{figures} (-{saved} %) in {report.seconds:.1f} s"]
    names = _TIER_NAMES
    strategy = report.strategy if report.statistics else ""
    if edits := describe_statistics(strategy, report.statistics):
        lines.append(f"  {edits}")
        names = (*_TIER_NAMES[:-1], _FEWER_WORDS)
    for tier, (name, tokens) in enumerate(zip(names, report.freed, strict=True)):
        lines.append(f"  tier {tier}  {name:<14} {tokens:>12,}")
    if report.tokens_after > report.target_tokens:
        lines.append(f"  Still above the target of {report.target_tokens:,} tokens.")
    print("\n".join(lines), file=sys.stderr)
    if report.path is None:
        write_text(strip_control_characters(report.carryover.summary) + "\n")
    else:
        write_text(f"{report.path}\n")
