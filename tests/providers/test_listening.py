"""How long a request waits for a server: bytes are life, and words are what it waits for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator

import httpx
import pytest

from agent_tui.features.bedrock.wire import _Reading as Bedrock
from agent_tui.features.responses.wire import _Reading as Responses
from agent_tui.messages import JsonObject
from agent_tui.providers.base import Chunk, TextChunk, ThinkingChunk, ToolCallChunk
from agent_tui.providers.silence import NO_LIMIT, SilenceLimits, Wait, WaitTeller
from agent_tui.providers.transport.http_client import HttpClient
from agent_tui.providers.transport.serving import Listener, is_part_of_reply, serve
from agent_tui.providers.wires.anthropic import AnthropicReading
from agent_tui.providers.wires.base import Address, IdleTimeoutError
from agent_tui.providers.wires.completions import _Reading as Completions
from agent_tui.providers.wires.http import Reading
from tests.support.leaping_clock import LeapingClock, leaping_time
from tests.support.rows import each_row

HERE, ELSEWHERE = "http://127.0.0.1:8080/v1", "https://api.example.com/v1"
USUAL = SilenceLimits.without_bytes()


@pytest.fixture(autouse=True)
def clock() -> Iterator[LeapingClock]:
    with leaping_time() as leaping:
        yield leaping


def listen(
    work: Callable[[Listener], Awaitable[None]], url: str, limits: SilenceLimits = USUAL
) -> str:
    """Do `work` for a request to `url`; says why it was given up, empty where it was not."""

    async def run() -> None:
        listener = Listener(limits)
        listener.asking(url)
        await work(listener)

    try:
        asyncio.run(run())
    except IdleTimeoutError as error:
        return str(error)
    return ""


def bytes_every(pause_s: float, count: int) -> Callable[[Listener], Awaitable[None]]:
    async def work(listener: Listener) -> None:
        for _ in range(count):
            await listener.in_time(asyncio.sleep(pause_s))

    return work


@each_row(
    ("url", "pause_s", "given_up"),
    [
        (ELSEWHERE, 590, ""),
        (ELSEWHERE, 610, "no data for 10m"),
        (HERE, 610, ""),
        (HERE, 3_590, ""),
        (HERE, 3_610, "no data for 1h"),
        ("http://[::1]:1/v1", 3_590, ""),
    ],
)
def test_silence_is_borne_for_ten_minutes_and_on_this_machine_for_an_hour(
    url: str, pause_s: float, given_up: str
) -> None:
    assert listen(bytes_every(pause_s, 1), url) == given_up


@pytest.mark.parametrize(
    ("url", "minutes", "given_up"),
    [
        (ELSEWHERE, 29, ""),
        (ELSEWHERE, 31, "only keep-alives for 30m"),
        (HERE, 59, ""),
        (HERE, 61, "only keep-alives for 1h"),
    ],
)
def test_a_server_that_only_ever_pings_is_given_up_in_the_end(
    url: str, minutes: int, given_up: str
) -> None:
    assert listen(bytes_every(60, minutes), url) == given_up


def test_words_begin_the_waiting_anew() -> None:
    async def work(listener: Listener) -> None:
        for _ in range(10):
            await bytes_every(60, 20)(listener)
            listener.understand()

    assert listen(work, ELSEWHERE) == ""


def test_bytes_that_come_within_one_wait_put_its_end_off() -> None:
    """As in litellm's streams, which swallow comments."""

    async def work(listener: Listener) -> None:
        async def swallow() -> None:
            for _ in range(5):
                await asyncio.sleep(500)
                listener.hear()
            await asyncio.sleep(610)

        began = asyncio.get_running_loop().time()
        try:
            await listener.in_time(swallow())
        finally:
            waited_s = asyncio.get_running_loop().time() - began
            assert waited_s == pytest.approx(1_800, abs=5)

    assert listen(work, ELSEWHERE) == "only keep-alives for 30m"


def test_four_minutes_of_empty_deltas_are_one_request_of_which_all_is_read() -> None:
    asked: list[httpx.Request] = []
    empty, word = (f'data: {{"delta": {{{inner}}}}}\n\n'.encode() for inner in ("", '"text": "Hi"'))

    class Slow(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for _ in range(240):
                await asyncio.sleep(1)
                yield empty
            yield word

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Slow())

    async def work(listener: Listener) -> None:
        client, began = (
            HttpClient({}, httpx.MockTransport(answer)),
            asyncio.get_running_loop().time(),
        )
        events = client.events(Address(ELSEWHERE, {}), b"{}", listener.in_time)
        assert [event async for event in events][-1] == {"delta": {"text": "Hi"}}
        assert asyncio.get_running_loop().time() - began >= 240

    assert listen(work, ELSEWHERE, SilenceLimits.without_bytes(60, 60)) == ""
    assert len(asked) == 1


def test_a_server_of_our_own_is_waited_for_as_long_as_it_lives() -> None:
    limits = SilenceLimits(NO_LIMIT, NO_LIMIT)
    assert listen(bytes_every(100_000, 3), HERE, limits) == ""


def test_the_settings_say_how_long_and_pings_are_never_given_up_before() -> None:
    limits = SilenceLimits.without_bytes(60, 7_200)
    assert (limits.elsewhere.byte_s, limits.elsewhere.word_s) == (60, 1_800)
    assert (limits.here.byte_s, limits.here.word_s) == (7_200, 7_200)


@each_row(
    ("chunk", "is_part"),
    [
        (TextChunk("a"), True),
        (TextChunk(""), False),
        (ToolCallChunk(0, "c", "read", ""), True),
        (ToolCallChunk(0, "", "", ""), False),
        (ThinkingChunk(""), True),
        (ThinkingChunk("", "sealed", redacted=True), True),
    ],
)
def test_an_empty_delta_is_no_part_of_a_reply_and_hidden_thinking_is(
    chunk: Chunk, is_part: bool
) -> None:
    assert is_part_of_reply(chunk) is is_part


def test_waiting_is_told_once_a_minute_and_anew_after_words() -> None:
    told: list[tuple[float, bool]] = []
    teller = WaitTeller(lambda waited_s, is_alive: told.append((waited_s, is_alive)))
    for wait in (Wait(58, 58), Wait(60, 60), Wait(62, 62), Wait(121, 3), Wait(2, 2), Wait(61, 1)):
        teller.hear(wait)
    assert told == [(60, False), (121, True), (61, True)]


@pytest.mark.parametrize(
    ("reading", "event"),
    [
        (
            AnthropicReading(),
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta"}},
        ),
        (
            Bedrock(),
            {"contentBlockDelta": {"delta": {"reasoningContent": {"signature": "x"}}}},
        ),
        (Responses(), {"type": "response.reasoning_encrypted.delta", "delta": "x"}),
        (Completions(), {"choices": [{"delta": {"reasoning_details": [{"data": "x"}]}}]}),
    ],
    ids=["anthropic", "bedrock", "responses", "completions"],
)
def test_each_wire_tells_of_thinking_that_it_does_not_show(
    reading: Reading, event: JsonObject
) -> None:
    if isinstance(reading, AnthropicReading):
        list(
            reading.chunks(
                {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}}
            )
        )
    assert list(reading.chunks(event)) == [ThinkingChunk("")]


def test_what_waits_for_its_turn_behind_open_thinking_is_told_too() -> None:
    reading = Responses()
    thinking: JsonObject = {"type": "reasoning", "id": "r"}
    opened: JsonObject = {"type": "response.output_item.added", "output_index": 0, "item": thinking}
    text: JsonObject = {"type": "response.output_text.delta", "output_index": 1, "delta": "Hi."}
    assert list(reading.chunks(opened)) == []
    assert list(reading.chunks(text)) == [ThinkingChunk("")]


def test_time_in_which_the_program_itself_was_stopped_is_no_silence(clock: LeapingClock) -> None:
    waits: list[object] = []

    async def work(listener: Listener) -> None:
        async def stop_and_hear() -> str:
            clock.skipped_s += 4_000
            await asyncio.sleep(5)
            return "Hi"

        async def reply() -> AsyncGenerator[Chunk, None]:
            yield TextChunk(await listener.in_time(stop_and_hear()))

        events: list[object] = []
        await serve(reply(), listener, events.append, ())
        assert events[-1] == TextChunk("Hi")
        waits.extend(events[:-1])

    assert listen(work, ELSEWHERE) == ""
    assert waits
    assert all(isinstance(wait, Wait) and wait.byte_s < 10 for wait in waits)
