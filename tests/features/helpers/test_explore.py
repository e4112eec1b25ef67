import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.spending import spending_of
from agent_tui.config import PermissionSettings
from agent_tui.events import (
    AgentEvent,
    ApprovalRequested,
    ReplyAwaited,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
)
from agent_tui.features.helpers.explorer import MOST_REPLIES
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import Cost, ToolCall, ToolResultMessage, Usage
from agent_tui.providers.base import ModelRequest
from agent_tui.providers.silence import Wait
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.patience import PATIENCE_S
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.waiting import WaitingProvider

TASK = "Where is the greeting made?"
USED = Usage(input=100, output=10, total_tokens=110, cost=Cost(total=0.01))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    (stage.workspace / "greet.py").write_text("print('hello')\n")
    return stage


def is_helper(request: ModelRequest) -> bool:
    return "The other agent sees only" in request.system


def script(
    helper: Callable[[ModelRequest, int], Reply], *calls: ToolCall
) -> Callable[[ModelRequest], Reply]:
    """The conversation makes `calls`, then answers; helpers answer by their number of replies."""
    explored = calls or (call("c1", "explore", task=TASK),)

    def answer(request: ModelRequest) -> Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        if is_helper(request):
            return helper(request, said)
        return Reply(tool_calls=explored, usage=USED) if said == 0 else Reply("Done.", usage=USED)

    return answer


def two_steps(request: ModelRequest, said: int) -> Reply:
    if said == 0:
        return Reply(tool_calls=(call("h1", "grep", pattern="hello"),), usage=USED)
    return Reply("In greet.py:1.", usage=USED)


def results(runtime: AgentRuntime) -> list[ToolResultMessage]:
    return results_in(runtime.conversation.log)


def results_in(log: SessionLog) -> list[ToolResultMessage]:
    messages = [e.message for e in log.path_entries() if isinstance(e, MessageEntry)]
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def helper_logs(stage: Stage) -> list[SessionLog]:
    files = sorted(stage.sessions.glob("*/explored/*/*.jsonl"))
    return [SessionLog.open(file, read_only=True) for file in files]


async def test_only_the_answer_comes_back_and_what_it_did_is_shown(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    events = await collect(runtime.submit("go"))
    result = only(events, ToolFinished).message
    (log,) = helper_logs(stage)
    short = log.header.id[:8]
    assert result.text == (
        f"In greet.py:1.\n\n(Everything it read is in session {short}: recall {short}:ENTRY)"
    )
    assert result.tool_details.summary == "2 steps, 220 tokens, $0.02"
    assert [event.text for event in of_kind(events, ToolOutputDelta)] == ["grep hello in .\n"]
    assert [event.name for event in of_kind(events, ToolStarted)] == ["explore"]
    assert only(events, TurnFinished).outcome == "done"


async def test_its_waiting_for_the_model_is_told(stage: Stage):
    provider = WaitingProvider(script(two_steps), (Wait(65, 2),))
    events = await collect(stage.runtime(provider).submit("go"))
    assert of_kind(events, ReplyAwaited) == [ReplyAwaited(65, True)] * len(provider.requests)
    said = [event.text for event in of_kind(events, ToolOutputDelta)]
    assert "waiting for the model (1m 05s)\n" in said


async def test_its_context_is_its_own(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    await collect(runtime.submit("a secret plan"))
    first = next(request for request in stage.model.requests if is_helper(request))
    assert [message.role for message in first.messages] == ["user"]
    assert TASK in str(first.messages)
    assert "secret plan" not in str(first)
    last = stage.model.requests[-1]
    assert "print('hello')" not in str(last.messages)
    names = [tool.name for tool in first.tools]
    assert names == ["read", "bash", "grep", "find", "ls", "recall", "web_search", "why"]
    assert first.cache_key != last.cache_key


async def test_its_session_is_listed_nowhere_but_opens_and_can_be_recalled(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    await collect(runtime.submit("go"))
    (log,) = helper_logs(stage)
    store, id = runtime.services.store, log.header.id
    assert [found.id for found in store.list()] == [runtime.conversation.log.header.id]
    assert store.find(id[:8], stage.workspace) == log.path
    assert log.header.parent_session == str(runtime.conversation.log.path)
    assert log.name == f"explore: {TASK}"
    found = next(e for e in log.entries if isinstance(e, MessageEntry) and "hello" in str(e))
    await runtime.aclose()
    recalled = call("c1", "recall", id=f"{id[:8]}:{found.id}")
    again = stage.runtime([Reply(tool_calls=(recalled,)), Reply("Yes.")])
    events = await collect(again.submit("what did it see?"))
    assert not only(events, ToolFinished).message.is_error


async def test_its_session_goes_to_the_trash_with_the_one_it_worked_for(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    await collect(runtime.submit("go"))
    parent = runtime.conversation.log.path
    assert parent is not None
    await runtime.aclose()
    moved = runtime.services.store.delete(parent)
    assert helper_logs(stage) == []
    assert len(list((moved.parent / "explored").glob("*/*.jsonl"))) == 1


async def test_rules_that_deny_hold_for_it_too(stage: Stage):
    def helper(request: ModelRequest, said: int) -> Reply:
        return Reply("ok") if said else Reply(tool_calls=(call("h1", "read", path="greet.py"),))

    denying = PermissionSettings(deny=("read(greet.py)",))
    runtime = stage.runtime(script(helper), permissions=denying)
    await collect(runtime.submit("go"))
    (log,) = helper_logs(stage)
    assert "the deny rule read(greet.py) forbids it" in results_in(log)[0].text


async def test_without_kept_sessions_it_works_and_keeps_nothing(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    runtime.services.keeps_sessions = False
    events = await collect(runtime.submit("go"))
    assert only(events, ToolFinished).message.text == "In greet.py:1."
    assert helper_logs(stage) == []


async def test_what_it_took_counts_for_the_session_now_and_when_it_is_opened_again(stage: Stage):
    runtime = stage.runtime(script(two_steps))
    await collect(runtime.submit("go"))
    totals = runtime.conversation.totals
    assert (totals.input_tokens, totals.output_tokens) == (400, 40)
    assert totals.cost_usd == pytest.approx(0.04)
    (spent,) = spending_of(runtime.conversation.log).replies
    assert (spent.requests, spent.input_tokens) == (4, 400)
    await runtime.aclose()
    again = stage.runtime([])
    await again.sessions.open(runtime.conversation.log.header.id)
    assert again.conversation.totals == totals


async def test_several_of_one_reply_work_at_the_same_time(stage: Stage):
    begun: list[str] = []
    both = asyncio.Event()

    def helper(request: ModelRequest, said: int) -> Reply:
        begun.append(request.cache_key)
        if len(begun) == 2:
            both.set()
        return Reply("found", gate=both, usage=USED)

    two = (call("c1", "explore", task="one"), call("c2", "explore", task="two"))
    runtime = stage.runtime(script(helper, *two))
    async with asyncio.timeout(PATIENCE_S):
        events = await collect(runtime.submit("go"))
    assert [event.call_id for event in of_kind(events, ToolFinished)] == ["c1", "c2"]
    assert len(set(begun)) == 2
    assert runtime.conversation.totals.input_tokens == 400


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        (call("h1", "write", path="x", content="x"), "no tool 'write'"),
        (call("h1", "explore", task="deeper"), "no tool 'explore'"),
        (call("h1", "bash", command="touch x"), "You can only read here"),
        (call("h1", "bash", command="cat greet.py > x"), "You can only read here"),
        (call("h1", "read", path=".env"), "this run cannot ask"),
        (call("h1", "bash", command="cat greet.py"), "print('hello')"),
    ],
)
async def test_it_only_reads_and_asks_nobody_whatever_the_mode(
    stage: Stage, tried: ToolCall, said: str
):
    (stage.workspace / ".env").write_text("KEY=1\n")

    def helper(request: ModelRequest, said: int) -> Reply:
        return Reply("ok") if said else Reply(tool_calls=(tried,))

    runtime = stage.runtime(script(helper), mode="full")
    events = await collect(runtime.submit("go"))
    (log,) = helper_logs(stage)
    assert said in results_in(log)[0].text
    assert of_kind(events, ApprovalRequested) == []
    assert not (stage.workspace / "x").exists()
    assert runtime.conversation.permissions.mode == "full"


async def test_a_file_that_its_task_mentions_is_not_attached(stage: Stage):
    (stage.workspace / ".env").write_text("KEY=canary\n")
    asked = call("c1", "explore", task="Look at @.env and @greet.py")
    runtime = stage.runtime(script(lambda _request, _said: Reply("ok"), asked))
    await collect(runtime.submit("go"))
    sent = "".join(map(str, stage.model.requests))
    assert "canary" not in sent
    assert "print('hello')" not in sent


async def test_an_abort_ends_it_and_what_it_took_until_then_counts(stage: Stage):
    never = asyncio.Event()

    def helper(request: ModelRequest, said: int) -> Reply:
        return Reply("half", gate=never) if said else two_steps(request, said)

    runtime = stage.runtime(script(helper))
    events: list[AgentEvent] = []
    async for event in runtime.submit("go"):
        events.append(event)
        if isinstance(event, ToolOutputDelta):
            while len(stage.model.requests) < 3:
                await asyncio.sleep(0.01)
            runtime.abort()
    assert only(events, TurnFinished).outcome == "aborted"
    assert "grep hello in .\n[interrupted after 0 s by the user" in results(runtime)[0].text
    assert stage.model.closed_streams == 1
    assert runtime.conversation.totals.input_tokens >= 200


async def test_one_that_comes_to_no_end_is_told_and_then_stopped(stage: Stage):
    def helper(request: ModelRequest, said: int) -> Reply:
        (stage.workspace / "greet.py").write_text(f"{said}\n")
        text = "so far: nothing" if said == MOST_REPLIES - 1 else ""
        return Reply(text, tool_calls=(call(f"h{said}", "read", path="greet.py"),))

    runtime = stage.runtime(script(helper))
    events = await collect(runtime.submit("go"))
    result = only(events, ToolFinished).message
    assert result.text.startswith("so far: nothing\n\n(Stopped after 40 replies")
    helped = [request for request in stage.model.requests if is_helper(request)]
    assert len(helped) == MOST_REPLIES
    assert "Answer now" in str(helped[-1].messages)
    assert "Answer now" not in str(helped[MOST_REPLIES - 5].messages)


@pytest.mark.parametrize(("window", "is_offered"), [(32_000, False), (100_000, True)])
async def test_helpers_are_for_large_windows(stage: Stage, window: int, is_offered: bool):
    runtime = stage.runtime([], window=window)
    names = [tool.name for tool in runtime.conversation.prompt.tools]
    assert ("explore" in names) == is_offered


async def test_a_call_in_another_agents_terms_is_understood(stage: Stage):
    asked = call("c1", "Task", description="Find it", prompt=TASK, subagent_type="general-purpose")
    runtime = stage.runtime(script(two_steps, asked))
    events = await collect(runtime.submit("go"))
    assert only(events, ToolFinished).message.text.startswith("In greet.py:1.")
    assert only(events, ToolStarted).title == f"explore {TASK}"
