"""What a feature's part raises ends nothing: it is told once, and the part is left out."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, ClassVar, cast

import pytest

from agent_tui.agent.activity import Emit
from agent_tui.agent.guarded_part import part_itself
from agent_tui.agent.part import Answer, Host, Part
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.errors import SessionError
from agent_tui.events import CompactionFinished, Notice, TurnFinished
from agent_tui.feature import Feature
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import ToolSpec
from agent_tui.providers.base import ProviderError
from agent_tui.sessions.entries import CustomMessageEntry
from tests.support.rows import each_row
from tests.support.runtime import Script, Stage, collect, of_kind

IN_ITS_WORK = ("drive", "finish")
MOMENTS = [one for one in vars(Part) if one not in IN_ITS_WORK and not one.startswith("_")]
FAULTS: list[BaseException] = []
TOLD = (
    "The feature torn failed at {moment}: ValueError: no ink. It is left out of this conversation, "
    "which continues without it."
)


class Torn(Part):
    """Raises at one moment."""

    at: ClassVar[str] = ""
    fault: ClassVar[BaseException] = ValueError("no ink")

    def __init__(self, host: Host) -> None:
        if self.at == "__init__":
            raise self.fault
        super().__init__(host)

    def __getattribute__(self, name: str) -> Any:
        if name == type(self).at:
            raise type(self).fault
        return super().__getattribute__(name)


class Silent(Part):
    """Forgets to return anything."""

    async def before_message(self, text: str, emit: Emit) -> Answer:
        return cast(Answer, None)


class Diary(Part):
    """Comes after the one that fails."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.written: list[str] = []

    async def before_message(self, text: str, emit: Emit) -> Answer:
        self.written.append(text)
        return Answer()


class Waits(Part):
    """Waits until it is cancelled."""

    async def before_message(self, text: str, emit: Emit) -> Answer:
        emit(Notice("info", "At the door."))
        await asyncio.Event().wait()
        return Answer()


class Worker(Part):
    """Fails in the middle of its own work."""

    has_begun: ClassVar[bool] = False

    @property
    def is_open(self) -> bool:
        return True

    async def drive(self, message: NewMessage | None, emit: Emit) -> None:
        if self.has_begun:
            self.host.conversation.log.append(
                CustomMessageEntry(custom_type="worker", content="Begun.")
            )
        raise ValueError("no tools")


class Finisher(Part):
    """Has something to finish, and cannot."""

    @property
    def must_finish(self) -> bool:
        return True

    async def finish(self, emit: Emit) -> bool:
        raise ValueError("no end")


def runtime_with(stage: Stage, script: Script, *kinds: type[Part]) -> AgentRuntime:
    FAULTS.clear()
    features = [Feature(one.__name__.lower(), part=f"{__name__}:{one.__name__}") for one in kinds]
    return stage.runtime(script, features=features, report_fault=FAULTS.append)


def told_of_features(events: list[Any]) -> list[str]:
    return [event.text for event in of_kind(events, Notice) if "feature" in event.text]


async def go_through_all_moments(runtime: AgentRuntime) -> list[Any]:
    await runtime.sessions.start_new()
    events = await collect(runtime.submit("Write it down."))
    events += await collect(runtime.continue_turn())
    for part in runtime.parts:
        await part.questions()
        part.opening_notices()
        part.standing()
        part.for_helper(runtime.conversation)
        await part.way_back(runtime.conversation.cwd, runtime.conversation.log.header.id)
        part.shown(runtime.conversation.log.entries[0])
        part.wake()
        limit = ProviderError("rate_limit", "no more")
        await part.at_limit(limit, runtime.conversation.model, events.append)
    events += await collect(runtime.submit("Write more."))
    events += await collect(runtime.compact())
    assert of_kind(events, CompactionFinished)
    events += await collect(runtime.submit("And here."))
    assert of_kind(events, TurnFinished) == [TurnFinished("done")] * 4
    await runtime.aclose()
    return events


@each_row("moment", MOMENTS)
async def test_a_fault_at_any_moment_is_told_once_and_ends_nothing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, moment: str
):
    stage = Stage(tmp_path_factory.mktemp("stage"))
    write = Reply(tool_calls=(call("c1", "write", path="a.txt", content="Dear diary"),))
    script = [write, *[Reply(text="I looked at it. " * 200)] * 8]
    monkeypatch.setattr(Torn, "at", moment)
    runtime = runtime_with(stage, script, Torn, Diary)
    events = await go_through_all_moments(runtime)
    assert told_of_features(events) == [TOLD.format(moment=moment)] * (moment != "close")
    assert [Torn.fault] == FAULTS
    assert (stage.workspace / "a.txt").read_text() == "Dear diary"
    assert runtime.part(Diary).written[-1] == "And here."


async def test_a_part_that_cannot_be_made_is_left_out(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Torn, "at", "__init__")
    runtime = runtime_with(stage, [Reply(text="One.")], Torn, Diary)
    events = await collect(runtime.submit("Hello."))
    assert told_of_features(events) == [TOLD.format(moment="its start")]
    assert [type(part_itself(part)) for part in runtime.parts] == [Diary]


async def test_a_fault_in_another_thread_is_told_with_the_next_activity(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Torn, "at", "offered")
    runtime = runtime_with(stage, [Reply(text="One.")], Torn, Diary)

    async def count(_emit: Emit) -> None:
        await asyncio.to_thread(lambda: runtime.conversation.prompt)

    assert not told_of_features(await collect(runtime.carry_out(count)))
    events = await collect(runtime.submit("Hello."))
    assert told_of_features(events) == [TOLD.format(moment="offered")]


async def test_a_part_that_failed_is_not_asked_again(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    runtime = runtime_with(stage, [Reply(text="One."), Reply(text="Two.")], Torn, Diary)
    monkeypatch.setattr(Torn, "at", "before_message")
    assert told_of_features(await collect(runtime.submit("Hello.")))
    monkeypatch.setattr(Torn, "at", "continues")
    assert not told_of_features(await collect(runtime.submit("Hello again.")))
    assert len(FAULTS) == 1


async def test_an_answer_of_another_kind_is_a_fault(stage: Stage):
    runtime = runtime_with(stage, [Reply(text="One.")], Silent, Diary)
    events = await collect(runtime.submit("Hello."))
    (told,) = told_of_features(events)
    assert "failed at before_message: TypeError: it returned NoneType, not Answer." in told
    assert runtime.part(Diary).written == ["Hello."]


@pytest.mark.parametrize("has_begun", [False, True])
async def test_work_that_fails_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, has_begun: bool
):
    monkeypatch.setattr(Worker, "has_begun", has_begun)
    runtime = runtime_with(stage, [Reply(text="One."), Reply(text="Two.")], Worker, Diary)
    events = await collect(runtime.submit("Hello."))
    assert (
        "The feature worker failed at drive: ValueError: no tools." in told_of_features(events)[0]
    )
    left = TurnFinished("error", "The work of a feature ended without a result.", can_continue=True)
    assert events[-1] == (left if has_begun else TurnFinished("done"))
    assert not runtime.is_unfinished
    assert runtime.part(Diary).written == ([] if has_begun else ["Hello."])
    assert (await collect(runtime.submit("Again.")))[-1] == TurnFinished("done")


async def test_what_cannot_be_finished_is_left(stage: Stage):
    runtime = runtime_with(stage, [Reply(text="One."), Reply(text="Two.")], Finisher)
    await collect(runtime.submit("Hello."))
    events = await collect(runtime.continue_turn())
    (told,) = told_of_features(events)
    assert told.startswith("The feature finisher failed at finish: ValueError: no end.")
    assert events[-1] == TurnFinished("done")
    assert not runtime.is_unfinished


async def test_a_session_that_cannot_be_written_ends_the_turn_as_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    runtime = runtime_with(stage, [Reply(text="One.")], Torn)
    monkeypatch.setattr(Torn, "at", "before_message")
    monkeypatch.setattr(Torn, "fault", SessionError("The disk is full."))
    events = await collect(runtime.submit("Hello."))
    assert events[-1] == TurnFinished("error", "The disk is full.")
    assert FAULTS == []


async def test_an_abort_passes_through_a_part(stage: Stage):
    runtime = runtime_with(stage, [Reply(text="One.")], Waits)
    events: list[Any] = []
    async with aclosing(runtime.submit("Hello.")) as running:
        async for event in running:
            events.append(event)
            if isinstance(event, Notice):
                runtime.abort()
    assert events == [Notice("info", "At the door."), TurnFinished("aborted", can_continue=True)]
    assert FAULTS == []


class Lists(Part):
    """Returns a list, as the type of the method allows."""

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        return [*specs]


class Tuples(Lists):
    """Returns a tuple."""

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        return (*specs,)


async def test_parts_may_return_any_sequence(stage: Stage):
    runtime = runtime_with(stage, [Reply(text="One.")], Lists, Tuples)
    assert not told_of_features(await collect(runtime.submit("Hello.")))
