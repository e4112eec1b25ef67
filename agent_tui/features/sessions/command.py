"""``agent-tui sessions``: works on session files from the shell, without screen or model."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from agent_tui.cli.command_parser import CommandParser, subcommand_parser, whole_number
from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import ask, complain, write_json, write_text
from agent_tui.cli.plugins import plugins_in_shell
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.cli.verbs import AddSessionVerb
from agent_tui.commands.core.plugin_kinds import EXPORTS, FEATURES, IMPORTERS
from agent_tui.commands.core.plugins import Plugins
from agent_tui.errors import SessionError, UsageError
from agent_tui.feature import load_object
from agent_tui.providers.keys import secret_values
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import printable_line, safe_json, strip_control_characters
from agent_tui.sessions.export.formats import JSONL, ExportFormat, export_text, form_of
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.discovery import foreign_agents
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore

_DESCRIPTION = """\
List, show, export, rename and delete sessions, import those of other agents,
and share sessions through the project's git remote."""
_LIST_JSON = """\
With --json, a list, newest first:
  [{"id", "path", "cwd", "name", "firstPrompt", "messageCount", "modified",
    "model", "parentSession", "sizeBytes", "contextTokens", "pulledFrom",
    "state", "pid"}]
With --search, the best match is first. Each session also has the number of
matching entries and one of them:
  "matches", "snippet"
With --from:
  [{"path", "agent", "cwd", "title", "modified", "sizeBytes"}]
"modified" is ISO 8601 in UTC and "model" is provider/model. "parentSession" is
null if there is no parent. "contextTokens" is 0 if it is unknown. "pulledFrom"
says who pushed a session that was pulled, else it is null. "state" is what a
program does with the session now: "working", "waiting" for your answer, or
"idle"; "pid" is its process. Both are null if none has it open."""
_SHOW_JSON = """\
With --json:
  {"path", "header", "entries", "warnings"}
"header" and "entries" are the lines of the file, with every branch.
"warnings" lists problems with their lines."""
_EXPORT_NOTE = """\
What looks like a key, a token or a password is removed, except from the
session format (jsonl), which is exact."""
_IMPORT_JSON = """\
FILE does not change. With --json:
  {"id", "path", "entries", "warnings"}
"id" and "path" are those of the new session. "entries" is the number of
imported entries, and "warnings" says what could not be imported."""
_DELETE_JSON = """\
The file moves to the folder "trash" next to the sessions. With --json:
  {"id", "path", "trashedTo"}"""


def build_parser(plugins: Plugins | None = None) -> argparse.ArgumentParser:
    """The parser of ``agent-tui sessions``.

    Args:
        plugins: What they bring; None loads them.
    """
    plugins = plugins or plugins_in_shell(IMPORTERS, EXPORTS, FEATURES)
    formats = plugins.of(IMPORTERS)
    parser = subcommand_parser("sessions", _DESCRIPTION)
    add_verb = parser.verb_adder()

    def add(
        name: str,
        command: Callable[[argparse.Namespace, SessionStore], int],
        summary: str,
        more: str = "",
    ) -> CommandParser:
        made = add_verb(name, summary, more)
        made.set_defaults(command=command)
        add_session_dir(made)
        return made

    listing = add("list", _list, "list the sessions in this folder and its worktrees", _LIST_JSON)
    show = add("show", _show, "show the entries of a session and problems in its file", _SHOW_JSON)
    export = add("export", _export, "print or save a session as a document", _EXPORT_NOTE)
    importing = add("import", _import, "import another agent's session as a new one", _IMPORT_JSON)
    rename = add("rename", _rename, "rename a session")
    delete = add("delete", _delete, "move a session to the trash", _DELETE_JSON)
    for one in (show, export, rename, delete):
        one.add_argument(
            "session", metavar="SESSION", help="session file, id, start of an id, or name"
        )
    rename.add_argument("name", metavar="NAME", help="new name")
    delete.add_argument("--yes", action="store_true", dest="is_sure", help="do not ask")
    for feature in plugins.of(FEATURES):
        for brought in feature.verbs.get("sessions", ()):
            cast("Callable[[AddSessionVerb], None]", load_object(brought))(add)
    _add_listing(listing, formats)
    _add_export(export, plugins.of(EXPORTS))
    _add_import(importing, formats)
    for one in (listing, show, importing, delete):
        one.add_json()
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui sessions`` with the arguments after that word; returns the exit code.

    Without arguments, it lists the sessions.

    Raises:
        SessionError: The session does not exist, cannot be read or is open elsewhere.
        UsageError: The output file exists, or a name is empty.
    """
    plugins = plugins_in_shell(IMPORTERS, EXPORTS)
    for problem in plugins.problems:
        complain(problem)
    arguments = build_parser(plugins).parse_args(list(argv) or ["list"])
    command = cast("Callable[[argparse.Namespace, SessionStore], int]", arguments.command)
    settings = read_settings(cast("str | None", arguments.session_dir))
    root, formats = session_root(settings), plugins.of(IMPORTERS)
    return command(arguments, SessionStore(root, settings.durability, formats))


def _add_listing(listing: argparse.ArgumentParser, formats: Sequence[ImportFormat]) -> None:
    listing.add_argument(
        "--all", action="store_true", dest="is_all", help="list the sessions of every folder"
    )
    either = listing.add_mutually_exclusive_group()
    either.add_argument(
        "--search", metavar="TEXT", help="list sessions that contain all words of TEXT"
    )
    agents = foreign_agents(formats)
    either.add_argument(
        "--from",
        choices=agents,
        metavar="AGENT",
        dest="agent",
        help=f"list the sessions of another agent on this machine: {', '.join(agents)}",
    )


def _add_export(export: argparse.ArgumentParser, formats: Sequence[ExportFormat]) -> None:
    abouts = ", ".join(f"{form.name} is {form.about}" for form in formats).replace("%", "%%")
    export.set_defaults(formats=formats)
    export.add_argument(
        "--format",
        choices=tuple(form.name for form in formats),
        default=None,
        dest="form",
        help=f"{abouts} (default: by the suffix of FILE, or md)",
    )
    export.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of standard output"
    )


def _add_import(importing: argparse.ArgumentParser, formats: Sequence[ImportFormat]) -> None:
    importing.add_argument(
        "file", type=Path, metavar="FILE", help="session file of the other agent"
    )
    importing.add_argument(
        "--from",
        choices=tuple(known.name for known in formats),
        dest="written_by",
        help="program that wrote FILE (default: detected)",
    )
    importing.add_argument(
        "--until",
        type=whole_number("entries"),
        metavar="N",
        help="import only the first N entries",
    )


def _list(arguments: argparse.Namespace, store: SessionStore) -> int:
    from agent_tui.features.sessions import listing

    cwd = None if arguments.is_all else present_folder()
    agent = cast("str | None", arguments.agent)
    if agent is not None:
        known = next(known for known in store.formats if known.name == agent)
        listing.print_foreign_sessions(known, cwd, is_json=arguments.is_json)
    elif arguments.search is not None:
        listing.print_search(store, arguments.search, cwd, is_json=arguments.is_json)
    else:
        listing.print_sessions(store, cwd, is_json=arguments.is_json)
    return 0


def _show(arguments: argparse.Namespace, store: SessionStore) -> int:
    from agent_tui.features.sessions.show import print_session

    with store.open(arguments.session, present_folder(), read_only=True) as log:
        print_session(log, is_json=arguments.is_json)
    return 0


def _export(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Print a session as a document, or write it to a new file."""
    output = cast("Path | None", arguments.output)
    formats = cast("Sequence[ExportFormat]", arguments.formats)
    by_suffix = form_of(output, formats) if output else formats[0]
    form = next((form for form in formats if form.name == arguments.form), by_suffix)
    with store.open(arguments.session, present_folder(), read_only=True) as log:
        text = export_text(log, form, secret_values(os.environ))
    if form is JSONL:
        text = safe_json(text)  # the same values; the other formats are already safe
    if output is None:
        write_text(text)
        return 0
    try:
        with output.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{output} already exists.", "Name another file.") from error
    except OSError as error:
        raise UsageError(f"Cannot write {output}: {error.strerror}.") from error
    print(f"Written to {output}")
    return 0


def _import(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Import a session; if the file names no folder, the session gets the current one."""
    cwd, named = present_folder(), cast(Path, arguments.file)
    try:
        file = cwd / named.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{named}: no such home folder.", "Write the full path.") from error
    written_by, until = cast("str | None", arguments.written_by), arguments.until
    imported = import_session(store, file, cwd=cwd, format_name=written_by, until=until)
    if arguments.is_json:
        write_json(
            {
                "id": imported.id,
                "path": str(imported.path),
                "entries": imported.entries,
                "warnings": list(imported.warnings),
            }
        )
        return 0
    for warning in imported.warnings:
        print(f"warning: {strip_control_characters(warning)}", file=sys.stderr)
    print(f"Imported {imported.entries:,} entries as {imported.id}")
    print(f"  {strip_control_characters(str(imported.path))}")
    print(f"To continue it: agent-tui --resume {imported.id[:8]}")
    return 0


def _rename(arguments: argparse.Namespace, store: SessionStore) -> int:
    name = printable_line(cast(str, arguments.name))
    if not name:
        raise UsageError("The name is empty.", "Write the name in quotes.")
    store.rename(_own_file(store, arguments.session), name)
    print(f"Renamed to {name}")
    return 0


def _delete(arguments: argparse.Namespace, store: SessionStore) -> int:
    """Move a session to the trash; at a terminal, ask first."""
    path = _own_file(store, arguments.session)
    with SessionLog.open(path, read_only=True) as log:
        session_id, name = log.header.id, printable_line(log.name, 60)
    if not arguments.is_sure and not ask(f"Delete {name or session_id}?", is_yes_usual=False):
        print("Nothing deleted.", file=sys.stderr)
        return 1
    trashed = store.delete(path)
    if arguments.is_json:
        write_json({"id": session_id, "path": str(path), "trashedTo": str(trashed)})
    else:
        print(f"Moved to {strip_control_characters(str(trashed))}")
    return 0


def _own_file(store: SessionStore, ref: str) -> Path:
    """The file of the session that `ref` names, which must be in the store."""
    path = real_path(store.find(ref, present_folder()))
    root = real_path(store.root)
    if not path.is_relative_to(root) or path.relative_to(root).parts[0] == "trash":
        raise SessionError(
            f"{path} is not one of the sessions in {root}.",
            "Other programs' files are never changed. Use --session-dir for another folder.",
        )
    return path
