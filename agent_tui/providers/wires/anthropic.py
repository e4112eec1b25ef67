"""Anthropic's Messages API, as spoken by Anthropic and compatible services."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, assert_never

from pydantic import JsonValue

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
    FinishReason,
    ModelRef,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_tui.providers.wires.base import (
    Address,
    Fit,
    MissingKeyError,
    WireRequest,
    is_own,
    key_of,
)
from agent_tui.providers.wires.http import (
    Known,
    Reading,
    azure_claude_address,
    http_wire,
)
from agent_tui.providers.wires.parts import (
    BUDGET_TOKENS,
    CONTINUE,
    GO_ON,
    NO_OUTPUT,
    CallIds,
    TokenCounts,
    as_value,
    count_at,
    counts_at,
    effort,
    is_sendable,
    object_at,
    objects_at,
    text_at,
    text_of,
    user_parts,
    wire_name,
)
from agent_tui.text import repair_json, repair_text

_HOME = "https://api.anthropic.com"
_VERSION = "2023-06-01"
INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"
"""Lets models with a thinking budget think between calls; adaptive models do so anyway."""
_BUDGETED = re.compile(r"claude-(?:3|(?:[a-z]+-)4(?:[-.][0-5])?(?:[-@]\d{8})?$)")
_MAX_OUTPUT_TOKENS = 32_000
"""Tokens for a model that is in no table: every Claude since 4 may write as many."""
_MIN_BUDGET_TOKENS = 1_024
_CACHED: Final[JsonObject] = {"type": "ephemeral"}
"""The constant prefix costs a tenth when it is cached."""


def is_claude(name: str) -> bool:
    """Whether a model is one of Anthropic's, whoever serves it."""
    return "claude" in name.lower()


def anthropic_payload(
    system: str, messages: Sequence[Message], model: ModelRef | None = None
) -> JsonObject:
    """`system` and `messages` as ``{"system": ..., "messages": [...]}`` of the API.

    Neighbours of one role are merged, as the roles must alternate; the first is the user's. Signed
    thinking goes back unchanged: between Claudes, and to the `model` that produced it.
    """
    turns: list[tuple[Literal["user", "assistant"], list[JsonObject]]] = []
    ids = CallIds(keeps_own=model is not None and not is_claude(model.name))
    for message in messages:
        role: Literal["user", "assistant"] = "user"
        match message:
            case UserMessage() | BashExecutionMessage():
                blocks = _user_blocks(user_parts(message))
            case AssistantMessage():
                role, blocks = "assistant", _reply_blocks(message, model, ids)
            case ToolResultMessage():
                blocks = [_result_block(message, ids)]
            case _:
                assert_never(message)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", [{"type": "text", "text": CONTINUE}]))
    payload: JsonObject = {"system": repair_text(system)} if system.strip() else {}
    payload["messages"] = [{"role": role, "content": as_value(blocks)} for role, blocks in turns]
    return payload


def thinking_to_send(part: ThinkingContent, *, may_be_unsigned: bool = False) -> list[JsonObject]:
    """The block to send back; none if it is unsigned or would have to be repaired.

    The signature covers every byte of the text, so a repaired block would be refused. Models that
    only copy the protocol do not always sign, but need their thinking back.
    """
    signature = part.signature or ""
    if not signature and not (may_be_unsigned and part.thinking.strip()):
        return []
    if repair_text(part.thinking + signature) != part.thinking + signature:
        return []
    if part.redacted:
        return [{"type": "redacted_thinking", "data": signature}]
    return [{"type": "thinking", "thinking": part.thinking, "signature": signature}]


def gave_claudes_thinking(reply: AssistantMessage) -> bool:
    """Whether the signatures of `reply` are Anthropic's; others are refused there."""
    return is_claude(f"{reply.provider}/{reply.model}")


def _reply_blocks(
    message: AssistantMessage, model: ModelRef | None, ids: CallIds
) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    is_same = model is not None and is_own(message, model)
    to_claude = model is None or is_claude(model.name)
    takes_thinking = is_same or (to_claude and gave_claudes_thinking(message))
    for part in message.content:
        match part:
            case TextContent():
                if (text := repair_text(part.text)).strip():
                    blocks.append({"type": "text", "text": text})
            case ThinkingContent():
                if takes_thinking:
                    blocks += thinking_to_send(part, may_be_unsigned=not to_claude)
            case ToolCall():
                blocks.append(
                    {
                        "type": "tool_use",
                        "id": ids.of_call(part, is_own=is_same),
                        "name": wire_name(part.name),
                        "input": repair_json(part.arguments),
                    }
                )
            case _:
                assert_never(part)
    if blocks and blocks[-1]["type"] == "text":  # a reply may not end in white space
        blocks[-1]["text"] = text_at(blocks[-1], "text").rstrip()
    says_something = any(block["type"] in ("text", "tool_use") for block in blocks)
    return blocks if says_something else []


def _result_block(message: ToolResultMessage, ids: CallIds) -> JsonObject:
    content = _user_blocks(message.content) or [{"type": "text", "text": NO_OUTPUT}]
    block: JsonObject = {
        "type": "tool_result",
        "tool_use_id": ids.of_result(message.tool_call_id),
        "content": as_value(content),
    }
    if message.is_error:
        block["is_error"] = True
    return block


def _user_blocks(parts: Iterable[UserContent]) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    for part in parts:
        if isinstance(part, ImageContent) and is_sendable(part):
            source: JsonObject = {
                "type": "base64",
                "media_type": part.mime_type,
                "data": part.data,
            }
            blocks.append({"type": "image", "source": source})
        elif (text := text_of(part)).strip():
            blocks.append({"type": "text", "text": text})
    return blocks


def _write(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    """The system prompt as a separate message, then the turns; both ends marked for caching."""
    payload = anthropic_payload(system, messages, model)
    written = list(objects_at(payload, "messages"))
    if written[-1]["role"] == "assistant":
        written.append({"role": "user", "content": [{"type": "text", "text": GO_ON}]})
    objects_at(written[-1], "content")[-1]["cache_control"] = _CACHED
    if text := text_at(payload, "system"):
        block: JsonObject = {"type": "text", "text": text, "cache_control": _CACHED}
        written.insert(0, {"role": "system", "content": [block]})
    return written


def _fit(model: ModelRef) -> Fit:
    if model.provider == "anthropic":
        return "try" if model.base_url else "yes"
    if model.provider == "azure_ai":
        return "yes" if is_claude(model.model_id) else "no"
    is_bare = not model.provider and not model.base_url and model.name.startswith("claude")
    return "yes" if is_bare else "no"


def _ask(
    request: WireRequest, environ: Mapping[str, str], known: Known
) -> tuple[Address, JsonObject]:
    body = request_body(request, known)
    at_azure = request.model.startswith("azure_ai/")
    address = azure_claude_address(request, environ) if at_azure else _address(request, environ)
    return replace(address, headers={**address.headers, **protocol_headers(body)}), body


def _address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address of Anthropic or a compatible service; `base_url` may end in ``/v1`` or not.

    Raises:
        MissingKeyError: No key is set.
    """
    home = (
        request.base_url or environ.get("ANTHROPIC_BASE_URL") or environ.get("ANTHROPIC_API_BASE")
    )
    home = re.sub(r"(?:/v1)?(?:/messages)?/?$", "", home or _HOME)
    headers: dict[str, str] = {}
    if key := key_of(request, environ, "ANTHROPIC_API_KEY"):
        headers["x-api-key"] = key
    elif (token := environ.get("ANTHROPIC_AUTH_TOKEN")) and not request.base_url:
        headers["authorization"] = f"Bearer {token}"
    elif not request.base_url:
        raise MissingKeyError("ANTHROPIC_API_KEY")
    return Address(f"{home}/v1/messages", headers)


def protocol_headers(body: JsonObject) -> dict[str, str]:
    """The headers for the version, and for what `body` uses beyond it."""
    headers = {"anthropic-version": _VERSION}
    if "budget_tokens" in object_at(body, "thinking"):
        headers["anthropic-beta"] = INTERLEAVED_THINKING
    return headers


def request_body(request: WireRequest, known: Mapping[str, JsonValue]) -> JsonObject:
    """The body for `request`; `known` is what the table says of its model."""
    messages = request.messages
    # The API requires a limit.
    max_tokens = request.max_output_tokens or count_at(known, "max_output_tokens")
    max_tokens = max_tokens or _MAX_OUTPUT_TOKENS
    body: JsonObject = {
        "model": request.model_id,
        "max_tokens": max_tokens,
        "stream": True,
    }
    if messages[0]["role"] == "system":
        body["system"] = messages[0]["content"]
        messages = messages[1:]
    body["messages"] = as_value(messages)
    if request.tools:
        body["tools"] = as_value(
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["parameters"],
            }
            for tool in request.tools
        )
    output: JsonObject = {}
    if request.reply_schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.reply_schema}
    if request.thinking != "off":
        if _adapts(request.model, known):
            # Without this field, thinking comes without text by default.
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
            output["effort"] = effort(request.thinking, known)
        elif (budget := min(BUDGET_TOKENS[request.thinking], max_tokens * 3 // 4)) >= (
            _MIN_BUDGET_TOKENS
        ) and not _is_in_round_without_thinking(messages):
            body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if output:
        body["output_config"] = output
    return body


def _adapts(name: str, known: Mapping[str, JsonValue]) -> bool:
    """Whether a model takes an effort instead of a budget: every Claude since 4.6."""
    if known:
        return known.get("supports_adaptive_thinking") is True
    return is_claude(name) and not _BUDGETED.search(name)


def _is_in_round_without_thinking(messages: Sequence[JsonObject]) -> bool:
    """Whether the last tool round began without signed thinking, as after a change of model.

    Thinking with a budget is refused in the middle of such a round.
    """
    for message in reversed(messages):
        blocks = objects_at(message, "content")
        if message["role"] == "assistant":
            return blocks[0]["type"] not in ("thinking", "redacted_thinking")
        if not any(block["type"] == "tool_result" for block in blocks):
            return False
    return False


@dataclass(slots=True)
class _Block:
    type: str
    signature: list[str] = field(default_factory=list[str])
    has_input: bool = False


class AnthropicReading(Reading):
    """Reads one stream; a paused turn is continued like one cut by its length."""

    finishes: ClassVar[Mapping[str, FinishReason]] = {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "pause_turn": "length",
        "tool_use": "toolUse",
        "refusal": "contentFilter",
    }

    def __init__(self) -> None:
        self._has_begun = False
        self._blocks: dict[int, _Block] = {}
        self._usage: JsonObject = {}

    def begins_anew(self, event: JsonObject) -> bool:
        """See `Reading.begins_anew`."""
        return self._has_begun and event.get("type") == "message_start"

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """See `Reading.chunks`."""
        index = count_at(event, "index")
        match event.get("type"):
            case "message_start":
                self._has_begun = True
                self._usage |= counts_at(object_at(event, "message"), "usage")
            case "content_block_start":
                yield from self._begin(index, object_at(event, "content_block"))
            case "content_block_delta":
                yield from self._go_on(index, object_at(event, "delta"))
            case "content_block_stop":
                yield from self._end(index)
            case "message_delta":
                reason = text_at(object_at(event, "delta"), "stop_reason")
                self.stop_reason = reason or self.stop_reason
                self._usage |= counts_at(event, "usage")
            case _:
                pass

    def counts(self) -> TokenCounts | None:
        """See `Reading.counts`."""
        usage = self._usage
        if not usage:
            return None
        return TokenCounts(
            fresh=count_at(usage, "input_tokens"),
            output=count_at(usage, "output_tokens"),
            cache_read=count_at(usage, "cache_read_input_tokens"),
            cache_write=count_at(usage, "cache_creation_input_tokens"),
        )

    def _begin(self, index: int, content: JsonObject) -> Iterator[Chunk]:
        block = self._blocks[index] = _Block(text_at(content, "type"))
        match block.type:
            case "text" if text := text_at(content, "text"):
                yield TextChunk(text)
            case "thinking":
                block.signature.append(text_at(content, "signature"))
                if text := text_at(content, "thinking"):
                    yield ThinkingChunk(text)
            case "redacted_thinking":
                yield ThinkingChunk("", text_at(content, "data"), redacted=True)
            case "tool_use":
                given = object_at(content, "input")  # complete here only if nothing follows
                block.has_input = bool(given)
                arguments = json.dumps(given) if given else ""
                yield ToolCallChunk(
                    index, text_at(content, "id"), text_at(content, "name"), arguments
                )
            case _:
                pass

    def _go_on(self, index: int, delta: JsonObject) -> Iterator[Chunk]:
        block = self._blocks.get(index)
        match delta.get("type"):
            case "text_delta":
                yield TextChunk(text_at(delta, "text"))
            case "thinking_delta" if text := text_at(delta, "thinking"):
                yield ThinkingChunk(text)
            case "signature_delta" if block is not None:
                block.signature.append(text_at(delta, "signature"))
                yield ThinkingChunk("")
            case "input_json_delta" if block is not None and block.type == "tool_use":
                if not block.has_input:
                    yield ToolCallChunk(index, "", "", text_at(delta, "partial_json"))
            case _:
                pass

    def _end(self, index: int) -> Iterator[Chunk]:
        block = self._blocks.pop(index, None)
        if block is not None and block.type == "thinking":
            yield ThinkingChunk("", "".join(block.signature))


ANTHROPIC: Final = http_wire(
    "anthropic",
    _fit,
    _write,
    _ask,
    AnthropicReading,
    prefixes=("anthropic/", "azure_ai/"),
    spare_fields=("output_config",),
)
