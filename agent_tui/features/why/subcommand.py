"""``agent-tui why``: explains why a line of a file is there."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from typing import cast

from pydantic import JsonValue

from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.folders import load_trust, present_folder
from agent_tui.cli.output import complain, write_json, write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.commands.core.plugin_kinds import IMPORTERS
from agent_tui.features.why.line_history.answers import FOR_PEOPLE, answer_json, answer_lines
from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.features.why.line_history.project import read_file_history
from agent_tui.features.why.line_history.why import explain_lines, read_place, read_present
from agent_tui.messages import with_texts
from agent_tui.providers.keys import secret_values
from agent_tui.safe_paths import real_path
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.processes.keeper import ProcessKeeper

_DESCRIPTION = """\
Explain why lines of a file are there: the message that asked for it, the
reason the model gave, the change that made it, what it replaced, and the
command that ran next, and the commit that git blame names. The answer comes
from the sessions of the project, through compactions, undo, moves of the file
and imported sessions. If they do not prove it, it is "not known"."""
_JSON = """\
With --json, keys removed; for several lines, a list of these:
  {"path", "line", "text", "status", "message", "changes", "commit", "moves",
   "unread"}
"status" is "recorded" (one change made the line), "ambiguous" (one of several,
or it came without a record), "unrecorded" (changed outside the recorded
sessions, or by a command without a record), "earlier" (there before the first
recorded change) or "unknown" (no session changed the file, several files may
have become it, or the contents that would tell were not kept).
"changes", in order of time:
  [{"session": {"id", "name", "path", "importedFrom",
                "pulledFrom"}, "entry", "time", "path",
    "maker", "tool", "arguments", "command", "asked", "askedAt", "reason",
    "reasonKind", "replaced", "wrote",
    "nextCommand": {"command", "printed", "exitCode", "isError"}}]
"maker" is "call", "command", "user command" or "restore". "reasonKind" is
"text" or "thinking". "replaced", "wrote" and "printed" (at most the last five)
are lists of lines. Times are ISO 8601. "commit" is {"id", "author", "time",
"summary"}. What is not known is null.
"moves" are moves and copies of the file without a record, the last one first:
  [{"from", "to", "proof", "percent"}]
"proof" is "git", "same" (the content) or "similar"; "percent" is how much of
the content is the same.
"unread" lists session files that name the file but cannot be read."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui why``."""
    parser = subcommand_parser("why", _DESCRIPTION, _JSON)
    place = "file and line number, from 1; FILE:LINE-LINE: several"
    parser.add_argument("place", metavar="FILE:LINE", help=place)
    parser.add_json()
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui why`` with the arguments after that word; returns the exit code.

    Raises:
        UsageError: There is no such file or line.
    """
    arguments = build_parser().parse_args(list(argv))
    plugins = plugins_in_shell(IMPORTERS)
    for problem in plugins.problems:
        complain(problem)
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability, plugins.of(IMPORTERS))
    cwd = present_folder()
    place = read_place(cast(str, arguments.place), cwd)
    present = read_present(place.path)
    history = read_file_history(FileSessions(store), place.path)
    may_ask = load_trust().may_run_git(place.path.parent)
    blame = Blame(ProcessKeeper(), place.path, os.environ) if may_ask else None
    answers = asyncio.run(explain_lines(history, place, present, blame))
    secrets = secret_values(os.environ)
    if arguments.is_json:
        told: list[JsonValue] = [answer_json(answer) for answer in answers]
        shown = told[0] if place.is_one else told
        write_json(with_texts(shown, lambda text: mask_secrets(text, secrets)))
    else:
        text = "\n".join(answer_lines(answers, real_path(cwd), FOR_PEOPLE)) + "\n"
        write_text(mask_secrets(text, secrets))
    return 0
