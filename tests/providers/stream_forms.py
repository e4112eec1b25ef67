"""Forms of streams that services and servers are documented or known to send, and their meaning.

Written down from the API references of the services and the sources of the servers they name.
"""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Form:
    """One form: its events, and what the reply must come out as.

    Attributes:
        events: Objects, or text that stands in the stream as it is.
        calls: Names and arguments.
        tokens: Input, cached ones included, and output; None where none were sent.
        stop: The stop reason of the message.
    """

    events: tuple[Any, ...]
    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    tokens: tuple[int, int] | None = None
    stop: str = "stop"
    was_filtered: bool = False
    signatures: tuple[str, ...] = ()
    kind: str = field(default="", kw_only=True)
    """Of the error it ends in; empty for a whole reply."""
    said: str = field(default="", kw_only=True)
    """What the error tells."""

    @property
    def body(self) -> str:
        """The stream."""
        texts = (one if isinstance(one, str) else f"data: {json.dumps(one)}" for one in self.events)
        return "".join(f"{text}\n\n" for text in texts)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """An event of the chat format."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def call(name: str | None, arguments: Any, **fields: Any) -> dict[str, Any]:
    """An event with a piece of a call, with just these fields."""
    function = {"arguments": arguments} | ({"name": name} if name is not None else {})
    return delta(tool_calls=[{"function": function, **fields}])


USAGE = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
DONE = "data: [DONE]"
TWO_CALLS = (("read", {"path": "a"}), ("read", {"path": "b"}))
A, B = '{"path": "a"}', '{"path": "b"}'

CHAT_FORMS = {
    "calls without index": Form(
        (call("read", A, id="1"), call("read", B, id="2"), delta("tool_calls")),
        calls=TWO_CALLS,
        stop="toolUse",
    ),
    "calls without ids": Form(
        (call("read", A, index=0), call("read", B, index=1), delta("tool_calls")),
        calls=TWO_CALLS,
        stop="toolUse",
    ),
    "calls with neither, in pieces": Form(
        (call("read", '{"path"'), call(None, ': "a"}'), call("read", B), delta("tool_calls")),
        calls=TWO_CALLS,
        stop="toolUse",
    ),
    "calls whose pieces are told apart by ids": Form(
        (
            call("read", "", id="1"),
            call("read", "", id="2"),
            call("", A, id="1"),
            call("", B, id="2"),
            delta("tool_calls"),
        ),
        calls=TWO_CALLS,
        stop="toolUse",
    ),
    "a call that Google sealed": Form(
        (
            call("read", A, id="1", index=0, extra_content={"google": {"thought_signature": "s"}}),
            delta("tool_calls"),
        ),
        calls=TWO_CALLS[:1],
        stop="toolUse",
        signatures=('{"google":{"thought_signature":"s"}}',),
    ),
    "a null for what is missing": Form(
        (
            delta(role="assistant", content=None, tool_calls=None, reasoning_content=None),
            {"choices": None, "usage": None},
            call("read", "", index=0, id="1"),
            call(None, A, index=0, id=None),
            delta("tool_calls"),
        ),
        calls=TWO_CALLS[:1],
        stop="toolUse",
    ),
    "arguments as an object": Form(
        (call("read", {"path": "a"}, index=0, id="1"), delta("tool_calls")),
        calls=TWO_CALLS[:1],
        stop="toolUse",
    ),
    "calls that end with stop": Form(
        (call("read", A, index=0, id="1"), delta("stop"), DONE), calls=TWO_CALLS[:1], stop="toolUse"
    ),
    "tool_calls without any": Form((delta(content="Hi."), delta("tool_calls")), text="Hi."),
    "usage in an event of its own": Form(
        (delta(content="Hi."), delta("stop"), {"choices": [], "usage": USAGE}, DONE),
        text="Hi.",
        tokens=(5, 3),
    ),
    "usage in every event": Form(
        (
            delta(content="H") | {"usage": {"prompt_tokens": 5, "completion_tokens": 1}},
            delta("stop", content="i.") | {"usage": USAGE},
        ),
        text="Hi.",
        tokens=(5, 3),
    ),
    "thinking counted beside the rest": Form(
        (
            delta("stop", content="Hi."),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 5,
                    "completion_tokens": 3,
                    "total_tokens": 18,
                    "completion_tokens_details": {"reasoning_tokens": 10},
                },
            },
        ),
        text="Hi.",
        tokens=(5, 13),
    ),
    "reasoning": Form(
        (delta(reasoning="Hm. "), delta("stop", content="Hi.", reasoning=None)),
        text="Hi.",
        thinking="Hm. ",
    ),
    "reasoning under two names": Form(
        (delta(reasoning="Hm.", reasoning_content="Hm."), delta("stop", content="Hi.")),
        text="Hi.",
        thinking="Hm.",
    ),
    "reasoning_details": Form(
        (
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "H"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "m."}]),
            delta("stop", content="Hi."),
        ),
        text="Hi.",
        thinking="Hm.",
        signatures=('[{"type":"reasoning.text","index":0,"text":"Hm."}]',),
    ),
    "thinking in parts": Form(
        (
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]),
            delta(content=[{"type": "thinking", "thinking": "m."}, {"type": "text", "text": "H"}]),
            delta("stop", content="i."),
        ),
        text="Hi.",
        thinking="Hm.",
    ),
    "thinking between tags": Form(
        (
            delta(content="\n<th"),
            delta(content="ink>Hm"),
            delta(content=". </"),
            delta(content="b> </thi"),
            delta(content="nk>\n\n"),
            delta("stop", content="Hi <think>."),
        ),
        text="Hi <think>.",
        thinking="Hm. </b> ",
    ),
    "tags that are none": Form(
        (delta(content="<thi"), delta(content="s> is"), delta("stop", content=" it.")),
        text="<this> is it.",
    ),
    "a text that ends like a tag": Form((delta("stop", content=" <thi"),), text=" <thi"),
    "the whole message at once": Form(
        (
            {
                "choices": [
                    {"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
                ],
                "usage": USAGE,
            },
        ),
        text="Hi.",
        tokens=(5, 3),
    ),
    "no finish reason": Form((delta(content="Hi."), DONE), text="Hi.", kind="interrupted"),
    "no finish reason, but counts": Form(
        (delta(content="Hi."), {"choices": [], "usage": USAGE}, DONE), text="Hi.", tokens=(5, 3)
    ),
    "neither end": Form((delta(content="Hi."),), text="Hi.", kind="interrupted"),
    "model_length": Form((delta("model_length", content="Hi"),), text="Hi", stop="length"),
    "content_filter": Form((delta("content_filter", content="Hi"),), text="Hi", was_filtered=True),
    "sensitive": Form((delta("sensitive", content="Hi"),), text="Hi", was_filtered=True),
    "a refusal": Form((delta(refusal="I will not."), delta("stop")), text="I will not."),
    "a stop because of an error": Form(
        (delta(content="Hi"), delta("error")), text="Hi", kind="interrupted", said="error"
    ),
    "OpenAI's error": Form(
        (
            delta(content="Hi"),
            {"error": {"message": "The server had an error", "type": "server_error"}},
        ),
        text="Hi",
        kind="interrupted",
        said="The server had an error",
    ),
    "OpenRouter's error with usage": Form(
        (
            {
                "error": {"code": 429, "message": "Provider returned error"},
                "choices": [{"delta": {"content": "Hi"}, "finish_reason": "error"}],
                "usage": USAGE,
            },
        ),
        text="Hi",
        tokens=(5, 3),
        kind="rate_limit",
        said="Provider returned error",
    ),
    "OpenRouter's error in a choice": Form(
        (
            {
                "choices": [
                    {
                        "delta": {"content": "Hi"},
                        "error": {"code": 502, "message": "Upstream ended"},
                        "finish_reason": None,
                    }
                ]
            },
        ),
        text="Hi",
        kind="interrupted",
        said="Upstream ended",
    ),
    "Groq's error": Form(
        (
            delta(content="Hi"),
            'event: error\ndata: {"error": {"message": "Over capacity", "status_code": 503}}',
        ),
        text="Hi",
        kind="overloaded",
        said="Over capacity",
    ),
    "vLLM's old error": Form(
        (
            {"object": "error", "message": "Engine died", "type": "InternalError", "code": 500},
            DONE,
        ),
        kind="server",
        said="Engine died",
    ),
    "an error that is a word": Form(({"error": "it broke"},), kind="server", said="it broke"),
}
