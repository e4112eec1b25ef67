"""The recorded changes of files, from the entries of one session or of many."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.features.why.line_history.numbered_diff import unified_from_numbered
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    FileTouches,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
)
from agent_tui.safe_paths import follow_links
from agent_tui.sessions.entries import Entry, MessageEntry, milliseconds
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.replay.file_changes import (
    FileVersion,
    RecordedFileChange,
    complete_result,
    file_changes_in,
)
from agent_tui.tools.call_edits import (
    CalledEdit,
    CallReader,
    DiffEdit,
    NoEdit,
    SeenText,
    TextEdit,
)
from agent_tui.tools.files.diffs import creates_file, diffs_by_file

Maker: TypeAlias = Literal["call", "command", "user command", "restore", "read"]
"""What changed the file: a tool's call, a command of the model or of the user, or ``/undo``; or a
call that read the whole file, and so says what it was."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change of one file, as a session recorded it, or one look at the whole file.

    Attributes:
        session: The session.
        entry: The call's result, the user's command, or the record of the change.
        made_ms: When it was recorded, in milliseconds since 1970.
        path: The file's absolute path afterwards.
        moved_from: Its path before, if the change moved it.
        before: The version before; None if that was not recorded.
        after: The version after; None if that was not recorded.
        edit: What the change did to the text.
        maker: What made it.
        call: The call; None if none did, or it is unknown.
        reply: The reply with that call.
        command: The command that made it; empty for any other change.
    """

    session: KnownSession
    entry: Entry
    made_ms: int
    path: str
    moved_from: str = ""
    before: FileVersion | None = None
    after: FileVersion | None = None
    edit: TextEdit = field(default_factory=NoEdit)
    maker: Maker = "call"
    call: ToolCall | None = None
    reply: MessageEntry | None = None
    command: str = ""


_ABSENT = FileVersion()
_NUMBERED = re.compile(r"[ \t]*\d+[\t→|:]")
"""How `read` and the tools of other agents begin a line."""

_SHORTENED = re.compile(r"(?:more lines|Use offset=|\[Showing lines)[^\n]*\s*\Z")


def changes_of_file(changes: Sequence[RecordedChange], path: str) -> list[RecordedChange]:
    """Those of `changes`, in order of time, that led to the file at `path`; moves are followed."""
    found: list[RecordedChange] = []
    for change in reversed(changes):
        if change.path == path:
            found.append(change)
            path = change.moved_from or path
    return found[::-1]


def in_order_of_time(sessions: Iterable[KnownSession]) -> list[RecordedChange]:
    """All changes in `sessions` in order of time, each once.

    A session that continues another may begin with copies of its entries. Neither the time nor the
    id that a pulled entry states displaces one of this clone.
    """
    reader = CallReader()
    by_session = [
        list(_Changes(session, reader).read())
        for session in sorted(sessions, key=lambda session: session.header.timestamp)
    ]
    changes: list[RecordedChange] = []
    seen: set[tuple[str, str]] = set()
    for is_pulled in (False, True):
        for read in by_session:
            of_kind = (c for c in read if (c.entry.pulled_from is not None) == is_pulled)
            fresh = [change for change in of_kind if _key(change.entry) not in seen]
            seen |= {_key(change.entry) for change in fresh if change.entry.timestamp}
            changes += fresh
    return sorted(changes, key=lambda change: change.made_ms)


def _key(entry: Entry) -> tuple[str, str]:
    return entry.id, entry.timestamp


class _Changes:
    """Reads the changes of one session."""

    def __init__(self, session: KnownSession, reader: CallReader) -> None:
        self._session = session
        self._reader = reader
        self._cwd = Path(follow_links(session.cwd or "/"))
        self._calls: dict[str, tuple[ToolCall, MessageEntry]] = {}
        self._pending: list[tuple[Entry, Sequence[RecordedFileChange]]] = []
        self._recorded: Sequence[RecordedFileChange] = ()
        self._places = {entry.id: place for place, entry in enumerate(session.entries)}
        self._made_ms = milliseconds(session.header.timestamp)

    def read(self) -> Iterator[RecordedChange]:
        """The changes in the order of the entries."""
        entries = self._session.entries
        by_id = {entry.id: entry for entry in entries}
        completed = {
            result.id: result
            for entry in entries
            if (result := complete_result(entry, by_id)) is not None
        }
        for written in entries:
            entry = completed.get(written.id, written)
            self._made_ms = milliseconds(entry.timestamp) or self._made_ms
            match entry:
                case MessageEntry(message=AssistantMessage() as reply):
                    self._calls.update((call.id, (call, entry)) for call in reply.tool_calls)
                case MessageEntry(message=ToolResultMessage() as result):
                    yield from self._take_recorded(entry)
                    yield from self._of_result(entry, result)
                case MessageEntry(message=BashExecutionMessage() as ran):
                    yield from self._take_recorded(entry)
                    base = replace(self._base(entry), maker="user command", command=ran.command)
                    yield from self._with_versions(base, {}, {})
                    known = {change.path for change in self._recorded}
                    yield from _touched(base, ran.files or FileTouches(), known)
                case _:
                    yield from self._of_record(entry)
        for record, changes in self._pending:
            yield from self._unclaimed(record, changes)

    def _take_recorded(self, entry: Entry) -> Iterator[RecordedChange]:
        """Take what was recorded for `entry`, a result or a command: above it, by the same person.

        Yields the other recorded changes: what would have followed them was lost, or is elsewhere.
        """
        pending, self._pending = self._pending, []
        above = self._ids_above(entry, pending[0][0]) if pending else set[str]()
        taken: list[RecordedFileChange] = []
        for record, changes in pending:
            if record.id in above and record.pulled_from == entry.pulled_from:
                taken += changes
            else:
                yield from self._unclaimed(record, changes)
        self._recorded = taken

    def _ids_above(self, entry: Entry, first: Entry) -> Set[str]:
        """The ids on the path above `entry`, back to the place of `first` in the file.

        Parents come before children, so that the records of one result take one short walk.
        """
        ids: set[str] = set()
        least, entries = self._places[first.id], self._session.entries
        place = self._places.get(entry.parent_id or "", -1)
        while place >= least and entries[place].id not in ids:
            ids.add(entries[place].id)
            place = self._places.get(entries[place].parent_id or "", -1)
        return ids

    def _unclaimed(
        self, record: Entry, changes: Sequence[RecordedFileChange]
    ) -> Iterator[RecordedChange]:
        """The `changes` of a record that no result followed."""
        self._recorded = changes
        made_ms = milliseconds(record.timestamp) or self._made_ms
        yield from self._with_versions(replace(self._base(record), made_ms=made_ms), {}, {})

    def _of_record(self, entry: Entry) -> Iterator[RecordedChange]:
        """A restore. Other recorded changes belong to the result or the command that follows."""
        recorded = file_changes_in(entry)
        if recorded is None:
            return
        if not recorded.is_restore:
            self._pending.append((entry, recorded.changes))
            return
        base = replace(self._base(entry), maker="restore")
        for change in recorded.changes:
            yield replace(base, path=change.path, before=change.before, after=change.after)

    def _of_result(
        self, entry: MessageEntry, result: ToolResultMessage
    ) -> Iterator[RecordedChange]:
        call, reply = self._calls.get(result.tool_call_id, (None, None))
        details = result.tool_details
        command, named = "", dict[str, CalledEdit]()
        if call is not None:
            command = self._reader.command_of(call.name, call.arguments, self._cwd)
            if self._recorded or not result.is_error:
                edits = self._reader.edits_of(call.name, call.arguments, self._cwd)
                named = {self._path(edit.path): edit for edit in edits}
        rounds = _rounds((self._path(d.name), d.text) for d in diffs_by_file(_diff_in(details)))
        diffs = rounds[0] if rounds else {}
        if not diffs and len(named) == 1 and (unified := unified_from_numbered(details.diff)):
            diffs = dict.fromkeys(named, unified)
        base = replace(
            self._base(entry),
            maker="command" if command else "call",
            call=call,
            reply=reply,
            command=command,
        )
        if self._recorded:
            yield from self._with_versions(base, named, diffs)
        elif call is not None and (seen := self._seen(call, result)):
            path, text = seen
            yield replace(base, path=path, maker="read", edit=SeenText(text))
        elif not result.is_error:
            digest = details.digest_before if len({*named, *diffs}) == 1 else ""
            before = FileVersion(digest=digest, is_kept=True) if digest else None
            yield from self._by_words(replace(base, before=before), named, diffs)
            for later in rounds[1:]:
                yield from self._by_words(base, {}, later)
            yield from _touched(base, details.files, {*named, *diffs})

    def _seen(self, call: ToolCall, result: ToolResultMessage) -> tuple[str, str] | None:
        """The file that a call read, and its whole text; None if the result may be less or more.

        Only pi gives the model the bare text.
        """
        if result.is_error or result.details or len(result.content) != 1:
            return None
        path = self._reader.read_whole(call.name, call.arguments, self._cwd)
        is_bare = not _NUMBERED.match(result.text) and not _SHORTENED.search(result.text)
        return (self._path(path), result.text.replace("\r\n", "\n")) if path and is_bare else None

    def _with_versions(
        self, base: RecordedChange, named: Mapping[str, CalledEdit], diffs: Mapping[str, str]
    ) -> Iterator[RecordedChange]:
        """The changes whose versions were recorded."""
        moves = self._moves(named)
        gone = {change.path: change.before for change in self._recorded if not change.after.digest}
        for change in self._recorded:
            source = moves.get(change.path, "")
            if change.path in moves.values():
                continue
            edit = _edit_of(change.path, named, diffs)
            yield replace(
                base,
                path=change.path,
                moved_from=source,
                before=gone[source] if source else change.before,
                after=change.after,
                edit=NoEdit() if source and change.path in diffs else edit,
            )

    def _moves(self, named: Mapping[str, CalledEdit]) -> dict[str, str]:
        """The former paths of moved files: the call says so, or the content is the same."""
        gone = {c.path: c.before.digest for c in self._recorded if not c.after.digest}
        moves: dict[str, str] = {}
        for change in self._recorded:
            if change.before.digest:
                continue
            said = named.get(change.path)
            source = self._path(said.moved_from) if said and said.moved_from else ""
            alike = [path for path, digest in gone.items() if digest == change.after.digest]
            if source in gone:
                moves[change.path] = source
            elif len(alike) == 1 and alike[0] not in moves.values():
                moves[change.path] = alike[0]
        return moves

    def _by_words(
        self, base: RecordedChange, named: Mapping[str, CalledEdit], diffs: Mapping[str, str]
    ) -> Iterator[RecordedChange]:
        """The changes that only the call and its result tell."""
        moved = {self._path(edit.moved_from) for edit in named.values() if edit.moved_from}
        for path in dict.fromkeys((*named, *diffs)):
            if path in moved:
                continue
            said = named.get(path, CalledEdit(path))
            source = self._path(said.moved_from) if said.moved_from else ""
            is_new = said.is_new or (not source and creates_file(diffs.get(path, "")))
            yield replace(
                base,
                path=path,
                moved_from=source,
                before=_ABSENT if is_new else base.before,
                after=_ABSENT if said.is_gone else None,
                edit=said.edit if source else _edit_of(path, named, diffs),
            )

    def _base(self, entry: Entry) -> RecordedChange:
        return RecordedChange(self._session, entry, self._made_ms, "")

    def _path(self, name: str) -> str:
        return os.path.normpath(self._cwd / name)


def _rounds(diffs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """The diffs by path; a further one of the same file, as of a subagent's calls, comes later."""
    rounds: list[dict[str, str]] = []
    for path, text in diffs:
        for diffs_of_round in rounds:
            if path not in diffs_of_round:
                diffs_of_round[path] = text
                break
        else:
            rounds.append({path: text})
    return rounds


def _diff_in(details: ToolDetails) -> str:
    """The unified diff of a result; pi's newer versions have one beside the diff for people."""
    patch = (details.model_extra or {}).get("patch")
    return patch if isinstance(patch, str) else details.diff or ""


def _edit_of(path: str, named: Mapping[str, CalledEdit], diffs: Mapping[str, str]) -> TextEdit:
    if "\n@@ " in diffs.get(path, ""):
        return DiffEdit(diffs[path])
    return named[path].edit if path in named else NoEdit()


def _touched(base: RecordedChange, files: FileTouches, known: set[str]) -> Iterator[RecordedChange]:
    """Changes of which only the file is known."""
    for path in dict.fromkeys((*files.written, *files.edited)):
        if path not in known:
            yield replace(base, path=path)
