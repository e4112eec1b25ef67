"""Whole chat requests as they arrive at a service, read as strictly as the services read them.

`request_problems` returns one line for each rule that is broken; none means it would be taken.
"""

import re
from collections.abc import Mapping
from typing import Any

from tests.support.openai_script import RecordedRequest
from tests.support.wire_rules import anthropic_problems, openai_problems

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_CACHE_MARKS = 4
_OPENAI_KEYS = {"model", "messages", "stream", "stream_options", "tools", "max_tokens"}
_ANTHROPIC_KEYS = {"model", "messages", "stream", "system", "tools", "max_tokens", "thinking"}


def request_problems(request: RecordedRequest) -> list[str]:
    """What is wrong with a request, by the protocol that its path stands for."""
    if request.path.endswith("/v1/messages"):
        missing = {"anthropic-version", "x-api-key"} - set(request.headers)
        return [f"no header {name}" for name in missing] + anthropic_request_problems(request.body)
    missing = {"authorization"} - set(request.headers)
    return [f"no header {name}" for name in missing] + openai_request_problems(request.body)


def openai_request_problems(body: Any) -> list[str]:
    """What is wrong with the body of a ``/chat/completions`` request."""
    problems = [f"unknown key {key}" for key in set(body) - _OPENAI_KEYS]
    if not isinstance(body.get("model"), str) or not body["model"]:
        problems.append(f"model {body.get('model')!r}")
    functions = [tool.get("function", {}) for tool in body.get("tools", [])]
    if any(tool.get("type") != "function" for tool in body.get("tools", [])):
        problems.append("a tool that is no function")
    problems += _tool_problems(body, functions, "parameters")
    problems += openai_problems(body.get("messages"))
    if (body.get("messages") or [{}])[-1].get("role") == "assistant":
        problems.append("ends with the model's own words")
    return problems


def anthropic_request_problems(body: Any) -> list[str]:
    """What is wrong with the body of a ``/v1/messages`` request."""
    problems = [f"unknown key {key}" for key in set(body) - _ANTHROPIC_KEYS]
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        problems.append(f"max_tokens {body.get('max_tokens')!r}")
    problems += _tool_problems(body, body.get("tools", []), "input_schema")
    marks = str(body).count("'cache_control'")
    if marks > _MOST_CACHE_MARKS:
        problems.append(f"{marks} cache marks")
    for block in _blocks(body.get("system", [])):
        if block.get("type") != "text" or not block.get("text", "").strip():
            problems.append(f"system block {block!r}")
    messages = [
        {**message, "content": _blocks(message.get("content"))}
        for message in body.get("messages") or []
    ]
    problems += anthropic_problems({"messages": messages})
    uses = [b for m in messages for b in m["content"] if b.get("type") == "tool_use"]
    if uses and not body.get("tools"):
        problems.append("calls in the conversation and no tools offered")
    if messages and messages[-1]["role"] == "assistant":
        problems.append("ends with the model's own words")
    return problems


def _tool_problems(
    body: Mapping[str, Any], functions: list[dict[str, Any]], schema_key: str
) -> list[str]:
    problems = ["tools is there and empty"] if body.get("tools") == [] else []
    names = [str(function.get("name")) for function in functions]
    problems += [f"tool name {name!r}" for name in names if not _TOOL_NAME.fullmatch(name)]
    if len(set(names)) != len(names):
        problems.append(f"tool names {names} are not unique")
    for function in functions:
        schema = function.get(schema_key)
        if not isinstance(schema, dict) or schema.get("type") != "object":
            problems.append(f"{function.get('name')}: {schema_key} is no object schema")
    return problems


def _blocks(content: Any) -> list[dict[str, Any]]:
    """Content as blocks, without cache marks; a text stands for one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = []
    for block in content or []:
        kept = {key: value for key, value in block.items() if key != "cache_control"}
        if kept.get("type") == "tool_result":
            kept["content"] = _blocks(kept.get("content"))
        blocks.append(kept)
    return blocks
