"""What features do in a conversation: when parts are made, asked and closed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, CallAnswer, Part
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.events import (
    CompactionFailed,
    CompactionReason,
    Notice,
    ToolFinished,
    TurnFinished,
)
from agent_tui.feature import Feature
from agent_tui.messages import JsonObject, ToolCall
from agent_tui.providers.scripted.provider import Reply, call
from agent_tui.sessions.entries import CustomEntry, CustomMessageEntry, Entry
from agent_tui.tools.base import Ability, ToolContext, ToolOutput
from agent_tui.tools.compact import CompactTool
from tests.support.runtime import MODEL, Script, Stage, collect, of_kind


class Diary(Part):
    """Takes the messages itself while it is open."""

    closed: ClassVar[list[str]] = []

    def __init__(self, host) -> None:
        super().__init__(host)
        self.has_begun = False
        self.driven: list[str] = []

    @property
    def is_open(self) -> bool:
        return self.has_begun

    async def drive(self, message: NewMessage | None, emit: Emit) -> None:
        self.driven.append("(continued)" if message is None else message.text)
        await self.host.make_turn(emit).run(message)

    @staticmethod
    def carried(path: Sequence[Entry]) -> Sequence[Entry]:
        return [CustomEntry(custom_type="diary", data=len(path))]

    async def close(self) -> None:
        self.closed.append(self.host.conversation.log.header.id)


class Second(Diary):
    """Is never asked while the first is open."""


FEATURES = tuple(
    Feature(kind.__name__, part=f"{__name__}:{kind.__name__}") for kind in (Diary, Second)
)


def runtime_with_parts(stage: Stage, script: Script) -> AgentRuntime:
    services = replace(stage.runtime(script).services, features=FEATURES)
    return AgentRuntime(services, MODEL, stage.workspace, "full")


async def test_the_first_open_part_takes_messages_and_continues_the_work(stage: Stage):
    runtime = runtime_with_parts(stage, [Reply(text="One."), Reply(text="Two."), Reply(text="3.")])
    first, second = runtime.part(Diary), runtime.part(Second)
    await collect(runtime.submit("not mine"))
    first.has_begun = second.has_begun = True
    assert runtime.is_unfinished
    await collect(runtime.submit("mine"))
    events = await collect(runtime.continue_turn())
    assert first.driven == ["mine", "(continued)"]
    assert second.driven == []
    assert events[-1] == TurnFinished("done")


async def test_work_of_a_part_is_an_activity_of_the_conversation(stage: Stage):
    runtime = runtime_with_parts(stage, [])

    async def work(emit: Emit) -> None:
        assert runtime.is_busy
        emit(Notice("info", "At work."))
        emit(TurnFinished("done"))

    events = await collect(runtime.carry_out(work))
    assert events == [Notice("info", "At work."), TurnFinished("done")]


async def test_each_session_has_its_own_parts_but_a_compaction_takes_them_along(stage: Stage):
    runtime = runtime_with_parts(stage, [Reply(text="I looked at it. " * 200)] * 5)
    for text in ("Never use tabs.", "Look at it.", "And now?"):
        await collect(runtime.submit(text))
    part = runtime.part(Diary)
    before = runtime.conversation
    await collect(runtime.compact())
    assert runtime.part(Diary) is part
    assert part.host.conversation is runtime.conversation is not before
    carried = [e for e in runtime.conversation.log.entries if isinstance(e, CustomEntry)]
    assert [entry.custom_type for entry in carried] == ["diary", "diary"]
    await runtime.sessions.start_new()
    assert runtime.part(Diary) is not part


async def test_parts_are_closed_with_the_program(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Diary, "closed", [])
    runtime = runtime_with_parts(stage, [])
    present = runtime.conversation.log.header.id
    await runtime.aclose()
    assert Diary.closed == [present, present]


async def test_a_conversation_does_not_have_the_part_of_a_missing_feature(stage: Stage):
    runtime = stage.runtime([])
    with pytest.raises(LookupError, match="Diary"):
        runtime.part(Diary)


async def test_entries_of_a_deleted_feature_are_kept_and_passed_over(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = stage.runtime([Reply(text="One.")])
    await collect(runtime.submit("Hello."))
    goal = {"text": "There is an a.txt.", "checks": ["test -f a.txt"]}
    runtime.conversation.log.append(CustomEntry(custom_type="goal", data=goal))
    path = runtime.conversation.log.path
    assert path is not None
    await runtime.aclose()
    before = path.read_bytes()
    without = replace(stage.runtime([Reply(text="Two.")]).services, features=())
    later = AgentRuntime(without, MODEL, stage.workspace, "full")
    await later.sessions.open(str(path))
    events = await collect(later.submit("Go on."))
    assert of_kind(events, TurnFinished) == [TurnFinished("done")]
    await later.aclose()
    assert path.read_bytes().startswith(before)


class Weather(Ability):
    unavailable: ClassVar[str] = "The weather is not known here."


class Station(Weather):
    pass


class Forecast(Part):
    def abilities(self, emit: Emit) -> Sequence[Ability]:
        return (Station(),)


async def test_tools_ask_for_what_a_part_offers_by_its_class(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    found: list[Weather] = []
    feature = Feature("forecast", part=f"{__name__}:Forecast")
    looks = Reply(tool_calls=(call("c1", "compact"),))

    async def look(_tool: CompactTool, _arguments: object, context: ToolContext) -> ToolOutput:
        found.append(context.use(Weather))
        return ToolOutput("It is sunny.")

    monkeypatch.setattr(CompactTool, "run", look)
    services = replace(stage.runtime([looks, Reply(text="Sun.")] * 2).services, features=[feature])
    await collect(AgentRuntime(services, MODEL, stage.workspace, "full").submit("Go."))
    assert [type(one) for one in found] == [Station]
    without = AgentRuntime(replace(services, features=()), MODEL, stage.workspace, "full")
    (finished,) = of_kind(await collect(without.submit("Go.")), ToolFinished)
    assert finished.message.is_error
    assert finished.message.text == "The weather is not known here."


class Speaks(Part):
    """Says its name at each moment, and refuses what names it."""

    @property
    def name(self) -> str:
        return type(self).__name__

    async def before_message(self, text: str, emit: Emit) -> Answer:
        if self.name in text:
            return Answer("I was named.", self.name.lower())
        return Answer(added=[CustomMessageEntry(custom_type="said", content=self.name)])

    async def before_call(self, call: ToolCall, paths: Sequence[Path], emit: Emit) -> CallAnswer:
        seen = str(call.arguments["content"])
        if self.name in str(call.arguments["path"]):
            return CallAnswer("I was named.", self.name.lower())
        arguments: JsonObject = {**call.arguments, "content": f"{seen} {self.name}"}
        return CallAnswer(by=self.name.lower(), arguments=arguments, remark=f"{self.name} saw it.")

    async def after_call(
        self, call: ToolCall, paths: Sequence[Path], output: ToolOutput, emit: Emit
    ) -> ToolOutput:
        return replace(output, for_model=f"{output.for_model}\n{self.name} is done.")

    async def continues(
        self, last_reply: str, times_before: int, most_times: int, emit: Emit
    ) -> bool:
        emit(Notice("info", f"{self.name} was asked."))
        return times_before == 0

    async def before_compaction(self, reason: CompactionReason, focus: str, emit: Emit) -> Answer:
        return Answer("I was named." if self.name in focus else "", self.name.lower())


class Anna(Speaks):
    pass


class Bert(Speaks):
    pass


def speaking(stage: Stage, script: Script) -> AgentRuntime:
    features = [Feature(name, part=f"{__name__}:{name}") for name in ("Anna", "Bert")]
    services = replace(stage.runtime(script).services, features=features)
    return AgentRuntime(services, MODEL, stage.workspace, "full")


async def test_the_first_refusal_of_a_message_counts_and_texts_are_added_in_order(stage: Stage):
    runtime = speaking(stage, [Reply(text="Yes."), Reply(text="Really.")])
    refused = of_kind(await collect(runtime.submit("Tell Bert and Anna.")), TurnFinished)
    assert refused == [TurnFinished("error", "Anna refused the message: I was named.")]
    assert runtime.conversation.log.path_entries() == ()
    events = await collect(runtime.submit("Go."))
    entries = runtime.conversation.log.path_entries()
    said = [entry.text for entry in entries if isinstance(entry, CustomMessageEntry)]
    assert said == ["Anna", "Bert"]
    asked = [event.text for event in of_kind(events, Notice) if "was asked" in event.text]
    assert asked == ["Anna was asked.", "Anna was asked.", "Bert was asked."]


async def test_parts_see_a_call_as_those_before_them_changed_it(stage: Stage):
    write = call("c1", "write", path="a.txt", content="Me,")
    named = call("c2", "write", path="Bert.txt", content="Me,")
    script = [Reply(tool_calls=(write, named)), *[Reply(text="Done.")] * 2]
    events = await collect(speaking(stage, script).submit("Go."))
    assert (stage.workspace / "a.txt").read_text() == "Me, Anna Bert"
    written, refused = (event.message.text for event in of_kind(events, ToolFinished))
    remarks = [line for line in written.splitlines() if line.startswith(("Anna", "Bert", "["))]
    assert [line.partition(" changed")[0] for line in remarks] == [
        *("Anna saw it.", "[anna", "Bert saw it.", "[bert"),
        *("Anna is done.", "Bert is done."),
    ]
    assert refused == "Not run: bert refused this call: I was named."
    assert not (stage.workspace / "Bert.txt").exists()


async def test_a_part_can_refuse_a_compaction(stage: Stage):
    runtime = speaking(stage, [Reply(text="I looked at it. " * 200)] * 5)
    for text in ("Never use tabs.", "Look at it."):
        await collect(runtime.submit(text))
    before = runtime.conversation.log.path_entries()
    failed = of_kind(await collect(runtime.compact("what Bert said")), CompactionFailed)
    assert failed == [CompactionFailed("Not compacted: bert refused: I was named.")]
    assert runtime.conversation.log.path_entries() == before
