import asyncio
import threading

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.features.plain.agent_thread import AgentThread


async def number(value: int) -> int:
    if value < 0:
        raise AgentTuiError("Too small.")
    return value


async def thread() -> threading.Thread:
    return threading.current_thread()


def test_what_is_asked_for_runs_in_the_other_thread():
    with AgentThread() as agent:
        assert agent.wait(number(3)) == 3
        assert agent.wait(thread()) is not threading.current_thread()
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


def test_what_is_handed_to_the_main_thread_is_done_there_in_order_before_the_result():
    done: list[tuple[int, threading.Thread]] = []

    with AgentThread() as agent:

        def note(number: int) -> None:
            done.append((number, threading.current_thread()))

        async def work() -> int:
            agent.in_main(lambda: note(1))
            agent.in_main(lambda: note(2))
            return 3

        assert agent.wait(work()) == 3
        agent.in_main(lambda: note(4))
    here = threading.current_thread()
    assert done == [(1, here), (2, here), (4, here)]


def test_a_question_is_answered_in_the_main_thread_and_its_error_is_the_askers():
    def refuse() -> int:
        raise AgentTuiError("No.")

    async def ask(agent: AgentThread) -> tuple[threading.Thread, str]:
        asked_in = await agent.call_in_main(threading.current_thread)
        try:
            await agent.call_in_main(refuse)
        except AgentTuiError as error:
            return asked_in, str(error)
        raise AssertionError

    with AgentThread() as agent:
        assert agent.wait(ask(agent)) == (threading.current_thread(), "No.")


def test_what_still_runs_is_ended_with_the_thread():
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with AgentThread() as agent:
        agent.begin(work())
        agent.wait(number(1))
    assert ended.is_set()
