"""Sessions of Gemini CLI (``~/.gemini/tmp/PROJECT/chats/session-*.jsonl``; earlier: ``.json``).

A line is a message, an update of the session's facts (``$set``), or a step back (``$rewindTo``). A
message is written again when its calls have results. An update with ``messages`` replaces the
conversation: after a resume and a cancelled turn by parts of it, after a compression by a summary.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.gemini_calls import call_details, result_of, said_parts
from agent_tui.features.importers.values import (
    as_call_id,
    as_timestamp,
    id_from_content,
    read_first_line,
    refuse_links,
)
from agent_tui.messages import (
    AssistantContent,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    UserContent,
    text_in,
)
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    ImportFormat,
    SessionBuilder,
    SessionEnd,
    SessionFinder,
    SessionHead,
    Warnings,
    WarnOf,
    sessions_folder,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    as_text,
    joined_text,
    json_document,
    json_lines,
    text_at,
)

_PROVIDER = "gemini"
_SNAPSHOT = "<state_snapshot>"
_SNAPSHOT_END = "</state_snapshot>"
_ACKNOWLEDGED = "Got it. Thanks for the additional context!"
"""The reply that Gemini CLI puts below a summary."""

_MOST_FOLDERS = 1_000
_LONGEST_PATH = 4_096
"""What Linux opens."""

_OPENING = "<session_context>"
_OF_HOOK = "<hook_context>"
_FOLDER = re.compile(r"\*\*Workspace Directories:\*\*\s+- ([^\n]{1,4096})")
_NOTICES = frozenset({"info", "warning", "error"})
_HEAD = frozenset({"sessionId", "projectHash"})


def read_gemini(path: Path) -> ForeignSession:
    """The conversation in `path`; cancelled and undone turns form separate branches.

    Raises:
        SessionError: The file cannot be read, or has no message.
    """
    reader = _Reader(path)
    records = list(_records(path, reader.builder.warnings))
    reader.learn_messages(records)
    for number, record in records:
        reader.take(number, record)
    if not reader.builder.last_id:
        raise SessionError(f"{path} contains no Gemini CLI messages.")
    return reader.finish()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.builder = SessionBuilder()
        self._path = path
        self._whole: dict[str, JsonObject] = {}
        self._first_of: dict[str, str] = {}
        self._last_of: dict[str, str] = {}
        self._live: list[str] = []
        self._session_id = ""
        self._project = ""
        self._title = ""

    def learn_messages(self, records: Sequence[tuple[int, JsonObject]]) -> None:
        """Find the most complete version of each message: its last line of its own."""
        for _, record in records:
            if message_id := text_at(record, "id"):
                self._whole[message_id] = record

    def take(self, number: int, record: JsonObject) -> None:
        """Handle the next line."""
        changes = as_object(record.get("$set"))
        if "$rewindTo" in record:
            self._rewind(text_at(record, "$rewindTo"))
        elif "id" in record:
            self._take_message(number, record)
        elif changes or _HEAD & record.keys():
            facts = changes or record
            self._session_id = self._session_id or text_at(facts, "sessionId")
            self._project = self._project or text_at(facts, "projectHash")
            self._title = text_at(facts, "summary") or self._title
            self.builder.in_folder(_first_text(facts.get("directories")))
            if isinstance(facts.get("messages"), list):
                self._take_messages(number, as_list(facts.get("messages")))
        elif "$set" not in record:
            self.builder.warn(number, "a line of unknown kind; left out")

    def finish(self) -> ForeignSession:
        """Returns the complete session."""
        if self._title:
            self.builder.name(" ".join(self._title.split())[:200])
        self.builder.in_folder(_root_beside(self._path))
        self.builder.in_folder(_root_by_hash(self._project, self._whole.values()))
        return self.builder.finish(self._session_id or id_from_content(self._path))

    def _rewind(self, message_id: str) -> None:
        """Go back to before a message; without it, Gemini CLI begins anew."""
        at = self._live.index(message_id) if message_id in self._live else 0
        self._go_to(self._live[:at])

    def _go_to(self, live: list[str]) -> None:
        """Continue after the messages in `live`, all of which are known."""
        self._live = live
        leaf = self._last_of[live[-1]] if live else ""
        if leaf != self.builder.last_id:
            self.builder.back_to(leaf)

    def _take_messages(self, number: int, messages: list[JsonValue]) -> None:
        """Replace the conversation."""
        given = [message for message in map(as_object, messages) if text_at(message, "id")]
        if len(given) < len(messages):
            self.builder.warn(number, f"{len(messages) - len(given)} messages without id; left out")
        summaries = [
            at
            for at, message in enumerate(given)
            if text_at(message, "id") not in self._last_of and _snapshot_in(message)
        ]
        known = [i for message in given if (i := text_at(message, "id")) in self._last_of]
        if summaries:
            self._take_summary(number, given[summaries[0]], given[summaries[0] + 1 :])
            return
        self._go_to(known)
        for message in given:
            self._take_message(number, message)

    def _take_summary(self, number: int, summary: JsonObject, below: list[JsonObject]) -> None:
        """Add a compression, with the kept messages, which are copies with ids of their own."""
        self.builder.at(as_timestamp(summary.get("timestamp")))
        acknowledged = bool(below) and joined_text(below[0].get("content")) == _ACKNOWLEDGED
        tail = [message for message in below[acknowledged:] if _signature(message)]
        spoken = [i for i in self._live if i in self._whole and _signature(self._whole[i])]
        kept = spoken[len(spoken) - len(tail) :] if len(tail) <= len(spoken) else []
        alike = [_signature(self._whole[i]) for i in kept] == [_signature(m) for m in tail]
        first_kept = self._first_of[kept[0]] if kept and alike else ""
        self.builder.compaction(
            CompactionEntry(
                summary=_snapshot_in(summary), first_kept_entry_id=first_kept, reason="threshold"
            )
        )
        self._note(text_at(summary, "id"), self.builder.last_id)
        for message in below:
            if (alike and kept) or (message is below[0] and acknowledged):
                self._note(text_at(message, "id"), self.builder.last_id)
            else:
                self._take_message(number, message)

    def _note(self, message_id: str, first_id: str) -> None:
        self._first_of[message_id] = first_id
        self._last_of[message_id] = self.builder.last_id
        self._live.append(message_id)

    def _take_message(self, number: int, message: JsonObject) -> None:
        """Add a message where it first appears, as its last version has it."""
        message_id = text_at(message, "id")
        if message_id in self._last_of:
            return
        before, first_id = self.builder.last_id, self.builder.next_id
        message = self._whole.setdefault(message_id, message)
        self.builder.at(as_timestamp(message.get("timestamp")))
        match message.get("type"):
            case "user":
                self._take_said(number, message)
            case "gemini":
                self._take_reply(number, message)
            case str() as kind if kind in _NOTICES:
                if text := joined_text(message.get("content")):
                    self.builder.keep_aside(kind, {"text": text})
            case kind:
                self.builder.warn(number, f"a message of unknown kind {str(kind)[:40]!r}; kept")
                self.builder.keep_aside("unknown", message)
        self._note(message_id, first_id if self.builder.last_id != before else before)

    def _take_said(self, number: int, message: JsonObject) -> None:
        content = said_parts(message.get("content"), self.builder.warn_at(number))
        text = text_in(content).strip()
        if text.startswith(_OPENING):
            found = _FOLDER.search(text)
            self.builder.in_folder(found[1].strip() if found else "")
            self.builder.keep_aside("instructions", {"role": "user", "text": text})
        elif text.startswith(("/", "?")) and len(content) == 1 and "\n" not in text:
            self.builder.keep_aside("command", {"text": text})
        elif text.startswith(_OF_HOOK):
            self.builder.note("notice", content)
        elif content:
            typed = joined_text(message.get("displayContent"))
            self.builder.user_words(content, _split_typed(content, typed), display=False)
        self._take_responses(number, message)

    def _take_responses(self, number: int, message: JsonObject) -> None:
        """Results that a message has and the reply with the call has not."""
        for part in map(as_object, as_list(message.get("content"))):
            response = as_object(part.get("functionResponse"))
            call_id = as_call_id(text_at(response, "id"))
            if call_id in self.builder.open_calls:
                told: JsonObject = {"result": [part]}
                content, is_error = result_of(told, self.builder.warn_at(number))
                self.builder.result(call_id, content, is_error=is_error)

    def _take_reply(self, number: int, message: JsonObject) -> None:
        self.builder.by_model(_PROVIDER, text_at(message, "model"))
        parts = _thoughts(message)
        parts += _reply_parts(message, self.builder.warn_at(number))
        calls = [as_object(call) for call in as_list(message.get("toolCalls"))]
        named = {part.id for part in parts if isinstance(part, ToolCall)}
        for at, call in enumerate(calls):
            call_id = as_call_id(text_at(call, "id") or f"call_line_{number}_{at}")
            call = {**call, "id": call_id}
            calls[at] = call
            if call_id not in named:
                name, arguments = text_at(call, "name") or "unknown", as_object(call.get("args"))
                parts.append(ToolCall(id=call_id, name=name, arguments=arguments))
        self.builder.reply(parts, usage=_usage(as_object(message.get("tokens"))))
        for call in calls:
            self._take_result(number, call)

    def _take_result(self, number: int, call: JsonObject) -> None:
        if "result" not in call and call.get("status") not in ("error", "cancelled"):
            return
        call_id = text_at(call, "id")
        if call_id not in self.builder.open_calls:
            return
        content, is_error = result_of(call, self.builder.warn_at(number))
        details = call_details(
            call, text_in(content), self.builder.keep_content, self._changes_by_subagent(call)
        )
        is_error = is_error or details.exit_code not in (None, 0)
        self.builder.result(call_id, content, is_error=is_error, details=details)

    def _changes_by_subagent(self, call: JsonObject) -> str:
        """The diff of what the subagent of a call changed; its file is in a folder beside ours."""
        agent_id = text_at(call, "agentId")
        if not agent_id or not _is_plain(agent_id) or not _is_plain(self._session_id):
            return ""
        diffs: list[str] = []
        file = self._path.parent / self._session_id / f"{agent_id}.jsonl"
        try:
            records = list(_records(refuse_links(file, self._path.parent), Warnings()))
        except SessionError:
            return ""
        whole = {text_at(record, "id"): record for _, record in records}
        for record in whole.values():
            for done in map(as_object, as_list(record.get("toolCalls"))):
                diffs.append(call_details(done, "", self.builder.keep_content, "").diff or "")
        return "".join(diffs)


def _is_plain(name: str) -> bool:
    """Whether `name` can only be a file in a folder, never a path out of it."""
    return re.fullmatch(r"[0-9A-Za-z_-]{1,100}", name) is not None


def _snapshot_in(message: JsonObject) -> str:
    """The summary in a message; empty if it has none."""
    text = joined_text(message.get("content")).strip()
    if message.get("type") != "user" or not text.startswith(_SNAPSHOT):
        return ""
    return text.removeprefix(_SNAPSHOT).removesuffix(_SNAPSHOT_END).strip()


def _signature(message: JsonObject) -> tuple[str, ...]:
    """What a message says and calls, in both forms that it is written in; empty for results."""
    parts = map(as_object, as_list(message.get("content")))
    in_parts = [as_object(part.get("functionCall")) for part in parts if "functionCall" in part]
    calls = in_parts or [as_object(call) for call in as_list(message.get("toolCalls"))]
    texts = [
        text_at(part, "text")
        for part in map(as_object, as_list(message.get("content")))
        if part.get("thought") is not True
    ]
    text = as_text(message.get("content")) or "".join(texts)
    if message.get("type") not in ("user", "gemini") or not (text or calls):
        return ()
    return (text_at(message, "type"), text, *(text_at(call, "id", "name") for call in calls))


def _split_typed(content: Sequence[UserContent], typed: str) -> "_Split":
    """Splits the texts of a message into those that the user typed and the others.

    Without the typed text, or if no part is it, the user typed all.
    """
    texts = [part.text for part in content if isinstance(part, TextContent)]
    return _Split(typed if typed in texts else "")


class _Split:
    def __init__(self, typed: str) -> None:
        self._typed = typed

    def __call__(self, text: str) -> tuple[str, str]:
        return (text, "") if self._typed and text != self._typed else ("", text)


def _thoughts(message: JsonObject) -> list[AssistantContent]:
    thoughts: list[AssistantContent] = []
    for thought in map(as_object, as_list(message.get("thoughts"))):
        texts = (text_at(thought, "subject"), text_at(thought, "description"))
        if said := "\n\n".join(text for text in texts if text):
            thoughts.append(ThinkingContent(thinking=said))
    return thoughts


def _reply_parts(message: JsonObject, warn: WarnOf) -> list[AssistantContent]:
    content = message.get("content")
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    parts: list[AssistantContent] = []
    for at, part in enumerate(map(as_object, as_list(content))):
        call = as_object(part.get("functionCall"))
        text = text_at(part, "text")
        if part.get("thought") is True:
            parts.append(ThinkingContent(thinking=text))
        elif text:
            parts.append(TextContent(text=text))
        elif call:
            name = text_at(call, "name") or "unknown"
            call_id = as_call_id(text_at(call, "id") or f"{text_at(message, 'id')}_{at}")
            parts.append(ToolCall(id=call_id, name=name, arguments=as_object(call.get("args"))))
        elif part:
            warn(f"a part of unknown kind {next(iter(part))[:40]!r}; left out")
    return parts


def _usage(counted: JsonObject) -> Usage | None:
    sent, read = as_count(counted.get("input")), as_count(counted.get("cached"))
    written = as_count(counted.get("output")) + as_count(counted.get("thoughts"))
    if not sent:
        return None
    read = min(read, sent)
    return Usage(input=sent - read, output=written, cache_read=read, total_tokens=sent + written)


def _first_text(values: JsonValue) -> str:
    return next((text for value in as_list(values) if (text := as_text(value))), "")


def _root_beside(path: Path) -> str:
    """The project's folder as Gemini CLI notes it in the folder above the sessions."""
    return read_first_line(path.parent.parent / ".project_root")


def _root_by_hash(project: str, messages: Iterable[JsonObject]) -> str:
    """The folder above a file of a call whose SHA-256 is the project's hash; empty if none is."""
    tried: set[str] = set()
    for message in messages:
        for call in map(as_object, as_list(message.get("toolCalls"))):
            given = text_at(as_object(call.get("args")), "file_path", "absolute_path", "dir_path")
            is_path = given.startswith("/") and len(given) <= _LONGEST_PATH
            for folder in PurePath(given).parents if project and is_path else ():
                name = str(folder)
                if len(tried) >= _MOST_FOLDERS:
                    return ""
                if name not in tried:
                    tried.add(name)
                    if hashlib.sha256(name.encode("utf-8", "replace")).hexdigest() == project:
                        return name
    return ""


def _records(path: Path, warnings: Warnings) -> Iterator[tuple[int, JsonObject]]:
    """The lines of `path`, or the one document of earlier versions, which is the same as a head.

    Raises:
        SessionError: The file cannot be read.
    """
    for _, value in json_lines(path, Warnings()):
        if not _is_gemini(1, as_object(value)):
            break
        for number, line in json_lines(path, warnings):
            if isinstance(line, dict):
                yield number, line
            else:
                warnings.add(f"line {number}: not a JSON object; left out")
        return
    document = json_document(path)
    if not _is_document(document):
        raise SessionError(f"{path} contains no Gemini CLI messages.")
    yield 1, as_object(document)


def _is_gemini(_number: int, record: JsonObject) -> bool:
    return record.keys() >= _HEAD or "$set" in record or "$rewindTo" in record


def _is_document(value: JsonValue) -> bool:
    return as_object(value).keys() >= _HEAD and "messages" in as_object(value)


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = sessions_folder(environ.get("GEMINI_CLI_HOME", ""), "", home) / ".gemini"
    yield from folder.glob("tmp/*/chats/session-*.jsonl")
    yield from folder.glob("tmp/*/chats/session-*.json")


def _read_place(head: SessionHead, path: Path) -> None:
    head.cwd = _root_beside(path)
    if path.suffix == ".json":
        try:
            document = json_document(path)
        except SessionError:
            return
        if _is_document(document):
            whole = as_object(document)
            _read_head(head, 1, whole)
            messages = map(as_object, as_list(whole.get("messages")))
            head.cwd = head.cwd or _root_by_hash(text_at(whole, "projectHash"), messages)
            head.is_session = True


def _read_head(head: SessionHead, number: int, line: JsonObject) -> None:
    if _is_gemini(number, line):
        facts = as_object(line.get("$set")) or line
        head.is_session = True
        head.name = text_at(facts, "summary") or head.name
        messages = as_list(facts.get("messages"))
    else:
        messages = [line]
    for message in map(as_object, messages):
        text = joined_text(message.get("content")).strip()
        if text.startswith(_OPENING) and (found := _FOLDER.search(text)):
            head.cwd = head.cwd or found[1].strip()
        elif message.get("type") == "user" and not text.startswith(("<", "/", "?")):
            head.prompt = head.prompt or text


def _read_end(end: SessionEnd, line: JsonObject) -> None:
    match line.get("type"):
        case "gemini":
            end.note_turn(is_done=not as_list(line.get("toolCalls")))
            usage = _usage(as_object(line.get("tokens")))
            end.note_reply(joined_text(line.get("content")), usage)
        case "user":
            end.note_turn(is_done=False)
        case _:
            pass


GEMINI: Final = ImportFormat(
    "gemini",
    read_gemini,
    _is_gemini,
    _is_document,
    finder=SessionFinder("Gemini CLI", _files, _read_head, _read_place, _read_end),
)
