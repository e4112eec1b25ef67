"""A reply that breaks off, and a model that begins it anew instead of going on."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import (
    AgentEvent,
    CutReplyDropped,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import AssistantMessage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRequest,
    RestartChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
)
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import Stage, collect, of_kind, only

pytestmark = pytest.mark.asyncio


async def no_sleep(_delay_s: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def say(stage: Stage, *replies: Reply) -> tuple[AgentRuntime, list[AgentEvent]]:
    runtime = stage.runtime(list(replies), sleep=no_sleep)
    return runtime, await collect(runtime.submit("hi"))


def stored(runtime: AgentRuntime) -> tuple[list[str], list[str]]:
    """The replies of the conversation, and all in the file, both read anew."""
    assert runtime.conversation.log.path is not None
    with SessionLog.open(runtime.conversation.log.path, read_only=True) as log:
        return _replies(log.path_entries()), _replies(log.entries)


def _replies(entries: Sequence[object]) -> list[str]:
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    return [message.text for message in messages if isinstance(message, AssistantMessage)]


def shown(events: Sequence[AgentEvent]) -> list[str]:
    """The replies that stand on a screen at the end."""
    kept: dict[str, str] = {}
    for event in events:
        match event:
            case ReplyFinished(entry_id=entry_id, message=message):
                kept[entry_id] = message.text
            case CutReplyDropped(entry_ids=entry_ids):
                for entry_id in entry_ids:
                    del kept[entry_id]
            case _:
                pass
    return list(kept.values())


def cut(text: str = "", thinking: str = "") -> Reply:
    return Reply(text=text, thinking=thinking, cut=True)


@pytest.mark.parametrize(
    ("replies", "left"),
    [
        ((cut("The sky "), Reply(text="is blue.")), ["The sky ", "is blue."]),
        ((cut("The sky "), Reply(text="The sky is blue.")), ["The sky is blue."]),
        ((cut("The sky "), cut("The sky "), Reply(text="The sky is blue.")), ["The sky is blue."]),
        ((cut("The sky is "), cut("The "), Reply(text="The sky is blue.")), ["The sky is blue."]),
        ((cut("The "), cut("The sky is "), Reply(text="blue.")), ["The sky is ", "blue."]),
        ((cut("The "), cut("sky "), Reply(text="The sky is blue.")), ["The sky is blue."]),
        ((cut("The "), cut("sky "), Reply(text="sky is blue.")), ["The ", "sky is blue."]),
        ((cut("The  sky\n"), Reply(text="The sky is blue.")), ["The sky is blue."]),
        ((cut(thinking="Hm"), Reply(text="Blue.", thinking="Hm.")), ["Blue."]),
        ((cut(thinking="Hm"), cut(thinking="So"), Reply(text="Blue.")), ["Blue."]),
        ((cut("The sky "), cut(thinking="Hm"), Reply(text="is blue.")), ["The sky ", "is blue."]),
    ],
)
async def test_no_part_of_a_cut_reply_stands_twice(
    stage: Stage, replies: Sequence[Reply], left: list[str]
) -> None:
    runtime, events = await say(stage, *replies)
    assert only(events, TurnFinished).outcome == "done"
    assert len(of_kind(events, RetryScheduled)) == len(replies) - 1
    in_conversation, in_file = stored(runtime)
    assert in_conversation == left == shown(events)
    assert set(in_conversation) <= set(in_file)  # a branch that was left is not lost
    ends = len(of_kind(events, ReplyFinished)) + len(of_kind(events, ReplyDiscarded))
    assert len(of_kind(events, ReplyStarted)) == ends


async def test_what_came_last_stays_where_no_try_helps(stage: Stage) -> None:
    runtime, events = await say(stage, *[cut("The sky ")] * 10)
    assert only(events, TurnFinished).outcome == "error"
    assert stored(runtime)[0] == shown(events) == ["The sky "]


class BegunAnew(ScriptedProvider):
    """A provider whose gateway begins each reply anew in mid-stream."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        yield ThinkingChunk("wrong")
        yield TextChunk("The sea ")
        yield ToolCallChunk(0, "c1", "bash", '{"command": "touch wrong')
        yield RestartChunk()
        yield TextChunk("The sky ")
        yield TextChunk("is blue.")
        yield FinishChunk("stop")


async def test_of_a_stream_begun_anew_the_second_reply_is_shown_and_stored(stage: Stage) -> None:
    runtime = stage.runtime(BegunAnew([]), sleep=no_sleep)
    events = await collect(runtime.submit("hi"))
    assert only(events, TurnFinished).outcome == "done"
    assert stored(runtime) == (["The sky is blue."], ["The sky is blue."])
    assert only(events, ReplyDiscarded).was_shown
    after = events[events.index(only(events, ReplyDiscarded)) :]
    assert "".join(event.text for event in of_kind(after, TextDelta)) == "The sky is blue."
    (message,) = [event.message for event in of_kind(events, ReplyFinished)]
    assert (message.thinking, message.tool_calls) == ("", ())
