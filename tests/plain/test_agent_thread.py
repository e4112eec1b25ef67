import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.events import AgentEvent, Notice
from agent_tui.plain.agent_thread import AgentThread


async def number(value: int) -> int:
    if value < 0:
        raise AgentTuiError("Too small.")
    return value


def test_what_is_asked_for_runs_in_the_other_thread():
    with AgentThread() as agent:
        assert agent.wait(number(3)) == 3
        assert agent.call(threading.current_thread) is not threading.current_thread()
        with pytest.raises(AgentTuiError, match="Too small"):
            agent.wait(number(-1))


def test_a_waiting_that_is_stopped_is_an_interruption():
    with AgentThread() as agent:

        async def never() -> None:
            while True:
                agent.stop_waiting()
                await asyncio.sleep(0.001)

        with pytest.raises(KeyboardInterrupt):
            agent.wait(never())
        assert agent.wait(number(1)) == 1
        agent.stop_waiting()


def test_events_come_in_order_and_an_error_at_the_end():
    async def events() -> AsyncGenerator[AgentEvent, None]:
        yield Notice("info", "one")
        yield Notice("info", "two")
        raise AgentTuiError("It broke.")

    with AgentThread() as agent:
        watched = agent.watch(events)
        assert [next(watched), next(watched)] == [Notice("info", "one"), Notice("info", "two")]
        with pytest.raises(AgentTuiError, match="It broke"):
            next(watched)


def test_what_still_runs_is_ended_with_the_thread():
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with AgentThread() as agent:
        agent.begin(work())
        agent.call(lambda: None)
    assert ended.is_set()
