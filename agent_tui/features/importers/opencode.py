"""Sessions of opencode (``~/.local/share/opencode/opencode.db``; earlier: ``storage/``)."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.opencode_calls import (
    call_details,
    changes_of,
)
from agent_tui.features.importers.opencode_places import (
    OpencodeMessage,
    OpencodeSession,
    facts_in,
    is_database,
    is_export,
    is_session_info,
    read_opencode_session,
    sessions_in,
    typed_text,
    unknown_database,
)
from agent_tui.features.importers.values import as_timestamp, id_from_content, image_of
from agent_tui.messages import (
    AssistantContent,
    JsonObject,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    UserContent,
)
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    ImportFormat,
    SessionBuilder,
    SessionFinder,
    SessionHead,
    sessions_folder,
)
from agent_tui.sessions.importers.fields import as_count, as_list, as_object, json_document, text_at

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "toolUse",
    "error": "error",
}
_ABORTED = "MessageAbortedError"
_SILENT = frozenset({"step-finish", "snapshot", "patch", "retry"})
_UNNAMED = "New session - "
"""How opencode names a session that no model has named."""

_DEEPEST_SUBAGENT = 3


def read_opencode(path: Path) -> ForeignSession:
    """The session at `path`; messages that the user took back form a separate branch.

    Raises:
        SessionError: It cannot be read, or has no message.
    """
    builder = SessionBuilder()
    session = read_opencode_session(path, builder.warnings)
    _Reader(builder, session).read()
    if not builder.last_id:
        raise SessionError(f"{path} contains no opencode messages.")
    title = text_at(session.info, "title")
    if title and not title.startswith(_UNNAMED):
        builder.name(title)
    return builder.finish(text_at(session.info, "id") or id_from_content(path))


class _Reader:
    def __init__(self, builder: SessionBuilder, session: OpencodeSession) -> None:
        self._builder = builder
        self._session = session
        self._first_of: dict[str, str] = {}
        self._compaction: JsonObject = {}
        self._attributed = {text_at(session.info, "id")}

    def read(self) -> None:
        """Add all messages, and go back to where the user took messages back."""
        info = self._session.info
        self._builder.in_folder(text_at(info, "directory"))
        reverted = text_at(as_object(info.get("revert")), "messageID")
        before_reverted: str | None = None
        for message in self._session.messages:
            message_id = text_at(message.info, "id")
            if message_id and message_id == reverted:
                before_reverted = self._builder.last_id
            self._first_of.setdefault(message_id, self._builder.next_id)
            self._builder.at(_time(as_object(message.info.get("time")).get("created")))
            match message.info.get("role"):
                case "user":
                    self._take_said(message)
                case "assistant" if message.info.get("summary") is True:
                    self._take_summary(message)
                case "assistant":
                    self._take_reply(message)
                case role:
                    self._warn(message, f"unknown role {str(role)[:40]!r}; kept")
                    kept: JsonObject = {"info": message.info, "parts": list(message.parts)}
                    self._builder.keep_aside("unknown", kept)
        if before_reverted is not None and before_reverted != self._builder.last_id:
            self._builder.back_to(before_reverted)
            self._builder.keep_aside("reverted", {"messageID": reverted})

    def _warn(self, message: OpencodeMessage, problem: str) -> None:
        self._builder.warnings.add(f"{message.place}: {problem}")

    def _take_said(self, message: OpencodeMessage) -> None:
        said: list[UserContent] = []
        told: list[UserContent] = []
        for part in message.parts:
            match text_at(part, "type"):
                case "text":
                    target = said if typed_text(part) else told
                    if text := text_at(part, "text"):
                        target.append(TextContent(text=text))
                case "file":
                    said.append(_file(part))
                case "compaction":
                    self._compaction = part
                case "agent" | "subtask" | "system":
                    self._builder.keep_aside("opencode", part)
                case kind if kind not in _SILENT:
                    self._keep_unknown(message, part)
                case _:
                    pass
        if told:
            self._builder.note("notice", told)
        if said:
            self._builder.user(said)

    def _take_summary(self, message: OpencodeMessage) -> None:
        summary = "\n\n".join(filter(None, map(typed_text, message.parts)))
        if not summary.strip():
            self._warn(message, "a compaction without its summary; left out")
            return
        self._builder.compaction(
            CompactionEntry(
                summary=summary,
                first_kept_entry_id=self._first_of.get(
                    text_at(self._compaction, "tail_start_id"), ""
                ),
                reason="manual" if self._compaction.get("auto") is False else "threshold",
                usage=_usage(as_object(message.info.get("tokens"))),
            )
        )
        self._compaction = {}

    def _take_reply(self, message: OpencodeMessage) -> None:
        """Add a message of the model: one reply for each of its steps."""
        info = message.info
        model = as_object(info.get("model"))
        self._builder.by_model(
            text_at(info, "providerID") or text_at(model, "providerID"),
            text_at(info, "modelID") or text_at(model, "modelID", "id"),
        )
        steps = list(_steps(message.parts))
        for number, step in enumerate(steps):
            self._take_step(message, step, is_last=number == len(steps) - 1)

    def _take_step(
        self, message: OpencodeMessage, step: list[JsonObject], *, is_last: bool
    ) -> None:
        parts: list[AssistantContent] = []
        tools: list[JsonObject] = []
        usage: Usage | None = None
        for part in step:
            kind, text = text_at(part, "type"), text_at(part, "text")
            if kind == "reasoning":
                parts += [ThinkingContent(thinking=text)] if text else []
            elif kind == "text":
                parts += [TextContent(text=text)] if text else []
            elif kind == "tool":
                parts.append(_call(part))
                tools.append(part)
            elif kind == "file":
                parts.append(TextContent(text=f"[file: {text_at(part, 'filename', 'url')[:200]}]"))
            elif kind == "step-finish":
                usage = _usage(as_object(part.get("tokens")))
            elif kind not in _SILENT:
                self._keep_unknown(message, part)
        error = as_object(message.info.get("error")) if is_last else {}
        is_aborted = error.get("name") == _ABORTED
        stop: StopReason | None = "aborted" if is_aborted else "error" if error else None
        finish = text_at(message.info, "finish") if is_last and not tools else ""
        self._builder.reply(
            parts,
            usage=usage or (_usage(as_object(message.info.get("tokens"))) if is_last else None),
            stop_reason=stop or _STOP_REASONS.get(finish),
            error=_error_text(error) if error and not is_aborted else None,
        )
        for part in tools:
            self._take_result(message, part)

    def _take_result(self, message: OpencodeMessage, part: JsonObject) -> None:
        call, state = _call(part), as_object(part.get("state"))
        status = state.get("status")
        if status not in ("completed", "error") or call.id not in self._builder.open_calls:
            return
        self._builder.at(_time(as_object(state.get("time")).get("end")))
        text = text_at(state, "output" if status == "completed" else "error")
        content: list[UserContent] = [TextContent(text=text)] if text else []
        content += [_file(as_object(file)) for file in as_list(state.get("attachments"))]
        by_subagent = self._changes_by_subagent(state)
        details = call_details(part, self._builder.keep_content, by_subagent)
        is_error = status == "error" or details.exit_code not in (None, 0)
        self._builder.result(call.id, content, is_error=is_error, details=details)

    def _changes_by_subagent(self, state: JsonObject) -> str:
        session_id = text_at(as_object(state.get("metadata")), "sessionId")
        if not session_id:
            return ""
        return self._changes_in(session_id, 0)

    def _changes_in(self, session_id: str, depth: int) -> str:
        """The diff of what a subagent, and those that it called, changed.

        The first call of a subagent has all of it; for one that is resumed it is empty.
        """
        if session_id in self._attributed or depth >= _DEEPEST_SUBAGENT:
            return ""
        self._attributed.add(session_id)
        other = self._session.other(session_id)
        diffs: list[str] = []
        for message in other.messages if other is not None else ():
            for part in message.parts:
                metadata = as_object(as_object(part.get("state")).get("metadata"))
                if deeper := text_at(metadata, "sessionId"):
                    diffs.append(self._changes_in(deeper, depth + 1))
                else:
                    diffs.append(changes_of(part))
        return "".join(diffs)

    def _keep_unknown(self, message: OpencodeMessage, part: JsonObject) -> None:
        kind = str(part.get("type"))[:40]
        self._warn(message, f"a part of unknown kind {kind!r}; kept as a note")
        self._builder.keep_aside("unknown", part)


def _steps(parts: tuple[JsonObject, ...]) -> Iterator[list[JsonObject]]:
    """The parts of each request; a message may have those of several."""
    step: list[JsonObject] = []
    for part in parts:
        if part.get("type") == "step-start":
            if step:
                yield step
            step = []
        else:
            step.append(part)
    yield step


def _call(part: JsonObject) -> ToolCall:
    return ToolCall(
        id=text_at(part, "callID", "id") or "unknown",
        name=text_at(part, "tool") or "unknown",
        arguments=as_object(as_object(part.get("state")).get("input")),
    )


def _file(part: JsonObject) -> UserContent:
    """An attached image, or the name of another file."""
    url = text_at(part, "url")
    if text_at(part, "mime").startswith("image/") and url.startswith("data:"):
        return image_of(url)
    return TextContent(text=f"[file: {text_at(part, 'filename') or url[:200]}]")


def _error_text(error: JsonObject) -> str:
    return text_at(as_object(error.get("data")), "message") or text_at(error, "name")


def _usage(counted: JsonObject) -> Usage | None:
    """The tokens of one request; older versions count reasoning as part of the output, too."""
    cache = as_object(counted.get("cache"))
    fresh, read = as_count(counted.get("input")), as_count(cache.get("read"))
    stored, total = as_count(cache.get("write")), as_count(counted.get("total"))
    sent = fresh + read + stored
    if not sent:
        return None
    written = as_count(counted.get("output")) + as_count(counted.get("reasoning"))
    written = total - sent if total > sent else written
    return Usage(
        input=fresh,
        output=written,
        cache_read=read,
        cache_write=stored,
        total_tokens=sent + written,
    )


def _time(value: JsonValue) -> str:
    """Milliseconds since 1970 as ISO 8601; empty for anything else."""
    return as_timestamp(as_count(value) / 1000) if as_count(value) else ""


def _is_document(value: JsonValue) -> bool:
    return is_session_info(value) or is_export(value)


def _is_place(path: Path) -> bool:
    return is_database(path) or is_database(path.parent)


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """All sessions, and databases of an unknown kind.

    Sessions that opencode moved from its folders to a database are not repeated.
    """
    data = sessions_folder(environ.get("XDG_DATA_HOME", ""), ".local/share", home) / "opencode"
    databases = sorted(data.glob("opencode*.db"))
    if named := environ.get("OPENCODE_DB", ""):
        databases.append(data / named)
    in_database: set[str] = set()
    for database in dict.fromkeys(databases):
        if unknown_database(database):
            yield database
        for session in sessions_in(database):
            in_database.add(session.name)
            yield session
    for file in data.glob("storage/session/*/*.json"):
        if file.stem not in in_database:
            yield file


def _read_place(head: SessionHead, path: Path) -> None:
    if path.suffix == ".json":
        _read_info(head, path)
        return
    if problem := unknown_database(path):
        head.is_session, head.problem = True, problem
        return
    facts = facts_in(path)
    if facts is None:
        return
    head.is_session = True
    head.cwd, head.prompt = facts.folder, facts.prompt
    head.name = "" if facts.title.startswith(_UNNAMED) else facts.title
    head.modified = _moment(facts.updated_ms)


def _read_info(head: SessionHead, path: Path) -> None:
    """Sessions of subagents are left out."""
    try:
        info = as_object(json_document(path))
    except SessionError:
        return
    if not is_session_info(info) or text_at(info, "parentID"):
        return
    title = text_at(info, "title")
    head.is_session = True
    head.cwd = text_at(info, "directory")
    head.name = "" if title.startswith(_UNNAMED) else title
    head.modified = _moment(as_count(as_object(info.get("time")).get("updated")))


def _moment(milliseconds: int) -> datetime | None:
    text = _time(milliseconds)
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _is_record(_number: int, _record: JsonObject) -> bool:
    return False


OPENCODE: Final = ImportFormat(
    "opencode",
    read_opencode,
    _is_record,
    _is_document,
    SessionFinder("opencode", _files, read_place=_read_place),
    _is_place,
    unknown_database,
)
