"""Explains why a line of a file is there: who asked for it, and the change that made it."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from pydantic import JsonValue

from agent_tui.errors import UsageError
from agent_tui.messages import JsonObject
from agent_tui.regular_files import read_regular_file
from agent_tui.safe_paths import follow_links, path_from
from agent_tui.safe_text import printable_line, strip_control_characters
from agent_tui.sessions.sharing.guard import NOT_PULLED
from agent_tui.tools.files.text_files import decode
from agent_tui.tools.git.blame import Blame, Commit
from agent_tui.tools.line_history.facts import ChangeFacts, facts_of
from agent_tui.tools.line_history.kept_lines import lines_of, sources_of
from agent_tui.tools.line_history.project import FileHistory
from agent_tui.tools.line_history.replay import (
    Earlier,
    Made,
    Origins,
    Replay,
    Unknown,
    Unrecorded,
    replay_changes,
)

Status: TypeAlias = Literal["recorded", "ambiguous", "unrecorded", "earlier", "unknown"]

_MOST_FILE_BYTES = 5_000_000
_SHOWN_CHARS = 600
_SHOWN_LINES = 12
_NOT_PULLED = (
    "Contents that could tell were not pulled. Whoever has them: agent-tui sessions push "
    "--with-files."
)
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """Why a line is there, as far as records prove it.

    Attributes:
        path: The file, absolute.
        line: The line's number, from 1.
        text: The line.
        status: ``recorded``: one recorded change made it. ``ambiguous``: one of several, or it came
            from outside. ``unrecorded``: it came between recorded changes. ``earlier``: it was
            there before the first one. ``unknown``: the contents that would tell were not kept.
        said: The answer in a sentence.
        changes: The recorded changes concerned, in order of time.
        commit: The commit that git names, for a line that no recorded change is known to have made.
        unread: Files of sessions that name the file but cannot be read.
    """

    path: Path
    line: int
    text: str
    status: Status
    said: str
    changes: tuple[ChangeFacts, ...]
    commit: Commit | None
    unread: tuple[Path, ...] = ()


def read_place(written: str, cwd: Path) -> tuple[Path, int]:
    """The file, absolute, and the line number that ``FILE:LINE`` names.

    Raises:
        UsageError: It has no line number.
    """
    place = _PLACE.fullmatch(written.strip())
    if place is None or int(place["line"]) < 1:
        raise UsageError(f"{written.strip() or 'Nothing'} names no line.", "Give FILE:LINE.")
    try:
        return Path(follow_links(str(cwd / Path(place["file"]).expanduser()))), int(place["line"])
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{place['file']} cannot be read: {error}.", "Give FILE:LINE.") from error


def read_present(path: Path) -> str:
    """The text of the file at `path`.

    Raises:
        UsageError: It cannot be read, is not text, or is too large to explain.
    """
    try:
        if path.stat().st_size > _MOST_FILE_BYTES:
            limit = _MOST_FILE_BYTES // 1_000_000
            raise UsageError(f"{path} is larger than {limit} MB.", "Only smaller files are kept.")
        file = decode(read_regular_file(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}.", "Give FILE:LINE.") from error
    if file is None:
        raise UsageError(f"{path} is not a text file.", "Only lines of text can be explained.")
    return file.text


async def explain_line(
    history: FileHistory, path: Path, line: int, present: str, blame: Blame | None
) -> LineAnswer:
    """Explain line number `line` of a file.

    Args:
        history: Its recorded changes.
        path: The file, absolute.
        line: The number, from 1.
        present: The file's present text.
        blame: Asks git about the file; None if git may not run.

    Raises:
        UsageError: The file has no such line.
    """
    lines = lines_of(present)
    if line > len(lines):
        count = f"{len(lines)} line{'s' * (len(lines) != 1)}"
        raise UsageError(f"{path} has {count}.", "Give a line that it has.")
    answer = await asyncio.to_thread(_explain, history, path, line, lines[line - 1], present)
    if answer.status == "recorded" or blame is None:
        return answer
    commit = await _commit(blame, lines, line - 1)
    return LineAnswer(
        path,
        line,
        answer.text,
        answer.status,
        answer.said,
        answer.changes,
        commit,
        history.unread,
    )


def _explain(history: FileHistory, path: Path, line: int, text: str, present: str) -> LineAnswer:
    replay = replay_changes(history.changes, present, history.content)
    origins = replay.lines[line - 1]
    status = status_of(origins)
    facts = tuple(_facts(history, replay, origins, line - 1))
    said = _said(status, origins, history)
    return LineAnswer(path, line, text, status, said, facts, None, history.unread)


def status_of(origins: Origins) -> Status:
    """How certain the answer is that `origins` give."""
    if len(origins) != 1:
        return "unknown" if any(isinstance(one, Unknown) for one in origins) else "ambiguous"
    only = next(iter(origins))
    match only:
        case Made():
            return "recorded"
        case Unrecorded():
            return "unrecorded"
        case Earlier():
            return "earlier"
        case Unknown():
            return "unknown"
        case _:
            assert_never(only)


def _facts(
    history: FileHistory, replay: Replay, origins: Origins, at: int
) -> Iterator[ChangeFacts]:
    """The facts about the changes that `origins` name, in order of time."""
    named: dict[int, int | None] = {}
    for origin in origins:
        match origin:
            case Made(change, line):
                named[change] = line
            case Unknown(since, until):
                named |= {change: named.get(change) for change in range(since, until)}
            case _:
                pass
    for change in sorted(named):
        line = named[change]
        around = (replay.versions[change], line) if line is not None else None
        yield facts_of(history.changes[change], history.sessions, around)


def _said(status: Status, origins: Origins, history: FileHistory) -> str:
    answer = _answer(status, origins, history)
    if status in ("unknown", "ambiguous") and _lacks_pulled_contents(history):
        return f"{answer} {_NOT_PULLED}"
    return answer


def _answer(status: Status, origins: Origins, history: FileHistory) -> str:
    changes = history.changes
    match status:
        case "recorded":
            return "A recorded change made this line."
        case "earlier" if not changes:
            return "Not known: no recorded session changed this file."
        case "earlier":
            first = f"the first recorded change ({_day(changes[0].entry.timestamp)})"
            return f"Not known: the line was there before {first}."
        case "unrecorded":
            return f"Changed outside the recorded sessions{_between(origins, history)}."
        case "ambiguous":
            return f"Not known exactly: {' or '.join(_possible(origins))}."
        case "unknown":
            return "Not known: the contents around these changes were not kept."
        case _:
            assert_never(status)


def _lacks_pulled_contents(history: FileHistory) -> bool:
    """Whether contents of a session from another clone are missing here."""
    versions = [
        version
        for change in history.changes
        for version in (change.before, change.after)
        if version is not None and version.why_not == NOT_PULLED
    ]
    return any(history.content(version.digest) is None for version in versions)


def _possible(origins: Origins) -> Iterator[str]:
    """What may have happened, each in a few words."""
    made = sum(isinstance(origin, Made) for origin in origins)
    if made:
        yield "one of these changes made this line" if made > 1 else "this change made the line"
    if any(isinstance(origin, Unrecorded) for origin in origins):
        yield "it came from outside the recorded sessions"
    if any(isinstance(origin, Earlier) for origin in origins):
        yield "it was there before the first recorded change"


def _between(origins: Origins, history: FileHistory) -> str:
    origin = next(iter(origins))
    assert isinstance(origin, Unrecorded)
    times = [change.entry.timestamp for change in history.changes]
    since = f" after {_minute(times[origin.since])}" if origin.since >= 0 else ""
    until = f" before {_minute(times[origin.until])}" if origin.until < len(times) else ""
    return f",{since}{' and' if since and until else ''}{until}" if since or until else ""


def _day(timestamp: str) -> str:
    return timestamp[:10]


def _minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ") + " UTC" if timestamp else "an unknown time"


async def _commit(blame: Blame, lines: Sequence[str], at: int) -> Commit | None:
    """The commit of the line with index `at`; None if it is not certain, or not committed."""
    content = await blame.committed()
    file = decode(content) if content else None
    if file is None:
        return None
    source = (await asyncio.to_thread(sources_of, lines_of(file.text), lines))[at]
    if source.may_be_new or len(source.kept) != 1:
        return None
    return await blame.commit_of(min(source.kept) + 1)


def answer_lines(answer: LineAnswer, cwd: Path) -> list[str]:
    """The answer as lines for people, without control characters."""
    shown = [f"{path_from(answer.path, cwd)}:{answer.line}: {answer.text.strip()}"]
    if answer.status != "recorded":
        shown.append(answer.said)
    for facts in answer.changes:
        shown += ["", *_change_lines(facts, answer.path, cwd)]
    if answer.commit is not None:
        commit = answer.commit
        facts = f"{_day(commit.time)} {commit.author}: {commit.summary}"
        shown.append(f"git blame: {commit.id[:10]} {facts}")
    for path in answer.unread:
        shown.append(f"Not read: {path}. agent-tui sessions show says why.")
    return [strip_control_characters(line).replace("\n", " ") for line in shown]


def _change_lines(facts: ChangeFacts, path: Path, cwd: Path) -> Iterator[str]:
    change = facts.change
    name = f' "{facts.session_name}"' if facts.session_name else ""
    source = f", imported from {facts.imported_from}" if facts.imported_from else ""
    source += f", pulled from {facts.pulled_from}" if facts.pulled_from else ""
    yield f"{_minute(change.entry.timestamp)}, session {change.session.id[:8]}{name}{source}"
    if facts.asked:
        asker = printable_line(facts.pulled_from) or "You"
        yield f"  {asker} asked: {printable_line(facts.asked, _SHOWN_CHARS)}"
    if facts.reason:
        who = "The model" if facts.reason_kind == "text" else "The model thought"
        yield f"  {who}: {printable_line(facts.reason, _SHOWN_CHARS)}"
    yield f"  {_made_by(facts)}{_elsewhere(facts, path, cwd)}"
    if facts.replaced is not None and facts.wrote is not None:
        yield from _some("-", facts.replaced)
        yield from _some("+", facts.wrote)
    if facts.next_command is not None:
        ran = facts.next_command
        ending = f"exit {ran.exit_code}" if ran.exit_code is not None else ""
        ending = ending or ("failed" if ran.is_error else "exit code not recorded")
        yield f"  Next command: {printable_line(ran.command, _SHOWN_CHARS)} ({ending})"


def _made_by(facts: ChangeFacts) -> str:
    change = facts.change
    match change.maker:
        case "call":
            return f"Changed by {change.call.name if change.call else 'a call of unknown name'}"
        case "command":
            return f"Changed while this command ran: {printable_line(change.command)}"
        case "user command":
            return f"Changed while your command ran: {printable_line(change.command)}"
        case "restore":
            return "An earlier version of the file was restored"
        case _:
            assert_never(change.maker)


def _elsewhere(facts: ChangeFacts, path: Path, cwd: Path) -> str:
    """The file's path at the time, if it has moved since."""
    change = facts.change
    return f" (in {path_from(change.path, cwd)})" if change.path != str(path) else ""


def _some(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:_SHOWN_LINES]:
        yield f"    {sign} {line}"
    if len(lines) > _SHOWN_LINES:
        yield f"    {sign} ... {len(lines) - _SHOWN_LINES} more lines"


def answer_json(answer: LineAnswer) -> JsonObject:
    """The answer for programs; ``agent-tui why --help`` describes it."""
    commit: JsonValue = None
    if answer.commit is not None:
        made = answer.commit
        commit = {
            "id": made.id,
            "author": made.author,
            "time": made.time,
            "summary": made.summary,
        }
    return {
        "path": str(answer.path),
        "line": answer.line,
        "text": answer.text,
        "status": answer.status,
        "message": answer.said,
        "changes": [_change_json(facts) for facts in answer.changes],
        "commit": commit,
        "unread": [str(path) for path in answer.unread],
    }


def _change_json(facts: ChangeFacts) -> JsonObject:
    change, ran = facts.change, facts.next_command
    session = change.session
    return {
        "session": {
            "id": session.id,
            "name": facts.session_name,
            "path": str(session.path) if session.path is not None else None,
            "importedFrom": facts.imported_from or None,
            "pulledFrom": facts.pulled_from or None,
        },
        "entry": change.entry.id,
        "time": change.entry.timestamp,
        "path": change.path,
        "maker": change.maker,
        "tool": change.call.name if change.call is not None else None,
        "arguments": change.call.arguments if change.call is not None else None,
        "command": change.command or None,
        "asked": facts.asked or None,
        "askedAt": facts.asked_at or None,
        "reason": facts.reason or None,
        "reasonKind": facts.reason_kind or None,
        "replaced": list(facts.replaced) if facts.replaced is not None else None,
        "wrote": list(facts.wrote) if facts.wrote is not None else None,
        "nextCommand": {
            "command": ran.command,
            "exitCode": ran.exit_code,
            "isError": ran.is_error,
        }
        if ran is not None
        else None,
    }
