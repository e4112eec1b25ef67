"""The fault table inside a compaction, and requests that are too large."""

import base64
import json
from pathlib import Path

import pytest

from agent_tui.events import (
    CompactionFinished,
    CompactionProgress,
    TurnFinished,
)
from agent_tui.messages import ImageContent
from agent_tui.providers.base import ModelRef
from agent_tui.providers.host import ProviderHost
from tests.faults.cases import mostly_in_one
from tests.faults.conversation import FINE, SUMMARY, Conversation, failed, succeeded
from tests.faults.table import (
    BEFORE_BREAK,
    BREAKS,
    BREAKS_WITHOUT_TEXT,
    NOTE,
    ODDITIES,
    OVERFLOW,
    PASSING,
    REFUSALS,
    WIRES,
    Row,
    Wire,
    refused,
)
from tests.support.images import png
from tests.support.openai_server import Failure, OpenAiServer, Reply
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def check_good_summary(talk: Conversation, row: Row) -> None:
    """A summary that the model wrote all the same, after one wait."""
    talk.remember()
    events = await talk.compact(talk.of(row), SUMMARY)
    finished = only(events, CompactionFinished)
    assert (finished.is_fallback, finished.summarised_by) == (False, talk.model.name)
    assert "Make the greeting polite." in finished.summary
    assert len(talk.waits.delays_s) == 1
    assert any(e.phase.startswith("waiting ") for e in of_kind(events, CompactionProgress))
    assert await talk.is_usable()


@pytest.mark.parametrize(("row", "wire"), mostly_in_one(REFUSALS))
async def test_a_refusal_leads_to_a_summary_without_a_model(
    talk: Conversation, row: Row, wire: Wire
) -> None:
    talk.remember()
    finished = only(await talk.compact(talk.of(row)), CompactionFinished)
    assert finished.is_fallback
    assert talk.model.name in finished.note
    assert "\n" not in finished.note
    assert talk.waits.delays_s == []
    assert len(talk.server.chats) == 1
    assert await talk.is_usable()


@pytest.mark.parametrize(("row", "wire"), mostly_in_one(PASSING))
async def test_a_fault_that_passes_is_waited_out(talk: Conversation, row: Row, wire: Wire) -> None:
    await check_good_summary(talk, row)
    (delay_s,) = talk.waits.delays_s
    assert delay_s == row.delay_s if row.delay_s else 2 <= delay_s <= 2.5


@pytest.mark.parametrize(("row", "wire"), mostly_in_one({**BREAKS, **BREAKS_WITHOUT_TEXT}))
async def test_half_a_summary_is_never_taken_for_one(
    talk: Conversation, row: Row, wire: Wire
) -> None:
    await check_good_summary(talk, row)
    assert talk.runtime.conversation.log.path is not None
    assert BEFORE_BREAK not in talk.runtime.conversation.log.path.read_text(encoding="utf-8")


async def test_what_does_not_pass_leads_to_a_summary_without_a_model(talk: Conversation) -> None:
    talk.remember()
    row = PASSING["reset before the first token"]
    finished = only(await talk.compact(*[talk.of(row)] * 3), CompactionFinished)
    assert finished.is_fallback
    assert "Cannot reach" in finished.note
    assert len(talk.server.chats) == 3
    assert await talk.is_usable()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "reply",
    [
        Reply(),
        Reply(text=GOOD_SUMMARY[:30], finish="content_filter"),
        Reply(text=GOOD_SUMMARY, tool_calls=(NOTE,)),
    ],
    ids=["empty", "content filter", "a call"],
)
async def test_a_reply_that_is_no_use_twice_leads_to_a_summary_without_a_model(
    talk: Conversation, reply: Reply, wire: Wire
) -> None:
    talk.remember()
    finished = only(await talk.compact(reply, reply), CompactionFinished)
    assert finished.is_fallback
    assert talk.times_run == 0
    assert await talk.is_usable()


@pytest.mark.parametrize(("row", "wire"), mostly_in_one(ODDITIES))
async def test_what_is_not_by_the_book_makes_no_difference_to_a_summary(
    talk: Conversation, row: Row, wire: Wire
) -> None:
    odd = talk.of(row)
    assert isinstance(odd, Reply)
    talk.remember()
    reply = Reply(
        text=GOOD_SUMMARY,
        newline=odd.newline,
        comments=odd.comments,
        bom=odd.bom,
        done=odd.done,
        usage=odd.usage,
    )
    finished = only(await talk.compact(reply), CompactionFinished)
    assert not finished.is_fallback
    assert await talk.is_usable()


async def test_a_summary_that_does_not_fit_is_written_from_smaller_parts(
    talk: Conversation,
) -> None:
    talk.remember()
    events = await talk.compact(talk.of(OVERFLOW), *[SUMMARY] * 9)
    assert not only(events, CompactionFinished).is_fallback
    sizes = [len(json.dumps(chat.body["messages"])) for chat in talk.server.chats]
    assert max(sizes[1:]) < sizes[0]
    assert await talk.is_usable()


# More than fits


@pytest.mark.parametrize("wire", WIRES)
async def test_an_overflow_is_compacted_away_and_the_request_repeated(
    talk: Conversation, wire: Wire
) -> None:
    talk.remember()
    before = len(talk.stored)
    events = await talk.say("and now?", talk.of(OVERFLOW), SUMMARY, FINE)
    assert succeeded(events)
    finished = only(events, CompactionFinished)
    assert (finished.reason, finished.is_fallback) == ("overflow", False)
    assert finished.tokens_after < finished.tokens_before
    assert len(talk.stored) == before + 2
    sizes = [len(json.dumps(chat.body["messages"])) for chat in talk.server.chats]
    assert sizes[-1] < sizes[0]
    assert "Make the greeting polite." in json.dumps(talk.server.chats[-1].body["messages"])


_BEGUN: dict[Wire, str] = {
    "openai": 'data: {"choices": [{"delta": {"content": "The"}}]}\n\n',
    "anthropic": 'data: {"type": "content_block_delta", "delta": {"type": "text_delta", '
    '"text": "The"}}\n\n',
}


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_overflow_that_is_told_in_the_stream_is_compacted_away_too(
    talk: Conversation, wire: Wire, has_begun: bool
) -> None:
    talk.remember()
    said = "the request exceeds the available context size. try increasing the context size"
    error = json.dumps({"code": 400, "message": said, "type": "invalid_request_error"})
    begun = _BEGUN[wire] if has_begun else ""
    body = f"{begun}error: {error}\n\ndata: [DONE]\n\n"  # llama.cpp until September 2025
    stream = Failure(200, body, content_type="text/event-stream")
    events = await talk.say("and now?", stream, SUMMARY, FINE)
    assert succeeded(events)
    assert only(events, CompactionFinished).reason == "overflow"
    assert talk.replies[-1].text == "Fine."


@pytest.mark.parametrize("wire", WIRES)
async def test_an_overflow_after_a_tool_runs_it_no_second_time(
    talk: Conversation, wire: Wire
) -> None:
    talk.remember()
    calls = Reply(tool_calls=(NOTE,))
    events = await talk.say("and now?", calls, talk.of(OVERFLOW), SUMMARY, FINE)
    assert succeeded(events)
    assert only(events, CompactionFinished).reason == "overflow"
    assert talk.times_run == 1


_IMAGE = ImageContent(data=base64.b64encode(png()).decode() * 20_000, mime_type="image/png")
_LARGE = refused(413, "Too large.", "request_too_large", "Too large.")


@pytest.mark.parametrize(
    ("text", "images", "advice"),
    [
        ("hello", (), ". Switch to a model with a larger context window with /model."),
        ("word " * 30_000, (), " tokens. Shorten it,"),
        ("hello", (_IMAGE,), " tokens and an image (2."),
        ("hello", (_IMAGE, _IMAGE), "MB). Attach smaller or fewer images,"),
    ],
    ids=["short", "long", "an image", "images"],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_where_nothing_can_be_compacted_the_size_of_the_message_is_said(
    talk: Conversation, text: str, images: tuple[ImageContent, ...], advice: str
) -> None:
    talk.server.play(*[talk.of(_LARGE)] * 2)
    error = failed(await collect(talk.runtime.submit(text, images)))
    assert "The newest message has about" in error
    assert advice in error
    assert "/compact" not in error


async def test_a_second_overflow_is_said_with_what_to_do(talk: Conversation) -> None:
    talk.remember()
    too_large = talk.of(OVERFLOW)
    events = await talk.say("and now?", too_large, SUMMARY, too_large)
    error = failed(events)
    assert [word for word in (*OVERFLOW.words, "/compact") if word not in error] == []
    assert len(of_kind(events, CompactionFinished)) == 1
    assert succeeded(await talk.go_on(FINE))


@pytest.mark.parametrize("wire", WIRES)
async def test_an_overflow_without_a_word_of_it_is_compacted_away_too(
    talk: Conversation, wire: Wire
) -> None:
    talk.remember()
    events = await talk.say("and now?", Reply(finish="length"), SUMMARY, FINE)
    assert succeeded(events)
    assert only(events, CompactionFinished).reason == "overflow"
    assert talk.replies[-1].text == "Fine."


async def test_usage_above_the_window_is_an_overflow_that_nobody_reported(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> None:
    talk = Conversation(Stage(tmp_path), server, host, "openai", window=9_000)
    talk.remember()
    await talk.say("and now?", Reply(text="Cut without a word.", usage=(9_500, 5)))
    events = await talk.say("go on", SUMMARY, FINE)
    assert succeeded(events)
    assert len(of_kind(events, CompactionFinished)) == 1
    await talk.runtime.aclose()


async def test_no_output_at_all_twice_is_the_end_of_the_turn(talk: Conversation) -> None:
    talk.remember()
    nothing = Reply(finish="length")
    events = await talk.say("and now?", nothing, SUMMARY, nothing)
    end = only(events, TurnFinished)
    assert (end.outcome, end.can_continue) == ("length", True)
    assert len(of_kind(events, CompactionFinished)) == 1
    assert await talk.is_usable()


async def test_without_a_network_a_compaction_needs_no_model(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> None:
    talk = Conversation(Stage(tmp_path), server, host, "openai")
    talk.runtime.set_model(ModelRef("some-model", "http://127.0.0.1:1/v1", "THE_KEY"))
    talk.remember()
    finished = only(await talk.compact(), CompactionFinished)
    assert finished.is_fallback
    assert "connection refused" in finished.note
    await talk.runtime.aclose()
