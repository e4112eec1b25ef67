"""``agent-tui sessions``: work on session files from the shell, without screen or model."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from agent_tui.cli.command_parser import CommandParser
from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import write_text
from agent_tui.cli.sessions.change import (
    DELETE_JSON,
    IMPORT_JSON,
    delete_session,
    import_file,
    rename_session,
)
from agent_tui.cli.sessions.listing import (
    LIST_JSON,
    print_foreign_sessions,
    print_search,
    print_sessions,
)
from agent_tui.cli.sessions.show import SHOW_JSON, print_session
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.errors import UsageError
from agent_tui.providers.keys import secret_values
from agent_tui.safe_text import safe_json
from agent_tui.sessions.export.formats import EXPORT_FORMATS, exported, kind_of
from agent_tui.sessions.importers.discovery import FOREIGN_AGENTS
from agent_tui.sessions.importers.formats import FORMAT_NAMES
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore

_DESCRIPTION = """\
List, show, export, rename and delete sessions, and import those of other agents."""
_MOST_DIGITS = 12
_EXPORT_NOTE = """\
What looks like a key, a token or a password is removed, except from the
session format (jsonl), which is exact."""


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``agent-tui sessions``."""
    parser = CommandParser(prog="agent-tui sessions", description=_DESCRIPTION, allow_abbrev=False)
    _add_commands(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui sessions`` with the arguments after that word; returns the exit code.

    Raises:
        SessionError: The session does not exist, cannot be read or is open elsewhere.
        UsageError: The output file exists, or a name is empty.
    """
    arguments = build_parser().parse_args(list(argv))
    command = cast("Callable[[argparse.Namespace, SessionStore], int]", arguments.command)
    settings = read_settings(cast("str | None", arguments.session_dir))
    return command(arguments, SessionStore(session_root(settings), settings.durability))


def _add_commands(parser: CommandParser) -> None:
    add_verb = parser.verb_adder()

    def add(
        name: str,
        command: Callable[[argparse.Namespace, SessionStore], int],
        summary: str,
        more: str = "",
    ) -> argparse.ArgumentParser:
        made = add_verb(name, summary, more)
        made.set_defaults(command=command)
        add_session_dir(made)
        return made

    _add_reading(add)
    _add_changing(add)


def _add_reading(add: Callable[..., argparse.ArgumentParser]) -> None:
    listing = add("list", _list, "list the sessions in this folder, newest first", LIST_JSON)
    listing.add_argument(
        "--all", action="store_true", dest="is_all", help="list the sessions of every folder"
    )
    either = listing.add_mutually_exclusive_group()
    either.add_argument(
        "--search", metavar="TEXT", help="list sessions that contain all words of TEXT"
    )
    either.add_argument(
        "--from",
        choices=FOREIGN_AGENTS,
        dest="agent",
        help="list the sessions of another agent on this machine",
    )
    show = add("show", _show, "show the entries of a session and problems in its file", SHOW_JSON)
    export = add("export", _export, "print or save a session as a document", _EXPORT_NOTE)
    export.add_argument(
        "--format",
        choices=tuple(EXPORT_FORMATS),
        default=None,
        dest="kind",
        help="md is Markdown, html a web page, jsonl the session format, atif a Harbor "
        "trajectory (default: by the suffix of FILE, or md)",
    )
    export.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of standard output"
    )
    for one in (show, export):
        _add_session(one)
    for one in (listing, show):
        _add_json(one)


def _add_changing(add: Callable[..., argparse.ArgumentParser]) -> None:
    importing = add("import", _import, "import another agent's session as a new one", IMPORT_JSON)
    importing.add_argument(
        "file", type=Path, metavar="FILE", help="session file of the other agent"
    )
    importing.add_argument(
        "--from",
        choices=FORMAT_NAMES,
        dest="written_by",
        help="program that wrote FILE (default: detected)",
    )
    importing.add_argument(
        "--until", type=_count, metavar="N", help="import only the first N entries"
    )
    rename = add("rename", _rename, "rename a session")
    _add_session(rename)
    rename.add_argument("name", metavar="NAME", help="new name")
    delete = add("delete", _delete, "move a session to the trash", DELETE_JSON)
    _add_session(delete)
    delete.add_argument("--yes", action="store_true", dest="is_sure", help="do not ask")
    for one in (importing, delete):
        _add_json(one)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", help="session file, id, start of an id, or name"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", dest="is_json", help="print JSON")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of entries, 1 or more")
    return int(text)


def _list(arguments: argparse.Namespace, store: SessionStore) -> int:
    cwd = None if arguments.is_all else present_folder()
    agent = cast("str | None", arguments.agent)
    if agent is not None:
        print_foreign_sessions(agent, cwd, is_json=arguments.is_json)
    elif arguments.search is not None:
        print_search(store, arguments.search, cwd, is_json=arguments.is_json)
    else:
        print_sessions(store, cwd, is_json=arguments.is_json)
    return 0


def _show(arguments: argparse.Namespace, store: SessionStore) -> int:
    with store.open(arguments.session, present_folder(), read_only=True) as log:
        print_session(log, is_json=arguments.is_json)
    return 0


def _export(arguments: argparse.Namespace, store: SessionStore) -> int:
    with store.open(arguments.session, present_folder(), read_only=True) as log:
        _export_session(log, arguments.kind, arguments.output)
    return 0


def _export_session(log: SessionLog, kind: str | None, output: Path | None) -> None:
    """Print `log` as a document, or write it to `output`.

    Args:
        log: The session.
        kind: One of `EXPORT_FORMATS`; None: by the suffix of `output`, else Markdown.
        output: A file that does not exist yet.

    Raises:
        UsageError: It exists, or cannot be written.
    """
    kind = kind or (kind_of(output) if output else "md")
    text = exported(log, kind, secret_values(os.environ))
    if kind == "jsonl":
        text = safe_json(text)  # the same values; the other formats are harmless already
    if output is None:
        write_text(text)
        return
    try:
        with output.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{output} already exists.", "Name another file.") from error
    except OSError as error:
        raise UsageError(f"Cannot write {output}: {error.strerror}.") from error
    print(f"Written to {output}")


def _import(arguments: argparse.Namespace, store: SessionStore) -> int:
    import_file(
        store,
        arguments.file,
        present_folder(),
        written_by=cast("str | None", arguments.written_by),
        until=arguments.until,
        is_json=arguments.is_json,
    )
    return 0


def _rename(arguments: argparse.Namespace, store: SessionStore) -> int:
    rename_session(store, arguments.session, arguments.name, present_folder())
    return 0


def _delete(arguments: argparse.Namespace, store: SessionStore) -> int:
    return delete_session(
        store,
        arguments.session,
        present_folder(),
        is_sure=arguments.is_sure,
        is_json=arguments.is_json,
    )
