"""A long task that nobody watches, over a service on a bad day."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.events import RetryScheduled, TurnFinished
from agent_tui.messages import ToolResultMessage
from agent_tui.providers.host import ProviderHost
from agent_tui.sessions.entries import MessageEntry
from tests.faults.conversation import Waits, model_at
from tests.support.openai_server import (
    Answer,
    Call,
    OpenAiServer,
    RecordedRequest,
    Reply,
    failure,
    rate_limited,
)
from tests.support.runtime import Stage, collect, of_kind, only

STEPS = 200
STORM = 7
"""Refusals in a row."""

FAULTS: dict[int, tuple[Answer, ...]] = {
    25: (rate_limited(retry_after="17"),),
    75: (Reply(text="I was about to", finish="length"),),
    125: (failure(503, "Service unavailable."),) * STORM,
}
"""What comes before the reply of a step, beside every tenth that breaks off."""


class BadDay:
    """A model that has each step run once; `trouble` counts what came instead of a reply."""

    def __init__(self) -> None:
        self._waiting = {step: iter(faults) for step, faults in FAULTS.items()}
        self.trouble = 0

    def answer(self, request: RecordedRequest) -> Answer:
        step = 1 + sum(message["role"] == "tool" for message in request.body["messages"])
        fault = next(self._faults(step), None)
        if fault is not None:
            self.trouble += 1
            return fault
        if step > STEPS:
            return Reply(text="All done.")
        command = f"echo {step} >> ran.txt"
        return Reply(tool_calls=(Call("bash", {"command": command}, id=f"c{step}"),))

    def _faults(self, step: int) -> Iterator[Answer]:
        if step % 10 == 0 and step not in self._waiting:
            self._waiting[step] = iter((Reply(text="Now I shall", ending="reset"),))
        return self._waiting.get(step, iter(()))


@pytest.mark.thorough
@pytest.mark.asyncio(loop_scope="session")
async def test_a_long_task_is_done_whole_and_once_whatever_the_service_does(
    tmp_path: Path, server: OpenAiServer, host: ProviderHost
) -> None:
    day, waits = BadDay(), Waits()
    stage = Stage(tmp_path)
    runtime = stage.runtime(
        host, model=model_at(server, "openai"), sleep=waits.sleep, is_interactive=False
    )
    server.play(*[day.answer] * (STEPS + 40))
    events = await collect(runtime.submit("Count."))
    assert only(events, TurnFinished).outcome == "done"
    ran = (stage.workspace / "ran.txt").read_text().split()
    assert ran == [str(step) for step in range(1, STEPS + 1)]
    messages = [
        entry.message
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, MessageEntry)
    ]
    results = [message for message in messages if isinstance(message, ToolResultMessage)]
    assert [result.tool_call_id for result in results] == [f"c{n}" for n in range(1, STEPS + 1)]
    assert not [result for result in results if result.is_error]
    assert messages[-1].text == "All done."
    breaks = STEPS // 10
    assert day.trouble == breaks + 1 + 1 + STORM
    assert len(of_kind(events, RetryScheduled)) == len(waits.delays_s) == breaks + 1 + STORM
    assert 17.0 in waits.delays_s
