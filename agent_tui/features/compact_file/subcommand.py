"""``agent-tui compact``: compact one of agent-tui's or another agent's session files."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agent_tui import paths
from agent_tui.agent.session.opening import last_model_name
from agent_tui.cli.command_parser import subcommand_parser, whole_number
from agent_tui.cli.folders import load_trust, present_folder
from agent_tui.cli.key_store import use_stored_keys
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import (
    add_session_dir,
    config_files_in_effect,
    context_debug_log,
    read_settings,
    session_root,
    usable_settings,
    user_config_path,
)
from agent_tui.commands.core.plugin_kinds import FEATURES, IMPORTERS, PROVIDERS, STRATEGIES
from agent_tui.commands.core.plugins import Plugins
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.policy import context_limits, output_reserve_tokens
from agent_tui.compaction.strategies.registry import unknown_strategy
from agent_tui.config import STRATEGY_NAMES, Settings, check_target
from agent_tui.config.loading import load_settings
from agent_tui.errors import SessionError
from agent_tui.features.compact_file.compaction import CompactionReport, FileCompaction
from agent_tui.providers.access import NO_MODEL, first_model, open_models, own_account_switch
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import UNKNOWN_WINDOW, ModelCatalog
from agent_tui.providers.client import ModelClient
from agent_tui.providers.local_models import own_local_models
from agent_tui.safe_paths import path_exists
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.format.parse import ParsedSession
from agent_tui.sessions.importers.builder import ForeignSession, ImportFormat
from agent_tui.sessions.importers.formats import (
    detect_format,
    is_session_place,
    read_foreign,
)
from agent_tui.sessions.importers.import_session import import_source
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import describe_statistics
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import ExactCounter
from agent_tui.tools.git.repositories import RepositoryReader
from agent_tui.tools.processes.keeper import ProcessKeeper

_DESCRIPTION = """\
Compact a session into a new session and print its path. The original file does
not change. Sizes are estimates without the system prompt and the tools."""
_KINDS = (IMPORTERS, STRATEGIES, PROVIDERS, FEATURES)
_BY_CODE = "none"
"""The name that stands for no model: summarise offline, with code."""
_NO_MODEL_NOTICE = "No model chosen and no key found. The summary is written without a model."
_TIER_NAMES = ("superseded", "shortened", "one line each", "summary")
_FEWER_WORDS = "fewer words"


def build_parser(plugins: Plugins | None = None) -> argparse.ArgumentParser:
    """The parser of ``agent-tui compact``.

    Args:
        plugins: What they bring; None loads them.
    """
    plugins = plugins or plugins_in_shell(*_KINDS)
    known = (*STRATEGY_NAMES, *(one.name for one in plugins.of(STRATEGIES)))
    parser = subcommand_parser("compact", _DESCRIPTION)
    add = parser.add_argument
    add("session", metavar="FILE", help="session file, id, start of an id, or name")
    add("--focus", metavar="TEXT", default="", help="what the summary should focus on")
    add(
        "--strategy",
        type=_strategy(known),
        metavar="NAME",
        help=f"compaction strategy: {', '.join(known)} (default: from the settings)",
    )
    add(
        "--model",
        metavar="NAME",
        help=f"model that writes the summary, or {_BY_CODE} to use no model "
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
        type=_target,
        metavar="SIZE",
        help="tokens to leave, or a fraction of the window, as the setting compaction.target "
        "(default: from the settings)",
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
        choices=tuple(known.name for known in plugins.of(IMPORTERS)),
        dest="written_by",
        help="program that wrote FILE (default: detected)",
    )
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui compact`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: The model does not exist.
        SessionError: The session is missing or unreadable, or the new one cannot be written.
        CompactionError: There is nothing to compact.
    """
    plugins = plugins_in_shell(*_KINDS)
    for problem in plugins.problems:
        complain(problem)
    arguments = build_parser(plugins).parse_args(list(argv))
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability, plugins.of(IMPORTERS))
    written_by = cast("str | None", arguments.written_by)
    log, is_foreign = _open_input(cast(str, arguments.session), written_by, store, present_folder())
    for warning in log.warnings:
        complain(f"warning: {warning}")
    asks_git = not is_foreign and not import_source(log.path_entries())
    report = asyncio.run(_compact(arguments, settings, store, log, plugins, asks_git=asks_git))
    if report.note:
        complain(report.note)
    if arguments.is_json:
        write_json(report.to_json())
    else:
        _print_report(report)
    return 0


def _strategy(known: Collection[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if problem := unknown_strategy(text, known):
            raise argparse.ArgumentTypeError(problem.removesuffix("."))
        return text

    return check


def _target(text: str) -> float:
    try:
        target = check_target(float(text))
    except (ValueError, OverflowError):
        target = 0.0
    if not target:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a fraction between 0 and 1 nor at least 1,000 tokens"
        )
    return target


async def _compact(
    arguments: argparse.Namespace,
    settings: Settings,
    store: SessionStore,
    log: SessionLog,
    plugins: Plugins,
    *,
    asks_git: bool,
) -> CompactionReport:
    wanted = cast("str | None", arguments.model)
    session_dir = cast("str | None", arguments.session_dir)
    async with _summary_models(wanted, settings, session_dir, plugins) as who:
        for notice in who.notices:
            complain(notice)
        used = last_model_name(log)
        info = who.catalog.info(ModelRef(used) if used else who.default)
        window = cast("int | None", arguments.window) or info.window or UNKNOWN_WINDOW
        compaction = settings.compaction
        given = {"target": arguments.target, "model": None if wanted == _BY_CODE else wanted}
        chosen = {name: value for name, value in given.items() if value is not None}
        compaction = compaction.model_copy(update=chosen)
        reserve = output_reserve_tokens(window, info.max_output)
        target = max(context_limits(window, reserve, compaction).target, 1)
        counter = ExactCounter()
        on_decisions = context_debug_log(os.environ, paths.log_file())
        planner = CompactionPlanner(
            who.client,
            counter,
            who.catalog,
            on_decisions=on_decisions,
            brought=plugins.of(STRATEGIES),
        )
        job = FileCompaction(
            planner,
            counter,
            compaction,
            window=window,
            target_tokens=target,
            features=plugins.of(FEATURES),
            is_window_given=arguments.window is not None,
        )
        cwd = Path(log.header.cwd) if log.header.cwd else present_folder()
        git = RepositoryReader(ProcessKeeper(), load_trust().may_run_git, os.environ)
        return await job.run(
            log,
            repositories=await git.read(log, cwd) if asks_git else (),
            strategy=cast("str | None", arguments.strategy) or compaction.strategy,
            model=who.default,
            focus=cast(str, arguments.focus),
            cwd=cwd,
            store=None if arguments.is_dry_run else store,
            on_progress=_PhaseLines(),
        )


class _PhaseLines:
    """Prints a line for each step of the work if standard error is a terminal."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, phase: str, summary_chars: int) -> None:
        """As `OnProgress`; a count of characters would need a line that is redrawn."""
        if phase != self._phase and sys.stderr.isatty():
            print(f"Compacting context: {phase} ...", file=sys.stderr)
        self._phase = phase


def _print_report(report: CompactionReport) -> None:
    """Print the path of the new session, or the summary of a dry run, with figures."""
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
    is_met = report.tokens_after <= report.target_tokens
    lines.append(
        f"  {'Within' if is_met else 'Still above'} the target of {report.target_tokens:,} tokens."
    )
    print("\n".join(lines), file=sys.stderr)
    if report.path is None:
        write_text(strip_control_characters(report.carryover.summary) + "\n")
    else:
        write_text(f"{report.path}\n")


@dataclass(frozen=True, slots=True)
class _SummaryModels:
    """What can summarise. Without a `client`, code does it.

    `default` is used if no setting names a model and its provider has no cheap one. `notices` are
    for the user, one line each.
    """

    client: ModelClient | None
    catalog: ModelCatalog
    default: ModelRef
    notices: tuple[str, ...] = ()


@asynccontextmanager
async def _summary_models(
    wanted: str | None, settings: Settings, session_dir: str | None, plugins: Plugins
) -> AsyncGenerator[_SummaryModels]:
    """The models that can summarise, open until the block ends.

    Args:
        wanted: A model, `_BY_CODE`, or None for what the settings say.
        settings: From file and environment.
        session_dir: The value of ``--session-dir``.
        plugins: Their providers can be asked, too.

    Raises:
        UsageError: `wanted` names no model.
    """
    if wanted == _BY_CODE:
        local = own_local_models(settings, os.environ)
        yield _SummaryModels(None, ModelCatalog(settings, os.environ, local=local), NO_MODEL)
        return
    flags = {"model": wanted, "session_dir": session_dir}
    project_files = config_files_in_effect(present_folder(), load_trust())
    loaded = load_settings(user_config_path(), os.environ, flags, project_files)
    unread_keys = use_stored_keys().problems
    settings = usable_settings(loaded)
    accounts = own_account_switch(settings, os.environ)
    models = open_models(settings, os.environ, brought=plugins.of(PROVIDERS), accounts=accounts)
    default, problem = first_model(models.catalog, is_named=wanted is not None)
    notices = [one.notice for one in loaded.problems]
    notices += [*unread_keys, *filter(None, [problem])]
    try:
        if default != NO_MODEL:
            await models.catalog.learn(default)
        if default != NO_MODEL or settings.compaction.model:
            yield _SummaryModels(
                ModelClient(models.provider), models.catalog, default, tuple(notices)
            )
        else:
            notices.append(_NO_MODEL_NOTICE)
            yield _SummaryModels(None, models.catalog, default, tuple(notices))
    finally:
        await models.provider.aclose()


def _open_input(
    ref: str, written_by: str | None, store: SessionStore, cwd: Path
) -> tuple[SessionLog, bool]:
    """Open the session that `ref` names, read-only, as it may be open elsewhere.

    Also returns whether another agent's file was read.

    Args:
        ref: A file, relative to `cwd`; or id, start of an id or name of one of our sessions.
        written_by: The program that wrote the file; None detects it.
        store: agent-tui's sessions.
        cwd: The current folder.

    Raises:
        SessionError: It does not exist, cannot be read, or has no known format.
    """
    path = _path_if_exists(ref, cwd, store.formats)
    if path is None:
        return store.open(ref, cwd, read_only=True), False
    if not is_session_place(path, store.formats):
        what = "a folder" if path.is_dir() else "not a file"
        raise SessionError(f"{path} is {what}.", "Name a session file or the id of a session.")
    found = written_by or detect_format(path, store.formats)
    if found == "pi":
        return SessionLog.open(path, read_only=True), False
    return _as_log(path, read_foreign(path, found, store.formats)), True


def _path_if_exists(ref: str, cwd: Path, formats: Sequence[ImportFormat]) -> Path | None:
    """The path that `ref` names; None if nothing exists there: it may be an id or a name."""
    try:
        path = cwd / Path(ref).expanduser()
    except RuntimeError:  # unknown user after ~
        return None
    is_there = path_exists(path) or is_session_place(path, formats)
    return Path(os.path.normpath(path)) if is_there else None


def _as_log(path: Path, session: ForeignSession) -> SessionLog:
    """A log without a writer, so that a child session can name `path` as its parent."""
    parsed = ParsedSession(
        header=session.header,
        entries=session.entries,
        warnings=session.warnings,
        has_header=True,
        ends_clean=True,
        looks_like_session=True,
    )
    return SessionLog(path, session.header, None, parsed, is_read_only=True)
