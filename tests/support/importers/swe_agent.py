"""Trajectories of SWE-agent (``.traj``), with function calling or commands as text."""

from pathlib import Path

from pydantic import JsonValue

from agent_tui.errors import SessionError
from agent_tui.features.importers.values import id_from_content
from agent_tui.messages import (
    AssistantContent,
    JsonObject,
    TextContent,
    ToolCall,
)
from agent_tui.sessions.importers.builder import ForeignSession, SessionBuilder
from agent_tui.sessions.importers.fields import (
    as_list,
    as_object,
    as_text,
    json_document,
    read_json,
    text_at,
)
from tests.support.importers.editor_files import editor_details, is_refused_edit
from tests.support.importers.openai_style import calls_of, content_text, model_of, said_parts


def read_swe_agent(path: Path) -> ForeignSession:
    """The run in `path`, as its ``history`` has it.

    Raises:
        SessionError: The file cannot be read, or has no history.
    """
    run = as_object(json_document(path))
    replay = _object_or_json(run.get("replay_config"))
    agent = as_object(replay.get("agent"))
    steps = [as_object(step) for step in as_list(run.get("trajectory"))]
    reader = _Reader()
    folders = (text_at(as_object(step.get("state")), "working_dir") for step in steps)
    reader.builder.in_folder(next((folder for folder in folders if folder), ""))
    reader.builder.by_model(*model_of(as_object(agent.get("model")).get("name")))
    for number, message in enumerate(as_list(run.get("history")), start=1):
        reader.take(number, as_object(message))
    if not reader.builder.last_id:
        raise SessionError(f"{path}: has no history of a SWE-agent run.")
    return reader.builder.finish(id_from_content(path))


class _Reader:
    def __init__(self) -> None:
        self.builder = SessionBuilder()
        self._calls: dict[str, ToolCall] = {}

    def take(self, number: int, message: JsonObject) -> None:
        """Take the message that is `number` in the history, counted from 1."""
        content = message.get("content")
        waiting = self.builder.open_calls
        match message.get("role"):
            case "system":
                self.builder.keep_aside("system_prompt", {"text": content_text(content)})
            case _ if message.get("is_demo") is True:
                self.builder.note("demonstration", said_parts(content))
            case "assistant":
                self._take_reply(number, message)
            case "tool" | "user" if waiting:
                ids = as_list(message.get("tool_call_ids"))
                named = as_text(ids[0]) if ids else as_text(message.get("tool_call_id"))
                self._take_result(message, named if named in waiting else waiting[0])
            case "user":
                self.builder.user(said_parts(content))
            case "tool":
                self._warn(number, "a result without a call; left out")
            case role:
                self._warn(number, f"unknown role {str(role)[:40]!r}; left out")

    def _take_reply(self, number: int, message: JsonObject) -> None:
        calls = calls_of(message)
        text = content_text(message.get("content"))
        action = as_text(message.get("action")).strip()
        if not calls and action:
            text = as_text(message.get("thought")) or text
            calls = [ToolCall(id=f"call_{number}", name="bash", arguments={"command": action})]
        self._calls.update((call.id, call) for call in calls)
        parts: list[AssistantContent] = [TextContent(text=text)] if text else []
        self.builder.reply([*parts, *calls])

    def _take_result(self, message: JsonObject, call_id: str) -> None:
        call = self._calls[call_id]
        text = content_text(message.get("content"))
        is_error = is_refused_edit(text)
        self.builder.result(
            call_id,
            said_parts(message.get("content")),
            is_error=is_error,
            details=None if is_error else editor_details(call.name, call.arguments, text, None),
        )

    def _warn(self, number: int, problem: str) -> None:
        self.builder.warnings.add(f"message {number}: {problem}")


def _object_or_json(value: JsonValue) -> JsonObject:
    """An object that newer versions write as a text of JSON."""
    if not isinstance(value, str):
        return as_object(value)
    try:
        return as_object(read_json(value.encode("utf-8", "replace")))
    except ValueError:
        return {}
