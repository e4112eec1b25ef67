"""Import formats, and building a session from the contents of their files."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    JsonObject,
    Message,
    Pin,
    StopReason,
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
    text_in,
)
from agent_tui.sessions.entries import (
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    Header,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    milliseconds,
)
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.importers.refusals import note_refusal
from agent_tui.sessions.replay.pins import pin_entry

SplitText: TypeAlias = Callable[[str], tuple[str, str]]
WarnOf: TypeAlias = Callable[[str], None]
"""Warns of a problem whose place is known."""

_MOST_WARNINGS = 200
MOST_CONTENTS_BYTES = 64_000_000
"""Earlier contents of files that one session may bring; a session of 3 MB has half a megabyte."""

_MOST_PINNED_CHARS = 40_000
"""About 10,000 tokens, as of our own instruction files."""

_MOST_RESULTS = 1_000
"""Entries after a reply that are searched for its results."""


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """A session of another agent, as far as our format can represent it.

    Args:
        header: Folder, model and id as the file has them; derived from it if it has none.
        entries: The conversation from its first to its newest entry, in the order of the file.
            Each is the parent of the next, except in files with branches: there, the last one is on
            the present branch. The same file always gives the same ids.
        warnings: What was unreadable or left out, one line each with its place.
        contents: Earlier contents of files by their digests, which details of results name.
    """

    header: Header
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(slots=True)
class Warnings:
    """Problems in a file; the number of texts is limited, the count is not."""

    _texts: list[str] = field(default_factory=list[str])
    _more: int = 0

    def add(self, text: str) -> None:
        """Add a problem; `text` begins with its place."""
        if len(self._texts) < _MOST_WARNINGS:
            self._texts.append(text)
        else:
            self._more += 1

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts, with a last line that counts those not stored."""
        return (*self._texts, *([f"{self._more:,} more problems"] if self._more else []))


class SessionBuilder:
    """Collects entries in chronological order.

    A missing time is that of the entry before. The clock is never read, so that the same file
    always gives the same entries.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._calls: dict[str, ToolCall] = {}
        self._open_calls: dict[str, None] = {}
        self._replies: dict[Hashable, int] = {}
        self._parts: dict[int, list[AssistantContent]] = {}
        self._grown: set[int] = set()
        self._with_calls: set[int] = set()
        self._results: dict[str, int] = {}
        self._model = ("", "")
        self._leaf_id = ""
        self._model_at: dict[str, tuple[str, str]] = {"": self._model}
        self._timestamp = ""
        self._cwd = ""
        self._contents: dict[str, bytes] = {}
        self._contents_bytes = 0
        self.warnings = Warnings()

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Ids of the calls without a result so far, oldest first."""
        return tuple(self._open_calls)

    def open_call(self, call_id: str, line_number: int) -> ToolCall | None:
        """The call that a result on line `line_number` answers; None, with a warning, for none."""
        if call_id in self._open_calls:
            return self._calls[call_id]
        self.warn(line_number, "a result without an open tool call; left out")
        return None

    def warn(self, line_number: int, problem: str) -> None:
        """Warn that something on line `line_number` cannot be imported."""
        self.warnings.add(f"line {line_number}: {problem}")

    def warn_at(self, line_number: int) -> WarnOf:
        """`warn` for the parts of one line."""
        return partial(self.warn, line_number)

    @property
    def last_id(self) -> str:
        """Id of the entry that the next one follows; empty before the first."""
        return self._leaf_id

    @property
    def next_id(self) -> str:
        """Id that the next entry will get."""
        return f"{len(self._entries) + 1:08x}"

    def at(self, timestamp: str) -> None:
        """Set the time of the entries that follow; an empty one changes nothing."""
        self._timestamp = timestamp or self._timestamp

    def in_folder(self, cwd: str) -> None:
        """Set the agent's working folder; the first one counts."""
        self._cwd = self._cwd or cwd

    def by_model(self, provider: str, model_id: str) -> None:
        """Set the model of the replies that follow; an empty one changes nothing."""
        if not model_id or self._model == (provider, model_id):
            return
        is_first = not self._model[1]
        self._model = (provider, model_id)
        if not is_first:
            self._append(ModelChangeEntry(provider=provider, model_id=model_id))

    def back_to(self, entry_id: str) -> None:
        """Go back to `entry_id` (empty: to the beginning); what came after it stays as a branch."""
        self._leaf_id = entry_id
        self._model = self._model_at[entry_id]
        self._open_calls = dict.fromkeys(self._open_calls_at(entry_id))

    def keep_content(self, text: str) -> str:
        """Keep an earlier content of a file; returns its digest, also if it is too much to keep."""
        content = text.encode("utf-8", "surrogatepass")
        digest = digest_of(content)
        if digest not in self._contents:
            self._contents_bytes += len(content)
            if self._contents_bytes <= MOST_CONTENTS_BYTES:
                self._contents[digest] = content
        return digest

    def name(self, name: str) -> None:
        """Name the session."""
        self._append(SessionInfoEntry(name=name))

    def user(self, content: Sequence[UserContent]) -> None:
        """Add a user message."""
        self._message(UserMessage(content=_simplify(content), timestamp=self._sent_at))

    def user_words(
        self, content: Sequence[UserContent], split: SplitText, *, display: bool
    ) -> None:
        """Add a user message, and before it the text that the program added to it.

        Args:
            content: The message.
            split: Splits a text into the program's part and the user's part.
            display: Whether the program's part is shown.
        """
        said: list[UserContent] = []
        told: list[UserContent] = []
        for part in content:
            if not isinstance(part, TextContent):
                said.append(part)
                continue
            by_program, by_person = split(part.text)
            if by_program:
                told.append(TextContent(text=by_program))
            if by_person:
                said.append(TextContent(text=by_person))
        if told:
            self.note("notice", told, display=display)
        if said:
            self.user(said)

    def note(self, kind: str, content: Sequence[UserContent], *, display: bool = False) -> None:
        """Add something that the other program told the model in the user's name."""
        entry = CustomMessageEntry(custom_type=kind, content=_simplify(content), display=display)
        self._append(entry)

    def pin(self, pin: Pin, text: str) -> None:
        """Add a text that stays in the context through every compaction, unless it is huge."""
        if len(text) <= _MOST_PINNED_CHARS:
            self._append(pin_entry(pin, text))
        else:
            self.note(pin.kind, [TextContent(text=text)])

    def pin_note(self, entry_id: str, pin: Pin) -> None:
        """Make a note stay in the context through every compaction, as `pin` does with a text."""
        index = int(entry_id, 16) - 1
        note = self._entries[index]
        assert isinstance(note, CustomMessageEntry)
        if isinstance(note.content, str) and len(note.content) <= _MOST_PINNED_CHARS:
            pinned = pin_entry(pin, note.content)
            changed = ("custom_type", "content", "display", "details")
            changes = {name: getattr(pinned, name) for name in changed}
            self._entries[index] = note.model_copy(update=changes)

    @property
    def is_turn_over(self) -> bool:
        """Whether the newest message is a reply that is complete and has no calls."""
        newest = next((e for e in reversed(self._entries) if isinstance(e, MessageEntry)), None)
        message = newest.message if newest is not None else None
        return isinstance(message, AssistantMessage) and message.stop_reason == "stop"

    def keep_aside(self, kind: str, data: JsonObject) -> None:
        """Add something that is not part of the context here."""
        self._append(CustomEntry(custom_type=kind, data=data))

    def reply(
        self,
        parts: Sequence[AssistantContent],
        *,
        key: Hashable = None,
        usage: Usage | None = None,
        stop_reason: StopReason | None = None,
        error: str | None = None,
    ) -> None:
        """Add a reply of the model, or one more part of the reply that `key` identifies.

        Without a `stop_reason`, it depends on whether the reply has calls.
        """
        index = self._replies.get(key) if key is not None else None
        if index is None:
            index = len(self._entries)
            begun = AssistantMessage(provider=self._model[0], model=self._model[1])
            self._message(begun.model_copy(update={"timestamp": self._sent_at}))
            self._parts[index] = []
            if key is not None:
                self._replies[key] = index
        calls = [part for part in parts if isinstance(part, ToolCall)]
        if calls:
            self._with_calls.add(index)
        told: StopReason = "toolUse" if index in self._with_calls else "stop"
        changes: dict[str, object] = {"stop_reason": stop_reason or told}
        if usage is not None:
            changes["usage"] = usage
        if error is not None:
            changes["error_message"] = error
        self._change_reply(index, changes)
        self._parts[index] += parts
        self._grown.add(index)
        self._calls.update((call.id, call) for call in calls)
        self._open_calls.update((call.id, None) for call in calls)

    def _change_reply(self, index: int, changes: Mapping[str, object]) -> None:
        entry = self._entries[index]
        assert isinstance(entry, MessageEntry)
        message = entry.message.model_copy(update=changes)
        self._entries[index] = entry.model_copy(update={"message": message})

    def _join_parts(self) -> None:
        """Give the replies that have grown their parts: all at once, as there may be many."""
        for index in self._grown:
            self._change_reply(index, {"content": tuple(self._parts[index])})
        self._grown.clear()

    def result(
        self,
        call_id: str,
        content: Sequence[UserContent],
        *,
        is_error: bool = False,
        details: ToolDetails | None = None,
    ) -> None:
        """Add the result of one call."""
        self._open_calls.pop(call_id, None)
        call = self._calls.get(call_id)
        if is_error:
            details = note_refusal(details or ToolDetails(), text_in(content))
        dumped = (
            details.model_dump(mode="json", by_alias=True, exclude_defaults=True)
            if details
            else None
        )
        self._message(
            ToolResultMessage(
                tool_call_id=call_id,
                tool_name=call.name if call else "unknown",
                content=tuple(content),
                is_error=is_error,
                details=dumped or None,
                timestamp=self._sent_at,
            )
        )
        self._results[call_id] = len(self._entries) - 1

    def has_call(self, call_id: str) -> bool:
        """Whether a reply so far has the call."""
        return call_id in self._calls

    def add_diff(self, call_id: str, diff: str) -> bool:
        """Add a diff to the result of a call; false if it has no result so far."""
        index = self._results.get(call_id)
        if index is None or call_id in self._open_calls:
            return False
        entry = self._entries[index]
        assert isinstance(entry, MessageEntry)
        assert isinstance(entry.message, ToolResultMessage)
        known = entry.message.details
        details = dict(known) if isinstance(known, dict) else {}
        details["diff"] = f"{details.get('diff') or ''}{diff}"
        message = entry.message.model_copy(update={"details": details})
        self._entries[index] = entry.model_copy(update={"message": message})
        return True

    def compaction(self, entry: CompactionEntry) -> None:
        """Add a summary that replaces everything before it."""
        self._append(entry)

    def finish(self, session_id: str) -> ForeignSession:
        """Returns the complete session."""
        self._join_parts()
        first_timestamp = self._entries[0].timestamp if self._entries else ""
        replies = (e.message for e in self._entries if isinstance(e, MessageEntry))
        first = next((m for m in replies if isinstance(m, AssistantMessage) and m.model), None)
        header = Header(
            id=session_id,
            timestamp=first_timestamp,
            cwd=self._cwd,
            provider=first.provider if first else self._model[0],
            model_id=first.model if first else self._model[1],
        )
        warnings = self.warnings.texts
        return ForeignSession(header, tuple(self._entries), warnings, self._contents)

    def _open_calls_at(self, entry_id: str) -> list[str]:
        """The calls of the newest reply up to `entry_id` that had no result there."""
        self._join_parts()
        answered: set[str] = set()
        for _ in range(_MOST_RESULTS):
            if not entry_id:
                break
            entry = self._entries[int(entry_id, 16) - 1]
            match entry:
                case MessageEntry(message=AssistantMessage() as reply):
                    return [call.id for call in reply.tool_calls if call.id not in answered]
                case MessageEntry(message=ToolResultMessage() as result):
                    answered.add(result.tool_call_id)
                case _:
                    pass
            entry_id = entry.parent_id or ""
        return []

    @property
    def _sent_at(self) -> int:
        return milliseconds(self._timestamp)

    def _message(self, message: Message) -> None:
        self._append(MessageEntry(message=message))

    def _append(self, entry: Entry) -> None:
        own_id = self.next_id
        changes: dict[str, object] = {
            "id": own_id,
            "parent_id": self.last_id or None,
            "timestamp": self._timestamp,
        }
        if isinstance(entry, CompactionEntry) and not entry.first_kept_entry_id:
            changes["first_kept_entry_id"] = own_id
        self._entries.append(entry.model_copy(update=changes))
        self._leaf_id = own_id
        self._model_at[own_id] = self._model


def summary_with_requests(summary: str, requests: Sequence[str]) -> str:
    """A summary with the user's messages that the model saw beside it, oldest first."""
    if not requests:
        return summary
    said = "\n\n".join(requests)
    return f"{summary}\n\n## What the user said, word for word\n\n{said}"


def _simplify(content: Sequence[UserContent]) -> str | tuple[UserContent, ...]:
    """A single text part as a plain string, as in our own user messages."""
    if len(content) == 1 and isinstance(content[0], TextContent):
        return content[0].text
    return tuple(content)


@dataclass(slots=True)
class SessionHead:
    """What is known of a session so far.

    Attributes:
        is_session: Whether it is one of the format.
        cwd: Its working folder; empty if unknown.
        name: Its name; empty without one.
        prompt: The first one; searched for last.
        modified: When it last changed; None: when its file did.
        problem: Why it cannot be imported; empty if nothing speaks against it.
    """

    is_session: bool = False
    cwd: str = ""
    name: str = ""
    prompt: str = ""
    modified: datetime | None = None
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether everything has been found."""
        return bool(self.is_session and self.cwd and self.prompt)


@dataclass(slots=True)
class SessionEnd:
    """What is known of the end of a session, whose records are read newest first.

    Attributes:
        last_text: The newest text of the model; empty if none was found.
        is_done: Whether the newest turn came to its end; None if the file does not say.
        context_tokens: The size of the context after the newest reply; 0 if unknown.
        branch: The branch that the agent noted; empty if it notes none.
    """

    last_text: str = ""
    is_done: bool | None = None
    context_tokens: int = 0
    branch: str = ""
    _knows_turn: bool = field(default=False, init=False)

    @property
    def is_whole(self) -> bool:
        """Whether everything that a file can say has been found."""
        return bool(self._knows_turn and self.last_text and self.context_tokens)

    def note_turn(self, *, is_done: bool | None) -> None:
        """Note whether the turn of a record ended with it; None if it does not say.

        What older records say is no longer true.
        """
        if not self._knows_turn:
            self.is_done, self._knows_turn = is_done, True

    def note_reply(self, text: str, usage: Usage | None = None) -> None:
        """Note a text of the model, which may be empty, and what its request used."""
        self.last_text = self.last_text or text
        if usage is not None:
            self.context_tokens = self.context_tokens or usage.context_tokens


def _ignore_end(_end: SessionEnd, _record: JsonObject) -> None:
    pass


def _ignore_record(_head: SessionHead, _number: int, _record: JsonObject) -> None:
    pass


def _ignore_place(_head: SessionHead, _path: Path) -> None:
    pass


def _is_never(_value: JsonValue | Path) -> bool:
    return False


def _says_nothing(_path: Path) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class SessionFinder:
    """Finds the sessions of an agent on this machine, and their facts for a list.

    Attributes:
        agent: The agent's usual name: ``Claude Code``.
        files: Finds files that may be sessions, from the user's home folder and environment.
        read_head: Adds a record, with its line number, to what is known of the file.
        read_place: Adds what is known without the lines of the file: from other files beside it, or
            all of a session that is no file of lines. The lines are read unless it says that this
            is a session.
        read_end: Adds a record to what is known of the end. The newest record comes first.
    """

    agent: str
    files: Callable[[Path, Mapping[str, str]], Iterator[Path]]
    read_head: Callable[[SessionHead, int, JsonObject], None] = _ignore_record
    read_place: Callable[[SessionHead, Path], None] = _ignore_place
    read_end: Callable[[SessionEnd, JsonObject], None] = _ignore_end


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format of sessions.

    Attributes:
        name: Its name after ``--from``.
        read: Reads a whole file; raises `SessionError` if it has another format.
        is_record: Whether only this format has a line with this number and value.
        is_document: The same for a file that is one JSON value.
        finder: Finds those on this machine; None if the agent stores none.
        is_place: Whether only this format has a session at a path that is no such file: one of a
            database, as ``DATABASE/ID``.
        describe_unknown: What a file is that only resembles one of this format, for the message
            that no format reads it; empty for anything else.
    """

    name: str
    read: Callable[[Path], ForeignSession]
    is_record: Callable[[int, JsonObject], bool]
    is_document: Callable[[JsonValue], bool] = _is_never
    finder: SessionFinder | None = None
    is_place: Callable[[Path], bool] = _is_never
    describe_unknown: Callable[[Path], str] = _says_nothing


def sessions_folder(named: str, usual: str, home: Path) -> Path:
    """The folder that a variable names, else the usual one; relative paths start at `home`."""
    return home / (named.removeprefix("~/") or usual)
