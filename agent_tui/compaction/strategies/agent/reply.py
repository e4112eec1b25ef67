"""What the model that compresses is sent, and the calls in what it answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent_tui.compaction.model_client import FinishReason, ModelReply
from agent_tui.compaction.strategies.agent.prompt import SYSTEM_PROMPT
from agent_tui.compaction.strategies.agent.tools import TOOLS
from agent_tui.messages import AssistantMessage, JsonObject, Message, TextContent, ToolCall
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.text import repair_json


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What came back. `broken`: id of a call -> what is wrong with its arguments."""

    message: AssistantMessage
    broken: dict[str, str]
    finish: FinishReason


def agent_request(
    model: ModelRef, messages: Sequence[Message], max_output_tokens: int
) -> ModelRequest:
    """One round's request: what the agent is to see, with its four tools."""
    return ModelRequest(
        model=model,
        system=SYSTEM_PROMPT,
        messages=tuple(messages),
        tools=TOOLS,
        max_output_tokens=max_output_tokens,
        purpose="summary",
    )


def agent_reply(reply: ModelReply) -> AgentReply:
    """`reply` with its calls as they can be carried out."""
    calls: dict[str, ToolCall] = {}
    broken: dict[str, str] = {}
    for call in reply.calls:
        call_id = call.id or f"call_{len(calls) + 1}"
        while call_id in calls:
            call_id += "_"
        arguments, problem = _arguments(call.arguments_json)
        calls[call_id] = ToolCall(id=call_id, name=call.name, arguments=arguments)
        if problem:
            broken[call_id] = problem
    said = (TextContent(text=reply.text),) if reply.text.strip() else ()
    return AgentReply(AssistantMessage(content=(*said, *calls.values())), broken, reply.finish)


def _arguments(text: str) -> tuple[JsonObject, str]:
    """The arguments and what is wrong with them; no text at all means no arguments."""
    if not text.strip():
        return {}, ""
    try:
        value = repair_json(cast(JsonValue, json.loads(text)))
    except (ValueError, RecursionError):
        return {}, "its arguments are not valid JSON"
    if not isinstance(value, dict):
        return {}, "its arguments are not a JSON object"
    return value, ""
