"""Event histories of OpenHands: actions and the observations they led to."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.values import (
    as_exit_code,
    as_timestamp,
    id_from_content,
    image_of,
)
from agent_tui.messages import AssistantContent, JsonObject, TextContent, ToolCall
from agent_tui.sessions.importers.builder import ForeignSession, SessionBuilder, Warnings
from agent_tui.sessions.importers.fields import (
    as_list,
    as_object,
    as_text,
    json_document,
    json_lines,
    text_at,
)
from tests.support.importers.editor_files import editor_details, is_refused_edit
from tests.support.importers.openai_style import (
    calls_of,
    content_text,
    model_of,
    usage_of,
)

_FOLDER = "/workspace"
"""Where OpenHands puts the work, inside its container."""

_SILENT = frozenset(
    {"", "agent_state_changed", "change_agent_state", "null", "recall", "system", "initialize"}
)
"""Actions and observations that the model never saw."""

_NOT_ARGUMENTS = frozenset(
    {
        "action",
        "action_risk",
        "cause",
        "confirmation_state",
        "id",
        "is_confirmed",
        "keep_prompt",
        "kernel_init_code",
        "message",
        "security_risk",
        "source",
        "thought",
        "timeout",
        "timestamp",
    }
)
"""Of an action: what belongs to the event rather than to the tool."""


def read_openhands(path: Path) -> ForeignSession:
    """The history in `path`: a list of events, or lines or an object that hold one.

    Of several histories (the output of a benchmark has one a line) it is the first.

    Raises:
        SessionError: The file cannot be read, or holds no event.
    """
    reader = _Reader()
    histories = _histories(path, reader.builder.warnings)
    for number, event in enumerate(next(histories, None) or (), start=1):
        reader.take(number, as_object(event))
    if more := sum(1 for _ in histories):
        what = "history of the file was" if more == 1 else "histories of the file were"
        reader.builder.warnings.add(f"{more:,} more {what} left out")
    if not reader.builder.last_id:
        raise SessionError(f"{path}: contains no messages of an OpenHands history.")
    reader.builder.in_folder(_FOLDER)
    return reader.builder.finish(id_from_content(path))


def _histories(path: Path, warnings: Warnings) -> Iterator[list[JsonValue]]:
    if path.suffix != ".jsonl":
        document = json_document(path)
        events = document if isinstance(document, list) else as_object(document).get("history")
        yield _flat(as_list(events))
        return
    for _, line in json_lines(path, warnings):
        events = _flat(as_list(as_object(line).get("history")))
        if events:
            yield events


def _flat(events: list[JsonValue]) -> list[JsonValue]:
    """Older histories hold pairs of action and observation."""
    return [
        single for event in events for single in (event if isinstance(event, list) else [event])
    ]


class _Reader:
    def __init__(self) -> None:
        self.builder = SessionBuilder()
        self._calls: dict[str, ToolCall] = {}
        self._call_of_event: dict[str, str] = {}
        self._responses: set[str] = set()
        self._agent_spoke_last = False

    def take(self, number: int, event: JsonObject) -> None:
        """Take the event that is `number` in the history, counted from 1."""
        self.builder.at(as_timestamp(event.get("timestamp")))
        if "observation" in event:
            self._take_observation(number, event)
            return
        action = text_at(event, "action")
        facts = {**event, **as_object(event.get("args"))}
        if action == "condensation":
            self._warn(number, "a condensation; what it left out is kept here")
        elif action == "message" and self._is_from_user(event):
            self._take_user(facts)
        elif action == "message" or (action == "finish" and not self._metadata(event)):
            self._take_text(facts)
        elif action not in _SILENT:
            self._take_call(number, event, facts)

    def _is_from_user(self, event: JsonObject) -> bool:
        """Old histories do not say who a message is from; the person speaks first, then answers."""
        source = text_at(event, "source")
        return source == "user" if source else not self.builder.last_id or self._agent_spoke_last

    def _take_user(self, facts: JsonObject) -> None:
        text = text_at(facts, "content", "message")
        images = as_list(facts.get("image_urls")) or as_list(facts.get("images_urls"))
        self.builder.user([TextContent(text=text), *(image_of(as_text(url)) for url in images)])
        self._agent_spoke_last = False

    def _take_text(self, facts: JsonObject) -> None:
        text = text_at(facts, "content", "final_thought", "thought", "message")
        self.builder.reply([TextContent(text=text)] if text else [])
        self._agent_spoke_last = True

    def _take_call(self, number: int, event: JsonObject, facts: JsonObject) -> None:
        metadata = self._metadata(event)
        response = as_object(metadata.get("model_response"))
        choices = as_list(response.get("choices"))
        message = as_object(as_object(choices[0] if choices else None).get("message"))
        call_id = text_at(metadata, "tool_call_id") or f"call_{number}"
        call = next((call for call in calls_of(message) if call.id == call_id), None)
        call = call or ToolCall(
            id=call_id,
            name=text_at(metadata, "function_name") or text_at(event, "action"),
            arguments=_arguments(event),
        )
        response_id = text_at(response, "id")
        text = content_text(message.get("content")) or text_at(facts, "thought")
        parts: list[AssistantContent] = [call]
        if text and not (response_id and response_id in self._responses):
            parts.insert(0, TextContent(text=text))
        self.builder.by_model(*model_of(response.get("model")))
        self.builder.reply(parts, key=response_id or None, usage=usage_of(response.get("usage")))
        self._responses.add(response_id)
        self._calls[call_id] = call
        self._call_of_event[str(event.get("id"))] = call_id
        self._agent_spoke_last = False

    def _take_observation(self, number: int, event: JsonObject) -> None:
        kind = text_at(event, "observation")
        if kind in _SILENT:
            return
        waiting = self.builder.open_calls
        named = text_at(self._metadata(event), "tool_call_id")
        named = named or self._call_of_event.get(str(event.get("cause")), "")
        if not named and "cause" not in event and waiting:
            named = waiting[0]
        text = text_at(event, "content", "message")
        if named not in waiting:
            self._warn(number, f"an observation ({kind[:40]}) of no call; kept as a note")
            self.builder.note("observation", [TextContent(text=text)])
            return
        call = self._calls[named]
        extras = as_object(event.get("extras"))
        exit_code = _exit_code(event, extras)
        is_error = kind == "error" or exit_code not in (None, 0) or is_refused_edit(text)
        arguments = {**_arguments(event), **call.arguments}
        self.builder.result(
            named,
            [TextContent(text=text)],
            is_error=is_error,
            details=editor_details(call.name, {} if is_error else arguments, text, exit_code),
        )

    def _metadata(self, event: JsonObject) -> JsonObject:
        return as_object(event.get("tool_call_metadata"))

    def _warn(self, number: int, problem: str) -> None:
        self.builder.warnings.add(f"event {number}: {problem}")


def _arguments(event: JsonObject) -> JsonObject:
    given = as_object(event.get("args")) or event
    return {key: value for key, value in given.items() if key not in _NOT_ARGUMENTS}


def _exit_code(event: JsonObject, extras: JsonObject) -> int | None:
    places = (as_object(extras.get("metadata")), extras, event)
    found = (as_exit_code(place.get("exit_code")) for place in places)
    return next((code for code in found if code is not None), None)
