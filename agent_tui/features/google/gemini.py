"""Google's Gemini API, ``streamGenerateContent``."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, assert_never

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    TextChunk,
    ThinkingChunk,
    ThinkingEffort,
    ToolCallChunk,
)
from agent_tui.providers.wires.base import (
    Address,
    Fit,
    MalformedReplyError,
    MissingKeyError,
    WireRequest,
    is_own,
    key_of,
)
from agent_tui.providers.wires.http import Reading, ReplyIds, ask_with, http_wire
from agent_tui.providers.wires.parts import (
    BUDGET_TOKENS,
    CONTINUE,
    GO_ON,
    TokenCounts,
    as_value,
    count_at,
    counts_at,
    is_sendable,
    join_texts,
    object_at,
    objects_at,
    text_at,
    text_of,
    user_parts,
    wire_name,
)
from agent_tui.text import repair_json, repair_text

_HOME = "https://generativelanguage.googleapis.com/v1beta"
_MADE_ID = re.compile(r"call_[0-9a-f]{24,}")
"""The id of a call that came without one; not the model's own."""
_SEALED_ID = "__thought__"
"""Separates a call's id from its signature if litellm joined the two."""
_ANY_SIGNATURE = "skip_thought_signature_validator"
"""Google's placeholder for a call by another model; without a signature it is refused."""
_FILTERED = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"}
)
_BROKEN = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "OTHER",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)
_FLASH_BUDGET_TOKENS = 24_576
_LEAST_BUDGET_TOKENS = 128
"""Budgets of Gemini 2.5: the most for Flash, the least for Pro, which always thinks."""


def _fit(model: ModelRef) -> Fit:
    if model.provider != "gemini":
        return "no"
    return "try" if model.base_url else "yes"


def _write(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    """The turns, roles alternating; the system prompt comes first, with role ``system``."""
    turns: list[tuple[Literal["user", "model"], list[JsonObject]]] = []
    for message in messages:
        role: Literal["user", "model"] = "user"
        match message:
            case UserMessage() | BashExecutionMessage():
                parts = _user_parts(user_parts(message))
            case AssistantMessage():
                role, parts = "model", list(_reply_parts(message, model))
            case ToolResultMessage():
                parts = _result_parts(message)
            case _:
                assert_never(message)
        if not parts:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts)
        else:
            turns.append((role, parts))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [{"text": CONTINUE}]))
    if turns[-1][0] == "model":
        turns.append(("user", [{"text": GO_ON}]))
    written: list[JsonObject] = [{"role": role, "parts": as_value(parts)} for role, parts in turns]
    if system.strip():
        written.insert(0, {"role": "system", "parts": [{"text": repair_text(system)}]})
    return written


def _reply_parts(message: AssistantMessage, model: ModelRef) -> Iterator[JsonObject]:
    """The parts of a reply with their signatures, each in its place."""
    is_same = is_own(message, model)
    needs_signature = _is_from_3(model.model_id)
    for part in message.content:
        match part:
            case TextContent():
                if (is_same and part.signature) or part.text.strip():
                    yield _with_signature(
                        {"text": repair_text(part.text)}, is_same and part.signature
                    )
            case ThinkingContent():
                if is_same and part.signature:
                    thought: JsonObject = {"text": repair_text(part.thinking), "thought": True}
                    yield _with_signature(thought, part.signature)
            case ToolCall():
                stand_in = _ANY_SIGNATURE if needs_signature else ""
                needs_signature = False  # only the first call of a reply has one
                yield _call_part(part, is_same=is_same, stand_in=stand_in)
            case _:
                assert_never(part)


def _call_part(part: ToolCall, *, is_same: bool, stand_in: str) -> JsonObject:
    call: JsonObject = {"name": wire_name(part.name), "args": repair_json(part.arguments)}
    own_id, _, sealed = part.id.partition(_SEALED_ID)
    if own_id and not _MADE_ID.fullmatch(own_id):
        call["id"] = own_id
    signature = (part.signature or sealed) if is_same else ""
    return _with_signature({"functionCall": call}, signature or stand_in)


def _with_signature(part: JsonObject, signature: str | Literal[False] | None) -> JsonObject:
    return {**part, "thoughtSignature": signature} if signature else part


def _result_parts(message: ToolResultMessage) -> list[JsonObject]:
    text = join_texts(message.content, "[image follows]")
    response: JsonObject = {
        "name": wire_name(message.tool_name),
        "response": {"error" if message.is_error else "output": text},
    }
    own_id = message.tool_call_id.partition(_SEALED_ID)[0]
    if own_id and not _MADE_ID.fullmatch(own_id):
        response["id"] = own_id
    images = _user_parts(part for part in message.content if is_sendable(part))
    return [{"functionResponse": response}, *images]


def _user_parts(parts: Iterable[UserContent]) -> list[JsonObject]:
    written: list[JsonObject] = []
    for part in parts:
        if isinstance(part, ImageContent) and is_sendable(part):
            written.append({"inlineData": {"mimeType": part.mime_type, "data": part.data}})
        elif (text := text_of(part)).strip():
            written.append({"text": text})
    return written


def _address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address of Google or a compatible service; `base_url` may include the version.

    Raises:
        MissingKeyError: No key is set.
    """
    home = (request.base_url or environ.get("GEMINI_API_BASE") or _HOME).rstrip("/")
    if not re.search(r"/v1(?:alpha|beta)?\d?$", home):
        home += "/v1beta"
    key = key_of(request, environ, "GEMINI_API_KEY", "GOOGLE_API_KEY")
    if not key and not request.base_url:
        raise MissingKeyError("GEMINI_API_KEY")
    headers = {"x-goog-api-key": key} if key else {}
    return Address(f"{home}/models/{request.model_id}:streamGenerateContent?alt=sse", headers)


def request_body(request: WireRequest) -> JsonObject:
    """The body for `request`."""
    contents = request.messages
    body: JsonObject = {}
    if contents[0]["role"] == "system":
        body["systemInstruction"] = {"parts": contents[0]["parts"]}
        contents = contents[1:]
    body["contents"] = as_value(contents)
    if request.tools:
        declarations = (
            {
                "name": tool["name"],
                "description": tool["description"],
                "parametersJsonSchema": tool["parameters"],
            }
            for tool in request.tools
        )
        body["tools"] = [{"functionDeclarations": as_value(declarations)}]
    config: JsonObject = {}
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if request.reply_schema is not None:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = request.reply_schema
    if thinking := _thinking(request.model_id, request.thinking):
        config["thinkingConfig"] = thinking
    if config:
        body["generationConfig"] = config
    return body


def _thinking(name: str, level: ThinkingEffort) -> JsonObject:
    """How much a model thinks: a level since Gemini 3, a budget before, nothing before 2.5."""
    if _is_from_3(name):
        is_pro = "pro" in name
        if level == "off":  # none of them can turn thinking off
            return {"thinkingLevel": "low" if is_pro else "minimal"}
        if level == "medium" and not re.match(r"gemini-3-pro", name):
            return {"includeThoughts": True, "thinkingLevel": "medium"}
        return {"includeThoughts": True, "thinkingLevel": "low" if level == "low" else "high"}
    if not name.startswith("gemini-2.5"):
        return {}
    if level == "off":
        return {"thinkingBudget": _LEAST_BUDGET_TOKENS if "pro" in name else 0}
    budget = BUDGET_TOKENS[level]
    return {
        "includeThoughts": True,
        "thinkingBudget": budget if "pro" in name else min(budget, _FLASH_BUDGET_TOKENS),
    }


def _is_from_3(name: str) -> bool:
    return re.match(r"gemini-(?:[3-9]|\d\d)", name) is not None


class GeminiReading(Reading):
    """Reads one stream."""

    def __init__(self) -> None:
        self._ids = ReplyIds()
        self._usage: JsonObject = {}
        self._reason = ""
        self._calls = 0

    def begins_anew(self, event: JsonObject) -> bool:
        """See `Reading.begins_anew`."""
        return self._ids.is_another(text_at(event, "responseId"))

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """See `Reading.chunks`; an unreadable call is requested again."""
        self._ids.note(text_at(event, "responseId"))
        self._usage |= counts_at(event, "usageMetadata")
        if text_at(object_at(event, "promptFeedback"), "blockReason"):
            self._reason = "SAFETY"
        for candidate in objects_at(event, "candidates")[:1]:
            for part in objects_at(object_at(candidate, "content"), "parts"):
                yield from self._part(part)
            self._reason = text_at(candidate, "finishReason") or self._reason
            if self._reason in _BROKEN:
                said = text_at(candidate, "finishMessage")
                raise MalformedReplyError(said or f"the model stopped with {self._reason}")

    def counts(self) -> TokenCounts | None:
        """See `Reading.counts`."""
        usage = self._usage
        if not usage:
            return None
        read = count_at(usage, "cachedContentTokenCount")
        prompt = count_at(usage, "promptTokenCount") + count_at(usage, "toolUsePromptTokenCount")
        return TokenCounts(
            fresh=max(prompt - read, 0),
            output=count_at(usage, "candidatesTokenCount") + count_at(usage, "thoughtsTokenCount"),
            cache_read=read,
        )

    def finish(self) -> FinishChunk | None:
        """See `Reading.finish`."""
        if self._reason == "MAX_TOKENS":
            return FinishChunk("length")
        if self._reason in _FILTERED:
            return FinishChunk("contentFilter")
        if self._reason:
            return FinishChunk("toolUse" if self._calls else "stop")
        return None

    def _part(self, part: JsonObject) -> Iterator[Chunk]:
        signature = text_at(part, "thoughtSignature")
        if "functionCall" in part:
            call = object_at(part, "functionCall")
            arguments = json.dumps(object_at(call, "args"), ensure_ascii=False)
            yield ToolCallChunk(
                self._calls,
                text_at(call, "id"),
                text_at(call, "name"),
                arguments,
                signature=signature,
            )
            self._calls += 1
        elif part.get("thought") is True:
            yield ThinkingChunk(text_at(part, "text"), signature or None)
        elif signature and "text" in part:  # of this part alone: it is not joined
            yield TextChunk("", "")
            yield TextChunk(text_at(part, "text"), signature)
        elif text := text_at(part, "text"):
            yield TextChunk(text)


GEMINI: Final = http_wire(
    "gemini",
    _fit,
    _write,
    ask_with(_address, lambda request, _known: request_body(request)),
    GeminiReading,
    prefixes=("gemini/",),
)
