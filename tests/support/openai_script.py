"""What `OpenAiServer` plays: replies, failures, and the events a reply is made of."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal[
    "whole", "hold", "hang", "close", "reset", "half", "broken", "error", "field"
]
"""What happens after the last piece of a reply and before its finish reason:

``whole``  nothing: finish reason, usage and ``[DONE]`` follow
``hold``   silence until `OpenAiServer.release`, then as ``whole``
``hang``   silence until the client hangs up
``close``  an orderly end of the body: no finish reason, no ``[DONE]``
``reset``  the connection is reset (RST)
``half``   half of an event, then an orderly end of the connection, not of the body
``broken`` an event that is not JSON
``error``  an error event, as gateways send after the headers are gone
``field``  an error as a field of its own and ``[DONE]``, as llama.cpp sent until September 2025
"""


@dataclass(frozen=True)
class Call:
    """A tool call. `arguments` may be text, to send what is not JSON; `pieces` splits it."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""
    pieces: int = 3
    index: int | None = None

    @property
    def written_pieces(self) -> list[str]:
        """The arguments as text, cut into pieces."""
        written = self.arguments
        if not isinstance(written, str):
            written = json.dumps(written)
        size = max(1, -(-len(written) // self.pieces))
        return [written[at : at + size] for at in range(0, len(written), size)]


@dataclass(frozen=True)
class Reply:
    """A streamed reply. `text` as a tuple is sent in exactly these pieces, a string by words.

    `finish=""` leaves the finish reason out, ``None`` derives it; `usage` is prompt and
    completion tokens, ``None`` sends none. `raw_events` are sent as they are, after the text.
    `signs` are raw text that comes before all else, a piece every `signs_every_s`.
    """

    text: str | tuple[str, ...] = ""
    thinking: str = ""
    tool_calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] | None = (11, 7)
    cached_tokens: int = 0
    ending: Ending = "whole"
    done: bool = True
    newline: str = "\n"
    comments: bool = False
    bom: bool = False
    delay_s: float = 0.0
    raw_events: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    signs_every_s: float = 0.1


@dataclass(frozen=True)
class Failure:
    """An answer in one piece: a refusal or, among `OpenAiServer.pages`, any page."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True)
class NoHeaders:
    """Nothing comes back at all until the client hangs up (or, with `reset`, it is reset)."""

    reset: bool = False


Answer: TypeAlias = Reply | Failure | NoHeaders
ScriptItem: TypeAlias = "Answer | Callable[[RecordedRequest], Answer]"


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


def failure(
    status: int, message: str, *, code: str = "", kind: str = "", **headers: str
) -> Failure:
    """A failure in OpenAI's JSON; `headers` with underscores for dashes."""
    error = {"message": message, "type": kind or "error", "code": code or None, "param": None}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Failure(status, json.dumps({"error": error}), named)


def rate_limited(retry_after: str = "") -> Failure:
    """A 429 that passes; `retry_after` in seconds or as an HTTP date."""
    headers = {"retry_after": retry_after} if retry_after else {}
    text = "Rate limit reached for requests: 500 requests per minute. Please try again later."
    return failure(429, text, code="rate_limit_exceeded", kind="requests", **headers)


def out_of_quota() -> Failure:
    """A 429 that waiting does not help."""
    text = "You exceeded your current quota, please check your plan and billing details."
    return failure(429, text, code="insufficient_quota", kind="insufficient_quota")


def context_overflow(limit: int = 8192, asked: int = 9000) -> Failure:
    """The request is larger than the model's window, in OpenAI's words."""
    text = (
        f"This model's maximum context length is {limit} tokens. However, your messages "
        f"resulted in {asked} tokens. Please reduce the length of the messages."
    )
    return failure(400, text, code="context_length_exceeded", kind="invalid_request_error")


def bad_key() -> Failure:
    """A 401."""
    text = "Incorrect API key provided. You can find your API key at your account page."
    return failure(401, text, code="invalid_api_key", kind="invalid_request_error")


def no_such_model(name: str = "nope") -> Failure:
    """A 404."""
    text = f"The model `{name}` does not exist or you do not have access to it."
    return failure(404, text, code="model_not_found", kind="invalid_request_error")


def bad_gateway() -> Failure:
    """A 502 as a proxy sends it: a page of HTML."""
    page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    return Failure(502, page, content_type="text/html")


def overloaded() -> Failure:
    """A 529."""
    return failure(529, "Overloaded", kind="overloaded_error")


def opening_events(reply: Reply, request: RecordedRequest) -> list[str]:
    """The events of a reply up to its ending."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in words(reply.thinking)]
    text = words(reply.text) if isinstance(reply.text, str) else list(reply.text)
    deltas += [{"content": piece} for piece in text]
    for number, call in enumerate(reply.tool_calls):
        deltas += [{"tool_calls": [piece]} for piece in _call_pieces(call, number)]
    return [json.dumps(chunk(request, delta)) for delta in deltas] + list(reply.raw_events)


def _call_pieces(call: Call, number: int) -> list[dict[str, Any]]:
    index = number if call.index is None else call.index
    head = {
        "index": index,
        "id": call.id or f"call_{number}",
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    rest = [{"index": index, "function": {"arguments": piece}} for piece in call.written_pieces]
    return [head, *rest]


def closing_events(reply: Reply, request: RecordedRequest) -> list[str]:
    """Finish reason, usage and ``[DONE]``, as far as the reply has them."""
    events: list[str] = []
    finish = reply.finish
    if finish is None:
        finish = "tool_calls" if reply.tool_calls else "stop"
    if finish:
        events.append(json.dumps(chunk(request, {}, finish)))
    if reply.usage is not None:
        prompt, completion = reply.usage
        last = chunk(request, {})
        last["choices"] = []
        last["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        }
        events.append(json.dumps(last))
    return [*events, "[DONE]"] if reply.done else events


def text_event(request: RecordedRequest, text: str) -> str:
    """One more piece of text."""
    return json.dumps(chunk(request, {"content": text}))


def error_event(text: str) -> str:
    """What gateways send when something goes wrong after the headers are gone."""
    return json.dumps({"error": {"message": text, "type": "server_error", "code": None}})


def chunk(
    request: RecordedRequest, delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    """One event of a stream, as data."""
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": str((request.body or {}).get("model", "")),
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def words(text: str) -> list[str]:
    """`text` cut after each space, so that the pieces join to the whole."""
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]] if text else []
