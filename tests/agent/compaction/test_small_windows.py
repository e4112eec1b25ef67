import dataclasses
import random
from itertools import pairwise

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    ContextChanged,
    Notice,
    ReplyStarted,
    ToolFinished,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import ExactCounter
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only, summary_or
from tests.support.trajectories import trajectory

COUNTER = ExactCounter()
TALK = Reply(text="It is as you say. " * 20)
WEAK_SUMMARY = "I looked at the files. " * 20


def size_of(request: ModelRequest) -> int:
    """What a server counts whose tokens are ours."""
    prompt = COUNTER.count_text(request.system) + COUNTER.count_tools(request.tools)
    return prompt + COUNTER.count_messages(request.messages)


class StrictServer:
    """Refuses what is larger than its window, and counts.

    `work` holds the tool calls to make; when it is empty the turn ends.
    """

    def __init__(self, window: int, *, summary: str = GOOD_SUMMARY, seed: int = 1) -> None:
        self.window = window
        self.summary = summary
        self.random = random.Random(seed)
        self.work: list[str] = []
        self.refused = 0
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: ModelRequest) -> Reply:
        size = size_of(request)
        if size > self.window:
            self.refused += 1
            return Reply(error=ProviderError("context_overflow", f"{size} tokens are too many."))
        if request.purpose == "summary":
            return self._counted(Reply(text=self.summary), size)
        if not self.work:
            return self._counted(Reply(text="It is done. " * self.random.choice([1, 40])), size)
        calls = getattr(self, self.work.pop())(len(self.provider.requests))
        return self._counted(Reply(text="", tool_calls=calls), size)

    def read(self, number: int):
        return (call(f"c{number}", "read", path=f"f{self.random.randrange(4)}.py"),)

    def bash(self, number: int):
        return (call(f"c{number}", "bash", command=f"seq {self.random.choice([5, 3_000])}"),)

    def read_many(self, number: int):
        return tuple(call(f"c{number}-{n}", "read", path=f"f{n}.py") for n in range(4))

    def write(self, number: int):
        return (call(f"c{number}", "write", path=f"n{number}.py", content="x = 1\n" * 90),)

    def _counted(self, reply: Reply, size: int) -> Reply:
        written = COUNTER.count_text(reply.text)
        written += sum(COUNTER.count_text(c.model_dump_json()) for c in reply.tool_calls)
        usage = Usage(input=size, output=written, total_tokens=size + written)
        return dataclasses.replace(reply, usage=usage)


def turns_of(server: StrictServer) -> list[ModelRequest]:
    return [r for r in server.provider.requests if r.purpose == "turn"]


async def work_through(runtime: AgentRuntime, server: StrictServer, turns: int) -> list[AgentEvent]:
    """A session of many turns with tools; every turn must come to its end."""
    kinds = ["read", "bash", "read_many", "write"]
    events: list[AgentEvent] = []
    for turn in range(turns):
        server.work = [server.random.choice(kinds) for _ in range(server.random.randrange(4))]
        planned = len(server.work) + 1
        before = len(turns_of(server))
        text = "please look at it " * server.random.choice([1, 40])
        seen = await collect(runtime.submit(text if turn else f"never touch the lock file. {text}"))
        end = only(seen, TurnFinished)
        assert end.outcome == "done", end.error
        assert len(turns_of(server)) - before == planned
        events += seen
    return events


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("window", "turns", "summary"),
    [
        pytest.param(2_048, 40, GOOD_SUMMARY, id="2048-good"),
        pytest.param(4_096, 40, WEAK_SUMMARY, id="4096-weak"),
        pytest.param(2_048, 40, WEAK_SUMMARY, id="2048-weak", marks=pytest.mark.slow),
        pytest.param(4_096, 40, GOOD_SUMMARY, id="4096-good", marks=pytest.mark.slow),
        pytest.param(8_192, 60, GOOD_SUMMARY, id="8192-good", marks=pytest.mark.slow),
        pytest.param(8_192, 60, WEAK_SUMMARY, id="8192-weak", marks=pytest.mark.slow),
    ],
)
async def test_a_long_session_never_overflows_and_never_runs_in_circles(
    stage: Stage, window: int, turns: int, summary: str
):
    (stage.workspace / "AGENTS.md").write_text("Use tabs. Never push.\n" * 200)
    for number, lines in enumerate((5, 40, 400, 2_000)):
        text = "".join(f"def function_{n}(value):\n" for n in range(lines))
        (stage.workspace / f"f{number}.py").write_text(text)
    server = StrictServer(window, summary=summary)
    runtime = stage.runtime(server.provider, window=window)
    events = await work_through(runtime, server, turns)
    assert server.refused == 0
    asked = server.provider.requests
    assert max(map(size_of, asked)) <= window
    compactions = of_kind(events, CompactionFinished)
    assert len(compactions) > 5
    assert all(c.tokens_after < c.tokens_before for c in compactions)
    assert len(asked) - len(turns_of(server)) <= 4 * (
        len(compactions) + len(of_kind(events, CompactionFailed))
    )
    assert "never touch the lock file." in compactions[-1].summary
    assert len([n for n in of_kind(events, Notice) if "To fit" in n.text]) == 1
    for before, event in pairwise(events):
        if isinstance(before, ContextChanged) and isinstance(event, ReplyStarted):
            assert before.usage.percent <= 100
    assert 0 <= runtime.conversation.usage.used - size_of(turns_of(server)[-1]) < 200


@pytest.mark.parametrize(
    ("window", "end"),
    [
        (2_048, 40),
        (4_096, 400),
        *(
            pytest.param(window, end, marks=pytest.mark.slow)
            for window, end in ((2_048, 400), (4_096, 40), (8_192, 40), (8_192, 400))
        ),
        *(pytest.param(window, 940, marks=pytest.mark.slow) for window in (2_048, 4_096, 8_192)),
    ],
)
async def test_a_real_session_goes_on_in_a_small_window(stage: Stage, window: int, end: int):
    with SessionLog.open(trajectory("pi/before-compaction.jsonl"), read_only=True) as log:
        path = [entry for entry in log.path_entries() if isinstance(entry, MessageEntry)][:end]
    server = StrictServer(window)
    runtime = stage.runtime(server.provider, window=window)
    for entry in path:
        runtime.conversation.log.append(MessageEntry(message=entry.message))
    assert only(await collect(runtime.submit("go on")), TurnFinished).outcome == "done"
    await work_through(runtime, server, 3)
    assert server.refused == 0
    assert len(turns_of(server)) <= 13


async def test_the_prompt_is_fitted_again_only_for_another_window_or_model(stage: Stage):
    windows = {"scripted/test": 100_000, "scripted/small": 2_048, "scripted/same": 2_048}
    provider = ScriptedProvider([TALK] * 6)
    runtime = stage.runtime(provider, windows=windows)
    await collect(runtime.submit("one"))
    large = runtime.conversation.prompt
    assert runtime.conversation.prompt is large
    runtime.set_model(ModelRef("scripted/small"))
    notices = of_kind(list(await runtime.refresh_usage()), Notice)
    assert [n.level for n in notices] == ["info"]
    assert "read, bash, edit, write" in notices[0].text
    small = runtime.conversation.prompt
    runtime.set_model(ModelRef("scripted/same"))
    same = runtime.conversation.prompt
    assert (same.system, same.tools) == (small.system, small.tools)
    events = await collect(runtime.submit("two"))
    assert not of_kind(events, Notice)
    runtime.set_model(ModelRef("scripted/test"))
    await collect(runtime.submit("three"))
    first, second, third = provider.requests
    assert (first.system, first.tools) == (third.system, third.tools)
    assert len(second.tools) == 4
    assert len(second.system) < len(first.system)


async def test_a_window_learned_from_the_server_is_fitted_to(stage: Stage):
    provider = ScriptedProvider([TALK])
    runtime = stage.runtime(provider, learned_window=2_048)
    assert len(runtime.conversation.prompt.tools) == 13
    (notice,) = of_kind(list(await runtime.refresh_usage()), Notice)
    assert "context window (2,048 tokens)" in notice.text
    await collect(runtime.submit("hi"))
    assert len(provider.requests[0].tools) == 4


async def test_what_was_left_out_is_told_once_also_over_new_and_compacted_sessions(stage: Stage):
    runtime = stage.runtime(summary_or(Reply(text=TALK.text * 3)), window=2_048)
    events = list(await runtime.refresh_usage())
    for text in ("one", "two", "three"):
        events += await collect(runtime.submit(text))
    events += await collect(runtime.compact())
    events += await runtime.sessions.start_new()
    assert len([n for n in of_kind(events, Notice) if "To fit" in n.text]) == 1


async def test_a_hopeless_window_is_a_warning(stage: Stage):
    runtime = stage.runtime([TALK], window=1_024)
    notice = of_kind(list(await runtime.refresh_usage()), Notice)[0]
    assert notice.level == "warning"
    assert "is too small. Choose another model with /model" in notice.text


async def test_a_tool_that_was_not_offered_runs_all_the_same(stage: Stage):
    script = [Reply(tool_calls=(call("c1", "ls"),)), Reply(text="Empty.")]
    runtime = stage.runtime(script, window=2_048)
    assert "ls" not in [tool.name for tool in runtime.conversation.prompt.tools]
    events = await collect(runtime.submit("what is here"))
    assert not only(events, ToolFinished).message.is_error


async def test_the_calls_of_one_reply_share_what_fits_and_can_be_gone_on_with(stage: Stage):
    (stage.workspace / "a.txt").write_text("a line of text\n" * 500)
    calls = tuple(call(f"c{n}", "read", path="a.txt") for n in range(6))
    runtime = stage.runtime([Reply(tool_calls=calls), TALK], window=4_096)
    events = await collect(runtime.submit("read them"))
    texts = [event.message.text for event in of_kind(events, ToolFinished)]
    assert len(texts) == 6
    assert all(400 < len(text) < 850 and "use offset=" in text for text in texts)


async def test_an_error_that_repeats_what_it_was_given_is_cut(stage: Stage):
    todo = call("c1", "todo", todos=[{"text": "x", "status": "maybe"}] * 900)
    runtime = stage.runtime([Reply(tool_calls=(todo,)), TALK], window=2_048)
    message = only(await collect(runtime.submit("go")), ToolFinished).message
    assert message.is_error
    assert "todos.0.status: Input should be" in message.text
    assert message.text.endswith("[...]")
    assert len(message.text) < 1_200


async def test_a_command_of_the_persons_brings_no_more_than_the_window_bears(stage: Stage):
    runtime = stage.runtime([TALK], window=2_048)
    await collect(runtime.run_bash("seq 5000", in_context=True))
    (item,) = build_context(runtime.conversation.log.path_entries()).messages
    assert "5000" in item.message.text
    assert len(item.message.text) < 1_500


@pytest.mark.parametrize(("window", "cap"), [(2_048, 512), (32_768, 1_000), (32_769, None)])
async def test_a_small_window_limits_the_reply(stage: Stage, window: int, cap: int | None):
    provider = ScriptedProvider([TALK])
    await collect(stage.runtime(provider, window=window).submit("hi"))
    assert provider.requests[0].max_output_tokens == cap


async def test_a_reply_that_babbles_into_its_limit_can_be_continued(stage: Stage):
    babble = [Reply(text="and so on " * 9, finish="length")] * 4
    runtime = stage.runtime(babble, window=2_048)
    end = only(await collect(runtime.submit("hi")), TurnFinished)
    assert (end.outcome, end.can_continue) == ("length", True)


async def test_a_call_cut_off_by_the_limit_four_times_in_a_row_ends_the_turn(stage: Stage):
    cut = Reply(tool_calls=(call("c1", "write", path="a", content="x" * 99),), finish="length")
    listing = Reply(tool_calls=(call("c2", "ls"),))
    provider = ScriptedProvider([cut, listing, *[cut] * 4, TALK])
    events = await collect(stage.runtime(provider, window=2_048).submit("write it"))
    assert (only(events, TurnFinished).outcome, provider.remaining) == ("length", 1)
    refused = [e.message.text for e in of_kind(events, ToolFinished) if e.message.is_error]
    assert len(refused) == 5
    assert all("the output limit cut off the reply" in text for text in refused)
    assert not (stage.workspace / "a").exists()


async def test_a_message_larger_than_the_window_is_refused_and_nothing_is_recorded(stage: Stage):
    provider = ScriptedProvider([TALK])
    runtime = stage.runtime(provider, window=2_048)
    end = only(await collect(runtime.submit("paste " * 9_000)), TurnFinished)
    assert end.outcome == "error"
    assert "This message is about 8,5" in end.error
    assert "Even without the conversation so far" in end.error
    assert "has space for only about 1,1" in end.error
    assert provider.requests == []
    assert runtime.conversation.log.path_entries() == ()
    assert only(await collect(runtime.submit("hi")), TurnFinished).outcome == "done"


@pytest.mark.parametrize("is_automatic", [True, False])
async def test_a_message_recorded_with_a_larger_model_can_be_worked_on_with_a_small_one(
    stage: Stage, is_automatic: bool
):
    windows = {"scripted/test": 100_000, "scripted/small": 2_048}
    server = StrictServer(2_048)
    runtime = stage.runtime(
        server.provider, windows=windows, compaction=CompactionSettings(auto=is_automatic)
    )
    end = only(await collect(runtime.submit("fix this: " + "paste " * 9_000)), TurnFinished)
    assert end.outcome == "error"
    server.provider.requests.clear()
    runtime.set_model(ModelRef("scripted/small"))
    events = await collect(runtime.submit("go on"))
    assert only(events, TurnFinished).outcome == "done"
    assert len(of_kind(events, CompactionFinished)) == 1
    assert len(turns_of(server)) == 1
    assert "fix this: paste" in of_kind(events, CompactionFinished)[0].summary
