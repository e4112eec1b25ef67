"""Sessions of Kimi Code (``~/.kimi-code/sessions/*/*/agents/main/wire.jsonl``).

The file is the log of one agent. What the model sees is in its lines ``context.*``; the others
tell of requests, turns and the screen. The session's facts are in ``state.json``, three folders up.
Those of its predecessor, Kimi CLI, have other lines: see `kimi_cli`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from agent_tui.errors import SessionError
from agent_tui.features.importers.diffs import creation, replacement
from agent_tui.features.importers.kimi_cli import (
    is_kimi_cli,
    kimi_cli_files,
    read_cli_end,
    read_cli_head,
    read_cli_place,
    read_kimi_cli,
)
from agent_tui.features.importers.kimi_parts import (
    exit_code_in,
    facts_beside,
    plan_of,
    reply_part,
    title_of,
    usage_of,
    user_parts,
)
from agent_tui.features.importers.values import as_timestamp, id_from_content, refuse_links
from agent_tui.messages import (
    FileTouches,
    JsonObject,
    StopReason,
    ToolCall,
    ToolDetails,
    text_in,
)
from agent_tui.regular_files import open_regular_file
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.importers.builder import (
    MOST_CONTENTS_BYTES,
    ForeignSession,
    ImportFormat,
    SessionBuilder,
    SessionEnd,
    SessionFinder,
    SessionHead,
    Warnings,
    sessions_folder,
    summary_with_requests,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    joined_text,
    json_lines,
    text_at,
)

_PROVIDER = "moonshot"
_KEPT_COPY = re.compile(r"file-history/[0-9a-f]{64}@v\d{1,6}")
_AGENT = re.compile(r"[0-9A-Za-z_-]{1,100}")
_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "tool_use": "toolUse",
    "truncated": "length",
    "interrupted": "aborted",
    "error": "error",
}
_CONTEXT = "context."
_ITEMS = frozenset(
    {
        "context.append_message",
        "context.append_loop_event",
        "context.apply_compaction",
        "context.undo",
        "context.clear",
    }
)
_SILENT = frozenset({"context.undone", "context.spliced", "context.update_token_count"})


def read_kimi(path: Path) -> ForeignSession:
    """The whole session in `path`; turns that were taken back form a separate branch.

    Raises:
        SessionError: The file cannot be read, or has no message.
    """
    first = next(json_lines(path, Warnings()), None)
    if first is not None and is_kimi_cli(1, as_object(first[1])):
        return read_kimi_cli(path)
    reader = _Reader(path)
    for number, value in json_lines(path, reader.builder.warnings):
        if isinstance(value, dict):
            reader.take(number, value)
        else:
            reader.builder.warn(number, "not a JSON object; left out")
    if not reader.builder.last_id:
        raise SessionError(f"{path} contains no Kimi messages.")
    return reader.finish()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.builder = SessionBuilder()
        self._path = path
        self._turn_parents: list[str] = []
        self._requests: list[str] = []
        self._copies = _Copies(path.parent)
        self._subagents: dict[str, list[str]] = {}
        self._step = ""
        self._takers: Mapping[str, Callable[[int, JsonObject], None]] = {
            "llm.request": self._take_request,
            "file_history.tracked": self._take_copy,
            "subagent.spawned": self._take_subagent,
            "turn.ended": self._end_turn,
            "context.append_message": self._take_message,
            "context.append_loop_event": self._take_event,
            "context.apply_compaction": self._take_compaction,
            "context.undo": self._go_back,
            "context.clear": self._clear,
        }

    def take(self, number: int, line: JsonObject) -> None:
        """Handle the next line."""
        kind = text_at(line, "type")
        self.builder.at(as_timestamp(as_count(line.get("time")) / 1000 or None))
        if kind in self._takers:
            self._takers[kind](number, line)
        elif kind.startswith(_CONTEXT) and kind not in _SILENT:
            self.builder.warn(number, f"unknown kind {kind[:40]!r}; kept as a note")
            self.builder.keep_aside("unknown", line)

    def finish(self) -> ForeignSession:
        """Returns the complete session."""
        state = facts_beside(_state_of(self._path))
        self.builder.in_folder(text_at(state, "cwd"))
        if title := title_of(state):
            self.builder.name(title)
        return self.builder.finish(text_at(state, "id") or id_from_content(self._path))

    def _take_request(self, _number: int, line: JsonObject) -> None:
        if line.get("kind") == "loop":
            self.builder.by_model(_PROVIDER, text_at(line, "model", "modelAlias"))

    def _take_copy(self, _number: int, line: JsonObject) -> None:
        self._copies.track(text_at(line, "path"), as_object(line.get("entry")))

    def _take_subagent(self, _number: int, line: JsonObject) -> None:
        spawned = self._subagents.setdefault(text_at(line, "parentToolCallId"), [])
        spawned.append(text_at(line, "subagentId"))

    def _end_turn(self, _number: int, line: JsonObject) -> None:
        if line.get("reason") == "failed" and self._step:
            error = text_at(as_object(line.get("error")), "message") or "failed"
            self.builder.reply((), key=self._step, stop_reason="error", error=error)

    def _clear(self, _number: int, _line: JsonObject) -> None:
        self._turn_parents.clear()
        self._requests.clear()
        self.builder.back_to("")
        self.builder.keep_aside("cleared", {})

    def _take_message(self, number: int, line: JsonObject) -> None:
        message = as_object(line.get("message"))
        content = user_parts(message.get("content"), self.builder.warn_at(number))
        origin = as_object(message.get("origin"))
        if message.get("role") != "user":
            self.builder.warn(number, "a message of unknown role; kept as a note")
            self.builder.keep_aside("unknown", message)
        elif not content:
            pass
        elif text_at(origin, "kind") in ("user", ""):
            self._turn_parents.append(self.builder.last_id)
            self._requests.append(text_in(content))
            self.builder.user(content)
        else:
            self.builder.note(text_at(origin, "variant", "kind"), content)

    def _take_event(self, number: int, line: JsonObject) -> None:
        event = as_object(line.get("event"))
        step = text_at(event, "stepUuid", "uuid")
        match event.get("type"):
            case "step.begin":
                self._step = step
            case "content.part":
                self._step = step
                parts = reply_part(as_object(event.get("part")), self.builder.warn_at(number))
                self.builder.reply(parts, key=step)
            case "tool.call":
                self._step = step
                call = ToolCall(
                    id=text_at(event, "toolCallId") or f"call_line_{number}",
                    name=text_at(event, "name") or "unknown",
                    arguments=as_object(event.get("args")),
                )
                self._copies.note(call)
                self.builder.reply([call], key=step)
            case "tool.result":
                self._take_result(number, event)
            case "step.end":
                self.builder.reply(
                    (),
                    key=step,
                    usage=usage_of(as_object(event.get("usage"))),
                    stop_reason=_STOP_REASONS.get(text_at(event, "finishReason")),
                )
            case kind:
                self.builder.warn(number, f"an event of unknown kind {str(kind)[:40]!r}; left out")

    def _take_result(self, number: int, event: JsonObject) -> None:
        call = self.builder.open_call(text_at(event, "toolCallId"), number)
        if call is None:
            return
        result = as_object(event.get("result"))
        content = user_parts(result.get("output"), self.builder.warn_at(number))
        is_error = result.get("isError") is True
        details = self._details(call, text_in(content), is_error=is_error)
        self.builder.result(call.id, content, is_error=is_error, details=details)

    def _details(self, call: ToolCall, text: str, *, is_error: bool) -> ToolDetails:
        if call.name == "Bash":
            return ToolDetails(exit_code=exit_code_in(text, is_error=is_error))
        path = text_at(call.arguments, "path")
        if is_error or not path:
            todos = plan_of(call.arguments.get("todos")) if call.name == "TodoList" else None
            diffs = (self._changes_by(agent) for agent in self._subagents.get(call.id, ()))
            return ToolDetails(todos=None if is_error else todos, diff="".join(diffs) or None)
        if call.name == "Read":
            return ToolDetails(files=FileTouches(read=(path,)))
        if call.name not in ("Write", "Edit"):
            return ToolDetails()
        before = self._copies.before(call.id)
        is_new = before is None and self._copies.is_new(call.id)
        content = text_at(call.arguments, "content")
        return ToolDetails(
            diff=creation(path, content) or None if is_new and call.name == "Write" else None,
            files=FileTouches(written=(path,)) if is_new else FileTouches(edited=(path,)),
            digest_before=self.builder.keep_content(before) if before is not None else "",
        )

    def _changes_by(self, agent: str) -> str:
        """The diff of what a subagent changed; the copies are the main agent's."""
        if not _AGENT.fullmatch(agent):
            return ""
        calls: dict[str, ToolCall] = {}
        diffs: list[str] = []
        try:
            agents = self._path.parent.parent
            lines = json_lines(refuse_links(agents / agent / "wire.jsonl", agents), Warnings())
            for _, value in lines:
                event = as_object(as_object(value).get("event"))
                call_id = text_at(event, "toolCallId")
                if event.get("type") == "tool.call":
                    calls[call_id] = ToolCall(
                        id=call_id,
                        name=text_at(event, "name"),
                        arguments=as_object(event.get("args")),
                    )
                failed = as_object(event.get("result")).get("isError") is True
                if event.get("type") == "tool.result" and call_id in calls and not failed:
                    diffs.append(self._copies.change_by(calls[call_id]))
        except SessionError:
            return ""
        return "".join(diffs)

    def _take_compaction(self, number: int, line: JsonObject) -> None:
        summary = text_at(line, "summary", "contextSummary").strip()
        if not summary:
            self.builder.warn(number, "a compaction without its summary; left out")
            return
        kept = as_count(line.get("keptUserMessageCount"))
        self.builder.compaction(
            CompactionEntry(
                summary=summary_with_requests(summary, self._requests[-kept:] if kept else ()),
                first_kept_entry_id="",
                tokens_before=as_count(line.get("tokensBefore")),
                tokens_after=as_count(line.get("tokensAfter")),
                reason="threshold",
            )
        )

    def _go_back(self, _number: int, line: JsonObject) -> None:
        count = min(as_count(line.get("count")), len(self._turn_parents))
        if count:
            self.builder.back_to(self._turn_parents[-count])
            self.builder.keep_aside("undone", {"turns": count})
            del self._turn_parents[-count:], self._requests[-count:]


class _Copies:
    """The copies of files that Kimi Code makes before the first change of each in a turn.

    Args:
        folder: The folder of the agent.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tracked: dict[str, str | None] = {}
        self._before: dict[str, str | None] = {}
        self._now: dict[str, str] = {}

    def track(self, path: str, entry: JsonObject) -> None:
        """Note the copy of a file, relative to the working folder; None: there was no file."""
        key = entry.get("key")
        self._tracked[path] = key if isinstance(key, str) else None

    def note(self, call: ToolCall) -> None:
        """Connect a call with the copy that was made for it, if there is one."""
        if call.name not in ("Write", "Edit"):
            return
        named, longest = Path(text_at(call.arguments, "path")).parts, 0
        found: str | None = None
        for path in self._tracked:
            parts = Path(path).parts
            if len(parts) > longest and named[-len(parts) :] == parts:
                found, longest = path, len(parts)
        if found is not None:
            self._before[call.id] = self._tracked.pop(found)

    def is_new(self, call_id: str) -> bool:
        """Whether there was no file before the call."""
        return call_id in self._before and self._before[call_id] is None

    def before(self, call_id: str) -> str | None:
        """The file's content before the call; None if it is unknown or there was none."""
        key = self._before.get(call_id)
        if key is None or not _KEPT_COPY.fullmatch(key):
            return None
        try:
            copy = refuse_links(self._folder / key, self._folder)
            with open_regular_file(copy, follow_links=False) as file:
                content = file.read(MOST_CONTENTS_BYTES + 1)
            return content.decode("utf-8") if len(content) <= MOST_CONTENTS_BYTES else None
        except (OSError, ValueError, SessionError):
            return None

    def change_by(self, call: ToolCall) -> str:
        """The diff of what a subagent's call changed; empty if the file before it is unknown."""
        if call.name not in ("Write", "Edit"):
            return ""
        self.note(call)
        path, given = text_at(call.arguments, "path"), call.arguments
        before = self.before(call.id) if call.id in self._before else self._now.pop(path, None)
        is_new, after = self.is_new(call.id), text_at(given, "content")
        if call.name == "Edit":
            old, most = text_at(given, "old_string"), -1 if given.get("replace_all") is True else 1
            if not before or not old or old not in before:
                return ""
            after = before.replace(old, text_at(given, "new_string"), most)
        if before is None and not is_new:
            return ""
        self._now[path] = after
        return creation(path, after) if before is None else replacement(path, before, after)


def _state_of(path: Path) -> Path:
    """The facts of the session whose agent's log is at `path`."""
    return path.parent.parent.parent / "state.json"


def _is_kimi(number: int, record: JsonObject) -> bool:
    kind = text_at(record, "type")
    is_head = kind == "metadata" and "protocol_version" in record
    is_item = kind in _ITEMS and ("message" in record or "event" in record or "agentId" in record)
    return is_head or is_item or is_kimi_cli(number, record)


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = sessions_folder(environ.get("KIMI_CODE_HOME", ""), ".kimi-code", home)
    yield from folder.glob("sessions/*/*/agents/main/wire.jsonl")
    yield from kimi_cli_files(home, environ)


def _read_place(head: SessionHead, path: Path) -> None:
    if path.parent.name != "main":
        read_cli_place(head, path)
        return
    state = facts_beside(_state_of(path))
    head.cwd, head.name = text_at(state, "cwd"), title_of(state)


def _read_head(head: SessionHead, number: int, line: JsonObject) -> None:
    if is_kimi_cli(number, line):
        read_cli_head(head, number, line)
        return
    if not _is_kimi(number, line):
        return
    head.is_session = True
    message = as_object(line.get("message"))
    if line.get("type") == "context.append_message":
        origin = as_object(message.get("origin"))
        if message.get("role") == "user" and text_at(origin, "kind") in ("user", ""):
            head.prompt = head.prompt or joined_text(as_list(message.get("content")))


def _read_end(end: SessionEnd, line: JsonObject) -> None:
    if is_kimi_cli(1, line):
        read_cli_end(end, line)
        return
    event = as_object(line.get("event"))
    match line.get("type"):
        case "turn.ended":
            end.note_turn(is_done=line.get("reason") not in ("failed", "cancelled"))
        case "context.append_message":
            end.note_turn(is_done=False)
        case "context.append_loop_event":
            end.note_turn(is_done=event.get("finishReason") == "end_turn")
            part = as_object(event.get("part"))
            end.note_reply(text_at(part, "text"), usage_of(as_object(event.get("usage"))))
        case _:
            pass


KIMI: Final = ImportFormat(
    "kimi",
    read_kimi,
    _is_kimi,
    finder=SessionFinder("Kimi", _files, _read_head, _read_place, _read_end),
)
