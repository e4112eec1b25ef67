"""``agent-tui clean``: lists what the program stored; with kinds, removes them after a question."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from agent_tui import paths
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.output import ask, complain, write_json, write_text
from agent_tui.cli.settings import add_session_dir, read_settings, session_root
from agent_tui.commands.core.short_words import count_text, short_path, size_text
from agent_tui.commands.sessions import listed_title
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.features.clean.inventory import (
    SESSIONS,
    StoredItem,
    is_part,
    list_stored,
    listed_kinds,
    removable_kinds,
)
from agent_tui.features.clean.old_sessions import days_of, old_sessions
from agent_tui.features.clean.removal import remove, running_programs, user_of
from agent_tui.messages import JsonObject
from agent_tui.safe_paths import real_path, show_name
from agent_tui.safe_text import printable_line
from agent_tui.sessions.listing import SessionSummary
from agent_tui.sessions.store import SessionStore

_DESCRIPTION = """\
List what agent-tui stored on this machine, with sizes, and remove the kinds
that you name. Without a kind, nothing is removed. Sessions are never deleted
automatically; agent-tui clean moves old ones to the trash if you ask for it."""
_EPILOG = """\
Examples:
  agent-tui clean                             list everything
  agent-tui clean caches                      remove all caches
  agent-tui clean caches/packages trash       remove one cache and the trash
  agent-tui clean sessions --older-than 90d   move old sessions to the trash

With --json, without KIND:
  [{"kind", "place", "path", "files", "sizeBytes", "lastUse", "loss",
    "removal"}]
"lastUse" is ISO 8601 in UTC or null. "path" is null for what is in a git
remote. "removal" says how to remove what "clean" doesn't; else it is empty.
With KIND:
  {"removed": [PLACE], "freedBytes", "kept": [{"place", "why"}]}"""
_TITLE_CHARS = 60


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui clean``."""
    parser = subcommand_parser("clean", _DESCRIPTION, _EPILOG)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="kind to remove, from the list")
    parser.add_argument(
        "--older-than",
        type=_days,
        metavar="DAYS",
        dest="days",
        help="with sessions: those not continued for so long, such as 90d",
    )
    parser.add_argument("--yes", action="store_true", dest="is_sure", help="do not ask")
    parser.add_json()
    add_session_dir(parser)
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Run ``agent-tui clean`` with the arguments after that word; returns the exit code.

    The code is 1 if something that was chosen stays.

    Raises:
        UsageError: A kind does not exist, is not removed this way, or nobody can be asked.
    """
    arguments = build_parser().parse_args(list(argv))
    settings = read_settings(cast("str | None", arguments.session_dir))
    store = SessionStore(session_root(settings), settings.durability)
    items = list_stored(store.root)
    kinds = list(dict.fromkeys(cast("list[str]", arguments.kinds)))
    days = cast("int | None", arguments.days)
    if (SESSIONS in kinds) != (days is not None):
        raise UsageError(
            "Sessions are removed one by one, or with their age.",
            "agent-tui sessions delete SESSION, or agent-tui clean sessions --older-than 90d.",
        )
    if not kinds:
        _print_list(items, is_json=arguments.is_json)
        return 0
    plan = _plan(kinds, items, store, days)
    is_empty = not plan.items and not plan.sessions
    if is_empty and not plan.kept:
        complain("Nothing to remove.")
    if not is_empty and not arguments.is_sure and not _agrees(plan):
        print("Nothing removed.", file=sys.stderr)
        return 1
    return _report(_carry_out(plan, store), is_json=arguments.is_json)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be removed, and what stays though it was chosen, with why."""

    items: tuple[StoredItem, ...]
    sessions: tuple[SessionSummary, ...]
    days: int
    kept: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Result:
    """What was removed, among it `moved` sessions that are in the trash, and what stays."""

    removed: tuple[str, ...]
    freed_bytes: int
    kept: tuple[tuple[str, str], ...]
    moved: int


def _days(text: str) -> int:
    try:
        return days_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _plan(
    kinds: Sequence[str], items: Sequence[StoredItem], store: SessionStore, days: int | None
) -> _Plan:
    """What the user chose, without what is in use.

    Raises:
        UsageError: There is no such kind, or it is removed in another way.
    """
    chosen: list[StoredItem] = []
    for kind in filter(lambda kind: kind != SESSIONS, kinds):
        named = [item for item in items if item.has_kind(kind)]
        removable = [item for item in named if not item.removal]
        known = removable_kinds()
        if not removable and not any(is_part(one, kind) for one in known):
            if named:
                raise UsageError(f"agent-tui clean does not remove {kind}.", named[0].removal)
            if not any(is_part(one, kind) for one in listed_kinds()):
                kinds_text = ", ".join(sorted(known))
                raise UsageError(f"There is no kind {kind!r}.", f"Kinds: {kinds_text}.")
        chosen += (item for item in removable if item not in chosen)
    kept = {item.place: why for item in chosen if (why := _why_kept(item, store))}
    old: list[SessionSummary] = []
    if days is not None:
        old = old_sessions(store.list(), days, datetime.now(UTC), store.running())
    free = tuple(item for item in chosen if item.place not in kept)
    return _Plan(free, tuple(old), days or 0, tuple(kept.items()))


def _why_kept(item: StoredItem, store: SessionStore) -> str:
    """Why `item` cannot be removed now; empty if it can."""
    assert item.path is not None
    if item.usage.has_mounts:
        return "another file system is mounted in it"
    if user := user_of(item.path):
        return f"{user} uses it"
    pids = {*running_programs(), *(found.pid for found in store.running().values())}
    if pids and item.path.parent != store.root:
        shown = ", ".join(map(str, sorted(pids)))
        return f"agent-tui is running (pid {shown}) and may use it"
    return ""


def _agrees(plan: _Plan) -> bool:
    """Show what would be removed, and ask.

    Raises:
        UsageError: Nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise UsageError("Nothing removed: there is no terminal to ask on.", "Add --yes.")
    if plan.items:
        print("\n".join(_lines(plan.items)), file=sys.stderr)
        size = size_text(sum(item.usage.size_bytes for item in plan.items))
        if not ask(f"Remove {size} for good?", is_yes_usual=False):
            return False
    if plan.sessions:
        newest = plan.sessions[0]
        title = printable_line(listed_title(newest), _TITLE_CHARS)
        print(
            f"{count_text(len(plan.sessions), 'session')} of all folders, not continued for "
            f"{count_text(plan.days, 'day')}. The newest, of {_day(newest.modified.timestamp())}:"
            f" {title}",
            file=sys.stderr,
        )
        return ask("Move them to the trash?", is_yes_usual=False)
    return True


def _carry_out(plan: _Plan, store: SessionStore) -> _Result:
    removed: list[str] = []
    kept, freed = list(plan.kept), 0
    for item in plan.items:
        assert item.path is not None
        if why := _why_kept(item, store):  # since the question
            kept.append((item.place, why))
            continue
        try:
            remove(item.path)
        except OSError as error:
            kept.append((item.place, f"some of it stays: {error.strerror or error}"))
        else:
            removed.append(item.place)
            freed += item.usage.size_bytes
    items = len(removed)
    for found in plan.sessions:
        try:
            store.delete(found.path)
        except AgentTuiError as error:
            kept.append((str(found.path), str(error)))
        else:
            removed.append(str(found.path))
    return _Result(tuple(removed), freed, tuple(kept), len(removed) - items)


def _report(result: _Result, *, is_json: bool) -> int:
    if is_json:
        write_json(
            {
                "removed": list(result.removed),
                "freedBytes": result.freed_bytes,
                "kept": [{"place": place, "why": why} for place, why in result.kept],
            }
        )
    else:
        if items := len(result.removed) - result.moved:
            print(f"Removed {count_text(items, 'item')}, {size_text(result.freed_bytes)}.")
        if result.moved:
            print(f"Moved {count_text(result.moved, 'session')} to the trash.")
            print("agent-tui clean trash deletes them for good.")
    for place, why in result.kept:
        complain(f"{show_name(place)} stays: {why}.")
    return 1 if result.kept else 0


def _print_list(items: Sequence[StoredItem], *, is_json: bool) -> None:
    if is_json:
        write_json([_item_json(item) for item in items])
        return
    if not items:
        print("agent-tui stored nothing on this machine.")
        return
    data = real_path(paths.user_data_dir())
    roots = (real_path(item.path) for item in items if item.kind == SESSIONS and item.path)
    copied = (data, *(root for root in roots if not root.is_relative_to(data)))
    backup = " and ".join(_shown(str(folder)) for folder in copied)
    total = size_text(sum(item.usage.size_bytes for item in items))
    end = (
        f"{total} in all. Nothing was removed; agent-tui clean KIND removes a kind.",
        "Sessions are never deleted automatically.",
        f"For a backup, copy {backup}.",
    )
    write_text("\n".join((*_lines(items), "", *end, "")))


def _lines(items: Sequence[StoredItem]) -> list[str]:
    """A line for each item with its kind, files, size, last use and place, and one for its loss."""
    rows = [
        (
            item.kind,
            count_text(item.usage.files, "file") if item.path else "",
            size_text(item.usage.size_bytes) if item.path else "",
            _day(item.usage.last_use_s),
            _shown(item.place),
        )
        for item in items
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines: list[str] = []
    for row, item in zip(rows, items, strict=True):
        kind, files, size, used, place = row
        lines.append(
            f"{kind:<{widths[0]}}  {files:>{widths[1]}}  {size:>{widths[2]}}  "
            f"{used:<{widths[3]}}  {place}"
        )
        lines.append(f"    {item.loss}")
        if item.removal:
            lines.append(f"    {show_name(item.removal)}")
    return lines


def _shown(place: str) -> str:
    return show_name(short_path(Path(place), Path.home()) if place.startswith("/") else place)


def _day(moment_s: float) -> str:
    """The local day of a moment, in seconds since 1970; empty for none."""
    return datetime.fromtimestamp(moment_s).astimezone().strftime("%Y-%m-%d") if moment_s else ""


def _item_json(item: StoredItem) -> JsonObject:
    used = item.usage.last_use_s
    return {
        "kind": item.kind,
        "place": item.place,
        "path": str(item.path) if item.path else None,
        "files": item.usage.files,
        "sizeBytes": item.usage.size_bytes,
        "lastUse": datetime.fromtimestamp(used, UTC).isoformat() if used else None,
        "loss": item.loss,
        "removal": item.removal,
    }
