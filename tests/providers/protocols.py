"""One reply in every protocol, as the events that stream it."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.providers.native_stream_forms import anthropic_end, block, item, part, said
from tests.support.aws_frames import frame
from tests.support.openai_script import Failure

DONE = "data: [DONE]"
TOKENS = (5, 3)


@dataclass(frozen=True)
class Protocol:
    """How a reply is streamed. `events`: its events, from its text, its id and its counts."""

    model: str
    path: str
    events: Callable[[str, str, tuple[Any, Any]], Sequence[Any]]


def _completions(text: str, reply_id: str, counts: tuple[Any, Any]) -> Sequence[Any]:
    def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": reply_id, "choices": [choice]}

    prompt, output = counts
    usage = {"prompt_tokens": prompt, "completion_tokens": output}
    return (
        piece(role="assistant", content=""),
        *(piece(content=word) for word in text),
        piece("stop"),
        {"id": reply_id, "choices": [], "usage": usage},
        DONE,
    )


def _anthropic(text: str, reply_id: str, counts: tuple[Any, Any]) -> Sequence[Any]:
    prompt, output = counts
    deltas = ({"type": "text_delta", "text": word} for word in text)
    *_, end = anthropic_end("end_turn")
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return (
        {"type": "message_start", "message": {"id": reply_id, "usage": {"input_tokens": prompt}}},
        *block(0, {"type": "text", "text": ""}, *deltas),
        {**delta, "usage": {"output_tokens": output}},
        end,
    )


def _responses(text: str, reply_id: str, counts: tuple[Any, Any]) -> Sequence[Any]:
    prompt, output = counts
    usage = {"input_tokens": prompt, "output_tokens": output}
    return (
        {"type": "response.created", "response": {"id": reply_id}},
        *item(0, said(text), *(("output_text", word) for word in text)),
        {"type": "response.completed", "response": {"status": "completed", "usage": usage}},
    )


def _gemini(text: str, reply_id: str, counts: tuple[Any, Any]) -> Sequence[Any]:
    prompt, output = counts
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": output}
    pieces = (part({"text": word}, responseId=reply_id) for word in text)
    last = part({"text": ""}, finish="STOP", responseId=reply_id, usageMetadata=usage)
    return (*pieces, last)


def bedrock_frames(text: str, _id: str, counts: tuple[Any, Any]) -> Sequence[Any]:
    """A reply of Bedrock's, as `Protocol.events`."""
    prompt, output = counts
    deltas = ({"contentBlockIndex": 0, "delta": {"text": word}} for word in text)
    return (
        frame("messageStart", {"role": "assistant"}),
        *(frame("contentBlockDelta", delta) for delta in deltas),
        frame("messageStop", {"stopReason": "end_turn"}),
        frame("metadata", {"usage": {"inputTokens": prompt, "outputTokens": output}}),
    )


EVENTS = {
    "completions": Protocol("some-model", "/v1/chat/completions", _completions),
    "anthropic": Protocol("anthropic/claude-sonnet-4-5", "/v1/messages", _anthropic),
    "responses": Protocol("openai/responses/some-model", "/v1/responses", _responses),
    "gemini": Protocol(
        "gemini/gemini-2.5-pro", "/v1/models/gemini-2.5-pro:streamGenerateContent", _gemini
    ),
}
"""Those in events; Bedrock's come in frames."""

in_each_protocol = pytest.mark.parametrize("protocol", EVENTS.values(), ids=EVENTS)


def stream_of(events: Iterable[Any]) -> Failure:
    """The answer that streams `events`: objects, or text that stands in it as it is."""
    texts = (one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in events)
    body = "".join(f"{text}\n\n" for text in texts)
    return Failure(200, body, content_type="text/event-stream")
