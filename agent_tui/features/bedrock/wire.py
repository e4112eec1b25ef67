"""Amazon Bedrock's ``ConverseStream``, for every model it serves."""

import json
import re
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import quote

from agent_tui.features.bedrock.amazon import FRAMES, AwsSigning
from agent_tui.messages import JsonObject
from agent_tui.providers.base import (
    Chunk,
    FinishReason,
    ModelRef,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_tui.providers.wires import anthropic
from agent_tui.providers.wires.base import Address, Fit, MalformedReplyError, WireRequest, key_of
from agent_tui.providers.wires.http import Known, Reading, ask_with, http_wire
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

_REGION = re.compile(r"(?P<region>[a-z]{2}(?:-gov|-iso[a-z]?)?-[a-z]+-\d)/")
"""litellm's notation for the region of one model, before its id."""
_REGION_VARIABLES = ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION")
_USUAL_REGION = "us-west-2"
_MARKS_ERRORS = re.compile(r"claude|nova")
"""The models whose results may be marked as errors."""
_CACHES = re.compile(r"claude-(?:3-7|[a-z]+-[4-9])")
_CACHE_POINT: Final[JsonObject] = {"cachePoint": {"type": "default"}}
_BROKEN: Final = frozenset({"malformed_model_output", "malformed_tool_use"})


def _fit(model: ModelRef) -> Fit:
    """Whether this wire fits; litellm's other routes (``bedrock/invoke/...``) stay with litellm."""
    if model.provider != "bedrock":
        return "no"
    name = _REGION.sub("", BEDROCK.id_of(model.name), count=1)
    return "yes" if "/" not in name or name.startswith("arn:") else "no"


def _address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address of Bedrock; signed with the account's credentials if no key is set."""
    named = _REGION.match(request.model_id)
    region = named["region"] if named else ""
    region = region or next(filter(None, map(environ.get, _REGION_VARIABLES)), "")
    region = region or _region_of_profile(environ) or _USUAL_REGION
    home = request.base_url or environ.get("AWS_BEDROCK_RUNTIME_ENDPOINT")
    home = (home or f"https://bedrock-runtime.{region}.amazonaws.com").rstrip("/")
    name = quote(_REGION.sub("", request.model_id, count=1), safe="")
    url = f"{home}/model/{name}/converse-stream"
    if key := key_of(request, environ, "AWS_BEARER_TOKEN_BEDROCK"):
        return Address(url, {"authorization": f"Bearer {key}"}, framing=FRAMES)
    return Address(url, {}, AwsSigning(region), FRAMES)


def _region_of_profile(environ: Mapping[str, str]) -> str:
    """The region of the profile in use; empty if none is set."""
    profile = environ.get("AWS_PROFILE", "default")
    path = Path(environ.get("AWS_CONFIG_FILE") or "~/.aws/config").expanduser()
    config = ConfigParser(interpolation=None)
    try:
        config.read(path, encoding="utf-8")
    except (ConfigError, UnicodeDecodeError):
        return ""
    section = profile if profile == "default" else f"profile {profile}"
    return config.get(section, "region", fallback="")


def request_body(request: WireRequest, known: Known) -> JsonObject:
    """The body for `request`: that of Anthropic's API, translated to this one.

    Args:
        request: Its messages are in the form of Anthropic's API.
        known: What the table says of its model.
    """
    of_claude = anthropic.is_claude(request.model)
    given = anthropic.request_body(request, known)
    body: JsonObject = {
        "messages": as_value(
            {"role": message["role"], "content": as_value(_blocks(message, request.model))}
            for message in objects_at(given, "messages")
        )
    }
    if "system" in given:
        body["system"] = as_value(_blocks({"content": given["system"]}, request.model))
    if of_claude or request.max_output_tokens is not None:
        body["inferenceConfig"] = {"maxTokens": given["max_tokens"]}
    if tools := [_tool(tool) for tool in objects_at(given, "tools")] or _tools_of_calls(body):
        body["toolConfig"] = {"tools": as_value(tools)}
    if fields := _thinking(request, given, known):
        body["additionalModelRequestFields"] = fields
    return body


def _thinking(request: WireRequest, given: JsonObject, known: Known) -> JsonObject:
    """The model-specific fields for how much it thinks."""
    if anthropic.is_claude(request.model):
        fields = {name: given[name] for name in ("thinking", "output_config") if name in given}
        if "budget_tokens" in object_at(given, "thinking"):
            fields["anthropic_beta"] = [anthropic.INTERLEAVED_THINKING]
        return fields
    if "gpt-oss" in request.model and request.thinking != "off":
        return {"reasoning_effort": effort(request.thinking, known)}
    return {}


def _tool(tool: JsonObject) -> JsonObject:
    schema: JsonObject = {"json": tool["input_schema"]}
    described = {name: tool[name] for name in ("name", "description") if tool[name]}
    return {"toolSpec": {**described, "inputSchema": schema}}


def _tools_of_calls(body: JsonObject) -> list[JsonObject]:
    """A tool for each tool that was called: without tools, such messages are refused."""
    blocks = (
        block
        for message in objects_at(body, "messages")
        for block in objects_at(message, "content")
    )
    names = dict.fromkeys(text_at(object_at(block, "toolUse"), "name") for block in blocks)
    schema: JsonObject = {"type": "object"}
    return [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name in names if name]


def _blocks(message: JsonObject, model: str) -> Iterator[JsonObject]:
    for block in objects_at(message, "content"):
        if block["type"] == "thinking" and not block["signature"]:
            continue  # none may be missing here
        yield _block(block, model)
        if "cache_control" in block and _CACHES.search(model):
            yield _CACHE_POINT


def _block(block: JsonObject, model: str) -> JsonObject:
    """A block of Anthropic's API in this API's form."""
    match block["type"]:
        case "thinking":
            text: JsonObject = {"text": block["thinking"], "signature": block["signature"]}
            return {"reasoningContent": {"reasoningText": text}}
        case "redacted_thinking":
            return {"reasoningContent": {"redactedContent": block["data"]}}
        case "tool_use":
            use: JsonObject = {"toolUseId": block["id"], "name": block["name"]}
            return {"toolUse": {**use, "input": block["input"]}}
        case "tool_result":
            result: JsonObject = {"toolUseId": block["tool_use_id"]}
            result["content"] = as_value(_blocks(block, model))
            if block.get("is_error") and _MARKS_ERRORS.search(model):
                result["status"] = "error"
            return {"toolResult": result}
        case "image":
            source = object_at(block, "source")
            kind = text_at(source, "media_type").removeprefix("image/")
            return {"image": {"format": kind, "source": {"bytes": source["data"]}}}
        case _:
            return {"text": block["text"]}


class _Reading(Reading):
    """Reads one stream; each event is an object with its kind as the only name."""

    finishes: ClassVar[Mapping[str, FinishReason]] = {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "toolUse",
        "content_filtered": "contentFilter",
        "guardrail_intervened": "contentFilter",
    }

    def __init__(self) -> None:
        self._has_begun = False
        self._signatures: dict[int, list[str]] = {}
        self._usage: JsonObject = {}

    def begins_anew(self, event: JsonObject) -> bool:
        """See `Reading.begins_anew`."""
        return self._has_begun and "messageStart" in event

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """See `Reading.chunks`."""
        self._has_begun |= "messageStart" in event
        if started := object_at(event, "contentBlockStart"):
            use = object_at(object_at(started, "start"), "toolUse")
            if use:
                index = count_at(started, "contentBlockIndex")
                yield ToolCallChunk(index, text_at(use, "toolUseId"), text_at(use, "name"), "")
        if delta := object_at(event, "contentBlockDelta"):
            yield from self._go_on(count_at(delta, "contentBlockIndex"), object_at(delta, "delta"))
        if stopped := object_at(event, "contentBlockStop"):
            index = count_at(stopped, "contentBlockIndex")
            if index in self._signatures:
                yield ThinkingChunk("", "".join(self._signatures.pop(index)))
        if ended := object_at(event, "messageStop"):
            self.stop_reason = text_at(ended, "stopReason")
            if self.stop_reason in _BROKEN:
                raise MalformedReplyError(f"the model stopped with {self.stop_reason!r}")
        self._usage = counts_at(object_at(event, "metadata"), "usage") or self._usage

    def counts(self) -> TokenCounts | None:
        """See `Reading.counts`."""
        usage = self._usage
        if not usage:
            return None
        return TokenCounts(
            fresh=count_at(usage, "inputTokens"),
            output=count_at(usage, "outputTokens"),
            cache_read=count_at(usage, "cacheReadInputTokens"),
            cache_write=count_at(usage, "cacheWriteInputTokens"),
        )

    def _go_on(self, index: int, delta: JsonObject) -> Iterator[Chunk]:
        if text := text_at(delta, "text"):
            yield TextChunk(text)
        if "toolUse" in delta:
            given = object_at(delta, "toolUse").get("input")
            arguments = given if isinstance(given, str) else json.dumps(given)
            yield ToolCallChunk(index, "", "", arguments)
        if thought := object_at(delta, "reasoningContent"):
            if sealed := text_at(thought, "redactedContent"):
                yield ThinkingChunk("", sealed, redacted=True)
                return
            self._signatures.setdefault(index, []).append(text_at(thought, "signature"))
            yield ThinkingChunk(text_at(thought, "text"))


BEDROCK: Final = http_wire(
    "bedrock",
    _fit,
    anthropic.ANTHROPIC.write,
    ask_with(_address, request_body),
    _Reading,
    prefixes=("bedrock/converse/", "bedrock/"),
)
