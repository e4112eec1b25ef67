"""``agent-tui agents``: prints the sessions of all agents on this machine."""

import argparse
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from agent_tui.cli.command_parser import subcommand_parser, whole_number
from agent_tui.cli.folders import present_folder, worktree_records
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.commands.core.plugin_kinds import IMPORTERS
from agent_tui.errors import UsageError
from agent_tui.features.agents.agent_list import AgentList
from agent_tui.features.agents.rows import count_line, is_in, row_json, table_lines
from agent_tui.safe_paths import real_path
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.worktree_records import project_folders_elsewhere

_WIDTH = 120
"""Columns of a line if there is no terminal."""

_USUALLY_SHOWN = 40
_DESCRIPTION = """\
List the sessions of all agents on this machine, newest first: agent-tui,
Claude Code, Codex, pi, opencode, Gemini CLI and Kimi. Each line has the state,
the agent, the cost, the tokens in the context, the folder with its branch, the
goal and the last line. Only files are read; nothing runs.

States of agent-tui's sessions: "working", "asking" (waits for your answer),
"limit" (waits for a limit of the model), "done" (the last turn came to its
end), "ended" (it did not: it was stopped, or failed). Others are "active now",
"quiet for 3 min", or "done" if their file says so."""
_JSON = """\
With --json, a list of all of them, newest first:
  [{"agent", "id", "path", "cwd", "branch", "worktree", "goal", "lastLine",
    "costUsd", "contextTokens", "state", "since", "needsYou", "pid"}]
"since" is ISO 8601 in UTC: when the state began, or without a state, when the
session was last written. "id" and "pid" are agent-tui's only; "pid" is the
process that has the session open. What is unknown is null."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui agents``."""
    parser = subcommand_parser("agents", _DESCRIPTION, _JSON)
    parser.add_argument(
        "--here", action="store_true", dest="is_here", help="only this folder and its worktrees"
    )
    parser.add_argument(
        "--needs-me",
        action="store_true",
        dest="needs_me",
        help="only sessions that ask you, or wait for a limit",
    )
    parser.add_argument(
        "-n",
        type=whole_number("sessions"),
        metavar="N",
        dest="most",
        help=f"list only the newest N (default: {_USUALLY_SHOWN}; with --json: all)",
    )
    add_session_dir(parser)
    parser.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui agents`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: There is no home folder, or the current one was removed.
    """
    arguments = build_parser().parse_args(argv)
    plugins = plugins_in_shell(IMPORTERS)
    for problem in plugins.problems:
        complain(problem)
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability, plugins.of(IMPORTERS))
    try:
        home = Path.home()
    except RuntimeError as error:
        raise UsageError("Cannot find your home folder.", "Set HOME.") from error
    listed = AgentList(store, home, os.environ)
    listed.look()
    folders = _folders_here() if arguments.is_here else ()
    rows = [
        row
        for row in listed.rows()
        if (row.needs_you or not arguments.needs_me)
        and (not arguments.is_here or is_in(row, folders))
    ]
    most = cast("int | None", arguments.most)
    if arguments.is_json:
        write_json([row_json(row) for row in rows[:most]])
        return 0
    shown = rows[: most or _USUALLY_SHOWN]
    width = shutil.get_terminal_size((_WIDTH, 0)).columns
    lines = table_lines(shown, width, datetime.now(UTC), home)
    lines.append(count_line(rows, len(shown)))
    write_text("".join(f"{line}\n" for line in lines))
    return 0


def _folders_here() -> tuple[Path, ...]:
    cwd = real_path(present_folder())
    return (cwd, *project_folders_elsewhere(worktree_records(), cwd))
