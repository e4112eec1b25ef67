"""A request as the keyword arguments of litellm's ``acompletion``."""

import re
from collections.abc import Collection, Mapping

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.wires.anthropic import is_claude
from agent_tui.providers.wires.base import DUMMY_KEY, WireRequest
from agent_tui.providers.wires.chat.grammar import waiting_grammar
from agent_tui.providers.wires.chat.messages import is_translated, model_family
from agent_tui.providers.wires.fields import count_at
from agent_tui.providers.wires.parts import BUDGET_TOKENS, effort

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
