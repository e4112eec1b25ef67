"""OpenAI's chat format, which most services read: messages in it, and common parts of replies."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, assert_never, cast

from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    Message,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_tui.providers.base import (
    FinishReason,
    ModelRef,
    ThinkingChunk,
    ToolCallChunk,
    TriggeredGrammar,
)
from agent_tui.providers.wires.anthropic import gave_claudes_thinking, is_claude, thinking_to_send
from agent_tui.providers.wires.base import is_own
from agent_tui.providers.wires.parts import (
    CONTINUE,
    GO_ON,
    CallIds,
    as_value,
    is_sendable,
    join_texts,
    text_of,
    user_parts,
    wire_id,
    wire_name,
)
from agent_tui.text import repair_json, repair_text


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    pieces: list[str] = field(default_factory=list[str])


class CallSplitter:
    """Gives every call a separate index.

    Some servers send several calls under one index (Gemini's compatible endpoint, old llama.cpp);
    taken as one, their arguments would run together. A new id with a name marks a new call or, if
    no ids are sent, a name after complete arguments; a piece with an earlier call's id belongs to
    that call.
    """

    def __init__(self) -> None:
        self._open: dict[int, _OpenCall] = {}
        self._by_id: dict[tuple[int, str], _OpenCall] = {}
        self._count = 0

    def piece(self, server_index: int, call_id: str, name: str, arguments: str) -> ToolCallChunk:
        """The chunk for one piece of a call as the server sent it; missing parts are empty."""
        call = self._open.get(server_index)
        if call_id and not name:
            call = self._by_id.get((server_index, call_id), call)
        if call is None or _starts_another(call, call_id, name):
            call = _OpenCall(self._count, call_id)
            self._open[server_index] = self._by_id[server_index, call_id] = call
            self._count += 1
            first = ToolCallChunk(call.index, call_id, name, arguments)
        else:
            first = ToolCallChunk(call.index, "", "" if call.pieces else name, arguments)
        if arguments:
            call.pieces.append(arguments)
        return first


def _starts_another(call: _OpenCall, call_id: str, name: str) -> bool:
    if not name:
        return False
    if call_id:
        return call_id != call.id
    return _is_complete("".join(call.pieces))


def _is_complete(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return True


def join_reasoning(pieces: Iterable[Mapping[str, object]]) -> ThinkingChunk:
    """The ``reasoning_details`` of a reply, joined into the signature to send back."""
    return ThinkingChunk("", json.dumps(_join_details(pieces), separators=(",", ":")))


def _join_details(details: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Join pieces of one detail (same type and index): text concatenated, the rest newest."""
    joined: list[dict[str, object]] = []
    for piece in details:
        last = joined[-1] if joined else {}
        is_next = all(last.get(name) == piece.get(name) for name in ("type", "index"))
        if not joined or not is_next or piece.get("type") == "reasoning.encrypted":
            joined.append(dict(piece))
            continue
        for name, value in piece.items():
            before = last.get(name)
            if name in ("text", "summary") and isinstance(before, str) and isinstance(value, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value
    return joined


def finish_reason(reason: str) -> FinishReason:
    """OpenAI's finish reason as ours, including the variants of Mistral and z.ai."""
    match reason:
        case "length" | "max_tokens" | "model_length" | "model_context_window_exceeded":
            return "length"
        case "tool_calls" | "function_call":
            return "toolUse"
        case "content_filter" | "sensitive":
            return "contentFilter"
        case _:
            return "stop"


_ROOT = re.compile(r"^root(?=\s*::=)", re.M)


def waiting_grammar(grammar: TriggeredGrammar) -> str:
    """A grammar that allows any text, and what `grammar` describes from its trigger on.

    The root of `grammar` begins with the trigger. llama.cpp can wait for a trigger itself, but
    drops ``grammar_lazy`` from chat requests, so every reply would be held to the grammar from its
    first word. Here the automaton that searches for the trigger (Knuth, Morris and Pratt) reads the
    free text, one rule per state, without the step that completes it.
    """
    trigger = grammar.trigger
    letters = sorted(set(trigger))
    others = f"[^{''.join(map(_escape, letters))}]"
    rules = ["root ::= free-0"]
    for matched in range(len(trigger)):
        choices = ['""', f"{others} free-0"]
        for letter in letters:
            following = _match_length(trigger, trigger[:matched] + letter)
            if following < len(trigger):
                choices.append(f"[{_escape(letter)}] free-{following}")
        if not matched:
            choices.append("triggered")
        rules.append(f"free-{matched} ::= {' | '.join(choices)}")
    return "\n".join((*rules, _ROOT.sub("triggered", grammar.text)))


def _match_length(trigger: str, text: str) -> int:
    """How many characters of `trigger` the end of `text` may begin."""
    return next(n for n in range(len(text), -1, -1) if text.endswith(trigger[:n]))


def _escape(letter: str) -> str:
    """`letter`, escaped for a character class."""
    return letter if letter.isalnum() else f"\\U{ord(letter):08X}"


ModelFamily: TypeAlias = Literal["anthropic", "gemini", "mistral", "other"]
"""What a model accepts in its own form: signed thinking, long call ids, short ones, nothing."""

_TRANSLATED = frozenset({"anthropic", "azure_ai", "bedrock", "gemini", "vertex_ai"})
"""Providers that litellm calls in the model's own protocol."""
_MAX_ID_CHARS = 40
"""OpenAI's limit on the id of a tool call."""
_OF_MISTRAL = re.compile(r"mistral|mixtral|ministral|magistral|devstral|codestral|pixtral", re.I)
_MISTRAL_ID_CHARS = 9
"""Mistral and its templates accept only ids of this many letters and digits."""

_REASONING_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {"groq": "reasoning", "openrouter": "reasoning"}
)
"""The field for a model's reasoning, by provider; ``reasoning_content`` for all others."""


def model_family(name: str) -> ModelFamily:
    """What the model called `name` accepts in its own form."""
    if is_claude(name) and is_translated(name):
        return "anthropic"
    if _OF_MISTRAL.search(name):
        return "mistral"
    return "gemini" if "gemini" in name.lower() else "other"


def is_translated(name: str) -> bool:
    """Whether litellm calls the model called `name` in another protocol than chat."""
    return name.partition("/")[0] in _TRANSLATED


def openai_messages(
    system: str, messages: Sequence[Message], *, model: str = "", keeps_ids: bool = False
) -> list[JsonObject]:
    """`system` and `messages` as the ``messages`` of an OpenAI chat request.

    Images of a tool result follow the results as a user message, as ``tool`` messages accept none.
    Reasoning goes back to its own `model` in the field it came in; a Claude gets signed thinking as
    litellm's ``thinking_blocks``; Gemini's call ids, which carry its signatures, stay unchanged.
    `keeps_ids` is for a `model` that may name its calls freely: they go back under these names.
    """
    ref = ModelRef(model)
    family = model_family(model)
    written: list[JsonObject] = []
    images: list[JsonObject] = []
    ids = CallIds(lambda call_id: _call_id(call_id, family), keeps_own=keeps_ids)
    for message in messages:
        if not isinstance(message, ToolResultMessage):
            _flush_images(written, images)
        match message:
            case UserMessage() | BashExecutionMessage():
                if blocks := _blocks(user_parts(message)):
                    written.append({"role": "user", "content": _plain_if_text(blocks)})
            case AssistantMessage():
                if (reply := _reply(message, ref, family, ids)) is not None:
                    written.append(reply)
            case ToolResultMessage():
                blocks = _blocks(message.content)
                images += [block for block in blocks if block["type"] == "image_url"]
                written.append(
                    {
                        "role": "tool",
                        "tool_call_id": ids.of_result(message.tool_call_id),
                        "content": join_texts(message.content, "[image follows]"),
                    }
                )
            case _:
                assert_never(message)
    _flush_images(written, images)
    if not written or written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": CONTINUE})
    if system.strip():
        written.insert(0, {"role": "system", "content": repair_text(system)})
    return written


def messages_to_send(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    """`openai_messages`, with `GO_ON` at the end if they end with the model's own words."""
    is_openais = model.provider in ("openai", "azure") and not model.base_url
    keeps_ids = model_family(model.name) == "other" and not is_openais
    written = openai_messages(system, messages, model=model.name, keeps_ids=keeps_ids)
    if written[-1]["role"] == "assistant":
        written.append({"role": "user", "content": GO_ON})
    return written


def _reply(
    message: AssistantMessage, model: ModelRef, family: ModelFamily, ids: CallIds
) -> JsonObject | None:
    """One reply, or None if nothing in it can be sent (aborted before its first word)."""
    text = repair_text(message.text)
    if family == "anthropic":  # refuses white space at the end of a reply
        text = text.rstrip()
    is_same = is_own(message, model)
    calls: list[JsonValue] = [_call(call, ids, is_same) for call in message.tool_calls]
    if not calls and not text.strip():
        return None
    reply: JsonObject = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        reply["tool_calls"] = calls
    return reply | _reasoning(message, model, family)


def _call(call: ToolCall, ids: CallIds, is_same: bool) -> JsonObject:
    """One call; a server's signature (Google's) goes back with it."""
    function: JsonObject = {
        "name": wire_name(call.name),
        "arguments": json.dumps(repair_json(call.arguments), ensure_ascii=False),
    }
    written: JsonObject = {
        "id": ids.of_call(call, is_own=is_same),
        "type": "function",
        "function": function,
    }
    if is_same and (extra := _parse_signature(call.signature, "{")):
        written["extra_content"] = extra
    return written


def _reasoning(message: AssistantMessage, model: ModelRef, family: ModelFamily) -> JsonObject:
    """The fields with the model's reasoning; empty if it is another model's or not accepted."""
    thoughts = [part for part in message.content if isinstance(part, ThinkingContent)]
    if family == "anthropic" and gave_claudes_thinking(message):
        blocks = [block for part in thoughts for block in thinking_to_send(part)]
        return {"thinking_blocks": as_value(blocks)} if blocks else {}
    if is_translated(model.name) or not is_own(message, model):
        return {}
    if details := [one for part in thoughts for one in _details(part.signature)]:
        return {"reasoning_details": details}
    if not message.thinking.strip():
        return {}
    if model.provider == "mistral":
        text: JsonObject = {"type": "text", "text": repair_text(message.thinking)}
        said: JsonObject = {"type": "text", "text": repair_text(message.text)}
        thought: JsonObject = {"type": "thinking", "thinking": [text]}
        return {"content": [thought, said] if message.text.strip() else [thought]}
    field = _REASONING_FIELDS.get(model.provider, "reasoning_content")
    return {field: repair_text(message.thinking)}


def _details(signature: str | None) -> list[JsonValue]:
    """The ``reasoning_details`` in `signature`; empty if it has another form."""
    value = _parse_signature(signature, "[")
    return value if isinstance(value, list) else []


def _parse_signature(signature: str | None, opening: str) -> JsonValue:
    """The JSON in `signature` if it begins with `opening`; else None."""
    if not signature or not signature.startswith(opening):
        return None
    try:
        return cast(JsonValue, json.loads(signature))
    except (ValueError, RecursionError):
        return None


def _blocks(parts: Iterable[UserContent]) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    for part in parts:
        if isinstance(part, ImageContent) and is_sendable(part):
            url = f"data:{part.mime_type};base64,{part.data}"
            blocks.append({"type": "image_url", "image_url": {"url": url}})
        elif (text := text_of(part)).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _plain_if_text(blocks: list[JsonObject]) -> JsonValue:
    """A single text as a plain string: some small servers accept no other form."""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return as_value(blocks)


def _flush_images(written: list[JsonObject], images: list[JsonObject]) -> None:
    if images:
        note: JsonObject = {"type": "text", "text": "Images of the tool results above:"}
        written.append({"role": "user", "content": [note, *images]})
        images.clear()


def _call_id(call_id: str, family: ModelFamily) -> str:
    if family == "gemini" and call_id and call_id.isascii():
        return call_id
    if family == "mistral":
        if re.fullmatch(rf"[A-Za-z0-9]{{{_MISTRAL_ID_CHARS}}}", call_id):
            return call_id
        digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return digest[:_MISTRAL_ID_CHARS]
    return wire_id(call_id, _MAX_ID_CHARS)
