"""``agent-tui sessions list``: lists agent-tui's sessions, or other agents' on this machine."""

import os
import re
import shutil
import sys
from pathlib import Path

from agent_tui.cli.folders import worktree_records
from agent_tui.cli.output import write_json
from agent_tui.commands.sessions import STATE_WORDS, SessionsOfProject, listed_title
from agent_tui.errors import UsageError
from agent_tui.messages import JsonObject
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.sessions.importers.builder import ImportFormat
from agent_tui.sessions.importers.discovery import ForeignFile, foreign_sessions
from agent_tui.sessions.listing import SessionSummary, lineage_rows
from agent_tui.sessions.store import SessionStore
from agent_tui.text_search import split_query
from agent_tui.tools.git.worktree_records import project_folders_elsewhere

_MOST_HITS = 1_000
_WIDTH = 120
"""Columns of a line if there is no terminal."""
_LEAST_TITLE = 20
_INDENT = " " * 10


def print_sessions(store: SessionStore, cwd: Path | None, *, is_json: bool) -> None:
    """Print the sessions of `cwd`, or of all folders, each below the session it continues."""
    project = _project(store, cwd)
    sessions = store.list(cwd, project.elsewhere)
    for problem in store.unreadable(store.list() if cwd is not None else sessions, cwd):
        print(f"warning: cannot read {printable_line(problem)}", file=sys.stderr)
    if is_json:
        write_json([_summary_json(found, project) for found in sessions])
        return
    if not sessions:
        print(f"No sessions{_of(cwd)}.")
    for row in lineage_rows(sessions):
        with_folder = cwd is None and not row.depth
        _print_summary(row.summary, project, guides=row.guides, with_folder=with_folder)


def print_search(store: SessionStore, query: str, cwd: Path | None, *, is_json: bool) -> None:
    """Print the sessions of `cwd`, or of all folders, that contain all words of `query`."""
    left = store.update_search(_show_progress if sys.stderr.isatty() else None)
    if left:
        print(f"warning: could not search {left:,} sessions", file=sys.stderr)
    project = _project(store, cwd)
    sessions = {found.path: found for found in store.list(cwd, project.elsewhere)}
    hits = [hit for hit in store.search(query, _MOST_HITS) if hit.path in sessions]
    if is_json:
        rows = ((_summary_json(sessions[hit.path], project), hit) for hit in hits)
        write_json([{**row, "matches": hit.matches, "snippet": hit.snippet} for row, hit in rows])
        return
    if not hits:
        print(f"No session contains {printable_line(query)!r}{_of(cwd)}.")
    for hit in hits:
        _print_summary(sessions[hit.path], project, guides="", with_folder=cwd is None)
        line = printable_line(hit.snippet, max(_columns() - len(_INDENT), _LEAST_TITLE))
        print(f"{_INDENT}{_mark(line, query) if _is_styled() else line}")


def _project(store: SessionStore, cwd: Path | None) -> SessionsOfProject:
    """The project around `cwd`; None: only which sessions are open."""
    elsewhere = project_folders_elsewhere(worktree_records(), cwd) if cwd is not None else ()
    return SessionsOfProject(cwd or Path(), elsewhere, store.running())


def _count_messages(found: SessionSummary) -> str:
    """The number of messages, as wide in each line."""
    return f"{found.message_count:>5} {'message ' if found.message_count == 1 else 'messages'}"


def _columns() -> int:
    return shutil.get_terminal_size((_WIDTH, 0)).columns


def _is_styled() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _mark(line: str, query: str) -> str:
    """`line` with each word of `query` in bold."""
    words = sorted((word for word, _ in split_query(query) if word), key=len, reverse=True)
    pattern = "|".join(map(re.escape, words))
    return re.sub(pattern, "\x1b[1m\\g<0>\x1b[0m", line, flags=re.IGNORECASE) if words else line


def _show_progress(done: int, total: int) -> None:
    end = "\r\x1b[K" if done >= total else ""
    print(f"\rReading {done:,} of {total:,} sessions{end}", end="", file=sys.stderr, flush=True)


def _print_summary(
    found: SessionSummary, project: SessionsOfProject, *, guides: str, with_folder: bool
) -> None:
    title = listed_title(found) if project.cwd == Path() else project.title(found)
    if (state := project.state(found)) is not None:
        title = f"[{STATE_WORDS[state]}] {title}"
    when = found.modified.astimezone().strftime("%Y-%m-%d %H:%M")
    facts = f"{printable_line(found.id)[:8]}  {when}  {_count_messages(found)}"
    room = _columns() - len(facts) - len(guides) - 2
    print(f"{facts}  {guides}{printable_line(title, max(room, _LEAST_TITLE))}")
    if with_folder:
        print(f"{_INDENT}{strip_control_characters(str(found.cwd))}")


def print_foreign_sessions(known: ImportFormat, cwd: Path | None, *, is_json: bool) -> None:
    """Print the sessions that an agent stores: those of `cwd`, or of all folders."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise UsageError("Cannot find your home folder.", "Set HOME.") from error
    files = [
        file
        for file in foreign_sessions(home, os.environ, (known,))
        if cwd is None or file.cwd == cwd or file.problem
    ]
    if is_json:
        write_json([_foreign_json(file) for file in files])
        return
    for file in files:
        when = file.modified.astimezone().strftime("%Y-%m-%d %H:%M")
        print(f"{when}  {printable_line(file.title or '(no message yet)', 60)}")
        print(f"{_INDENT}{strip_control_characters(str(file.path))}")
    print(
        "\nTo import one: agent-tui sessions import FILE"
        if files
        else f"No {known.name} sessions{_of(cwd)}."
    )


def _of(cwd: Path | None) -> str:
    return "" if cwd is None else f" in {cwd} (--all searches every folder)"


def _summary_json(found: SessionSummary, project: SessionsOfProject) -> JsonObject:
    running = project.running.get(found.path)
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
        "contextTokens": found.context_tokens,
        "pulledFrom": found.pulled_from or None,
        "state": running.state if running is not None else None,
        "pid": running.pid if running is not None else None,
    }


def _foreign_json(file: ForeignFile) -> JsonObject:
    return {
        "path": str(file.path),
        "agent": file.agent,
        "cwd": str(file.cwd) if file.cwd != Path() else "",
        "title": file.title,
        "modified": file.modified.isoformat(timespec="milliseconds"),
        "sizeBytes": file.size_bytes,
    }
