import asyncio
from contextlib import aclosing

import pytest

from agent_tui.agent.activity import Activity
from agent_tui.events import Notice
from tests.support.patience import PATIENCE_S


def note(text):
    return Notice("info", text)


def text_of(event):
    assert isinstance(event, Notice)
    return event.text


async def collect(activity):
    async with aclosing(activity.events()) as events:
        return [text_of(event) async for event in events]


async def test_events_arrive_in_order_and_the_end_is_seen():
    async def work(emit):
        for text in "abc":
            emit(note(text))
            await asyncio.sleep(0)

    assert await collect(Activity(work)) == ["a", "b", "c"]


async def test_an_abort_lets_the_last_events_through():
    async def work(emit):
        emit(note("begun"))
        try:
            await asyncio.Event().wait()
        finally:
            emit(note("recorded"))

    activity = Activity(work)
    seen = []
    async with aclosing(activity.events()) as events:
        async for event in events:
            seen.append(text_of(event))
            activity.abort()
    assert seen == ["begun", "recorded"]


async def test_cancelling_the_watcher_waits_until_the_work_has_recorded_its_end():
    recorded = []

    async def work(emit):
        emit(note("begun"))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            recorded.append(True)

    activity = Activity(work)
    begun = asyncio.Event()

    async def watch():
        async with aclosing(activity.events()) as events:
            async for _ in events:
                begun.set()

    watcher = asyncio.create_task(watch())
    await begun.wait()
    watcher.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watcher
    assert recorded == [True]


async def test_a_second_abort_does_not_disturb_the_recording():
    async def work(emit):
        emit(note("begun"))
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            emit(note("recorded"))

    activity = Activity(work)
    seen = []
    async with aclosing(activity.events()) as events:
        async for event in events:
            seen.append(text_of(event))
            activity.abort()
            asyncio.get_running_loop().call_later(0.002, activity.abort)
    assert seen == ["begun", "recorded"]


async def test_an_error_of_the_work_reaches_the_watcher_after_its_events():
    async def work(emit):
        emit(note("begun"))
        raise ValueError("broken")

    seen = []

    async def watch():
        async with aclosing(Activity(work).events()) as events:
            async for event in events:
                seen.append(text_of(event))

    with pytest.raises(ValueError, match="broken"):
        await watch()
    assert seen == ["begun"]


async def test_an_abort_before_the_first_step_still_lets_the_work_record_its_end():
    async def work(emit):
        emit(note("begun"))
        try:
            await asyncio.Event().wait()
        finally:
            emit(note("recorded"))

    activity = Activity(work)
    watching = asyncio.create_task(collect(activity))
    await asyncio.sleep(0)  # the watcher has started the work's task, which has not run yet
    activity.abort()
    assert await asyncio.wait_for(watching, PATIENCE_S) == ["begun", "recorded"]
