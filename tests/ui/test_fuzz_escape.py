"""Esc at every moment of a turn leaves a screen that works and a session that is whole."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.events import (
    AgentEvent,
    ApprovalRequested,
    CompactionFinished,
    CompactionStarted,
    ReplyDiscarded,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutputDelta,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, TextContent, UserMessage
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.transcript.blocks import AssistantBlock
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.ui.fuzzing import Fuzzed, fuzzed_app

LOG = "".join(f"line {n}: nothing of note happened here\n" for n in range(500))
ALL_KINDS = {
    ThinkingDelta,
    TextDelta,
    ApprovalRequested,
    ToolOutputDelta,
    ToolFinished,
    CompactionStarted,
    CompactionFinished,
    RetryScheduled,
    ReplyDiscarded,
    TurnFinished,
}


class Turn:
    """One turn with everything in it: thinking, text, a question, a summary, another attempt."""

    def __init__(self) -> None:
        self.answered = 0

    def begin(self) -> None:
        self.answered = 0

    def __call__(self, request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        self.answered += 1
        match self.answered:
            case 1:
                look = call("c1", "bash", command="touch made.txt; cat log.txt")
                return Reply(
                    text="I look at the log.", thinking="It may be long.", tool_calls=(look,)
                )
            case 2:
                return Reply(error=ProviderError("network", "The connection was lost."))
            case _:
                return Reply(text="Nothing of note happened.")


def talk_before(ui: Fuzzed) -> None:
    """Fill most of the window, so that the turn has to make room."""
    for part in range(4):
        question, answer = f"{part}: {LOG[:6_000]}", f"Noted, {part}."
        ui.runtime.conversation.log.append(MessageEntry(message=UserMessage(content=question)))
        reply = AssistantMessage(content=(TextContent(text=answer),))
        ui.runtime.conversation.log.append(MessageEntry(message=reply))


class Moments:
    """Hands a turn's events on and presses Esc after the one that was asked for."""

    def __init__(self, ui: Fuzzed, turn: Turn) -> None:
        self._ui, self._turn = ui, turn
        self._submit = ui.runtime.submit
        self.press_after = 0
        self.seen: list[AgentEvent] = []
        ui.runtime.submit = self._watched

    async def _watched(self, text: str, images=(), typed=None) -> AsyncGenerator[AgentEvent, None]:
        self.seen = []
        self._turn.begin()
        async with aclosing(self._submit(text, images, typed)) as stream:
            async for event in stream:
                self.seen.append(event)
                yield event  # shown when the next one is asked for
                if len(self.seen) == self.press_after:
                    await self._ui.pilot.press("escape")
                elif isinstance(event, ApprovalRequested):
                    await self._say_yes()

    async def _say_yes(self) -> None:
        panel = self._ui.app.view.widgets.approval
        await self._ui.until(lambda: panel.is_armed, "the question takes no key")
        await self._ui.pilot.press("y")


def last_of_each_kind(seen: list[AgentEvent]) -> list[int]:
    """The moments that differ most, counted from 1."""
    return sorted({type(event): place for place, event in enumerate(seen, start=1)}.values())


async def stop_after(ui: Fuzzed, moments: Moments, press_after: int) -> TurnFinished:
    """One turn in a new session, stopped after so many events; 0 lets it come to its end."""
    await ui.send("/new")
    await ui.pilot.pause()
    talk_before(ui)
    moments.press_after = press_after
    await ui.send(f"What is in the log? {press_after}")
    await ui.until(lambda: moments.seen, "nothing was sent")
    await ui.until(lambda: not ui.app.controller.turns.is_running, "the turn does not end")
    await ui.check()
    last = moments.seen[-1]
    assert isinstance(last, TurnFinished), moments.seen
    replies = [b for b in ui.app.view.widgets.transcript.blocks if isinstance(b, AssistantBlock)]
    assert all(block.is_finished for block in replies)
    return last


@pytest.mark.thorough
@pytest.mark.parametrize(
    "choose",
    [
        last_of_each_kind,
        pytest.param(lambda seen: range(1, len(seen) + 1), marks=pytest.mark.slow),
    ],
    ids=["each-kind", "every-event"],
)
async def test_escape_at_every_moment_of_a_turn_leaves_a_working_screen(tmp_path: Path, choose):
    stage, turn = Stage(tmp_path), Turn()
    (stage.workspace / "log.txt").write_text(LOG, encoding="utf-8")
    async with fuzzed_app(stage, turn, size=(50, 14)) as ui:
        moments = Moments(ui, turn)
        assert (await stop_after(ui, moments, 0)).outcome == "done"
        missing = ALL_KINDS - {type(event) for event in moments.seen}
        assert not missing
        ended = {(await stop_after(ui, moments, place)).outcome for place in choose(moments.seen)}
        assert ended == {"aborted", "done"}  # done: it came after the last word
