"""A compaction that is interrupted, that the disk does not take, or that fails again and again."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import NoReturn

import pytest

from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.config import CompactionSettings, Settings
from agent_tui.errors import CompactionError
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    Notice,
    ToolFinished,
    ToolStarted,
    TotalsChanged,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import AssistantMessage, TextContent, ToolResultMessage
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.file.disk import DiskFile
from tests.support.compaction_ways import (
    CHEAP,
    SUMMARY,
    WAYS,
    Scene,
    Script,
    Way,
    ahead_of,
    assert_sound,
    assert_spending_is_counted,
    at_the_threshold,
    begun_ahead,
    by_hand,
    failing,
    name_of,
    prepared_ahead,
    talk,
    told,
    written_ahead,
)
from tests.support.runtime import Stage, collect, lines_of, of_kind, only

FINE = Reply(text="Never used: no model is broken.")
CANCELLED = "Compaction cancelled; nothing was changed."


async def abort_at(scene: Scene, number: int) -> tuple[list[AgentEvent], bool]:
    """Run what compacts and abort it at an event; whether it came to that many."""
    events: list[AgentEvent] = []
    async with aclosing(scene.begin()) as stream:
        async for event in stream:
            events.append(event)
            if len(events) == number:
                scene.runtime.abort()
    return events, len(events) >= number


def assert_all_or_nothing(scene: Scene, before: bytes, events: list[AgentEvent]) -> bool:
    """That what began to be compacted is compacted, soundly and once, or as it was."""
    finished, failed = of_kind(events, CompactionFinished), of_kind(events, CompactionFailed)
    assert len(finished) + len(failed) <= 1
    if of_kind(events, CompactionStarted):
        assert len(finished) + len(failed) == 1
    assert len(assert_sound(scene.runtime.conversation.log.path)) == len(finished)
    assert scene.log.path is not None
    data = scene.log.path.read_bytes()
    assert data.startswith(before)
    if failed:
        assert failed[0].message == CANCELLED
        assert len(list(scene.log.path.parent.glob("*.jsonl"))) == 1
    return bool(finished)


@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS, ids=name_of)
async def test_an_abort_at_any_event_leaves_all_or_nothing(stage: Stage, way: Way):
    outcomes: set[bool] = set()
    number, is_reached = 0, True
    while is_reached:
        number += 1 if number < 12 else 17
        scene = await way(stage, Script(FINE))
        before = lines_of(scene.runtime)
        events, is_reached = await abort_at(scene, number)
        outcomes.add(assert_all_or_nothing(scene, before, events))
        assert not scene.runtime.is_busy
        if number in (3, 12):
            assert await scene.is_usable()
        await scene.runtime.aclose()
        for path in stage.sessions.rglob("*.jsonl"):
            path.unlink()
    assert outcomes == {True, False} or way is prepared_ahead


def has_begun(event: AgentEvent) -> bool:
    return isinstance(event, CompactionProgress) and event.phase in (
        "summarising",
        "choosing what to keep",
    )


def is_halfway(event: AgentEvent) -> bool:
    return has_begun(event) and isinstance(event, CompactionProgress) and event.summary_chars > 200


def waits(event: AgentEvent) -> bool:
    return isinstance(event, CompactionProgress) and event.phase.startswith("waiting")


def is_paid(event: AgentEvent) -> bool:
    return isinstance(event, TotalsChanged)


MOMENTS: dict[str, tuple[Reply, Callable[[AgentEvent], bool]]] = {
    "before the first chunk": (Reply(text=SUMMARY), has_begun),
    "in the middle": (Reply(text=SUMMARY), is_halfway),
    "before it is tried again": (failing("rate_limit", retry_after_s=7.0), waits),
    "between the last chunk and the write": (Reply(text=SUMMARY), is_paid),
}


@pytest.mark.parametrize("way", [w for w in WAYS if w is not prepared_ahead], ids=name_of)
@pytest.mark.parametrize(("reply", "is_time"), MOMENTS.values(), ids=MOMENTS)
async def test_an_aborted_compaction_is_said_once_and_changes_nothing(
    stage: Stage, reply: Reply, is_time: Callable[[AgentEvent], bool], way: Way
):
    script = Script(reply, CHEAP)
    scene = await way(stage, script)
    scene.waits.is_endless = True
    events: list[AgentEvent] = []
    async with aclosing(scene.begin()) as stream:
        async for event in stream:
            events.append(event)
            if of_kind(events, CompactionStarted) and is_time(event):
                scene.runtime.abort()
    assert only(events, CompactionFailed).message == CANCELLED
    assert not of_kind(events, CompactionFinished)
    assert [end.outcome for end in of_kind(events, TurnFinished)] == ["aborted"] * (way != by_hand)
    assert len(of_kind(events, ToolFinished)) == len(of_kind(events, ToolStarted))
    assert assert_sound(scene.log.path) == []
    assert scene.runtime.conversation.log is scene.log
    assert len(script.summaries) == 1
    if is_time is is_paid:
        assert_spending_is_counted(scene)
    assert await scene.is_usable()


async def test_an_abort_while_a_summary_begun_earlier_is_finished_leaves_it_to_the_next_turn(
    stage: Stage,
):
    gate = asyncio.Event()
    script = Script(Reply(text=SUMMARY, gate=gate), CHEAP)
    scene = await begun_ahead(stage, script)
    before = lines_of(scene.runtime)
    events: list[AgentEvent] = []
    async with aclosing(scene.begin()) as stream:
        async for event in stream:
            events.append(event)
            if isinstance(event, CompactionProgress):
                scene.runtime.abort()
    assert only(events, CompactionFailed).message == CANCELLED
    assert lines_of(scene.runtime).startswith(before)
    assert assert_sound(scene.log.path) == []
    gate.set()
    events = await collect(scene.runtime.submit("and now?"))
    assert only(events, CompactionFinished).summarised_by == CHEAP.name
    assert len(script.summaries) == 1
    assert_spending_is_counted(scene)


async def test_an_answer_is_asked_for_again_if_more_than_a_fifth_of_the_target_came_since(
    stage: Stage,
):
    script = Script(FINE)
    scene = await prepared_ahead(stage, script)
    talk(scene.log, 2)
    assert only(await collect(scene.begin()), CompactionFinished).summary
    assert len(script.summaries) == 2


class Disk:
    """Takes `taken` bytes more once it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
        self.is_full = False
        self.taken = taken
        self.write = DiskFile.write
        monkeypatch.setattr(DiskFile, "write", lambda file, data: self.put(file, data))

    def put(self, file: DiskFile, data: bytes) -> None:
        if not self.is_full:
            self.write(file, data)
            return
        self.write(file, data[: self.taken])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("taken", [0, 60], ids=["nothing is written", "a piece is written"])
@pytest.mark.parametrize("way", WAYS, ids=name_of)
async def test_a_disk_that_has_no_room_for_the_compaction_is_named_and_nothing_is_lost(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, way: Way, taken: int
):
    disk = Disk(monkeypatch, taken)
    scene = await way(stage, Script(FINE))
    before = lines_of(scene.runtime)
    events: list[AgentEvent] = []
    async with aclosing(scene.begin()) as stream:
        async for event in stream:
            events.append(event)
            disk.is_full = disk.is_full or isinstance(event, CompactionStarted)
    assert disk.is_full
    (line,) = told(events)
    assert isinstance(line, CompactionFailed if way is by_hand else TurnFinished)
    assert "No space left on device. Free some space" in str(line)
    assert scene.runtime.conversation.log is scene.log
    assert lines_of(scene.runtime).startswith(before)
    assert_spending_is_counted(scene)
    disk.is_full = False
    is_torn = taken > 0 and way is not by_hand
    assert await scene.is_usable(torn_lines=int(is_torn))


async def fail(*_arguments: object) -> NoReturn:
    raise CompactionError("The summary would not be smaller.")


async def by_a_compaction_by_hand(scene: Scene) -> None:
    assert of_kind(await collect(scene.runtime.compact()), CompactionFinished)
    talk(scene.runtime.conversation.log, 19)


async def by_another_model(scene: Scene) -> None:
    scene.runtime.set_model(ModelRef("scripted/other"))


async def test_a_compaction_that_left_much_is_not_repeated_before_there_is_something_to_gain(
    stage: Stage,
):
    scene = await at_the_threshold(stage, Script(FINE))
    assert only(await collect(scene.begin()), CompactionFinished).summary
    low = CompactionSettings(model=CHEAP.name, background=False, trigger_at=0.01, warn_at=0.005)
    scene.runtime.use_settings(Settings(compaction=low))
    assert scene.runtime.conversation.level == "trigger"
    assert not told(await collect(scene.begin()))
    talk(scene.log, 4)
    assert only(await collect(scene.begin()), CompactionFinished).tokens_after > 0


async def test_a_compaction_that_failed_is_not_tried_again_before_there_is_something_to_gain(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TieredStrategy, "_summarise", fail)
    scene = await at_the_threshold(stage, Script(FINE))
    assert of_kind(await collect(scene.begin()), CompactionFailed)
    assert not told(await collect(scene.begin()))


@pytest.mark.parametrize("reset", [by_a_compaction_by_hand, by_another_model])
async def test_three_failures_stop_automatic_compaction_until_it_is_reset(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, reset: Callable[[Scene], Awaitable[None]]
):
    monkeypatch.setattr(TieredStrategy, "_summarise", fail)
    scene = await at_the_threshold(stage, Script(FINE))
    events = await collect(scene.begin())
    talk(scene.log, 5)
    for _ in range(4):
        events += await collect(scene.begin())
    assert len(of_kind(events, CompactionFailed)) == 3
    assert len([e for e in of_kind(events, Notice) if "after 3 failures" in e.text]) == 1
    assert [end.outcome for end in of_kind(events, TurnFinished)] == ["done"] * 5
    assert assert_sound(scene.log.path) == []
    monkeypatch.undo()
    assert not told(await collect(scene.begin()))
    await reset(scene)
    assert only(await collect(scene.runtime.submit("go on")), CompactionFinished).summary


async def test_a_compaction_by_hand_that_fails_does_not_reset_what_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TieredStrategy, "_summarise", fail)
    scene = await at_the_threshold(stage, Script(FINE))
    talk(scene.log, 4)
    for _ in range(3):
        await collect(scene.begin())
    failed = only(await collect(scene.runtime.compact()), CompactionFailed)
    assert "would not be smaller" in failed.message
    assert not told(await collect(scene.begin()))


async def test_where_no_summary_can_be_had_shortening_is_told_of_in_one_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TieredStrategy, "_summarise", fail)
    scene = Scene(stage, Script(FINE), 60_000)
    listing = call("c1", "bash", command="ls -R")
    scene.log.append(MessageEntry(message=AssistantMessage(content=(listing,))))
    output = "".join(f"folder/file-{number}.txt\n" for number in range(1_900))
    result = ToolResultMessage(
        tool_call_id="c1", tool_name="bash", content=(TextContent(text=output),)
    )
    scene.log.append(MessageEntry(message=result))
    talk(scene.log, 15)
    events = await collect(scene.begin())
    (finished,) = told(events)
    assert isinstance(finished, CompactionFinished)
    assert finished.summary == ""
    assert finished.note == "Shortened, but not summarised. The summary would not be smaller."
    assert scene.runtime.conversation.breaker.failures == 0


async def test_after_one_summary_the_next_is_prepared_too(stage: Stage):
    script = Script(FINE)
    scene = await prepared_ahead(stage, script)
    assert only(await collect(scene.begin()), CompactionFinished).summary
    assert not ahead_of(scene).is_there
    asked = len(script.summaries)
    for _ in range(20):
        talk(scene.log, 1)
        assert not told(await collect(scene.begin()))
        if ahead_of(scene).is_there:
            break
    assert await written_ahead(scene) is not None
    assert len(script.summaries) == asked + 1
