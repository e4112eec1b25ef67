"""An import format, and building a session from what its files hold."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    JsonObject,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    Usage,
    UserContent,
    UserMessage,
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

SplitText: TypeAlias = Callable[[str], tuple[str, str]]

_MOST_WARNINGS = 200
_MOST_RESULTS = 1_000
"""Of one reply: how far its calls are looked for."""


@dataclass(frozen=True, slots=True)
class ForeignSession:
    """A session another agent wrote, as far as it can be told in our terms.

    Args:
        header: Folder, model and id as the file has them; made up from it where it has none.
        entries: The conversation from its first to its newest entry, in the order of the file.
            Each is the parent of the next, but for files that hold branches: there, the last
            one is on the present branch. The same file always gives the same ids.
        warnings: What could not be read or was left out, one line each with its place.
    """

    header: Header
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]


@dataclass(slots=True)
class Warnings:
    """What was wrong with a file; the number of lines is bounded, the count is not."""

    _texts: list[str] = field(default_factory=list[str])
    _more: int = 0

    def add(self, text: str) -> None:
        """One more problem; `text` begins with its place."""
        if len(self._texts) < _MOST_WARNINGS:
            self._texts.append(text)
        else:
            self._more += 1

    @property
    def texts(self) -> tuple[str, ...]:
        """All of them, a last line counting those that were not kept."""
        return (*self._texts, *([f"{self._more:,} more problems"] if self._more else []))


class SessionBuilder:
    """Collects entries in the order they happened.

    A time that is missing is that of the entry before: no clock of ours is asked, so that the
    same file always gives the same entries.
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._calls: dict[str, ToolCall] = {}
        self._open_calls: dict[str, None] = {}
        self._replies: dict[Hashable, int] = {}
        self._model = ("", "")
        self._leaf_id = ""
        self._model_at: dict[str, tuple[str, str]] = {"": self._model}
        self._timestamp = ""
        self._cwd = ""
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
        """Something on line `line_number` cannot be taken over."""
        self.warnings.add(f"line {line_number}: {problem}")

    @property
    def last_id(self) -> str:
        """Id of the entry that the next one follows; empty before the first."""
        return self._leaf_id

    def at(self, timestamp: str) -> None:
        """What follows happened at `timestamp`; an empty one changes nothing."""
        self._timestamp = timestamp or self._timestamp

    def in_folder(self, cwd: str) -> None:
        """The agent works in `cwd`; the first one told counts."""
        self._cwd = self._cwd or cwd

    def by_model(self, provider: str, model_id: str) -> None:
        """The replies that follow come from this model; empty: nothing is known of it."""
        if not model_id or self._model == (provider, model_id):
            return
        is_first = not self._model[1]
        self._model = (provider, model_id)
        if not is_first:
            self._append(ModelChangeEntry(provider=provider, model_id=model_id))

    def back_to(self, entry_id: str) -> None:
        """What came after `entry_id` (empty: all of it) was taken back; it stays as a branch."""
        self._leaf_id = entry_id
        self._model = self._model_at[entry_id]
        self._open_calls = dict.fromkeys(self._open_calls_at(entry_id))

    def name(self, name: str) -> None:
        """Name the session."""
        self._append(SessionInfoEntry(name=name))

    def user(self, content: Sequence[UserContent]) -> None:
        """Add a message of the person."""
        self._message(UserMessage(content=_simplified(content), timestamp=self._sent_at))

    def user_words(
        self, content: Sequence[UserContent], split: SplitText, *, display: bool
    ) -> None:
        """Add a message under the person's name, and before it what the program put into it.

        Args:
            content: The message.
            split: Parts a text into what the program told the model and what the person said.
            display: Whether what the program told is shown.
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
        """Something the other program told the model in the person's name."""
        entry = CustomMessageEntry(custom_type=kind, content=_simplified(content), display=display)
        self._append(entry)

    def kept_aside(self, kind: str, data: JsonObject) -> None:
        """Something that is not part of the context here."""
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
        """A reply of the model, or one more piece of the one that `key` names.

        Without a `stop_reason` it is told by whether the reply holds calls.
        """
        index = self._replies.get(key) if key is not None else None
        if index is None:
            message = AssistantMessage(provider=self._model[0], model=self._model[1])
        else:
            started = self._entries[index]
            assert isinstance(started, MessageEntry)
            assert isinstance(started.message, AssistantMessage)
            message = started.message
        content = (*message.content, *parts)
        told: StopReason = "toolUse" if any(isinstance(p, ToolCall) for p in content) else "stop"
        changes: dict[str, object] = {"content": content, "stop_reason": stop_reason or told}
        if usage is not None:
            changes["usage"] = usage
        if error is not None:
            changes["error_message"] = error
        if index is None:
            self._message(message.model_copy(update={**changes, "timestamp": self._sent_at}))
            if key is not None:
                self._replies[key] = len(self._entries) - 1
        else:
            grown = message.model_copy(update=changes)
            self._entries[index] = self._entries[index].model_copy(update={"message": grown})
        calls = [part for part in parts if isinstance(part, ToolCall)]
        self._calls.update((call.id, call) for call in calls)
        self._open_calls.update((call.id, None) for call in calls)

    def result(
        self,
        call_id: str,
        content: Sequence[UserContent],
        *,
        is_error: bool = False,
        details: ToolDetails | None = None,
    ) -> None:
        """The answer to one call."""
        self._open_calls.pop(call_id, None)
        call = self._calls.get(call_id)
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

    def compaction(self, entry: CompactionEntry) -> None:
        """A summary that from here on stands for what came before."""
        self._append(entry)

    def finish(self, session_id: str) -> ForeignSession:
        """The whole session."""
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
        return ForeignSession(header, tuple(self._entries), self.warnings.texts)

    def _open_calls_at(self, entry_id: str) -> list[str]:
        """The calls of the newest reply up to `entry_id` that had no result there."""
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
        own_id = f"{len(self._entries) + 1:08x}"
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


def _simplified(content: Sequence[UserContent]) -> str | tuple[UserContent, ...]:
    """A single text as the text itself, as we write messages of the person's."""
    if len(content) == 1 and isinstance(content[0], TextContent):
        return content[0].text
    return tuple(content)


@dataclass(slots=True)
class SessionHead:
    """What is known of a file so far; `prompt` is the first one, and asked for last."""

    is_session: bool = False
    cwd: str = ""
    name: str = ""
    prompt: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing further is looked for."""
        return bool(self.is_session and self.cwd and self.prompt)


@dataclass(frozen=True, slots=True)
class SessionFinder:
    """Where an agent keeps its sessions on this machine, and what a list shows of one.

    Attributes:
        agent: What people call the agent: ``Claude Code``.
        files: The files that may be sessions, by the person's home folder and environment.
        read_head: Takes a record, with the number of its line, into what is known of the file.
    """

    agent: str
    files: Callable[[Path, Mapping[str, str]], Iterator[Path]]
    read_head: Callable[[SessionHead, int, JsonObject], None]


def _is_never(_value: JsonValue) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format of sessions.

    Attributes:
        name: What a person calls it by, after ``--from``.
        read: Reads a whole file; raises `SessionError` where it is none of this format.
        is_record: Whether a line with this number and value is found in this format alone.
        is_document: The same for a file that is one JSON value.
        finder: Finds those on this machine; None where the agent keeps none.
    """

    name: str
    read: Callable[[Path], ForeignSession]
    is_record: Callable[[int, JsonObject], bool]
    is_document: Callable[[JsonValue], bool] = _is_never
    finder: SessionFinder | None = None


def sessions_folder(named: str, usual: str, home: Path) -> Path:
    """The folder a variable names, else the usual one; both from `home` where they begin there."""
    return home / (named.removeprefix("~/") or usual)
