"""What features do in a conversation: when parts are made, asked and closed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, CallAnswer, Host, Part
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
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import JsonObject, ToolCall, ToolSpec
from agent_tui.sessions.entries import CustomEntry, CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.replay.scope_entries import ScopeEnter, ScopePending, mark_entry
from agent_tui.tools.base import Ability, ToolContext, ToolOutput
from agent_tui.tools.compact import CompactTool
from agent_tui.tools.other_tools import OTHER_TOOL
from tests.support.runtime import Script, Stage, collect, of_kind


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
    return stage.runtime(script, features=FEATURES)


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


class Last(Part):
    """Has a last step to take, which new work makes needless."""

    steps: ClassVar[list[str]] = []
    goes_on: ClassVar[bool] = False

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.waits = False

    @property
    def must_finish(self) -> bool:
        return self.waits

    async def finish(self, emit: Emit) -> bool:
        self.waits = False
        self.steps.append("finished")
        if not self.goes_on:
            emit(TurnFinished("done"))
        return self.goes_on

    def before_work(self, emit: Emit) -> None:
        self.waits = False
        self.steps.append("new work")

    def opening_notices(self) -> Sequence[Notice]:
        return (Notice("warning", "A step is left."),)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_last_step_comes_before_other_unfinished_work(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, goes_on: bool
):
    monkeypatch.setattr(Last, "steps", [])
    monkeypatch.setattr(Last, "goes_on", goes_on)
    features = (*FEATURES, Feature("Last", part=f"{__name__}:Last"))
    runtime = stage.runtime([Reply(text="One.")] * 3, features=features)
    diary, last = runtime.part(Diary), runtime.part(Last)
    diary.has_begun = last.waits = True
    assert runtime.is_unfinished
    events = await collect(runtime.continue_turn())
    assert diary.driven == ["(continued)"] * goes_on
    assert Last.steps == ["finished"]
    assert events[-1] == TurnFinished("done")
    last.waits = True
    await collect(runtime.submit("Something else."))
    assert Last.steps == ["finished", "new work"]
    assert diary.driven[-1] == "Something else."


async def test_a_part_says_what_is_unfinished_in_a_session_that_is_opened(stage: Stage):
    earlier = stage.runtime([Reply(text="One.")])
    await collect(earlier.submit("Hello."))
    await earlier.aclose()
    features = [Feature("Last", part=f"{__name__}:Last")]
    runtime = stage.runtime([], features=features)
    events = await runtime.sessions.open(str(earlier.conversation.log.path))
    assert Notice("warning", "A step is left.") in events


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


class Narrow(Part):
    """Offers no tool that writes, nor any in a small window; knows a way back."""

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        return [spec for spec in specs if spec.name != "write"] if window > 20_000 else []

    async def way_back(self, folder: Path, session: str) -> str:
        return f"{folder.name} is back for {session}"


class Late(Narrow):
    """Is asked after it, and is never heard about the way."""

    def offered(
        self, specs: Sequence[ToolSpec], window: int, *, is_planning: bool
    ) -> Sequence[ToolSpec]:
        assert "write" not in [spec.name for spec in specs]
        return [spec.model_copy(update={"description": "."}) for spec in specs]

    async def way_back(self, folder: Path, session: str) -> str:
        return "unheard"


async def test_parts_say_in_their_order_what_the_model_is_offered(stage: Stage):
    features = [Feature(one.__name__, part=f"{__name__}:{one.__name__}") for one in (Narrow, Late)]
    runtime = stage.runtime([Reply(text="One.")], features=features)
    await collect(runtime.submit("Hello."))
    (request,) = stage.model.requests
    assert "edit" in [tool.name for tool in request.tools]
    assert "write" not in [tool.name for tool in request.tools]
    described = {tool.description for tool in request.tools if tool.name != OTHER_TOOL}
    assert described == {"."}
    small = stage.runtime([Reply(text="One.")], features=features, window=20_000)
    assert small.conversation.prompt.tools == ()


async def test_the_first_part_that_knows_says_how_to_return(stage: Stage):
    features = [Feature(one.__name__, part=f"{__name__}:{one.__name__}") for one in (Narrow, Late)]
    sessions = stage.runtime([], features=[FEATURES[0], *features]).sessions
    assert await sessions.how_to_return(Path("/x/fix"), "1a") == "fix is back for 1a"
    assert await stage.runtime([], features=FEATURES).sessions.how_to_return(Path("/x"), "1") == ""


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
    later = stage.runtime([Reply(text="Two.")], features=())
    await later.sessions.open(str(path))
    events = await collect(later.submit("Go on."))
    assert of_kind(events, TurnFinished) == [TurnFinished("done")]
    await later.aclose()
    assert path.read_bytes().startswith(before)


async def test_without_loops_the_summary_of_one_still_stands_for_its_rounds(stage: Stage):
    runtime = stage.runtime([Reply(text="I looked at a.py."), Reply(text="And at b.py.")])
    log = runtime.conversation.log
    begun = log.append(mark_entry(ScopeEnter(kind="loop", label="loop 2x: look")))
    for name in ("a.py", "b.py"):
        await collect(runtime.submit(f"Look at {name}."))
    rounds = tuple(entry.id for entry in log.path_entries() if isinstance(entry, MessageEntry))
    ended = ScopePending(scope=begun.id, kind="loop", label="loop 2x: look", entries=rounds)
    log.append(mark_entry(ended))
    log.append(mark_entry(ended.exit_with("Both are fine.")))
    log.append(mark_entry(ended))
    await runtime.aclose()
    later = stage.runtime([Reply(text="Yes.")], features=())
    events = await later.sessions.open(str(log.path))
    assert not [one for one in of_kind([*events], Notice) if "loop" in one.text]
    assert not later.is_unfinished
    await collect(later.submit("Are they?"))
    (request,) = stage.model.requests
    said = "\n".join(message.text for message in request.messages)
    assert "Both are fine." in said
    assert "Look at a.py." not in said


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
    script = [looks, Reply(text="Sun.")]
    await collect(stage.runtime(script, features=[feature]).submit("Go."))
    assert [type(one) for one in found] == [Station]
    without = stage.runtime(script, features=())
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
    return stage.runtime(script, features=features)


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
