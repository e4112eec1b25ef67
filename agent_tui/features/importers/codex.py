"""Sessions of Codex CLI (``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.codex_items import (
    CodexItem,
    call_arguments,
    codex_item,
    codex_items,
    content_of,
    folder_in,
    is_notice,
    is_preamble,
    output_of,
    own_instructions,
    patch_diff,
    split_from_editor,
)
from agent_tui.features.importers.values import as_timestamp, id_from_content
from agent_tui.messages import (
    AssistantContent,
    JsonObject,
    Pin,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
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
    sessions_folder,
    summary_with_requests,
)
from agent_tui.sessions.importers.fields import (
    as_count,
    as_list,
    as_object,
    as_text,
    joined_text,
    text_at,
)

_PROVIDER = "openai"
_SUMMARY_OPENING = "Another language model started to solve this problem"
_KEPT_REQUESTS_CHARS = 80_000
"""Codex keeps the newest 20,000 tokens of the user's messages beside a summary."""

_OWN_INSTRUCTIONS = Pin(kind="instructions", name="your AGENTS.md of Codex", path="codex/AGENTS.md")

_SILENT = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "ghost_snapshot", "other"}
)


def read_codex(path: Path) -> ForeignSession:
    """The whole session in `path`; undone turns form a separate branch.

    Codex writes a reply as single items; those up to the next result or user message are one reply
    here.

    Raises:
        SessionError: The file cannot be read, or has no message.
    """
    reader = _Reader()
    for item in codex_items(path, reader.builder.warnings):
        reader.take(item)
    if not reader.builder.last_id:
        raise SessionError(f"{path} contains no Codex messages.")
    return reader.finish(path)


class _Reader:
    def __init__(self) -> None:
        self.builder = SessionBuilder()
        self._session_id = ""
        self._cwd = ""
        self._provider = _PROVIDER
        self._title = ""
        self._reply_count = 0
        self._is_reply_open = False
        self._requests: list[str] = []
        self._turn_parents: list[str] = []
        self._diffs: dict[str, str] = {}

    def take(self, item: CodexItem) -> None:
        """Handle the next line."""
        self.builder.at(as_timestamp(item.timestamp))
        match item.kind:
            case "session_meta":
                self._take_head(item.payload)
            case "turn_context":
                self._in_folder(text_at(item.payload, "cwd"))
                if model := text_at(item.payload, "model"):
                    self._is_reply_open = False
                    self.builder.by_model(self._provider, model)
            case "response_item":
                self._take_item(item)
            case "compacted":
                self._take_compaction(item)
            case _:
                self._take_event(item.payload)

    def finish(self, path: Path) -> ForeignSession:
        """Returns the complete session."""
        if self._title:
            self.builder.name(self._title)
        return self.builder.finish(self._session_id or id_from_content(path))

    def _take_head(self, head: JsonObject) -> None:
        """A forked session repeats the head of the one it comes from after its own."""
        if not self._session_id:
            self._session_id = text_at(head, "id")
            self._provider = text_at(head, "model_provider") or _PROVIDER
            self._in_folder(text_at(head, "cwd"))

    def _in_folder(self, cwd: str) -> None:
        self._cwd = self._cwd or cwd
        self.builder.in_folder(cwd)

    def _take_item(self, item: CodexItem) -> None:
        payload = item.payload
        kind = text_at(payload, "type")
        if kind == "message":
            self._take_message(payload)
        elif kind == "reasoning":
            texts = _texts(payload, "summary") or _texts(payload, "content")
            if texts:
                self._reply(ThinkingContent(thinking="\n\n".join(texts)))
        elif kind == "web_search_call":
            action = as_object(payload.get("action"))
            about = text_at(action, "query", "url", "pattern")
            self._reply(TextContent(text=f"[Web search: {about}]"))
        elif kind.endswith("_output"):
            self._take_output(item)
        elif kind.endswith("_call"):
            self._take_call(item, kind)
        elif kind not in _SILENT:
            self.builder.warn(item.number, f"an item of unknown kind {kind[:40]!r}; left out")

    def _take_message(self, message: JsonObject) -> None:
        content = content_of(message.get("content"))
        text = text_in(content)
        role = text_at(message, "role")
        if not content:
            return
        if role == "assistant":
            self._reply(*(part for part in content if isinstance(part, TextContent)))
            return
        self._is_reply_open = False
        if role != "user" or is_preamble(text):
            self._in_folder(folder_in(text))
            self.builder.keep_aside("instructions", {"role": role, "text": text})
            if role == "user" and (own := own_instructions(text)):
                self.builder.pin(_OWN_INSTRUCTIONS, own)
        elif is_notice(text):
            self.builder.note("notice", content, display=True)
        elif not text.startswith(_SUMMARY_OPENING):
            self._turn_parents.append(self.builder.last_id)
            self._requests.append(split_from_editor(text)[1])
            self.builder.user_words(content, split_from_editor, display=False)

    def _reply(self, *parts: AssistantContent) -> None:
        """Add a part to the present reply, or begin the next one."""
        self._reply_count += not self._is_reply_open
        self._is_reply_open = True
        self.builder.reply(parts, key=self._reply_count)

    def _take_call(self, item: CodexItem, kind: str) -> None:
        payload = item.payload
        name = text_at(payload, "name") or kind.removesuffix("_call")
        written: JsonValue = payload.get("arguments")
        if kind == "custom_tool_call":
            written = {"input": as_text(payload.get("input"))}
        elif kind == "local_shell_call":
            written = as_object(payload.get("action"))
        call = ToolCall(
            id=text_at(payload, "call_id", "id") or f"call_line_{item.number}",
            name=name,
            arguments=call_arguments(name, written, self._cwd),
        )
        self._reply(call)

    def _take_output(self, item: CodexItem) -> None:
        self._is_reply_open = False
        call = self.builder.open_call(text_at(item.payload, "call_id"), item.number)
        if call is None:
            return
        output = output_of(call.name, call.arguments, item.payload.get("output"))
        diff = self._diffs.pop(call.id, None)
        details = output.details.model_copy(update={"diff": diff})
        self.builder.result(call.id, output.content, is_error=output.is_error, details=details)

    def _take_event(self, event: JsonObject) -> None:
        """Handle an event; most only tell the screen what the items tell the model."""
        match event.get("type"):
            case "token_count" if self._reply_count:
                usage = _usage(as_object(as_object(event.get("info")).get("last_token_usage")))
                if usage is not None:
                    self.builder.reply((), key=self._reply_count, usage=usage)
            case "turn_aborted":
                self._is_reply_open = False
            case "patch_apply_end" if event.get("success") is True:
                self._take_patch(event)
            case "thread_name_updated":
                self._title = text_at(event, "thread_name") or self._title
            case "thread_rolled_back":
                self._go_back(as_count(event.get("num_turns")))
            case _:
                pass

    def _take_patch(self, event: JsonObject) -> None:
        """What a patch changed: it may be told before or after the result of its call.

        A patch of a program that the model ran has an id of its own, and belongs to the open call.
        """
        diff = patch_diff(as_object(event.get("changes")))
        call_id = text_at(event, "call_id")
        if not self.builder.has_call(call_id):
            is_one_open = len(self.builder.open_calls) == 1
            call_id = self.builder.open_calls[0] if is_one_open else ""
        if diff and call_id and not self.builder.add_diff(call_id, diff):
            self._diffs[call_id] = self._diffs.get(call_id, "") + diff

    def _go_back(self, turn_count: int) -> None:
        self._is_reply_open = False
        count = min(turn_count, len(self._turn_parents))
        if count:
            self.builder.back_to(self._turn_parents[-count])
            self.builder.keep_aside("thread_rolled_back", {"turns": count})
            del self._turn_parents[-count:], self._requests[-count:]

    def _take_compaction(self, item: CodexItem) -> None:
        self._is_reply_open = False
        summary = text_at(item.payload, "message").strip()
        if not summary:
            self.builder.warn(
                item.number, "a compaction with an encrypted summary; its messages are kept"
            )
            return
        if summary.startswith(_SUMMARY_OPENING):
            summary = summary.partition("\n")[2].strip() or summary
        summary = summary_with_requests(summary, self._kept_requests(item))
        self.builder.compaction(
            CompactionEntry(summary=summary, first_kept_entry_id="", reason="threshold")
        )

    def _kept_requests(self, item: CodexItem) -> list[str]:
        """The user's messages as the model saw them beside the summary, oldest first."""
        history = item.payload.get("replacement_history")
        if isinstance(history, list):
            users = (as_object(m) for m in history if as_object(m).get("role") == "user")
            texts = [
                split_from_editor("\n".join(_texts(message, "content")))[1] for message in users
            ]
            return [
                text
                for text in texts
                if text
                and not (is_preamble(text) or is_notice(text) or text.startswith(_SUMMARY_OPENING))
            ]
        kept: list[str] = []
        room = _KEPT_REQUESTS_CHARS
        for text in reversed(self._requests):
            room -= len(text)
            if room < 0:
                break
            kept.append(text)
        return kept[::-1]


def _texts(payload: JsonObject, key: str) -> list[str]:
    parts = map(as_object, as_list(payload.get(key)))
    return [text for part in parts if (text := text_at(part, "text"))]


def _usage(counted: JsonObject) -> Usage | None:
    sent, written = as_count(counted.get("input_tokens")), as_count(counted.get("output_tokens"))
    if not sent:
        return None
    read = min(as_count(counted.get("cached_input_tokens")), sent)
    return Usage(input=sent - read, output=written, cache_read=read, total_tokens=sent + written)


def _is_codex(number: int, record: JsonObject) -> bool:
    return "record_type" in record or codex_item(number, record) is not None


def _files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folder = sessions_folder(environ.get("CODEX_HOME", ""), ".codex", home)
    yield from folder.glob("sessions/*/*/*/rollout-*.jsonl")
    yield from folder.glob("sessions/rollout-*.jsonl")


def _read_head(head: SessionHead, number: int, line: JsonObject) -> None:
    item = codex_item(number, line)
    if item is None:
        return
    head.is_session = True
    if item.kind in ("session_meta", "turn_context"):
        head.cwd = head.cwd or text_at(item.payload, "cwd")
    elif item.payload.get("type") == "message" and item.payload.get("role") == "user":
        text = joined_text(item.payload.get("content"))
        head.cwd = head.cwd or folder_in(text)
        if not (is_preamble(text) or is_notice(text)):
            head.prompt = head.prompt or split_from_editor(text)[1]


_TURN_EVENTS = {
    "task_complete": True,
    "turn_complete": True,
    "task_started": False,
    "turn_started": False,
    "turn_aborted": False,
    "user_message": False,
}
"""Events that begin or end a turn, and whether it came to its end with them."""


def _read_end(end: SessionEnd, line: JsonObject) -> None:
    item = codex_item(1, line)
    if item is None:
        return
    kind = text_at(item.payload, "type")
    if kind in _TURN_EVENTS:
        end.note_turn(is_done=_TURN_EVENTS[kind])
    elif kind == "token_count":
        used = as_object(as_object(item.payload.get("info")).get("last_token_usage"))
        end.note_reply("", _usage(used))
    elif item.payload.get("role") == "assistant":
        end.note_reply(joined_text(item.payload.get("content")))


CODEX: Final = ImportFormat(
    "codex",
    read_codex,
    _is_codex,
    finder=SessionFinder("Codex", _files, _read_head, read_end=_read_end),
)
