"""Trajectories of mini-swe-agent: a list of messages, the commands in fenced blocks."""

import re
from pathlib import Path

from agent_tui.errors import SessionError
from agent_tui.features.importers.values import as_timestamp, id_from_content
from agent_tui.messages import AssistantContent, JsonObject, TextContent, ToolCall, ToolDetails
from agent_tui.sessions.importers.builder import ForeignSession, SessionBuilder
from agent_tui.sessions.importers.fields import as_list, as_object, as_text, json_document, text_at
from tests.support.importers.openai_style import (
    calls_of,
    content_text,
    model_of,
    said_parts,
    usage_of,
)

_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)[^\S\n]*\n(.*?)\n```", re.DOTALL)
_RETURN_CODE = re.compile(r"\s*<returncode>(\d{1,3})</returncode>")
_TIMED_OUT = re.compile(r"\s*The last command <command>.{0,20000}?</command> timed out", re.DOTALL)


def read_mini_swe_agent(path: Path) -> ForeignSession:
    """The run in `path`: ``{info, messages}``, or the messages alone.

    A reply with exactly one fenced command is a call of ``bash``, and the message after it the
    result: the agent runs nothing else, and answers anything else with a complaint.

    Raises:
        SessionError: The file cannot be read, or holds no messages.
    """
    document = json_document(path)
    run = as_object(document)
    messages = as_list(run.get("messages") if run else document)
    config = as_object(as_object(run.get("info")).get("config"))
    reader = _Reader()
    reader.builder.in_folder(text_at(as_object(config.get("environment")), "cwd"))
    reader.builder.by_model(*model_of(as_object(config.get("model")).get("model_name")))
    for number, message in enumerate(messages, start=1):
        reader.take(number, as_object(message))
    if not reader.builder.last_id:
        raise SessionError(f"{path}: contains no messages of a mini-swe-agent run.")
    return reader.builder.finish(id_from_content(path))


class _Reader:
    def __init__(self) -> None:
        self.builder = SessionBuilder()
        self._had_no_command = False

    def take(self, number: int, message: JsonObject) -> None:
        """Take the message that is `number` in the list, counted from 1."""
        extra = as_object(message.get("extra"))
        response = as_object(extra.get("response"))
        self.builder.at(
            as_timestamp(extra.get("timestamp")) or as_timestamp(response.get("created"))
        )
        content = message.get("content")
        match message.get("role"):
            case "system":
                self.builder.keep_aside("system_prompt", {"text": content_text(content)})
            case "assistant":
                self._take_reply(number, message, response)
            case "tool":
                self._take_result(message, as_text(message.get("tool_call_id")))
            case "user" | "exit" if waiting := self.builder.open_calls:
                self._take_result(message, waiting[0])
            case "user" if self._had_no_command:
                self.builder.note("format_error", said_parts(content))
            case "user":
                self.builder.user(said_parts(content))
            case "exit":
                self.builder.keep_aside("exit", {"text": content_text(content)})
            case role:
                self.builder.warnings.add(
                    f"message {number}: unknown role {str(role)[:40]!r}; left out"
                )

    def _take_reply(self, number: int, message: JsonObject, response: JsonObject) -> None:
        text = content_text(message.get("content"))
        calls = calls_of(message)
        commands = list(_COMMAND.finditer(text))
        if not calls and len(commands) == 1:
            found = commands[0]
            thought = (text[: found.start()].rstrip(), text[found.end() :].strip())
            text = "\n\n".join(piece for piece in thought if piece)
            calls = [
                ToolCall(id=f"call_{number}", name="bash", arguments={"command": found[1].strip()})
            ]
        self._had_no_command = not calls
        parts: list[AssistantContent] = [TextContent(text=text)] if text else []
        self.builder.reply([*parts, *calls], usage=usage_of(response.get("usage")))

    def _take_result(self, message: JsonObject, call_id: str) -> None:
        content = said_parts(message.get("content"))
        text = content_text(message.get("content"))
        found = _RETURN_CODE.match(text)
        exit_code = int(found[1]) if found else None
        self.builder.result(
            call_id,
            content,
            is_error=exit_code not in (None, 0) or bool(_TIMED_OUT.match(text)),
            details=ToolDetails(exit_code=exit_code),
        )
