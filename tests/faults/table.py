"""The table of what goes wrong with a provider: each row as both kinds of servers send it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Literal, TypeAlias

from tests.support.anthropic_script import anthropic_failure
from tests.support.openai_script import (
    Answer,
    Call,
    Failure,
    NoHeaders,
    Reply,
    bad_gateway,
    bad_key,
    context_overflow,
    failure,
    no_such_model,
    out_of_quota,
    overloaded,
    rate_limited,
)

Wire: TypeAlias = Literal["openai", "anthropic"]
WIRES: tuple[Wire, ...] = ("openai", "anthropic")

NOTE = Call("bash", {"command": "echo ran >> ran.txt"})
"""A call that leaves a line behind each time it runs."""

BEFORE_BREAK = "The sky is "


@dataclass(frozen=True)
class Row:
    """One thing that goes wrong: what the server of each protocol answers.

    `words` are among what the person reads; `delay_s` is how long is waited where the server
    says so.
    """

    answers: Mapping[Wire, Answer]
    words: tuple[str, ...] = ()
    delay_s: float | None = None


def row(openai: Answer, anthropic: Answer, *words: str, delay_s: float | None = None) -> Row:
    """A row that the two protocols word in their own ways."""
    return Row({"openai": openai, "anthropic": anthropic}, words, delay_s)


def alike(answer: Answer, *words: str) -> Row:
    """A row that is the same in both."""
    return Row(dict.fromkeys(WIRES, answer), words)


def refused(
    status: int, openai: str, kind: str, anthropic: str, *words: str, retry_after: str = ""
) -> Row:
    """A refusal in both JSON forms; what `retry_after` asks for, in seconds, is waited."""
    headers = {"retry_after": retry_after} if retry_after else {}
    delay_s = float(retry_after) if retry_after.isdecimal() else None
    return row(
        failure(status, openai, **headers),
        anthropic_failure(status, kind, anthropic, **headers),
        *words,
        delay_s=delay_s,
    )


_TOMORROW = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
_HTML = "<html><head><title>{0}</title></head><body><h1>{0}</h1>nginx</body></html>"

REFUSALS: Mapping[str, Row] = {
    "401": row(
        bad_key(),
        anthropic_failure(401, "authentication_error", "invalid x-api-key"),
        "API key rejected",
        "THE_KEY",
        "/model",
    ),
    "403": refused(
        403,
        "Your account may not use this model.",
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
        "THE_KEY",
        "/model",
    ),
    "404": row(
        no_such_model(),
        anthropic_failure(404, "not_found_error", "model: claude-nope"),
        "not found",
        "/model",
    ),
    "429 for quota": row(
        out_of_quota(),
        anthropic_failure(429, "rate_limit_error", "You have reached your monthly spending limit."),
        "No quota",
        "billing",
        "/model",
    ),
    "no credit": row(
        failure(402, "Insufficient credits. Add more to go on."),
        anthropic_failure(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & "
            "Billing to upgrade or purchase credits.",
        ),
        "No quota",
        "billing",
    ),
    "400": refused(
        400,
        "tools: unknown field",
        "invalid_request_error",
        "tools.0.custom.input_schema: Field required",
        "rejected the request",
        "tools",
        "/model",
    ),
    "429 for a day": refused(
        429, "Too fast.", "rate_limit_error", "Too fast.", "resets at", retry_after="86400"
    ),
    "429 by date": refused(
        429, "Too fast.", "rate_limit_error", "Too fast.", "resets at", retry_after=_TOMORROW
    ),
    "403 in html": alike(
        Failure(403, _HTML.format("403 Forbidden"), content_type="text/html"), "403 Forbidden"
    ),
}
"""Not asked again: what to change is said."""

PASSING: Mapping[str, Row] = {
    "429 in seconds": row(
        rate_limited("7"),
        anthropic_failure(
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per "
            "minute.",
            retry_after="7",
        ),
        "Rate limit",
        delay_s=7.0,
    ),
    "429 without a time": refused(
        429, "Slow down.", "rate_limit_error", "Slow down.", "Rate limit"
    ),
    "408": refused(408, "Request timeout.", "timeout_error", "Request timeout.", "408"),
    "500": refused(500, "Internal error.", "api_error", "Internal server error", "returned 500"),
    "502 in html": alike(bad_gateway(), "502 Bad Gateway"),
    "503": refused(503, "No capacity.", "api_error", "No capacity.", "overloaded", retry_after="5"),
    "504": refused(504, "Gateway timeout.", "timeout_error", "Gateway timeout.", "504"),
    "529": row(
        overloaded(), anthropic_failure(529, "overloaded_error", "Overloaded"), "overloaded"
    ),
    "an empty 500": alike(Failure(500, ""), "returned 500"),
    "reset before the first token": alike(NoHeaders(reset=True), "Cannot reach", "connection lost"),
}
"""Waited out and asked again, three times at most."""

BREAKS: Mapping[str, Row] = {
    "reset": alike(Reply(text=BEFORE_BREAK, ending="reset")),
    "half a chunk": alike(Reply(text=BEFORE_BREAK, ending="half")),
    "a broken chunk": alike(Reply(text=BEFORE_BREAK, ending="broken")),
    "an error event": alike(Reply(text=BEFORE_BREAK, ending="error"), "had an error"),
    "an error as a field": alike(Reply(text=BEFORE_BREAK, ending="field"), "lost its slot"),
    "an orderly end": alike(Reply(text=BEFORE_BREAK, ending="close")),
    "no finish reason": alike(Reply(text=BEFORE_BREAK, finish="", done=False)),
    "no finish reason, usage or end": alike(
        Reply(text=BEFORE_BREAK, finish="", done=False, usage=None)
    ),
    "the mark of the end alone": alike(Reply(text=BEFORE_BREAK, finish="", usage=None)),
    "in a call": alike(Reply(text=BEFORE_BREAK, tool_calls=(NOTE,), ending="close")),
}
"""Text has come when the reply breaks off: it is kept, and not asked for again."""

BREAKS_WITHOUT_TEXT: Mapping[str, Row] = {
    "close in a call": alike(Reply(tool_calls=(NOTE,), ending="close")),
    "reset in a call": alike(Reply(tool_calls=(NOTE,), ending="reset")),
    "close after a whole call": alike(Reply(tool_calls=(NOTE,), finish="", done=False)),
    "close before the first token": alike(Reply(ending="close", usage=None)),
    "an error event at once": alike(Reply(ending="error")),
    "overloaded in an event": row(
        Reply(
            finish="",
            raw_events=('{"error": {"message": "Overloaded", "type": "overloaded", "code": 529}}',),
        ),
        Reply(
            finish="",
            raw_events=(
                '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
            ),
        ),
        "overloaded",
    ),
}
"""Nothing was shown yet that could be lost: asked again."""

BROKEN_CALLS: Mapping[str, Row] = {
    "cut by the length": alike(
        Reply(tool_calls=(NOTE, Call("bash", '{"command": "echo r')), finish="length"),
        "output limit",
    ),
    "whole, cut by the length after it": alike(
        Reply(tool_calls=(NOTE, NOTE), finish="length"), "output limit"
    ),
    "cut JSON": alike(
        Reply(tool_calls=(NOTE, Call("bash", '{"command": "echo r'))), "not valid JSON"
    ),
    "null": alike(Reply(tool_calls=(NOTE, Call("bash", "null"))), "not a JSON object"),
    "a list": alike(Reply(tool_calls=(NOTE, Call("bash", '["ls"]'))), "not a JSON object"),
    "schema mismatch": alike(Reply(tool_calls=(NOTE, Call("bash", {"path": "x"}))), "command"),
    "no arguments": alike(Reply(tool_calls=(NOTE, Call("bash", ""))), "command"),
    "unknown tool": alike(Reply(tool_calls=(NOTE, Call("teleport", {"to": "x"}))), "teleport"),
    "impossible name": alike(Reply(tool_calls=(NOTE, Call("no such/tool!", {}))), "no such/tool!"),
}
"""The second of two calls cannot be run, so that none is; the model is told what to mend."""

ODDITIES: Mapping[str, Row] = {
    "CRLF": alike(Reply(text="Fine.", newline="\r\n")),
    "comments": alike(Reply(text="Fine.", comments=True)),
    "CRLF, comments and no end": alike(
        Reply(text="Fine.", newline="\r\n", comments=True, done=False)
    ),
    "a byte order mark": alike(Reply(text="Fine.", bom=True)),
    "no end": alike(Reply(text="Fine.", done=False)),
    "no usage": alike(Reply(text="Fine.", usage=None)),
    "lone surrogates": alike(Reply(text=("Fine \ud83d", "\ude00 \udc00."))),
}
"""Not by the book, and taken all the same."""

OVERFLOW = row(
    context_overflow(65_536, 70_000),
    anthropic_failure(
        400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"
    ),
    "too long for",
)
