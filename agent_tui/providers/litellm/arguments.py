"""A request as the keyword arguments of litellm's ``acompletion``."""

import re
from collections.abc import Collection, Mapping

from agent_tui.messages import JsonObject
from agent_tui.providers.base import TriggeredGrammar
from agent_tui.providers.litellm.protocol import Start
from agent_tui.providers.litellm.wire import model_family

DUMMY_KEY = "no-key"
"""What local servers get, which want a key to be there and do not look at it."""

_TIMEOUT_MARGIN_S = 30.0
"""How much later than ours litellm's own timer fires."""


def request_arguments(
    start: Start,
    known_providers: Collection[str],
    environ: Mapping[str, str],
    *,
    table_max_output: int | None,
) -> dict[str, object]:
    """The arguments for `start`; a `base_url` without a known provider speaks OpenAI's protocol.

    A key that was set for a provider never goes to a `base_url` unless it was named for it.

    Args:
        start: The request.
        known_providers: Names litellm takes before the slash.
        environ: Where the key is.
        table_max_output: Longest reply in tokens by litellm's table. Anthropic demands a limit,
            and without one litellm says 4,096, too little for one file.
    """
    arguments: dict[str, object] = {
        "model": start.model,
        "messages": start.messages,
        "stream": True,
        "stream_options": {"include_usage": True},
        "num_retries": 0,
        "max_retries": 0,
        "timeout": start.idle_timeout_s + _TIMEOUT_MARGIN_S,
        "drop_params": True,
    }
    if start.base_url:
        provider = start.model.partition("/")[0]
        known = "/" in start.model and provider in known_providers
        arguments["model"] = start.model if known else f"openai/{start.model}"
        arguments["api_base"] = start.base_url
        arguments["api_key"] = environ.get(start.api_key_env) or DUMMY_KEY
    elif key := environ.get(start.api_key_env):
        arguments["api_key"] = key
    if start.tools:
        arguments["tools"] = start.tools
    max_output_tokens = start.max_output_tokens
    if model_family(start.model) == "anthropic":
        max_output_tokens = max_output_tokens or table_max_output
        # The prefix that does not change costs a tenth when it is cached.
        arguments["cache_control_injection_points"] = [
            {"location": "message", "role": "system"},
            {"location": "message", "index": -1},
        ]
    if max_output_tokens is not None:
        arguments["max_tokens"] = max_output_tokens
    if start.reply_schema is not None:
        arguments["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": start.reply_schema, "strict": True},
        }
    if start.grammar is not None:
        arguments["extra_body"] = {"grammar": waiting_grammar(start.grammar)}
    if start.thinking != "off" and _may_think(start):
        arguments["reasoning_effort"] = start.thinking
    return arguments


def _may_think(start: Start) -> bool:
    """Whether thinking may be asked for.

    Anthropic refuses it in the middle of a tool round that began without signed thinking,
    as after a change of model.
    """
    if model_family(start.model) != "anthropic" or start.messages[-1]["role"] != "tool":
        return True
    replies = (m for m in reversed(start.messages) if m["role"] == "assistant")
    last_reply: JsonObject = next(replies, JsonObject())
    return bool(last_reply.get("thinking_blocks"))


_ROOT = re.compile(r"^root(?=\s*::=)", re.M)


def waiting_grammar(grammar: TriggeredGrammar) -> str:
    """`grammar` as one that allows any text, and what it describes from its trigger on.

    The root of `grammar` begins with the trigger. llama.cpp can wait for a trigger itself, but
    drops ``grammar_lazy`` of a chat request, so that every reply would be held to the grammar
    from its first word. Here free text is read by the automaton that looks for the trigger
    (Knuth, Morris and Pratt), one rule a state, without the step that completes it.
    """
    trigger = grammar.trigger
    letters = sorted(set(trigger))
    others = f"[^{''.join(map(_escaped, letters))}]"
    rules = ["root ::= free-0"]
    for matched in range(len(trigger)):
        choices = ['""', f"{others} free-0"]
        for letter in letters:
            following = _matched_after(trigger, trigger[:matched] + letter)
            if following < len(trigger):
                choices.append(f"[{_escaped(letter)}] free-{following}")
        if not matched:
            choices.append("triggered")
        rules.append(f"free-{matched} ::= {' | '.join(choices)}")
    return "\n".join((*rules, _ROOT.sub("triggered", grammar.text)))


def _matched_after(trigger: str, text: str) -> int:
    """How much of `trigger` the end of `text` may be the beginning of."""
    return next(n for n in range(len(text), -1, -1) if text.endswith(trigger[:n]))


def _escaped(letter: str) -> str:
    """`letter` inside the brackets of a class of characters."""
    return letter if letter.isalnum() else f"\\U{ord(letter):08X}"
