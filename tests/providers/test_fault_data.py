"""What of an exception crosses the pipe: the server's own words, status and codes."""

import json

import httpx

from agent_tui.providers.base import ModelRef
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import fault_of


class Wrapped(Exception):
    """An exception with what litellm's have."""

    def __init__(
        self, text: str, status: int | None = None, answer: httpx.Response | None = None
    ) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status
        self.response = answer


def behind(outer: Wrapped, inner: BaseException) -> Wrapped:
    outer.__cause__ = inner
    return outer


def answer(status: int, body: object) -> httpx.Response:
    return httpx.Response(status, text=json.dumps(body))


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_the_innermost_status_and_the_servers_words_count() -> None:
    inner = Wrapped(json.dumps(OVERLOADED), 529, answer(529, OVERLOADED))
    fault = fault_of(behind(Wrapped("XError - b'{...}'", 500), inner), ())
    assert (fault.status, fault.text) == (529, "Overloaded")
    assert "overloaded_error" in fault.codes


def test_a_body_that_came_as_bytes_is_read() -> None:
    error = Wrapped("outer", 400)
    error.message = json.dumps(OVERLOADED).encode()  # pyright: ignore[reportAttributeAccessIssue]
    assert fault_of(error, ()).text == "Overloaded"


def test_what_the_service_behind_openrouter_said_is_kept() -> None:
    raw = json.dumps({"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}})
    body = {"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}
    fault = fault_of(Wrapped("outer", 400, answer(400, body)), ())
    assert fault.text.startswith("Provider returned error: prompt is too long")
    assert provider_error(fault, ModelRef("openrouter/x")).kind == "context_overflow"


def test_an_error_that_is_only_a_text_is_that_text() -> None:
    assert fault_of(Wrapped("outer", 404, answer(404, {"error": "no such model"})), ()).text == (
        "no such model"
    )


def test_an_answer_that_was_streamed_away_does_no_harm() -> None:
    gone = httpx.Response(500, stream=httpx.ByteStream(b"{}"))
    gone.is_closed = True
    assert fault_of(Wrapped("words", 500, gone), ()).text == "words"


def test_json_that_is_not_one_is_the_text_it_is() -> None:
    assert fault_of(Wrapped("{not json", 500), ()).text == "{not json"


def test_secrets_in_the_servers_words_are_taken_out() -> None:
    body = {"error": {"message": "the key hunter22 is wrong", "code": "hunter22"}}
    fault = fault_of(Wrapped("outer", 401, answer(401, body)), ("hunter22",))
    assert "hunter22" not in repr(fault)
