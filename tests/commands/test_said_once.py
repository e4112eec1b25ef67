"""Replies that come by several tries, on a screen that takes nothing back."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_tui.commands.event_lines import RepeatFilter
from agent_tui.events import (
    CutReplyDropped,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    TextDelta,
)
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import AssistantMessage
from tests.support.runtime import Stage, collect

pytestmark = pytest.mark.asyncio


async def no_sleep(_delay_s: float) -> None:
    pass


async def shown(tmp_path: Path, replies: Sequence[Reply]) -> list[str]:
    """What stands there after each try, of a turn and of one that goes on from it."""
    runtime = Stage(tmp_path).runtime([*replies, *replies], sleep=no_sleep)
    once, tries = RepeatFilter(), [""]
    for events in (await collect(runtime.submit("hi")), await collect(runtime.submit("again"))):
        for event in (said for one in events for said in once.of(one)):
            match event:
                case TextDelta(text):
                    tries[-1] += text
                case ReplyFinished() | ReplyDiscarded():
                    tries.append("")
                case CutReplyDropped():
                    pytest.fail("words were taken back")
                case _:
                    pass
    half = len(tries) // 2
    assert tries[:half] == tries[half:-1]
    return tries[:half]


def cut(text: str = "", thinking: str = "") -> Reply:
    return Reply(text=text, thinking=thinking, cut=True)


SKY = Reply(text="The sky is blue.")


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ((cut("The sky "), Reply(text="is blue.")), ["The sky ", "is blue."]),
        ((cut("The sky "), SKY), ["The sky ", "is blue."]),
        ((cut("The sky "), cut("The sky "), SKY), ["The sky ", "", "is blue."]),
        ((cut("The sky is "), cut("The "), SKY), ["The sky is ", "", "blue."]),
        ((cut("The "), cut("The sky "), SKY), ["The ", "sky ", "is blue."]),
        ((cut("The "), cut("sky "), SKY), ["The ", "sky ", "is blue."]),
        ((cut("The "), cut("sky "), Reply(text="sky is blue.")), ["The ", "sky ", "is blue."]),
        ((cut("The  sky\n"), SKY), ["The  sky\n", "is blue."]),
        ((cut("The sky "), Reply(text="The sea.")), ["The sky ", "The sea."]),
        ((cut("The sky "), Reply(text="The")), ["The sky ", "The"]),
        ((cut("The sky is blue."), SKY), ["The sky is blue.", ""]),
        ((cut("The sky "), cut("The sea "), SKY), ["The sky ", "The sea ", "The sky is blue."]),
        ((cut(thinking="Hm"), SKY), ["", "The sky is blue."]),
        ((cut("The sky "), cut(thinking="Hm"), SKY), ["The sky ", "", "is blue."]),
        ((cut("The sky "),) * 10, ["The sky ", *[""] * 9]),
    ],
)
async def test_no_words_are_said_twice_and_none_is_lost(
    tmp_path: Path, replies: Sequence[Reply], said: list[str]
) -> None:
    assert await shown(tmp_path, replies) == said


async def test_words_that_were_held_back_are_not_said_to_count_no_more() -> None:
    once = RepeatFilter()
    part = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "The sky"}],
            "stopReason": "error",
        }
    )
    events = [
        ReplyStarted("m"),
        TextDelta("The sky"),
        ReplyFinished("e1", part),
        ReplyStarted("m"),
        TextDelta("The"),
        ReplyDiscarded(was_shown=True),
    ]
    *_, last = (said for event in events for said in once.of(event))
    assert last == ReplyDiscarded(was_shown=False)
