"""Services that give reasoning and demand it back exactly as they gave it, one for each protocol.

Each step of a task is a reply with reasoning, text and a call; `given` is what must stand for it
in every later request of that model, and `sealed` what no other model may ever see.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class StrictService:
    """One service.

    Attributes:
        model: By which the program knows it.
        path: Where it is asked.
        events: The stream of a step, as texts of JSON.
        given: What a step is to be sent back as.
        replies: The replies in a request, oldest first, without what went before or between.
    """

    model: str
    path: str
    events: Callable[[int], list[Body]]
    given: Callable[[int], Any]
    replies: Callable[[Body], list[Any]]

    def stream(self, step: int) -> str:
        """The stream of one step."""
        return "".join(f"data: {json.dumps(event)}\n\n" for event in self.events(step))

    def sealed(self, step: int) -> str:
        """A text in what only this model may have back."""
        return f"seal-of-{self.model}-{step}"


def _arguments(step: int) -> Body:
    return {"path": f"step-{step}.py"}


def _claude_given(step: int) -> list[Body]:
    seal = CLAUDE.sealed(step)
    return [
        {"type": "thinking", "thinking": f"first {step}", "signature": f"{seal}-a"},
        {"type": "text", "text": f"Step {step}.\n\n"},
        {"type": "redacted_thinking", "data": f"{seal}-b"},
        {"type": "thinking", "thinking": "", "signature": f"{seal}-c"},
        {"type": "tool_use", "id": f"toolu_{step}", "name": "read", "input": _arguments(step)},
    ]


def _claude_events(step: int) -> list[Body]:
    events: list[Body] = [{"type": "message_start", "message": {"usage": {"input_tokens": 5}}}]
    for index, block in enumerate(_claude_given(step)):
        start, deltas = dict(block), list[Body]()
        match block["type"]:
            case "thinking":
                start |= {"thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case "text":
                start["text"] = ""
                deltas = [{"type": "text_delta", "text": block["text"]}]
            case "tool_use":
                start["input"] = {}
                written = json.dumps(block["input"])
                deltas = [{"type": "input_json_delta", "partial_json": written}]
            case _:
                pass
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use"}
    return [*events, {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}}]


CLAUDE = StrictService(
    "anthropic/claude-sonnet-4-5",
    "/v1/messages",
    _claude_events,
    _claude_given,
    lambda body: [m["content"] for m in body["messages"] if m["role"] == "assistant"],
)


def _gpt_given(step: int) -> list[Body]:
    return [
        {
            "type": "reasoning",
            "id": f"rs_{step}",
            "summary": [{"type": "summary_text", "text": f"first {step}"}],
            "encrypted_content": GPT.sealed(step),
        },
        {
            "type": "message",
            "id": f"msg_{step}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": f"Step {step}.", "annotations": []}],
            "phase": "commentary",
        },
        {
            "type": "function_call",
            "call_id": f"call_{step}",
            "name": "read",
            "arguments": json.dumps(_arguments(step), separators=(",", ":")),
            "id": f"fc_{step}",
        },
    ]


def _gpt_events(step: int) -> list[Body]:
    done = "response.output_item.done"
    items = enumerate(_gpt_given(step))
    events: list[Body] = [{"type": done, "output_index": at, "item": item} for at, item in items]
    usage = {"input_tokens": 5, "output_tokens": 3}
    return [*events, {"type": "response.completed", "response": {"usage": usage}}]


def _gpt_replies(body: Body) -> list[Any]:
    replies: list[list[Body]] = [[]]
    for item in body["input"]:
        if item.get("role") in ("user", "developer") or item.get("type") == "function_call_output":
            replies.append([])
        else:
            replies[-1].append(item)
    return [reply for reply in replies if reply]


GPT = StrictService(
    "openai/responses/gpt-5", "/v1/responses", _gpt_events, _gpt_given, _gpt_replies
)


def _gemini_given(step: int) -> list[Body]:
    call = {"name": "read", "args": _arguments(step), "id": f"g{step}"}
    return [
        {"text": f"Step {step}.", "thoughtSignature": f"{GEMINI.sealed(step)}-a"},
        {"functionCall": call, "thoughtSignature": f"{GEMINI.sealed(step)}-b"},
    ]


def _gemini_events(step: int) -> list[Body]:
    parts = [{"text": f"first {step}", "thought": True}, *_gemini_given(step)]
    contents = [{"role": "model", "parts": [part]} for part in parts]
    events: list[Body] = [{"candidates": [{"content": content}]} for content in contents]
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 3}
    return [*events, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}]


GEMINI = StrictService(
    "gemini/gemini-3-flash-preview",
    "/v1/models/gemini-3-flash-preview:streamGenerateContent?alt=sse",
    _gemini_events,
    _gemini_given,
    lambda body: [c["parts"] for c in body["contents"] if c["role"] == "model"],
)


def _chat_call(step: int, call_id: str) -> Body:
    function = {"name": "read", "arguments": json.dumps(_arguments(step))}
    return {"id": call_id, "type": "function", "function": function}


def _chat_events(*deltas: Body) -> list[Body]:
    events: list[Body] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return [*events, {"choices": [end]}, {"choices": [], "usage": usage}]


def _chat_replies(body: Body) -> list[Any]:
    return [message for message in body["messages"] if message["role"] == "assistant"]


def _router_details(step: int) -> list[Body]:
    return [
        {"type": "reasoning.summary", "summary": f"first {step}", "index": 0},
        {"type": "reasoning.encrypted", "data": ROUTER.sealed(step), "index": 1, "id": f"r{step}"},
    ]


ROUTER = StrictService(
    "openrouter/x-ai/grok-4",
    "/v1/chat/completions",
    lambda step: _chat_events(
        {"reasoning": f"first {step}", "reasoning_details": _router_details(step)[:1]},
        {"reasoning_details": _router_details(step)[1:]},
        {"content": f"Step {step}."},
        {"tool_calls": [{"index": 0, **_chat_call(step, f"call_{step}")}]},
    ),
    lambda step: {
        "role": "assistant",
        "content": f"Step {step}.",
        "tool_calls": [_chat_call(step, f"call_{step}")],
        "reasoning_details": _router_details(step),
    },
    _chat_replies,
)
MAGISTRAL = StrictService(
    "mistral/magistral-medium-latest",
    "/v1/chat/completions",
    lambda step: _chat_events(
        {"content": [{"type": "thinking", "thinking": _thought(step)}]},
        {"content": f"Step {step}."},
        {"tool_calls": [{"index": 0, **_chat_call(step, f"abcdefgh{step}")}]},
    ),
    lambda step: {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": _thought(step)},
            {"type": "text", "text": f"Step {step}."},
        ],
        "tool_calls": [_chat_call(step, f"abcdefgh{step}")],
    },
    _chat_replies,
)


def _thought(step: int) -> list[Body]:
    return [{"type": "text", "text": f"seal-of-mistral/magistral-medium-latest-{step}"}]


KIMI = StrictService(
    "moonshot/kimi-k2-thinking",
    "/v1/chat/completions",
    lambda step: _chat_events(
        {"reasoning_content": KIMI.sealed(step)},
        {"content": f"Step {step}."},
        {"tool_calls": [{"index": 0, **_chat_call(step, f"read:{step}")}]},
    ),
    lambda step: {
        "role": "assistant",
        "content": f"Step {step}.",
        "tool_calls": [_chat_call(step, f"read:{step}")],
        "reasoning_content": KIMI.sealed(step),
    },
    _chat_replies,
)
SERVICES = (CLAUDE, GPT, GEMINI, ROUTER, MAGISTRAL, KIMI)
