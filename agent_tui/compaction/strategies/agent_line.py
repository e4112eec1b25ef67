"""The line to the model that compresses: one request, and its calls."""

import json
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import assert_never, cast

from pydantic import JsonValue

from agent_tui.compaction.asking import OnProgress, Spending, patiently
from agent_tui.compaction.strategies.agent_prompt import SYSTEM_PROMPT
from agent_tui.compaction.strategies.agent_tools import TOOLS
from agent_tui.compaction.validate import FinishReason
from agent_tui.messages import AssistantMessage, JsonObject, Message, TextContent, ToolCall
from agent_tui.providers.base import (
    FinishChunk,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.retry import Sleep
from agent_tui.text import repair_json


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What came back. `broken`: id of a call -> what is wrong with its arguments."""

    message: AssistantMessage
    broken: dict[str, str]
    finish: FinishReason


@dataclass(slots=True)
class _CallDraft:
    id: str
    name: str
    pieces: list[str] = field(default_factory=list[str])


class AgentLine:
    """Sends what the agent is to see and gives back what it calls."""

    def __init__(
        self, provider: Provider, sleep: Sleep, on_progress: OnProgress, spending: Spending
    ) -> None:
        self._provider = provider
        self._sleep = sleep
        self._on_progress = on_progress
        self._spending = spending
        self._received_chars = 0

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
        return await patiently(
            lambda: self._send(request, phase),
            self._sleep,
            lambda waiting: self._on_progress(waiting, self._received_chars),
        )

    async def _send(self, request: ModelRequest, phase: str) -> AgentReply:
        texts: list[str] = []
        calls: dict[int, _CallDraft] = {}
        finish: FinishReason | None = None
        self._on_progress(phase, self._received_chars)
        async with aclosing(self._provider.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        texts.append(text)
                        self._receive(text, phase)
                    case ToolCallChunk():
                        draft = calls.setdefault(chunk.index, _CallDraft(chunk.id, chunk.name))
                        draft.name = draft.name or chunk.name
                        draft.pieces.append(chunk.arguments_json)
                        self._receive(chunk.arguments_json, phase)
                    case UsageChunk(usage=usage):
                        self._spending.add(usage)
                    case FinishChunk(reason=reason):
                        finish = reason
                    case ThinkingChunk():
                        pass
                    case _:
                        assert_never(chunk)
        if finish is None:
            raise ProviderError("interrupted", "the reply broke off before its end")
        return _reply("".join(texts), calls.values(), finish)

    def _receive(self, text: str, phase: str) -> None:
        self._received_chars += len(text)
        self._on_progress(phase, self._received_chars)


def _reply(text: str, drafts: Iterable[_CallDraft], finish: FinishReason) -> AgentReply:
    calls: dict[str, ToolCall] = {}
    broken: dict[str, str] = {}
    for draft in drafts:
        call_id = draft.id or f"call_{len(calls) + 1}"
        while call_id in calls:
            call_id += "_"
        arguments, problem = _arguments("".join(draft.pieces))
        calls[call_id] = ToolCall(id=call_id, name=draft.name, arguments=arguments)
        if problem:
            broken[call_id] = problem
    said = (TextContent(text=text),) if text.strip() else ()
    return AgentReply(AssistantMessage(content=(*said, *calls.values())), broken, finish)


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
