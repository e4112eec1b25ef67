"""The chat format that OpenAI began, as most services and servers speak it."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from pydantic import JsonValue

from agent_tui.messages import JsonObject, Message
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from agent_tui.providers.keys import KEY_VARIABLES, key_variable
from agent_tui.providers.litellm.protocol import Start
from agent_tui.providers.wires.anthropic import is_claude
from agent_tui.providers.wires.base import (
    DUMMY_KEY,
    STREAM_END,
    Address,
    Fit,
    Link,
    MissingKeyError,
    RefusedError,
    Wire,
    key_of,
)
from agent_tui.providers.wires.chat.grammar import waiting_grammar
from agent_tui.providers.wires.chat.messages import messages_to_send
from agent_tui.providers.wires.chat.replies import CallSplitter, finish_reason, sealed_details
from agent_tui.providers.wires.fields import count_at, object_at, objects_at, text_at
from agent_tui.providers.wires.parts import as_value
from agent_tui.providers.wires.thinking import effort
from agent_tui.providers.wires.usage import TokenCounts

_Asking = Literal["effort", "reasoning", "switch", "never"]
"""How thinking is asked for: ``reasoning_effort``, OpenRouter's ``reasoning``, on or off, not."""


@dataclass(frozen=True, slots=True)
class _Service:
    home: str
    asking: _Asking = "effort"


_SERVICES: Final[Mapping[str, _Service]] = MappingProxyType(
    {
        "cerebras": _Service("https://api.cerebras.ai/v1"),
        "deepinfra": _Service("https://api.deepinfra.com/v1/openai"),
        "deepseek": _Service("https://api.deepseek.com/v1", "switch"),
        "fireworks_ai": _Service("https://api.fireworks.ai/inference/v1"),
        "groq": _Service("https://api.groq.com/openai/v1"),
        "mistral": _Service("https://api.mistral.ai/v1", "never"),
        "moonshot": _Service("https://api.moonshot.ai/v1", "switch"),
        "openai": _Service("https://api.openai.com/v1"),
        "openrouter": _Service("https://openrouter.ai/api/v1", "reasoning"),
        "together_ai": _Service("https://api.together.xyz/v1"),
        "xai": _Service("https://api.x.ai/v1"),
        "zai": _Service("https://api.z.ai/api/paas/v4", "switch"),
    }
)
"""By the name before the slash."""
_THINKING_TEXTS = ("reasoning_content", "reasoning")
_CACHED: Final[JsonObject] = {"type": "ephemeral"}


def _fit(model: ModelRef) -> Fit:
    if model.provider in _SERVICES:
        return "yes"
    return "yes" if model.base_url and not model.provider else "no"


def _write(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    written = messages_to_send(system, messages, model)
    if model.provider == "openrouter" and is_claude(model.name):
        for message in {id(one): one for one in (written[0], written[-1])}.values():
            text = message["content"]
            if isinstance(text, str):
                message["content"] = [{"type": "text", "text": text, "cache_control": _CACHED}]
    return written


async def _warm(link: Link) -> None:
    await link.open_http()


async def _stream(start: Start, link: Link) -> AsyncGenerator[Chunk, None]:
    known = await link.known(start.model)
    reading = _Reading()
    address, body = _address(start, link.environ), request_body(start, known)
    async with aclosing(link.events(address, body)) as events:
        async for event in events:
            if event is STREAM_END:
                reading.was_ended = True
                break
            for chunk in reading.chunks(event):
                yield chunk
    for chunk in reading.ending(start, known):
        yield chunk


def _address(start: Start, environ: Mapping[str, str]) -> Address:
    """Where the service or the server that was named listens.

    Raises:
        MissingKeyError: no key is set.
    """
    provider = start.model.partition("/")[0]
    home = start.base_url
    if not home and provider == "openai":
        home = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or ""
    if not home:
        home = _SERVICES[provider].home
    key = key_of(start, environ, *KEY_VARIABLES.get(provider, ()))
    if not key and not start.base_url:
        raise MissingKeyError(key_variable(provider) or f"{provider.upper()}_API_KEY")
    home = home.rstrip("/").removesuffix("/chat/completions")
    headers = {"authorization": f"Bearer {key or DUMMY_KEY}"}
    return Address(f"{home}/chat/completions", headers)


def request_body(start: Start, known: Mapping[str, JsonValue]) -> JsonObject:
    """The body for `start`; `known` is what the table says of its model."""
    provider, slash, model_id = start.model.partition("/")
    is_named = slash and provider in _SERVICES
    body: JsonObject = {
        "model": model_id if is_named else start.model,
        "messages": as_value(start.messages),
        "stream": True,
    }
    if provider != "mistral":  # which counts without being asked, and refuses the question
        body["stream_options"] = {"include_usage": True}
    if start.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in start.tools]
    if start.max_output_tokens is not None:
        is_home = provider == "openai" and not start.base_url
        body["max_completion_tokens" if is_home else "max_tokens"] = start.max_output_tokens
    if start.reply_schema is not None:
        schema: JsonObject = {"name": "reply", "schema": start.reply_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if start.grammar is not None:
        body["grammar"] = waiting_grammar(start.grammar)
    if start.cache_key and provider == "openai" and not start.base_url:
        body["prompt_cache_key"] = start.cache_key
    service = _SERVICES.get(provider)
    return body | _thinking(start, known, service.asking if service else "effort")


def _thinking(start: Start, known: Mapping[str, JsonValue], asking: _Asking) -> JsonObject:
    is_off = start.thinking == "off"
    if asking == "switch":
        if known.get("supports_reasoning") is not True:
            return {}
        return {"thinking": {"type": "disabled" if is_off else "enabled"}}
    is_unthinking = bool(known) and known.get("supports_reasoning") is not True
    if is_off or asking == "never" or is_unthinking:
        return {}
    level = effort(start.thinking, known)
    if asking == "reasoning":
        return {"reasoning": {"effort": level}}
    return {"reasoning_effort": level}


class _Reading:
    """One stream as it comes."""

    def __init__(self) -> None:
        self.was_ended = False
        self._calls = CallSplitter()
        self._details: list[JsonObject] = []
        self._usage: JsonObject = {}
        self._reason = ""
        self._pieces = 0

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """The chunks of one event.

        Raises:
            RefusedError: it is an error.
        """
        of_groq = object_at(object_at(event, "x_groq"), "usage")
        self._usage = object_at(event, "usage") or of_groq or self._usage
        for choice in objects_at(event, "choices")[:1]:
            self._usage = object_at(choice, "usage") or self._usage
            for chunk in self._delta(object_at(choice, "delta")):
                self._pieces += 1
                yield chunk
            self._reason = text_at(choice, "finish_reason") or self._reason
        if error := event.get("error"):
            said = text_at(event, "error") or text_at(object_at(event, "error"), "message")
            raise RefusedError(said, body={"error": error})

    def ending(self, start: Start, known: Mapping[str, JsonValue]) -> Iterator[Chunk]:
        """What is known at the end: usage, and why it stopped if the server ended it."""
        if self._details:
            yield sealed_details(self._details)
        if self._usage:
            yield UsageChunk(_counts(self._usage).priced(start, known, is_estimate=False))
        elif self._pieces:
            counts = TokenCounts(output=self._pieces)  # most servers send a token a piece
            yield UsageChunk(counts.priced(start, known, is_estimate=True))
        if self._reason or self.was_ended:
            yield FinishChunk(finish_reason(self._reason))

    def _delta(self, delta: JsonObject) -> Iterator[Chunk]:
        details = objects_at(delta, "reasoning_details")
        self._details += details
        thoughts = (text_at(delta, name) for name in _THINKING_TEXTS)
        pieces = "".join(text_at(one, "text") or text_at(one, "summary") for one in details)
        if thought := next(filter(None, thoughts), pieces):
            yield ThinkingChunk(thought)
        for part in objects_at(delta, "content"):  # Mistral's parts
            if part.get("type") == "thinking":
                for inner in objects_at(part, "thinking"):
                    yield ThinkingChunk(text_at(inner, "text"))
            elif text := text_at(part, "text"):
                yield TextChunk(text)
        if text := text_at(delta, "content") or text_at(delta, "refusal"):
            yield TextChunk(text)
        for call in objects_at(delta, "tool_calls"):
            function = object_at(call, "function")
            yield self._calls.piece(
                count_at(call, "index"),
                text_at(call, "id"),
                text_at(function, "name"),
                text_at(function, "arguments"),
            )


def _counts(usage: JsonObject) -> TokenCounts:
    details = object_at(usage, "prompt_tokens_details")
    read = count_at(details, "cached_tokens") or count_at(usage, "prompt_cache_hit_tokens")
    read = read or count_at(usage, "cached_tokens")
    write = count_at(details, "cache_write_tokens")
    return TokenCounts(
        fresh=max(count_at(usage, "prompt_tokens") - read - write, 0),
        output=count_at(usage, "completion_tokens"),
        cache_read=read,
        cache_write=write,
    )


COMPLETIONS: Final = Wire("completions", _fit, _write, _warm, _stream)
