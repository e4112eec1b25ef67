"""Asking the model that compresses: one request, and the calls of its reply."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from agent_tui.compaction.model_client import ModelClient, ModelReply, OnProgress, Spending
from agent_tui.compaction.strategies.agent.prompt import SYSTEM_PROMPT
from agent_tui.compaction.strategies.agent.tools import TOOLS
from agent_tui.compaction.summary.validate import FinishReason
from agent_tui.messages import AssistantMessage, JsonObject, Message, TextContent, ToolCall
from agent_tui.providers.base import ModelRef, ModelRequest, Provider
from agent_tui.providers.retry import Sleep
from agent_tui.text import repair_json


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What came back. `broken`: id of a call -> what is wrong with its arguments."""

    message: AssistantMessage
    broken: dict[str, str]
    finish: FinishReason


class AgentClient:
    """Sends what the agent is to see and gives back what it calls."""

    def __init__(
        self, provider: Provider, sleep: Sleep, on_progress: OnProgress, spending: Spending
    ) -> None:
        self._client = ModelClient(provider, sleep, on_progress, spending)

    async def ask(
        self, model: ModelRef, messages: Sequence[Message], phase: str, max_output_tokens: int
    ) -> AgentReply:
        """The reply to one request, which is repeated where waiting helps.

        Raises:
            ProviderError: the request failed for good.
        """
        request = ModelRequest(
            model=model,
            system=SYSTEM_PROMPT,
            messages=tuple(messages),
            tools=TOOLS,
            max_output_tokens=max_output_tokens,
            purpose="summary",
        )
        return _agent_reply(await self._client.ask(request, phase))


def _agent_reply(reply: ModelReply) -> AgentReply:
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
