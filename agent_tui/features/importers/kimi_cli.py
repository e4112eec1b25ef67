"""Sessions of Kimi CLI, the predecessor of Kimi Code (``~/.kimi/sessions/*/*/wire.jsonl``).

The file says what the screen was told, with times and the changes of files. What the model sees is
in ``context.jsonl`` beside it, which a compaction begins anew: only there is its summary. The
folder of a session is named after the MD5 of its working folder.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.features.importers.diffs import creation, replacement
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
    TextContent,
    ToolCall,
    ToolDetails,
    text_in,
)
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.sessions.importers.builder import (
    ForeignSession,
    SessionBuilder,
    SessionEnd,
    SessionHead,
    Warnings,
    sessions_folder,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    as_text,
    joined_text,
    json_lines,
    read_json,
    text_at,
)

_COMMAND = re.compile(r"/[\w-]+(?::[\w-]+)*(?:\s|$)", re.ASCII)
"""What Kimi CLI takes for a command; a path at the beginning of a prompt is none."""

_COMPACTED = "<system>Previous context has been compacted."
_SILENT = frozenset(
    {
        *("ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "BtwBegin", "BtwEnd"),
        *("CompactionBegin", "HookRequest", "HookResolved", "HookTriggered", "MCPLoadingBegin"),
        *("MCPLoadingEnd", "Notification", "PlanDisplay", "QuestionRequest", "StepRetry"),
        "ToolCallRequest",
    }
)
_MOST_CONTEXTS = 200


def is_kimi_cli(_number: int, record: JsonObject) -> bool:
    """Whether a line is Kimi CLI's."""
    message = record.get("message")
    if text_at(record, "type") == "metadata":
        return "protocol_version" in record and "created_at" not in record
    return "timestamp" in record and isinstance(message, dict) and "payload" in message


def kimi_cli_files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Files that may be sessions of Kimi CLI."""
    folder = sessions_folder(environ.get("KIMI_SHARE_DIR", ""), ".kimi", home)
    return folder.glob("sessions/*/*/wire.jsonl")


def read_cli_place(head: SessionHead, path: Path) -> None:
    """Add folder and name of a session."""
    head.cwd = _folder_of(path)
    head.name = title_of(facts_beside(path.with_name("state.json")))


def read_cli_head(head: SessionHead, _number: int, line: JsonObject) -> None:
    """Add a line to what is known of a session: one begins with its first turn."""
    message = as_object(line.get("message"))
    if message.get("type") == "TurnBegin":
        head.is_session = True
        said = joined_text(as_object(message.get("payload")).get("user_input"))
        head.prompt = head.prompt or said


def read_cli_end(end: SessionEnd, line: JsonObject) -> None:
    """Add a line to what is known of the end of a session."""
    message = as_object(line.get("message"))
    payload = as_object(message.get("payload"))
    match message.get("type"):
        case "TurnEnd":
            end.note_turn(is_done=True)
        case "ContentPart":
            end.note_turn(is_done=False)
            end.note_reply(text_at(payload, "text"))
        case "StatusUpdate":
            end.note_reply("", usage_of(as_object(payload.get("token_usage"))))
        case "TurnBegin" | "ToolCall" | "ToolResult" | "StepInterrupted":
            end.note_turn(is_done=False)
        case _:
            pass


def read_kimi_cli(path: Path) -> ForeignSession:
    """The whole session in `path`, with the summaries of the files beside it.

    Raises:
        SessionError: The file cannot be read, or has no message.
    """
    reader = _Reader(path)
    for number, value in json_lines(path, reader.builder.warnings):
        line = as_object(value)
        if not is_kimi_cli(number, line):
            reader.builder.warn(number, "a line of unknown kind; left out")
        elif "message" in line:
            reader.take(number, line)
    if not reader.builder.last_id:
        raise SessionError(f"{path} contains no Kimi CLI messages.")
    return reader.finish()


class _Reader:
    def __init__(self, path: Path) -> None:
        self.builder = SessionBuilder()
        self._path = path
        self._summaries = _summaries_beside(path)
        self._entry_of: dict[str, str] = {}
        self._step = 0
        self._diffs: dict[str, list[str]] = {}
        self._is_command = False
        self._is_step_open = False
        self._takers: Mapping[str, Callable[[int, JsonObject], None]] = {
            "TurnBegin": self._take_said,
            "SteerInput": self._take_said,
            "StepBegin": self._begin_step,
            "ContentPart": self._take_part,
            "ToolCall": self._take_call,
            "ToolResult": self._take_result,
            "StatusUpdate": self._take_status,
            "StepInterrupted": self._end_step,
            "TurnEnd": self._end_turn,
            "SubagentEvent": self._take_subagent,
            "CompactionEnd": self._take_compaction,
        }

    def take(self, number: int, line: JsonObject) -> None:
        """Handle the next line."""
        message = as_object(line.get("message"))
        payload = as_object(message.get("payload"))
        self.builder.at(as_timestamp(line.get("timestamp")))
        kind = text_at(message, "type")
        if kind in self._takers:
            self._takers[kind](number, payload)
        elif kind not in _SILENT:
            self.builder.warn(number, f"unknown kind {kind[:40]!r}; kept as a note")
            self.builder.keep_aside("unknown", message)

    def finish(self) -> ForeignSession:
        """Returns the complete session."""
        self.builder.in_folder(_folder_of(self._path))
        if title := title_of(facts_beside(self._path.with_name("state.json"))):
            self.builder.name(title)
        return self.builder.finish(_id_of(self._path) or id_from_content(self._path))

    def _take_said(self, number: int, payload: JsonObject) -> None:
        self._step += 1
        content = user_parts(payload.get("user_input"), self.builder.warn_at(number))
        text = text_in(content)
        self._is_command = _COMMAND.match(text.strip()) is not None
        if self._is_command:
            self.builder.keep_aside("command", {"text": text})
        elif content:
            self.builder.user(content)
            self._entry_of[text] = self.builder.last_id

    def _begin_step(self, _number: int, _payload: JsonObject) -> None:
        self._step += 1
        self._is_command = False
        self._is_step_open = False

    def _take_status(self, _number: int, payload: JsonObject) -> None:
        """A request that has ended: what it used."""
        usage = usage_of(as_object(payload.get("token_usage")))
        if usage is not None and self._is_step_open:
            self.builder.reply((), key=self._step, usage=usage)
        self._is_step_open = False

    def _end_step(self, _number: int, _payload: JsonObject) -> None:
        self.builder.reply((), key=self._step, stop_reason="aborted")
        self._is_step_open = False

    def _end_turn(self, number: int, payload: JsonObject) -> None:
        """A turn that ends before its request did was cancelled."""
        if self._is_step_open:
            self._end_step(number, payload)

    def _take_part(self, number: int, payload: JsonObject) -> None:
        parts = reply_part(payload, self.builder.warn_at(number))
        if self._is_command:
            self.builder.keep_aside("command", {"output": text_at(payload, "text")})
            return
        first_id = self.builder.next_id
        self._is_step_open = True
        self.builder.reply(parts, key=self._step)
        for part in parts:
            if isinstance(part, TextContent):
                self._entry_of[part.text] = first_id

    def _take_call(self, number: int, payload: JsonObject) -> None:
        function = as_object(payload.get("function"))
        call = ToolCall(
            id=text_at(payload, "id") or f"call_line_{number}",
            name=text_at(function, "name") or "unknown",
            arguments=_arguments(as_text(function.get("arguments"))),
        )
        first_id = self.builder.next_id
        self._is_step_open = True
        self.builder.reply([call], key=self._step)
        # A call that joins a reply adds no entry: the reply is the newest one.
        is_joined = self.builder.next_id == first_id
        self._entry_of[call.id] = self.builder.last_id if is_joined else first_id

    def _take_result(self, number: int, payload: JsonObject) -> None:
        call = self.builder.open_call(text_at(payload, "tool_call_id"), number)
        if call is None:
            return
        value = as_object(payload.get("return_value"))
        is_error = value.get("is_error") is True
        content = user_parts(value.get("output"), self.builder.warn_at(number))
        message = text_at(value, "message")
        if message and message != text_in(content):
            content.insert(0, TextContent(text=message))
        details = self._details(call, value, text_in(content), is_error=is_error)
        self.builder.result(call.id, content, is_error=is_error, details=details)

    def _details(
        self, call: ToolCall, value: JsonObject, text: str, *, is_error: bool
    ) -> ToolDetails:
        if call.name == "Shell":
            return ToolDetails(exit_code=exit_code_in(text, is_error=is_error))
        if is_error:
            return ToolDetails()
        if call.name == "SetTodoList":
            return ToolDetails(todos=plan_of(call.arguments.get("todos")))
        path = text_at(call.arguments, "path")
        if call.name == "ReadFile" and path:
            return ToolDetails(files=FileTouches(read=(path,)))
        diff = _diff_in(value) + "".join(self._diffs.pop(call.id, ()))
        edited = (path,) if path and call.name in ("WriteFile", "StrReplaceFile") else ()
        return ToolDetails(diff=diff or None, files=FileTouches(edited=edited))

    def _take_subagent(self, _number: int, payload: JsonObject) -> None:
        """What a subagent changed belongs to the call that it answers."""
        event = as_object(payload.get("event"))
        if event.get("type") == "ToolResult":
            value = as_object(as_object(event.get("payload")).get("return_value"))
            parent = text_at(payload, "parent_tool_call_id", "task_tool_call_id")
            if value.get("is_error") is not True and (diff := _diff_in(value)):
                self._diffs.setdefault(parent, []).append(diff)

    def _take_compaction(self, number: int, _payload: JsonObject) -> None:
        summary = next(self._summaries, None)
        if summary is None:
            self.builder.warn(number, "a compaction without its summary; its messages are kept")
            return
        text, kept = summary
        known = (self._entry_of[name] for name in kept if name in self._entry_of)
        self.builder.compaction(
            CompactionEntry(summary=text, first_kept_entry_id=next(known, ""), reason="threshold")
        )


def _arguments(written: str) -> JsonObject:
    try:
        return as_object(read_json(written.encode("utf-8", "replace") or b"{}"))
    except ValueError:
        return {"input": written}


def _diff_in(value: JsonObject) -> str:
    """The diff of the changes that the screen was shown.

    Kimi CLI leaves out the line feed at the end of each text.
    """
    diffs: list[str] = []
    for block in map(as_object, as_list(value.get("display"))):
        if block.get("type") == "diff" and block.get("is_summary") is not True:
            path, start = text_at(block, "path"), as_count(block.get("old_start")) or 1
            before, after = text_at(block, "old_text"), text_at(block, "new_text")
            if not before and start == 1:
                diffs.append(creation(path, f"{after}\n" if after else ""))
            else:
                diffs.append(replacement(path, f"{before}\n", f"{after}\n", start))
    return "".join(diffs)


def _summaries_beside(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The summaries of compactions, oldest first, each with the names of the first kept message.

    The names are its text and the ids of its calls.
    """
    older = [path.with_name(f"context_{number}.jsonl") for number in range(1, _MOST_CONTEXTS)]
    for file in (*older, path.with_name("context.jsonl")):
        found = _summary_in(file)
        if found is not None:
            yield found


def _summary_in(file: Path) -> tuple[str, list[str]] | None:
    summary = ""
    try:
        for _, value in json_lines(refuse_links(file, file.parent), Warnings()):
            line = as_object(value)
            if text_at(line, "role").startswith("_"):
                continue
            parts = [as_object(part) for part in as_list(line.get("content"))]
            texts = [text for part in parts if (text := text_at(part, "text"))]
            if summary:
                calls = (as_object(call) for call in as_list(line.get("tool_calls")))
                ids = [text_at(call, "id") for call in calls]
                text = as_text(line.get("content"))
                return summary, [name for name in (*ids, text, *texts) if name]
            if not texts or not texts[0].startswith(_COMPACTED):
                return None
            summary = "\n\n".join(texts[1:]).strip()
    except SessionError:
        return None
    return (summary, []) if summary else None


def _id_of(path: Path) -> str:
    """The session's id, which is the name of its folder."""
    name = path.parent.name
    return name if re.fullmatch(r"[0-9a-f-]{36}", name) else ""


def _folder_of(path: Path) -> str:
    """The working folder whose MD5 names the folder above the session; empty if unknown."""
    wanted = path.parent.parent.name.rpartition("_")[2]
    known = facts_beside(path.parent.parent.parent.parent / "kimi.json")
    for entry in map(as_object, as_list(known.get("work_dirs"))):
        folder = text_at(entry, "path")
        digest = hashlib.md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        if folder and digest == wanted:
            return folder
    return ""
