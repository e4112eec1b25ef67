"""OpenAI's chat format, as most services and servers speak it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from pydantic import JsonValue

from agent_tui.messages import JsonObject, Message
from agent_tui.providers.base import (
    SECOND_NAMES,
    Chunk,
    FinishChunk,
    ModelRef,
    TextChunk,
    ThinkingChunk,
)
from agent_tui.providers.keys import KEY_VARIABLES, key_variable
from agent_tui.providers.wires.anthropic import is_claude
from agent_tui.providers.wires.base import (
    DUMMY_KEY,
    STREAM_END,
    Address,
    Fit,
    MalformedReplyError,
    MissingKeyError,
    WireRequest,
    key_of,
)
from agent_tui.providers.wires.chat import (
    CallSplitter,
    finish_reason,
    join_reasoning,
    messages_to_send,
    waiting_grammar,
)
from agent_tui.providers.wires.http import (
    Reading,
    ReplyIds,
    ask_with,
    azure_openai_address,
    error_in,
    http_wire,
)
from agent_tui.providers.wires.parts import (
    TokenCounts,
    as_value,
    count_at,
    counts_at,
    effort,
    object_at,
    objects_at,
    text_at,
)

_Asking = Literal["effort", "none or high", "reasoning", "switch", "never"]
"""How to request thinking: ``reasoning_effort`` with all its levels or with two, OpenRouter's
``reasoning``, on/off, or not."""


@dataclass(frozen=True, slots=True)
class _Service:
    """One service. `counts_unasked`: it counts tokens anyway, and refuses to be asked for it."""

    home: str
    asking: _Asking = "effort"
    counts_unasked: bool = False


_SERVICES: Final[Mapping[str, _Service]] = MappingProxyType(
    {
        "cerebras": _Service("https://api.cerebras.ai/v1"),
        "cohere": _Service(  # docs.cohere.com/docs/compatibility-api
            "https://api.cohere.ai/compatibility/v1", "none or high", counts_unasked=True
        ),
        "deepinfra": _Service("https://api.deepinfra.com/v1/openai"),
        "deepseek": _Service("https://api.deepseek.com/v1", "switch"),
        "fireworks_ai": _Service("https://api.fireworks.ai/inference/v1"),
        "groq": _Service("https://api.groq.com/openai/v1"),
        "mistral": _Service("https://api.mistral.ai/v1", "never", counts_unasked=True),
        "moonshot": _Service("https://api.moonshot.ai/v1", "switch"),
        "openai": _Service("https://api.openai.com/v1"),
        "openrouter": _Service("https://openrouter.ai/api/v1", "reasoning"),
        "together_ai": _Service("https://api.together.xyz/v1"),
        "xai": _Service("https://api.x.ai/v1"),
        "zai": _Service("https://api.z.ai/api/paas/v4", "switch"),
    }
)
"""Services by the name before the slash."""
_OTHER_PROTOCOLS: Final = frozenset(
    {
        "azure",
        "azure_ai",
        "bedrock",
        "databricks",
        "ollama",
        "ollama_chat",
        "sagemaker",
        "vertex_ai",
        "watsonx",
    }
)
"""Prefixes for which litellm calls an address differently. Any other that is not in `_SERVICES` is
the first part of the server's name for its model."""
_THINKING_TEXTS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_BROKEN: Final = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Finish reasons of OpenRouter and Mistral, z.ai, DeepSeek, vLLM: the reply is incomplete."""
_OPENERS: Final = ("<think>", "<thinking>", "<thought>")
_CACHED: Final[JsonObject] = {"type": "ephemeral"}


def _fit(model: ModelRef) -> Fit:
    if model.provider == "azure":  # longer names are litellm's routes
        return "no" if "/" in model.model_id else "try"
    if model.provider in _SERVICES:
        return "yes"
    return "yes" if model.base_url and model.provider not in _OTHER_PROTOCOLS else "no"


def _write(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    written = messages_to_send(system, messages, model)
    if model.provider == "openrouter" and is_claude(model.name):
        for message in {id(one): one for one in (written[0], written[-1])}.values():
            text = message["content"]
            if isinstance(text, str):
                message["content"] = [{"type": "text", "text": text, "cache_control": _CACHED}]
    return written


def _address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address of the service or of the named server.

    Raises:
        MissingKeyError: No key is set.
    """
    provider = ModelRef(request.model).provider
    if provider == "azure":
        return azure_openai_address(request, environ, "chat/completions")
    home = request.base_url
    if not home and provider == "openai":
        home = environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE") or ""
    if not home:
        home = _SERVICES[provider].home
    key = key_of(request, environ, *KEY_VARIABLES.get(provider, ()))
    if not key and not request.base_url:
        raise MissingKeyError(key_variable(provider) or f"{provider.upper()}_API_KEY")
    home = home.rstrip("/").removesuffix("/chat/completions")
    headers = {"authorization": f"Bearer {key or DUMMY_KEY}"}
    return Address(f"{home}/chat/completions", headers)


def request_body(request: WireRequest, known: Mapping[str, JsonValue]) -> JsonObject:
    """The body for `request`; `known` is what the table says of its model."""
    provider = ModelRef(request.model).provider
    service = _SERVICES.get(provider)
    body: JsonObject = {
        "model": request.model_id,
        "messages": as_value(request.messages),
        "stream": True,
    }
    if service is None or not service.counts_unasked:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    if request.max_output_tokens is not None:
        is_openais = provider == "azure" or (provider == "openai" and not request.base_url)
        is_newer = is_openais or "max_tokens" in request.without
        body["max_completion_tokens" if is_newer else "max_tokens"] = request.max_output_tokens
    if request.reply_schema is not None:
        schema: JsonObject = {"name": "reply", "schema": request.reply_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.grammar is not None:
        body["grammar"] = waiting_grammar(request.grammar)
    if request.cache_key and provider == "openai" and not request.base_url:
        body["prompt_cache_key"] = request.cache_key
    return body | _thinking(request, known, service.asking if service else "effort")


def _thinking(request: WireRequest, known: Mapping[str, JsonValue], asking: _Asking) -> JsonObject:
    is_off = request.thinking == "off"
    if asking in ("none or high", "switch"):
        if known.get("supports_reasoning") is not True:
            return {}
        if asking == "none or high":
            return {"reasoning_effort": "none" if is_off else "high"}
        return {"thinking": {"type": "disabled" if is_off else "enabled"}}
    is_unthinking = bool(known) and known.get("supports_reasoning") is not True
    if is_off or asking == "never" or is_unthinking:
        return {}
    level = effort(request.thinking, known)
    if asking == "reasoning":
        return {"reasoning": {"effort": level}}
    return {"reasoning_effort": level}


class _Reading(Reading):
    """Reads one stream."""

    def __init__(self) -> None:
        self._calls = CallSplitter()
        self._tags = _ThinkTags()
        self._details: list[JsonObject] = []
        self._ids = ReplyIds()
        self._usage: JsonObject = {}
        self._is_counted_up = False
        self._reason = ""
        self._pieces = 0

    def begins_anew(self, event: JsonObject) -> bool:
        """See `Reading.begins_anew`: the first piece of a reply names its role."""
        is_first = any(
            text_at(object_at(choice, "delta"), "role") for choice in objects_at(event, "choices")
        )
        return is_first and self._ids.is_another(text_at(event, "id"))

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """See `Reading.chunks`."""
        self.is_over = event is STREAM_END
        self._ids.note(text_at(event, "id"))
        of_groq = counts_at(object_at(event, "x_groq"), "usage")
        usage, choices = counts_at(event, "usage") or of_groq, objects_at(event, "choices")
        self._is_counted_up |= bool(usage) and not choices
        self._usage = usage or self._usage
        for choice in choices[:1]:
            self._usage = counts_at(choice, "usage") or self._usage
            # A service that does not stream sends the whole message.
            for chunk in self._delta(object_at(choice, "delta") or object_at(choice, "message")):
                self._pieces += 1
                yield chunk
            self._reason = text_at(choice, "finish_reason") or self._reason
            if (error := error_in(choice)) is not None:
                raise error
        if self._reason in _BROKEN and error_in(event) is None:
            raise MalformedReplyError(f"the model stopped with {self._reason!r}")

    def rest(self) -> Iterator[Chunk]:
        """See `Reading.rest`."""
        yield from self._tags.rest()
        if self._details:
            yield join_reasoning(self._details)

    def counts(self) -> TokenCounts | None:
        """See `Reading.counts`; without counts, a piece counts as a token, as most servers send."""
        if self._usage:
            return _counts(self._usage)
        return TokenCounts(output=self._pieces, is_estimate=True) if self._pieces else None

    def finish(self) -> FinishChunk | None:
        """See `Reading.finish`.

        Snowflake gives no reason, but counts the tokens after a whole reply. The end mark alone
        proves nothing: llama.cpp and gateways also send it after an error.
        """
        is_whole = self._reason or (self.is_over and self._is_counted_up)
        return FinishChunk(finish_reason(self._reason)) if is_whole else None

    def _delta(self, delta: JsonObject) -> Iterator[Chunk]:
        details = objects_at(delta, "reasoning_details")
        self._details += details
        thoughts = (text_at(delta, name) for name in _THINKING_TEXTS)
        pieces = "".join(text_at(one, "text") or text_at(one, "summary") for one in details)
        thought = next(filter(None, thoughts), pieces)
        if thought or details:
            yield ThinkingChunk(thought)
        for part in objects_at(delta, "content"):
            yield from _part(part)
        if text := text_at(delta, "content") or text_at(delta, "refusal"):
            yield from self._tags.chunks(text)
        for call in objects_at(delta, "tool_calls"):
            yield self._call(call)

    def _call(self, call: JsonObject) -> Chunk:
        function = object_at(call, "function")
        arguments = text_at(function, "arguments")
        if whole := object_at(function, "arguments"):
            arguments = json.dumps(whole, ensure_ascii=False)
        piece = self._calls.piece(
            count_at(call, "index"), text_at(call, "id"), text_at(function, "name"), arguments
        )
        extra = object_at(call, "extra_content")  # Google's, which holds a signature
        return replace(piece, signature=json.dumps(extra, separators=(",", ":")) if extra else "")


class _ThinkTags:
    """Finds thinking that a server leaves in tags at the start of a reply's text.

    Text that may become a tag is held back until more arrives.
    """

    def __init__(self) -> None:
        self._place: Literal["before", "inside", "behind", "text"] = "before"
        self._waiting = ""
        self._closer = ""

    def chunks(self, text: str) -> Iterator[TextChunk | ThinkingChunk]:
        """The chunks for the next piece of text."""
        text, self._waiting = self._waiting + text, ""
        if self._place == "before":
            text = self._after_beginning(text)
        if self._place == "inside":
            thought, closer, text = text.partition(self._closer)
            if closer:
                self._place = "behind"
            else:
                kept = _partial_tag_length(thought, self._closer)
                self._waiting = thought[len(thought) - kept :]
                thought = thought[: len(thought) - kept]
            if thought:
                yield ThinkingChunk(thought)
        if self._place == "behind":
            text = text.lstrip()
            if text:
                self._place = "text"
        if self._place == "text" and text:
            yield TextChunk(text)

    def rest(self) -> Iterator[TextChunk | ThinkingChunk]:
        """The held text, at the end of the reply."""
        if self._waiting:
            of_kind = ThinkingChunk if self._place == "inside" else TextChunk
            yield of_kind(self._waiting)
            self._waiting = ""

    def _after_beginning(self, text: str) -> str:
        """The part of `text` to read further, once its beginning is clear."""
        bare = text.lstrip()
        if opener := next((tag for tag in _OPENERS if bare.startswith(tag)), ""):
            self._place, self._closer = "inside", f"</{opener[1:]}"
            return bare.removeprefix(opener)
        if any(tag.startswith(bare) for tag in _OPENERS):
            self._waiting = text
            return ""
        self._place = "text"
        return text


def _partial_tag_length(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the start of `tag`."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)


def _part(part: JsonObject) -> Iterator[Chunk]:
    """The chunks of one part of a text sent in parts, as Mistral does."""
    if part.get("type") == "thinking":
        inner = objects_at(part, "thinking")
        yield ThinkingChunk(
            text_at(part, "thinking") or "".join(text_at(one, "text") for one in inner)
        )
    elif text := text_at(part, "text"):
        yield TextChunk(text)


def _counts(usage: JsonObject) -> TokenCounts:
    details = object_at(usage, "prompt_tokens_details")
    read = count_at(details, "cached_tokens") or count_at(usage, "prompt_cache_hit_tokens")
    read = read or count_at(usage, "cached_tokens")
    write = count_at(details, "cache_write_tokens")
    prompt, output = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
    thought = count_at(object_at(usage, "completion_tokens_details"), "reasoning_tokens")
    if count_at(usage, "total_tokens") == prompt + output + thought:
        output += thought  # xAI counts it separately, others include it
    return TokenCounts(
        fresh=max(prompt - read - write, 0), output=output, cache_read=read, cache_write=write
    )


COMPLETIONS: Final = http_wire(
    "completions",
    _fit,
    _write,
    ask_with(_address, request_body),
    _Reading,
    prefixes=tuple(f"{service}/" for service in (*_SERVICES, *SECOND_NAMES, "azure")),
    spare_fields=(
        "stream_options",
        "max_completion_tokens",
        "max_tokens",
        "reasoning_effort",
        "prompt_cache_key",
        "response_format",
    ),
)
