"""A file changed in sessions and outside, whose every line knows what made it."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, TypeAlias

from agent_tui.errors import ToolError
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import CompactionEntry, Entry, Header, MessageEntry
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.lineage.known_session import KnownSession
from agent_tui.sessions.replay.file_changes import (
    FileChanges,
    FileVersion,
    RecordedFileChange,
    file_changes_entry,
)
from agent_tui.tools.edit import Replacement
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.matching import find_places
from agent_tui.tools.patch_format import FilePatch, Hunk, hunk_places

CWD = "/project"
EARLIER, OUTSIDE = "earlier", "outside"

Record: TypeAlias = Literal["contents", "digests", "diff", "words", "excerpt", "patch"]
"""What a session records of an edit: contents, hashes with a diff, a diff alone, or the call, which
has the whole texts, only the lines around the change, or a hunk."""


@dataclass(frozen=True)
class Line:
    """A line, and the entry id of the change that made it, or `EARLIER` or `OUTSIDE`."""

    text: str
    maker: str


@dataclass
class EditedFile:
    """The file, the sessions so far, and the contents they kept."""

    lines: list[Line]
    path: str = f"{CWD}/a.txt"
    record: Record = "contents"
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])
    sessions: list[tuple[Header, list[Entry]]] = field(
        default_factory=list[tuple[Header, list[Entry]]]
    )
    versions: list[list[Line]] = field(default_factory=list[list[Line]])
    is_recorded: bool = False
    writes_whole: bool = False
    context: int = 0
    _number: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        """Begin with a first session."""
        self.begin()

    @property
    def text(self) -> str:
        """The present text."""
        return _text(self.lines)

    @property
    def known(self) -> list[KnownSession]:
        """The sessions as read from their files."""
        return [KnownSession(header, None, tuple(entries)) for header, entries in self.sessions]

    def begin(self, *, continues: bool = False) -> None:
        """Begin another session, as ``/compact`` does if it `continues` the last one."""
        number = next(self._number)
        header = Header(id=f"session-{number}", cwd=CWD, timestamp=_time(number))
        copied: list[Entry] = []
        if continues and self.sessions:
            earlier, entries = self.sessions[-1]
            header = header.model_copy(update={"parent_session": earlier.id})
            copied = entries[-4:]
        self.sessions.append((header, []))
        if continues:
            self._append(CompactionEntry(summary="so far", first_kept_entry_id=""))
            for entry in copied:
                parent = self.sessions[-1][1][-1].id
                self.sessions[-1][1].append(entry.model_copy(update={"parent_id": parent}))

    def ask(self, text: str) -> None:
        """The user says something."""
        self._say(UserMessage(content=text))

    def replace(self, start: int, end: int, texts: Sequence[str], reason: str = "why") -> str:
        """An edit of the model's; returns the id of the entry with its result."""
        before, was = self.lines, self.text
        return self._change(before[:start], texts, before[end:], was, reason)

    def change_outside(self, start: int, end: int, texts: Sequence[str]) -> None:
        """A change that no session records: `EARLIER` if none has changed the file so far."""
        maker = OUTSIDE if self.is_recorded else EARLIER
        self.lines = [
            *self.lines[:start],
            *(Line(text, maker) for text in texts),
            *self.lines[end:],
        ]

    def restore(self, version: int) -> None:
        """Restore an earlier version, as ``/undo`` does with contents."""
        lines = self.versions[version]
        if _text(lines) == self.text:
            return
        changed = self._versions(self.text, _text(lines), keeps=True)
        self._append(file_changes_entry(FileChanges(changes=(changed,), is_restore=True)))
        self.lines = list(lines)

    def move(self, path: str) -> None:
        """A command of the model's moves the file."""
        is_there = self._versions("", self.text, keeps=True).after
        nothing = FileVersion()
        changes = (
            RecordedFileChange(path=self.path, before=is_there, after=nothing),
            RecordedFileChange(path=path, before=nothing, after=is_there),
        )
        call = self._call("bash", {"command": f"mv {self.path} {path}"}, "move it")
        self._append(file_changes_entry(FileChanges(changes=changes)))
        self._result(call, ToolDetails(exit_code=0))
        self.path, self.is_recorded = path, True

    def run(self, command: str, exit_code: int) -> None:
        """A command of the model's that changes nothing."""
        self._result(self._call("bash", {"command": command}, ""), ToolDetails(exit_code=exit_code))

    def _change(
        self, above: list[Line], texts: Sequence[str], below: list[Line], was: str, reason: str
    ) -> str:
        now = _text([*above, *(Line(text, "") for text in texts), *below])
        if now == was:
            return ""
        diff = unified_diff(was, now, self.path).text
        old = [line.text for line in self.lines[len(above) : len(self.lines) - len(below)]]
        top = [line.text for line in above[max(len(above) - self.context, 0) :]]
        bottom = [line.text for line in below[: self.context]]
        start = len(_text(above)) - len(_joined(top))
        shown = [*top, *old, *bottom], [*top, *texts, *bottom]
        call = self._edit_call(start, *shown, reason)
        is_only_called = self.record in ("words", "excerpt", "patch")
        details = ToolDetails(diff="" if is_only_called else diff)
        if self.record in ("contents", "digests"):
            changed = self._versions(was, now, keeps=self.record == "contents")
            self._append(file_changes_entry(FileChanges(changes=(changed,))))
        maker = self._result(call, details)
        if self.record == "contents":
            self.versions.append([*self.lines])
        self.is_recorded = True
        self.lines = [*above, *(Line(text, maker) for text in texts), *below]
        return maker

    def _edit_call(
        self, start: int, old: Sequence[str], new: Sequence[str], reason: str
    ) -> ToolCall:
        """The call that replaces `old`, whose offset is `start`, by `new`.

        It has the form that `record` asks for if the tool would find just that place.
        """
        excerpt = Replacement(old=_joined(old), new=_joined(new))
        now = self.text[:start] + excerpt.new + self.text[start + len(excerpt.old) :]
        if self.record == "excerpt" and excerpt.old:
            places = find_places(self.text, excerpt.old, excerpt.new).found
            if [place.start for place in places] == [start]:
                return self._call("edit", {"path": self.path, **excerpt.model_dump()}, reason)
        if self.record == "patch" and self._has_place(Hunk([], list(old), list(new)), start):
            rows = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
            head = ["*** Begin Patch", f"*** Update File: {self.path}", "@@"]
            patch = "\n".join([*head, *rows, "*** End Patch"])
            return self._call("apply_patch", {"patch": patch}, reason)
        if self.writes_whole:
            return self._call("write", {"path": self.path, "content": now}, reason)
        return self._call("edit", {"path": self.path, "old": self.text, "new": now}, reason)

    def _has_place(self, hunk: Hunk, start: int) -> bool:
        patch = FilePatch("update", self.path, hunks=[hunk])
        with suppress(ToolError):
            places, _ = hunk_places(self.text, patch, self.path)
            return [place.start for place in places] == [start]
        return False

    def _versions(self, was: str, now: str, *, keeps: bool) -> RecordedFileChange:
        before, after = (self._version(text, keeps=keeps) for text in (was, now))
        return RecordedFileChange(path=self.path, before=before, after=after)

    def _version(self, text: str, *, keeps: bool) -> FileVersion:
        content = text.encode()
        if keeps:
            self.kept[digest_of(content)] = content
        return FileVersion(digest=digest_of(content), mode=0o100644, is_kept=keeps)

    def _call(self, name: str, arguments: JsonObject, reason: str) -> ToolCall:
        call = ToolCall(id=f"call-{next(self._number)}", name=name, arguments=arguments)
        said = (TextContent(text=reason),) if reason else ()
        self._say(AssistantMessage(content=(*said, call)))
        return call

    def _result(self, call: ToolCall, details: ToolDetails) -> str:
        dumped = details.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return self._say(
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, details=dumped)
        )

    def _say(self, message: Message) -> str:
        return self._append(MessageEntry(message=message))

    def _append(self, entry: Entry) -> str:
        number = next(self._number)
        entries = self.sessions[-1][1]
        placed = {
            "id": f"{number:08x}",
            "parent_id": entries[-1].id if entries else None,
            "timestamp": _time(number),
        }
        entries.append(entry.model_copy(update=placed))
        return placed["id"] or ""


def _text(lines: Sequence[Line]) -> str:
    return _joined([line.text for line in lines])


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _time(number: int) -> str:
    minutes, seconds = divmod(number, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-03-01T{hours:02}:{minutes:02}:{seconds:02}.000Z"
