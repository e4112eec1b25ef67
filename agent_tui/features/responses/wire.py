"""OpenAI's Responses API, for its reasoning models and for hosts that copy it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never, cast

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
    FinishChunk,
    ModelRef,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_tui.providers.wires.base import (
    Address,
    Fit,
    MissingKeyError,
    RefusedError,
    WireRequest,
    is_own,
    key_of,
)
from agent_tui.providers.wires.http import (
    Reading,
    ask_with,
    azure_openai_address,
    http_wire,
)
from agent_tui.providers.wires.parts import (
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

_HOME = "https://api.openai.com/v1"
_REASONING = re.compile(r"(?:gpt-[5-9](?!-chat)|o[1-9]|codex)")
_NAMED = ("openai/responses/", "azure/responses/")
"""litellm's prefix for models that are called in this protocol, wherever they are."""
_MAX_CACHE_KEY_CHARS = 64
_CALLS = frozenset({"function_call", "custom_tool_call"})


def _fit(model: ModelRef) -> Fit:
    if model.name.startswith(_NAMED):
        return "yes"
    if model.provider not in ("", "azure", "openai") or not _REASONING.match(model.model_id):
        return "no"
    return "try" if model.base_url or model.provider == "azure" else "yes"


def _write(system: str, messages: Sequence[Message], model: ModelRef) -> list[JsonObject]:
    """The input items; the system prompt comes first, with role ``developer``."""
    items: list[JsonObject] = []
    ids = CallIds(keeps_own=bool(model.base_url))
    for message in messages:
        match message:
            case UserMessage() | BashExecutionMessage():
                if content := _content(user_parts(message)):
                    items.append({"role": "user", "content": content})
            case AssistantMessage():
                items += _reply_items(message, ids, is_same=is_own(message, model))
            case ToolResultMessage():
                output: JsonValue = _content(message.content) or NO_OUTPUT
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": ids.of_result(message.tool_call_id),
                        "output": output,
                    }
                )
            case _:
                assert_never(message)
    if not items or items[0].get("role") != "user":
        items.insert(0, {"role": "user", "content": CONTINUE})
    if items[-1].get("role") == "assistant":
        items.append({"role": "user", "content": GO_ON})
    if system.strip():
        items.insert(0, {"role": "developer", "content": repair_text(system)})
    return items


def _reply_items(message: AssistantMessage, ids: CallIds, *, is_same: bool) -> Iterator[JsonObject]:
    """The model's output, item by item.

    A reasoning item is refused without the item it led to, and that item's id is refused without
    it. So trailing reasoning items are dropped, and ids are only sent if `is_same`.
    """
    waiting: list[JsonObject] = []
    has_reasoning = False
    for part in message.content:
        item: JsonObject
        match part:
            case ThinkingContent():
                if is_same and (sealed := _reasoning_item(part.signature)) is not None:
                    waiting.append(sealed)
                    has_reasoning = True
                continue
            case TextContent():
                if not (text := repair_text(part.text)).strip():
                    continue
                item = _message_item(text, part.signature if is_same else None, has_reasoning)
            case ToolCall():
                item = {
                    "type": "function_call",
                    "call_id": ids.of_call(part, is_own=is_same),
                    "name": wire_name(part.name),
                    "arguments": _compact(repair_json(part.arguments)),
                }
                if is_same and has_reasoning and part.signature:
                    item["id"] = part.signature
            case _:
                assert_never(part)
        yield from waiting
        waiting.clear()
        yield item


def _message_item(text: str, signature: str | None, has_reasoning: bool) -> JsonObject:
    given = _parse_object(signature)
    item: JsonObject = {"role": "assistant", "content": text}
    if has_reasoning and (item_id := text_at(given, "id")):
        item = {
            "type": "message",
            "id": item_id,
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
    if phase := text_at(given, "phase"):
        item["phase"] = phase
    return item


def _reasoning_item(signature: str | None) -> JsonObject | None:
    """The original reasoning item in `signature`; None if it has another form."""
    item = _parse_object(signature)
    return item if item.get("type") == "reasoning" else None


def _parse_object(text: str | None) -> JsonObject:
    if not text or not text.startswith("{"):
        return {}
    try:
        value = cast(JsonValue, json.loads(text))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _content(parts: Iterable[UserContent]) -> JsonValue:
    """A single text as a plain string, which every host accepts; empty if there is nothing."""
    blocks: list[JsonObject] = []
    for part in parts:
        if isinstance(part, ImageContent) and is_sendable(part):
            url = f"data:{part.mime_type};base64,{part.data}"
            blocks.append({"type": "input_image", "image_url": url, "detail": "auto"})
        elif (text := text_of(part)).strip():
            blocks.append({"type": "input_text", "text": text})
    if all(block["type"] == "input_text" for block in blocks):
        return "\n".join(text_at(block, "text") for block in blocks)
    return as_value(blocks)


def _address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address of OpenAI or of the named host.

    Raises:
        MissingKeyError: No key is set.
    """
    if request.model.startswith("azure/"):
        return azure_openai_address(request, environ, "responses")
    home = request.base_url or environ.get("OPENAI_BASE_URL") or environ.get("OPENAI_API_BASE")
    home = re.sub(r"/(?:responses/?)?$", "", home or _HOME)
    headers: dict[str, str] = {}
    if key := key_of(request, environ, "OPENAI_API_KEY"):
        headers["authorization"] = f"Bearer {key}"
    elif not request.base_url:
        raise MissingKeyError("OPENAI_API_KEY")
    if not request.base_url:
        for header, variable in (
            ("openai-organization", "OPENAI_ORGANIZATION"),
            ("openai-project", "OPENAI_PROJECT"),
        ):
            if value := environ.get(variable):
                headers[header] = value
    return Address(f"{home}/responses", headers)


def request_body(request: WireRequest, known: Mapping[str, JsonValue]) -> JsonObject:
    """The body for `request`; `known` is what the table says of its model.

    The server stores nothing: the encrypted reasoning is returned to us instead.
    """
    body: JsonObject = {
        "model": request.model_id,
        "input": as_value(request.messages),
        "stream": True,
        "store": False,
    }
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key[:_MAX_CACHE_KEY_CHARS]
    if request.tools:
        body["tools"] = as_value(
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["parameters"],
                "strict": False,
            }
            for tool in request.tools
        )
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    if request.reply_schema is not None:
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": "reply",
                "schema": request.reply_schema,
                "strict": True,
            }
        }
    if known.get("supports_reasoning") is not True and known:
        return body
    if request.thinking != "off":
        body["reasoning"] = {"effort": effort(request.thinking, known), "summary": "auto"}
    elif known.get("supports_none_reasoning_effort") is True:
        body["reasoning"] = {"effort": "none"}
    body["include"] = ["reasoning.encrypted_content"]
    return body


@dataclass(slots=True)
class _Item:
    """An output item: how many characters it yielded, and chunks held back for its turn."""

    chars: int = 0
    thoughts: int = 0
    has_come: bool = False
    has_begun: bool = False
    is_open_reasoning: bool = False
    held: list[Chunk] = field(default_factory=list[Chunk])


class _Reading(Reading):
    """Reads one stream."""

    def __init__(self) -> None:
        self._response: JsonObject = {}
        self._items: dict[int, _Item] = {}
        self._has_begun = self._has_calls = False

    def begins_anew(self, event: JsonObject) -> bool:
        """See `Reading.begins_anew`."""
        return self._has_begun and event.get("type") == "response.created"

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """See `Reading.chunks`; chunks of other events are included once it is their turn.

        Items go back in order, so what follows a reasoning item waits for its end; some hosts end
        it last.
        """
        index = count_at(event, "output_index")
        item = self._items.setdefault(index, _Item())
        item.held += self._read(event, index, item)
        for at in sorted(self._items):
            one = self._items[at]
            yield from one.held
            one.held.clear()
            if one.is_open_reasoning and not self._response:
                break
        if item.held:
            yield ThinkingChunk("")  # more arrived, and waits for its turn

    def _read(self, event: JsonObject, index: int, item: _Item) -> Iterator[Chunk]:
        match event.get("type"):
            case "response.created":
                self._has_begun = True
            case "response.output_item.added":
                yield from self._begin(index, item, object_at(event, "item"))
            case str(kind) if kind.endswith(".delta"):
                yield from self._go_on(index, item, kind, text_at(event, "delta"))
            case "response.reasoning_summary_part.added" if item.thoughts:
                yield ThinkingChunk("\n\n")
            case "response.output_item.done":
                yield from self._end(index, item, object_at(event, "item"))
            case "response.completed" | "response.incomplete" | "response.done":
                self._response = object_at(event, "response")
                self.is_over = bool(self._response)
                yield from self._end_unsaid()
            case "response.failed":
                self._response = object_at(event, "response")
                raise _refusal(self._response)
            case "error":
                raise _refusal(event)
            case _:
                pass

    def counts(self) -> TokenCounts | None:
        """See `Reading.counts`."""
        usage = counts_at(self._response, "usage")
        if not usage:
            return None
        read = count_at(object_at(usage, "input_tokens_details"), "cached_tokens")
        return TokenCounts(
            fresh=max(count_at(usage, "input_tokens") - read, 0),
            output=count_at(usage, "output_tokens"),
            cache_read=read,
        )

    def finish(self) -> FinishChunk | None:
        """See `Reading.finish`."""
        if not self._response:
            return None
        reason = text_at(object_at(self._response, "incomplete_details"), "reason")
        if reason == "content_filter":
            return FinishChunk("contentFilter")
        if self._response.get("status") == "incomplete":
            return FinishChunk("length")
        return FinishChunk("toolUse" if self._has_calls else "stop")

    def _end_unsaid(self) -> Iterator[Chunk]:
        """The items of a host that sends none before its last event."""
        if not any(item.has_come for item in self._items.values()):
            for index, given in enumerate(objects_at(self._response, "output")):
                yield from self._end(index, _Item(), given)

    def _begin(self, index: int, item: _Item, given: JsonObject) -> Iterator[Chunk]:
        item.has_come = True
        item.is_open_reasoning = given.get("type") == "reasoning"
        if given.get("type") in _CALLS and not item.has_begun:
            item.has_begun = self._has_calls = True
            call_id = text_at(given, "call_id") or text_at(given, "id")
            # A custom tool takes one text as its input.
            opening = '{"input":"' if given.get("type") == "custom_tool_call" else ""
            yield ToolCallChunk(index, call_id, text_at(given, "name"), opening)

    def _go_on(self, index: int, item: _Item, kind: str, delta: str) -> Iterator[Chunk]:
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                item.chars += len(delta)
                yield TextChunk(delta)
            case "response.function_call_arguments.delta":
                item.chars += len(delta)
                yield ToolCallChunk(index, "", "", delta)
            case "response.custom_tool_call_input.delta":
                item.chars += len(delta)
                yield ToolCallChunk(index, "", "", _escape(delta))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" if delta:
                item.thoughts += len(delta)
                yield ThinkingChunk(delta)
            case _ if "reasoning" in kind and delta:
                yield ThinkingChunk("")
            case _:
                pass

    def _end(self, index: int, item: _Item, given: JsonObject) -> Iterator[Chunk]:
        """The content that came only with the whole item, and what must be sent back with it."""
        item.has_come = True
        match given.get("type"):
            case "reasoning":
                item.is_open_reasoning = False
                if not item.thoughts:
                    parts = objects_at(given, "summary") or objects_at(given, "content")
                    if text := "\n\n".join(text_at(part, "text") for part in parts):
                        yield ThinkingChunk(text)
                is_whole = bool(given.get("encrypted_content") or given.get("content"))
                yield ThinkingChunk("", _compact(given) if is_whole else "")
            case "message":
                if not item.chars:
                    parts = objects_at(given, "content")
                    said = (text_at(part, "text") or text_at(part, "refusal") for part in parts)
                    yield TextChunk("".join(said))
                seal: JsonObject = {"v": 1, "id": text_at(given, "id")}
                if phase := text_at(given, "phase"):
                    seal["phase"] = phase
                yield TextChunk("", _compact(seal))
            case "function_call":
                yield from self._begin(index, item, given)
                rest = "" if item.chars else text_at(given, "arguments")
                yield ToolCallChunk(index, "", "", rest, signature=text_at(given, "id"))
            case "custom_tool_call":
                yield from self._begin(index, item, given)
                rest = "" if item.chars else _escape(text_at(given, "input"))
                yield ToolCallChunk(index, "", "", f'{rest}"}}')
            case _:
                pass


def _compact(value: JsonValue) -> str:
    """`value` as JSON, in the format models use for arguments."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escape(text: str) -> str:
    """`text` escaped for use inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _refusal(holder: JsonObject) -> RefusedError:
    """The error in an event, nested or at its top level."""
    error = object_at(holder, "error") or holder
    return RefusedError(text_at(error, "message"), body={"error": error})


RESPONSES: Final = http_wire(
    "responses",
    _fit,
    _write,
    ask_with(_address, request_body),
    _Reading,
    prefixes=(*_NAMED, "azure/", "openai/"),
    spare_fields=(
        "reasoning.summary",
        "reasoning.effort",
        "include",
        "max_output_tokens",
        "prompt_cache_key",
        "tools.strict",
        "text.format",
    ),
)
