"""Forms of streams in the protocols of Anthropic, Google and OpenAI's Responses API."""

from typing import Any

from tests.providers.stream_forms import TWO_CALLS, A, B, Form


def anthropic_start(**usage: int) -> dict[str, Any]:
    """The first event of a reply of the Messages API."""
    return {"type": "message_start", "message": {"usage": {"input_tokens": 5, **usage}}}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> tuple[Any, ...]:
    """The events of one block."""
    return (
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": one} for one in deltas),
        {"type": "content_block_stop", "index": index},
    )


def anthropic_end(reason: str | None) -> tuple[Any, ...]:
    """The last two events."""
    return (
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )


HI = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi."})

ANTHROPIC_FORMS = {
    "a ping and unknown events": Form(
        (
            anthropic_start(),
            'event: ping\ndata: {"type": "ping"}',
            *HI,
            {"type": "news"},
            *anthropic_end("end_turn"),
        ),
        text="Hi.",
        tokens=(5, 3),
    ),
    "pause_turn": Form(
        (anthropic_start(), *HI, *anthropic_end("pause_turn")), text="Hi.", stop="length"
    ),
    "refusal": Form(
        (anthropic_start(), *HI, *anthropic_end("refusal")), text="Hi.", was_filtered=True
    ),
    "the window is full": Form(
        (anthropic_start(), *HI, *anthropic_end("model_context_window_exceeded")),
        text="Hi.",
        stop="length",
    ),
    "a call without arguments": Form(
        (
            anthropic_start(),
            *block(0, {"type": "tool_use", "id": "t1", "name": "list", "input": {}}),
            *block(
                1,
                {"type": "tool_use", "id": "t2", "name": "read", "input": {}},
                {"type": "input_json_delta", "partial_json": ""},
                {"type": "input_json_delta", "partial_json": A},
            ),
            *anthropic_end("tool_use"),
        ),
        calls=(("list", {}), TWO_CALLS[0]),
        stop="toolUse",
    ),
    "a signature in pieces, and thinking without text": Form(
        (
            anthropic_start(),
            *block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "signature_delta", "signature": "c2"},
                {"type": "signature_delta", "signature": "ln"},
            ),
            *block(1, {"type": "redacted_thinking", "data": "b3Bh"}),
            *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi."}),
            *anthropic_end("end_turn"),
        ),
        text="Hi.",
        signatures=("c2ln", "b3Bh"),
    ),
    "counts at the end": Form(
        (
            {"type": "message_start", "message": {"usage": {"input_tokens": 0}}},
            *HI,
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4},
            },
        ),
        text="Hi.",
        tokens=(5, 4),
    ),
    "overloaded": Form(
        (
            anthropic_start(),
            *HI,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
        text="Hi.",
        tokens=(5, 0),
        kind="overloaded",
        said="Overloaded",
    ),
    "an error of the server": Form(
        (
            anthropic_start(),
            *HI,
            {"type": "error", "error": {"type": "api_error", "message": "Internal error"}},
        ),
        text="Hi.",
        kind="interrupted",
        said="Internal error",
    ),
    "no end": Form((anthropic_start(), *HI), text="Hi.", tokens=(5, 0), kind="interrupted"),
}


def part(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """An event of Gemini's with these parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


COUNTED = {"promptTokenCount": 5, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}

GEMINI_FORMS = {
    "several calls without ids": Form(
        (
            part(
                {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "s1"},
                {"functionCall": {"name": "read", "args": {"path": "b"}}},
            ),
            part({"functionCall": {"name": "list"}}, finish="STOP", usageMetadata=COUNTED),
        ),
        calls=(*TWO_CALLS, ("list", {})),
        tokens=(5, 3),
        stop="toolUse",
        signatures=("s1",),
    ),
    "thoughts, and a signature on a part without text": Form(
        (
            part({"text": "Hm", "thought": True}),
            part({"text": ".", "thought": True}, {"text": "H"}),
            part({"text": "i."}),
            part({"text": "", "thoughtSignature": "s1"}, finish="STOP", usageMetadata=COUNTED),
        ),
        text="Hi.",
        thinking="Hm.",
        tokens=(5, 3),
        signatures=("s1",),
    ),
    "candidates without content": Form(
        (
            part({"text": "Hi."}),
            {"candidates": [{"finishReason": "STOP", "index": 0}]},
            {"candidates": [], "usageMetadata": COUNTED},
            {"usageMetadata": COUNTED},
        ),
        text="Hi.",
        tokens=(5, 3),
    ),
    "MAX_TOKENS": Form((part({"text": "Hi"}, finish="MAX_TOKENS"),), text="Hi", stop="length"),
    "a blocked prompt": Form(
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": COUNTED},),
        tokens=(5, 3),
        was_filtered=True,
    ),
    "a blocked reply": Form(
        (part({"text": "Hi"}), {"candidates": [{"finishReason": "SAFETY"}]}),
        text="Hi",
        was_filtered=True,
    ),
    "a call that cannot be read": Form(
        (
            {
                "candidates": [
                    {
                        "finishReason": "MALFORMED_FUNCTION_CALL",
                        "finishMessage": "Malformed function call: read(api_key missing, safety)",
                    }
                ],
                "usageMetadata": COUNTED,
            },
        ),
        tokens=(5, 3),
        kind="interrupted",
        said="Malformed function call",
    ),
    "an error": Form(
        (
            part({"text": "Hi"}, usageMetadata=COUNTED),
            {"error": {"code": 503, "message": "Please wait", "status": "UNAVAILABLE"}},
        ),
        text="Hi",
        tokens=(5, 3),
        kind="overloaded",
        said="Please wait",
    ),
    "no end": Form((part({"text": "Hi"}),), text="Hi", kind="interrupted"),
}


def item(index: int, given: dict[str, Any], *deltas: tuple[str, str]) -> tuple[Any, ...]:
    """The events of one output item; deltas are kinds and texts."""
    return (
        {"type": "response.output_item.added", "output_index": index, "item": _bare(given)},
        *(
            {"type": f"response.{kind}.delta", "output_index": index, "delta": text}
            for kind, text in deltas
        ),
        {"type": "response.output_item.done", "output_index": index, "item": given},
    )


def _bare(given: dict[str, Any]) -> dict[str, Any]:
    """An item as it begins."""
    return {n: v for n, v in given.items() if n in ("type", "id", "call_id", "name")}


def response(kind: str, **fields: Any) -> dict[str, Any]:
    """The event a response ends with."""
    usage = {"input_tokens": 5, "output_tokens": 3}
    return {"type": f"response.{kind}", "response": {"status": kind, "usage": usage, **fields}}


def said(text: str, id: str = "msg_1") -> dict[str, Any]:
    """A message item."""
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": id, "role": "assistant", "content": content}


MESSAGE = item(0, said("Hi."), ("output_text", "H"), ("output_text", "i."))
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}

RESPONSES_FORMS = {
    "several messages and summaries": Form(
        (
            {"type": "response.created", "response": {}},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "reasoning", "id": "rs_1"},
            },
            {"type": "response.reasoning_summary_part.added", "output_index": 0},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."},
            {"type": "response.reasoning_summary_part.added", "output_index": 0},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Ah."},
            {"type": "response.output_item.done", "output_index": 0, "item": SEALED},
            *item(1, said("H"), ("output_text", "H")),
            *item(2, said("i.", "msg_2"), ("output_text", "i.")),
            response("completed"),
            "data: [DONE]",
        ),
        text="Hi.",
        thinking="Hm.\n\nAh.",
        tokens=(5, 3),
        signatures=(
            '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"c2ln"}',
            '{"v":1,"id":"msg_1"}',
            '{"v":1,"id":"msg_2"}',
        ),
    ),
    "calls with and without pieces": Form(
        (
            *item(
                0,
                {
                    "type": "function_call",
                    "id": "fc_1",
                    "call_id": "1",
                    "name": "read",
                    "arguments": A,
                },
                ("function_call_arguments", A[:5]),
                ("function_call_arguments", A[5:]),
            ),
            *item(
                1,
                {
                    "type": "function_call",
                    "id": "fc_2",
                    "call_id": "2",
                    "name": "read",
                    "arguments": B,
                },
            ),
            response("completed"),
        ),
        calls=TWO_CALLS,
        tokens=(5, 3),
        stop="toolUse",
        signatures=("fc_1", "fc_2"),
    ),
    "a custom tool's call": Form(
        (
            *item(
                0,
                {
                    "type": "custom_tool_call",
                    "id": "ctc_1",
                    "call_id": "1",
                    "name": "apply_patch",
                    "input": 'a "b"\n',
                },
                ("custom_tool_call_input", 'a "'),
                ("custom_tool_call_input", 'b"\n'),
            ),
            response("completed"),
        ),
        calls=(("apply_patch", {"input": 'a "b"\n'}),),
        tokens=(5, 3),
        stop="toolUse",
    ),
    "all of it with the last event": Form(
        (response("completed", output=[SEALED, said("Hi.")]),),
        text="Hi.",
        tokens=(5, 3),
    ),
    "incomplete for its length": Form(
        (*MESSAGE, response("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        text="Hi.",
        tokens=(5, 3),
        stop="length",
    ),
    "incomplete for its content": Form(
        (*MESSAGE, response("incomplete", incomplete_details={"reason": "content_filter"})),
        text="Hi.",
        was_filtered=True,
    ),
    "a refusal": Form(
        (
            *item(
                0,
                {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]},
                ("refusal", "I will not."),
            ),
            response("completed"),
        ),
        text="I will not.",
    ),
    "failed": Form(
        (
            *MESSAGE,
            response("failed", error={"code": "server_error", "message": "It broke"}),
        ),
        text="Hi.",
        tokens=(5, 3),
        kind="interrupted",
        said="It broke",
    ),
    "failed for the rate": Form(
        (response("failed", error={"code": "rate_limit_exceeded", "message": "Slow down"}),),
        kind="rate_limit",
        said="Slow down",
    ),
    "an error beside its type": Form(
        (*MESSAGE, {"type": "error", "code": "server_error", "message": "It broke", "param": None}),
        text="Hi.",
        kind="interrupted",
        said="It broke",
    ),
    "an error inside": Form(
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Not so"}},),
        kind="server",
        said="Not so",
    ),
    "no end": Form(MESSAGE, text="Hi.", kind="interrupted"),
}
