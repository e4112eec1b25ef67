"""The messages of the Model Context Protocol that tools need (JSON-RPC 2.0)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.safe_text import strip_control_characters
from agent_tui.text import repair_json

PROTOCOL_VERSION: Final = "2025-11-25"
"""The newest version with a handshake; servers answer with the version they want."""

STATELESS_VERSION: Final = "2026-07-28"
"""The version without a handshake, for servers that refuse all others."""

UNSUPPORTED_VERSION: Final = -32022
METHOD_NOT_FOUND: Final = -32601
FROM_BRIDGE: Final = 1
"""The code of an error that our bridge gives: the server is out of reach, or wants a login."""


@dataclass(frozen=True, slots=True)
class Response:
    """A server's answer to one of our requests; `error` is empty if it succeeded."""

    id: int
    result: JsonObject
    error: str = ""
    error_code: int = 0
    error_data: JsonValue = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request from the other side, which must be answered."""

    id: JsonValue
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notification:
    """A message from the other side that needs no answer."""

    method: str
    params: JsonObject


Incoming: TypeAlias = Response | Request | Notification


def message_line(
    method: str, params: JsonObject | None = None, request_id: int | None = None
) -> bytes:
    """A request, or a notification if there is no id, as a line to send."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if request_id is not None:
        message["id"] = request_id
    if params is not None:
        message["params"] = params
    return _line(message)


def reply_line(asked: Request) -> bytes:
    """The answer to a server's request: only ``ping`` is supported."""
    if asked.method == "ping":
        return result_line(asked.id, {})
    return error_line(asked.id, METHOD_NOT_FOUND, f"{asked.method[:100]} is not supported.")


def result_line(request_id: JsonValue, result: JsonObject) -> bytes:
    """The answer to a request."""
    return _line({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_line(request_id: JsonValue, code: int, message: str) -> bytes:
    """The error answer to a request."""
    error: JsonObject = {"code": code, "message": message}
    return _line({"jsonrpc": "2.0", "id": request_id, "error": error})


class NestedTooDeeplyError(ValueError):
    """The line may be a message, but is nested too deeply to parse."""


def parse_line(line: bytes) -> tuple[Incoming, ...]:
    """The messages in a line: one, or a batch. Invalid UTF-8 is replaced.

    Raises:
        NestedTooDeeplyError: It cannot be parsed.
        ValueError: It is not a message.
    """
    text = line.decode("utf-8", "replace")
    try:
        messages = tuple(_messages(cast("JsonValue", json.loads(text))))
    except RecursionError as error:
        raise NestedTooDeeplyError("nested too deeply") from error
    if not messages:
        raise ValueError("no message")
    return messages


def _messages(value: JsonValue) -> Iterator[Incoming]:
    if isinstance(value, list):
        for inner in value:
            if isinstance(inner, dict):
                yield from _messages(inner)
        return
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise ValueError("no JSON-RPC")
    method, request_id = value.get("method"), value.get("id")
    if isinstance(method, str):
        params = repair_json(value.get("params"))
        known = params if isinstance(params, dict) else {}
        yield Request(request_id, method, known) if "id" in value else Notification(method, known)
    elif isinstance(request_id, int):
        yield _answer(request_id, value)
    elif isinstance(value.get("error"), dict):  # it could not read what it received
        return
    else:
        raise ValueError("neither a method nor an answer")


def _answer(request_id: int, message: JsonObject) -> Response:
    error = repair_json(message.get("error"))
    if isinstance(error, dict):
        said, code = error.get("message"), error.get("code")
        text = said if isinstance(said, str) and said.strip() else "it failed without saying why"
        code = code if isinstance(code, int) else 0
        return Response(request_id, {}, text, code, error.get("data"))
    result = repair_json(message.get("result"))
    if not isinstance(result, dict):
        return Response(request_id, {}, "its answer has no result")
    return Response(request_id, result)


def display_text(value: JsonValue, limit: int, *, keep_lines: bool = False) -> str:
    """Text in a message, safe to show, on one line; empty if `value` is not text.

    Args:
        value: From the message.
        limit: In characters; longer text ends in ``…``.
        keep_lines: Whether line feeds and spaces stay.
    """
    plain = strip_control_characters(value).strip() if isinstance(value, str) else ""
    if not keep_lines:
        plain = " ".join(plain.split())
    return plain if len(plain) <= limit else f"{plain[:limit].rstrip()}…"


def items_in(value: JsonValue) -> list[JsonValue]:
    """The items of a list in a message; empty if `value` is not a list."""
    return value if isinstance(value, list) else []


def _line(message: JsonObject) -> bytes:
    text = json.dumps(repair_json(message), ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode()
