"""``agent-tui sessions``: list, show and export session files, without screen or model."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never, cast

from agent_tui.cli.folders import present_folder
from agent_tui.cli.output import write_text
from agent_tui.cli.session_root import add_session_dir, read_settings, session_root
from agent_tui.errors import UsageError
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    JsonObject,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.change_words import UNDONE, describe_edits
from agent_tui.sessions.changes import is_undo_mark, report_of
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from agent_tui.sessions.export import exported
from agent_tui.sessions.lines import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.sessions.summary import SessionSummary, one_line
from agent_tui.text import strip_control_characters

_LINE_CHARS = 100


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui sessions`` with the arguments after that word; returns the exit code.

    Raises:
        SessionError: The session does not exist or cannot be read.
        UsageError: The output file exists.
    """
    parser = argparse.ArgumentParser(prog="agent-tui sessions", allow_abbrev=False)
    _add_commands(parser)
    return run(parser.parse_args(list(argv)))


def run(arguments: argparse.Namespace) -> int:
    """Carry out what was parsed; returns the exit code. Raises as `run_command`."""
    command = cast("Callable[[argparse.Namespace, SessionStore], int]", arguments.command)
    root = session_root(read_settings(cast("str | None", arguments.session_dir)))
    return command(arguments, SessionStore(root))


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="the sessions of this folder, newest first")
    listing.add_argument("--all", action="store_true", dest="is_all", help="of every folder")
    listing.set_defaults(command=_list)
    show = commands.add_parser("show", help="what a session file holds, and what is wrong with it")
    show.set_defaults(command=_show)
    export = commands.add_parser("export", help="a session as a document")
    export.add_argument(
        "--format",
        choices=("md", "html", "jsonl"),
        default=None,
        dest="kind",
        help="Markdown (default), one web page, or the session format; else the suffix of FILE",
    )
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of printing it")
    export.set_defaults(command=_export)
    for one in (show, export):
        one.add_argument("session", metavar="FILE_OR_ID", help="file, id, start of an id, or name")
    for one in (listing, show):
        one.add_argument("--json", action="store_true", dest="is_json", help="print JSON")
    for one in (listing, show, export):
        add_session_dir(one)


def _list(arguments: argparse.Namespace, store: SessionStore) -> int:
    cwd = None if arguments.is_all else present_folder()
    sessions = store.list(cwd)
    if arguments.is_json:
        _print_json([_summary_json(found) for found in sessions])
        return 0
    if not sessions:
        where = "" if cwd is None else f" of {cwd} (--all lists every folder's)"
        print(f"There are no sessions{where}.")
    for found in sessions:
        title = found.name or found.first_prompt or "(no message yet)"
        when = found.modified.astimezone().strftime("%Y-%m-%d %H:%M")
        facts = f"{one_line(found.id)[:8]}  {when}  {found.message_count:>5} messages"
        print(f"{facts}  {one_line(title, 60)}")
        if cwd is None:
            print(f"          {strip_control_characters(str(found.cwd))}")
    return 0


def _show(arguments: argparse.Namespace, store: SessionStore) -> int:
    with _open(arguments, store) as log:
        if arguments.is_json:
            _print_json(
                {
                    "path": str(log.path),
                    "header": _line_json(encode_header(log.header)),
                    "entries": [_line_json(encode_entry(entry)) for entry in log.entries],
                    "warnings": list(log.warnings),
                }
            )
            return 0
        header = log.header
        print(f"{one_line(log.name) or 'Session'} {one_line(header.id)}")
        print(f"  file    {log.path}")
        print(f"  folder  {strip_control_characters(header.cwd)}")
        print(f"  begun   {strip_control_characters(header.timestamp)}")
        if header.parent_session:
            print(f"  parent  {strip_control_characters(header.parent_session)}")
        print()
        for entry in log.entries:
            kind = f"{one_line(entry.id)}  {one_line(entry.type):<12}"
            print(f"{kind}  {one_line(_describe(entry), _LINE_CHARS)}")
        for warning in log.warnings:
            print(f"warning: {strip_control_characters(warning)}", file=sys.stderr)
    return 0


def _export(arguments: argparse.Namespace, store: SessionStore) -> int:
    output = cast("Path | None", arguments.output)
    suffix = output.suffix.lstrip(".") if output else ""
    kind = arguments.kind or (suffix if suffix in ("md", "html", "jsonl") else "md")
    with _open(arguments, store) as log:
        text = exported(log, kind)
    if output is None:
        write_text(text)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{output} exists already.", "Name another file.") from error
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}.") from error
    print(f"Written to {output}")
    return 0


def _open(arguments: argparse.Namespace, store: SessionStore) -> SessionLog:
    return store.open(cast(str, arguments.session), present_folder(), read_only=True)


def _summary_json(found: SessionSummary) -> JsonObject:
    return {
        "id": found.id,
        "path": str(found.path),
        "cwd": str(found.cwd),
        "name": found.name,
        "firstPrompt": found.first_prompt,
        "messageCount": found.message_count,
        "modified": found.modified.isoformat(timespec="milliseconds"),
        "model": found.model,
        "parentSession": found.parent_session,
        "sizeBytes": found.size_bytes,
    }


def _describe(entry: Entry) -> str:
    match entry:
        case MessageEntry():
            return _describe_message(entry.message)
        case CompactionEntry():
            return f"{entry.tokens_before:,} -> {entry.tokens_after:,} tokens: {entry.summary}"
        case ModelChangeEntry():
            return f"{entry.provider}/{entry.model_id}"
        case ThinkingLevelChangeEntry():
            return entry.thinking_level
        case SessionInfoEntry():
            return entry.name or ""
        case CustomMessageEntry():
            return entry.text
        case BranchSummaryEntry():
            return entry.summary
        case ContextEditEntry():
            return f"tier {entry.tier}: {entry.target_id} as {_describe_replacement(entry)}"
        case CustomEntry() if report := report_of(entry):
            done = describe_edits(report.messages, report.freed)
            return f"{report.tokens_before:,} -> {report.tokens_after:,} tokens: {done}"
        case CustomEntry() if is_undo_mark(entry):
            return UNDONE
        case CustomEntry():
            return entry.custom_type
        case _:
            return ""


def _describe_replacement(edit: ContextEditEntry) -> str:
    match edit.replacement:
        case None:
            return "nothing"
        case str(text):
            return text
        case parts:
            texts = (part.text for part in parts if isinstance(part, TextContent))
            return next(texts, f"{len(parts)} shortened parts")


def _describe_message(message: Message) -> str:
    match message:
        case UserMessage():
            return f"user: {message.text}"
        case AssistantMessage():
            calls = " ".join(f"[{call.name}]" for call in message.tool_calls)
            return f"assistant: {message.text} {calls}".strip()
        case ToolResultMessage():
            outcome = "failed" if message.is_error else "result"
            return f"{message.tool_name} {outcome}: {message.text}"
        case BashExecutionMessage():
            return f"! {message.command}"
        case _:
            assert_never(message)


def _line_json(line: bytes) -> JsonObject:
    return cast(JsonObject, json.loads(line))


def _print_json(value: object) -> None:
    write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
