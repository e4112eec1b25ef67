"""A request through litellm, from its arguments to its chunks."""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from dataclasses import replace

from pydantic import JsonValue

from agent_tui.features.litellm.module import LiteLlm, Part, ReplyStream, renew_token
from agent_tui.messages import JsonObject
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
)
from agent_tui.providers.transport.serving import Listener
from agent_tui.providers.wires.anthropic import is_claude
from agent_tui.providers.wires.base import DUMMY_KEY, NotSignedInError, WireRequest
from agent_tui.providers.wires.chat import (
    CallSplitter,
    finish_reason,
    is_translated,
    join_reasoning,
    model_family,
    waiting_grammar,
)
from agent_tui.providers.wires.parts import BUDGET_TOKENS, TokenCounts, count_at, effort

_GEMINI_3 = re.compile(r"gemini-(?:[3-9]|\d\d)")
_LITELLM_TIMEOUT_S = 86_400.0
"""Seconds; we limit a server's silence, so litellm's own timer must not fire first."""


def request_arguments(
    request: WireRequest,
    known_providers: Collection[str],
    environ: Mapping[str, str],
    known: Mapping[str, JsonValue],
) -> dict[str, object]:
    """The arguments for `request`; a `base_url` without a known provider speaks OpenAI's protocol.

    A key set for a provider never goes to a `base_url` unless it was named for it.

    Args:
        request: The request.
        known_providers: Provider names litellm accepts before the slash.
        environ: Holds the key.
        known: What the table says of the model. Anthropic requires a reply limit, and without one
            litellm sends 4,096, too little for one file.
    """
    arguments: dict[str, object] = {
        "model": request.model,
        "messages": request.messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "num_retries": 0,
        "max_retries": 0,
        "timeout": _LITELLM_TIMEOUT_S,
        "drop_params": True,
    }
    if request.base_url:
        provider = request.model.partition("/")[0]
        is_named = "/" in request.model and provider in known_providers
        arguments["model"] = request.model if is_named else f"openai/{request.model}"
        arguments["api_base"] = request.base_url
        arguments["api_key"] = environ.get(request.api_key_env) or DUMMY_KEY
    elif key := environ.get(request.api_key_env):
        arguments["api_key"] = key
    if request.tools:
        arguments["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
    max_output_tokens = request.max_output_tokens
    if model_family(request.model) == "anthropic":
        max_output_tokens = max_output_tokens or count_at(known, "max_output_tokens") or None
    if max_output_tokens is not None:
        arguments["max_tokens"] = max_output_tokens
    if is_claude(request.model):
        # The constant prefix costs a tenth when it is cached.
        arguments["cache_control_injection_points"] = [
            {"location": "message", "role": "system"},
            {"location": "message", "index": -1},
        ]
    if request.reply_schema is not None:
        arguments["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": request.reply_schema, "strict": True},
        }
    if request.grammar is not None:
        arguments["extra_body"] = {"grammar": waiting_grammar(request.grammar)}
    return arguments | _thinking(request, known, max_output_tokens)


def _thinking(
    request: WireRequest, known: Mapping[str, JsonValue], max_output_tokens: int | None
) -> dict[str, object]:
    """How much the model thinks: a number if its protocol takes one, else a word.

    litellm's own numbers end at 4,096 tokens.
    """
    if request.thinking == "off" or not _may_think(request):
        return {}
    takes_effort = known.get("supports_adaptive_thinking") is True or _GEMINI_3.search(
        request.model
    )
    if not is_translated(request.model) or takes_effort:
        return {"reasoning_effort": effort(request.thinking, known)}
    budget = BUDGET_TOKENS[request.thinking]
    if max_output_tokens is not None:
        budget = min(budget, max_output_tokens * 3 // 4)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_think(request: WireRequest) -> bool:
    """Whether thinking may be requested.

    Anthropic refuses it in the middle of a tool round that began without signed thinking, as after
    a change of model.
    """
    if model_family(request.model) != "anthropic" or request.messages[-1]["role"] != "tool":
        return True
    replies = (m for m in reversed(request.messages) if m["role"] == "assistant")
    last_reply: JsonObject = next(replies, JsonObject())
    return bool(last_reply.get("thinking_blocks"))


_NO_SIGNATURE = "mistral"
"""The signature litellm invents for Mistral, whose thinking is not signed."""


async def rehearse(litellm: LiteLlm) -> None:
    """Make a mock request with tools, so that the first real one finds everything imported.

    Then one to an unused port on this machine: it sets up the HTTP client and its certificates,
    half a second of the first request, and fails at once.
    """
    tool: JsonObject = {
        "type": "function",
        "function": {
            "name": "noop",
            "description": "Does nothing.",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    arguments: dict[str, object] = {
        "model": "openai/rehearsal",
        "api_key": DUMMY_KEY,
        "messages": [{"role": "user", "content": "rehearsal"}],
        "tools": [tool],
        "stream": True,
        "max_retries": 0,
    }
    async for _ in await litellm.acompletion(**arguments, mock_response="ready"):
        pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # never listened on: every connection is refused
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with contextlib.suppress(Exception):
            await litellm.acompletion(**arguments, api_base=nobody)


async def litellm_chunks(
    request: WireRequest, load: Callable[[], Awaitable[LiteLlm]], listener: Listener
) -> AsyncGenerator[Chunk, None]:
    """Send one request and yield its chunks, with the finish reason if there is one.

    How to tell a cut stream from a complete one: litellm reports a normal stop when a stream ends
    without a finish reason. Its stream object keeps the received reason in
    ``received_finish_reason`` (``intermittent_finish_reason`` while chunks still come). That holds
    for every provider whose chunks pass through litellm's common stream object (all that use HTTP);
    the few that set "stop" themselves (Vertex through Google's SDK, mock replies) count as
    complete.
    """
    account = own_accounts().get(request.model.partition("/")[0])
    if account is not None and not account.is_signed_in(os.environ):
        raise NotSignedInError(f"not signed in to {account.title}")
    litellm = await load()
    costs, names = litellm.model_cost, (request.model, request.model.partition("/")[2])
    known = next((costs[name] for name in names if name in costs), JsonObject())
    if account is not None:
        await listener.in_time(asyncio.to_thread(renew_token, account))
    arguments = request_arguments(request, litellm.provider_list, os.environ, known)
    response = await listener.in_time(litellm.acompletion(**arguments))
    calls, reasoning = CallSplitter(), _Reasoning()
    reason = ""
    usage: object = None
    try:
        async for part in _parts(response, listener):
            usage = getattr(part, "usage", None) or usage
            for choice in part.choices[:1]:
                for chunk in reasoning.chunks(choice.delta):
                    yield chunk
                for chunk in _chunks_of(choice.delta, calls):
                    yield chunk
                reason = choice.finish_reason or reason
    finally:
        await response.aclose()
    for chunk in reasoning.ending():
        yield chunk
    if usage is not None:
        counts = replace(_counts_of(usage), is_estimate=not _was_usage_sent(response))
        yield UsageChunk(counts.with_cost(request, known))
    if _was_finished(response):
        yield FinishChunk(finish_reason(reason))


async def _parts(response: ReplyStream, listener: Listener) -> AsyncIterator[Part]:
    while True:
        try:
            yield await listener.in_time(anext(response))
        except StopAsyncIteration:
            return


class _Reasoning:
    """The reasoning of one reply: its text, and what must be sent back with it.

    litellm repeats the whole thinking text beside its signature, so the text is taken from
    ``reasoning_content`` alone and only signatures from ``thinking_blocks``.
    """

    def __init__(self) -> None:
        self._details: list[dict[str, object]] = []

    def chunks(self, delta: object) -> Iterator[Chunk]:
        """The chunks of one delta."""
        details = [one for one in getattr(delta, "reasoning_details", None) or ()]
        self._details += details
        text = getattr(delta, "reasoning_content", None)
        text = text or "".join(str(one.get("text") or "") for one in details)
        if text or details:
            yield ThinkingChunk(text)
        for block in getattr(delta, "thinking_blocks", None) or ():
            if block.get("type") == "redacted_thinking":
                yield ThinkingChunk("", block.get("data") or "", redacted=True)
            elif (signature := block.get("signature")) and signature != _NO_SIGNATURE:
                yield ThinkingChunk("", signature)

    def ending(self) -> Iterator[Chunk]:
        """The details of the whole reply, with split ones joined."""
        if self._details:
            yield join_reasoning(self._details)


def _chunks_of(delta: object, calls: CallSplitter) -> Iterator[Chunk]:
    """The chunks of one delta's text and calls."""
    if text := getattr(delta, "content", None):
        yield TextChunk(text)
    for call in getattr(delta, "tool_calls", None) or ():
        function = call.function
        yield calls.piece(call.index, call.id or "", function.name or "", function.arguments or "")


def _was_finished(stream: ReplyStream) -> bool:
    """Whether the provider itself gave a finish reason."""
    return bool(stream.received_finish_reason or stream.intermittent_finish_reason)


def _was_usage_sent(stream: ReplyStream) -> bool:
    """Whether the provider itself sent usage."""
    return any(getattr(chunk, "usage", None) for chunk in stream.chunks)


def _counts_of(usage: object) -> TokenCounts:
    """The token counts in litellm's usage object."""
    details = getattr(usage, "prompt_tokens_details", None)
    read = _count(usage, "cache_read_input_tokens") or _count(details, "cached_tokens")
    write = _count(usage, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    return TokenCounts(
        fresh=max(_count(usage, "prompt_tokens") - read - write, 0),
        output=_count(usage, "completion_tokens"),
        cache_read=read,
        cache_write=write,
    )


def _count(holder: object, name: str) -> int:
    value = getattr(holder, name, None)
    return max(value, 0) if isinstance(value, int) else 0
