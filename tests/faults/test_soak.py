"""Hundreds of turns in which anything may go wrong: a sound session, and nothing that grows."""

import asyncio
import gc
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import get_args

import psutil
import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import AgentEvent, TextDelta, TurnFinished
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.providers.base import FaultKind, ModelRequest, ProviderError
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import openai_messages
from agent_tui.sessions.log import SessionLog
from tests.faults.conversation import Waits
from tests.support.compaction_ways import HALF, SUMMARY
from tests.support.context_checks import assert_sendable
from tests.support.runtime import Stage, collect, only
from tests.support.wire_rules import anthropic_problems, openai_problems

WINDOW = 40_000
SEED = 20_260_101
FAULTS: tuple[FaultKind, ...] = get_args(FaultKind)
ABORTED_SHARE = 0.05
LISTING = "".join(f"line {number} of what there is to read here\n" for number in range(240))

Making = Callable[["Mischief"], Reply]


class Mischief:
    """Answers as a model does on a bad day; the same seed gives the same day."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seen = dict.fromkeys((*TURNS, *SUMMARIES), 0)
        self.problems: list[str] = []
        self.is_tired = False
        """From when on all goes well."""

    def answer(self, request: ModelRequest) -> Reply:
        self.problems += openai_problems(openai_messages(request.system, request.messages))
        self.problems += anthropic_problems(anthropic_payload(request.system, request.messages))
        kinds = SUMMARIES if request.purpose == "summary" else TURNS
        kind = next(iter(kinds)) if self.is_tired else self.chance.choice(tuple(kinds))
        self.seen[kind] += 1
        return kinds[kind](self)

    def fault(self, text: str = "") -> Reply:
        kind = self.chance.choice(FAULTS)
        wait_s = self.chance.choice((None, 0.0, 60.0))
        error = ProviderError(kind, f"It failed: {kind}.", "Try again.", retry_after_s=wait_s)
        return Reply(text=text, error=error)


TURNS: Mapping[str, Making] = {
    "fine": lambda _: Reply(text="All is well. " * 20),
    "fine too": lambda _: Reply(text="That is so. ", thinking="Is it? "),
    "reads": lambda _: Reply(tool_calls=(call("r", "read", path="notes.txt"),)),
    "reads twice": lambda _: Reply(
        text="Let me look.",
        tool_calls=(call("x", "read", path="notes.txt"), call("x", "read", path="none.txt")),
    ),
    "no such tool": lambda _: Reply(tool_calls=(call("t", "teleport", to="home"),)),
    "wrong arguments": lambda _: Reply(tool_calls=(call("w", "read", way=[None, "x"]),)),
    "a call cut off": lambda _: Reply(
        tool_calls=(call("c", "read", path="notes.txt"),), finish="length"
    ),
    "a fault": lambda day: day.fault(),
    "a fault in the middle": lambda day: day.fault("The sky is "),
    "a fault once more": lambda day: day.fault(),
    "cut": lambda _: Reply(text="The sky", cut=True),
    "cut at once": lambda _: Reply(cut=True),
    "cut in a call": lambda _: Reply(tool_calls=(call("i", "read", path="notes.txt"),), cut=True),
    "empty": lambda _: Reply(),
    "white space": lambda _: Reply(text=" \n\t"),
    "only thinking": lambda _: Reply(thinking="What could it want?"),
    "length": lambda _: Reply(text="one two", finish="length"),
    "length and nothing": lambda _: Reply(finish="length"),
    "filtered": lambda _: Reply(text="I will", finish="contentFilter"),
    "surrogates": lambda _: Reply(text="half a smile \ud83d and \udc00"),
}
SUMMARIES: Mapping[str, Making] = {
    "a summary": lambda _: Reply(text=SUMMARY),
    "another summary": lambda _: Reply(text=SUMMARY),
    "half a summary": lambda _: Reply(text=HALF, finish="length"),
    "no summary": lambda _: Reply(),
    "a fault for a summary": lambda day: day.fault(HALF),
}


async def watch(runtime: AgentRuntime, events: AsyncGenerator[AgentEvent, None], stop: bool) -> str:
    """How a turn ended, which was stopped at its first word if `stop`."""
    outcome = ""
    async with aclosing(events) as stream:
        async for event in stream:
            if stop and isinstance(event, TextDelta):
                stop = False
                runtime.abort()
            if isinstance(event, TurnFinished):
                outcome = event.outcome
    return outcome


def resources() -> tuple[int, int, int]:
    """Open file handles, child processes and tasks."""
    process = psutil.Process()
    return process.num_fds(), len(process.children(recursive=True)), len(asyncio.all_tasks())


def memory_mb() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("turns", "growth_mb"),
    [
        pytest.param(150, 40, id="150 turns"),
        pytest.param(
            1_000, 80, id="1,000 turns", marks=[pytest.mark.slow, pytest.mark.timeout(1_200)]
        ),
    ],
)
async def test_whatever_goes_wrong_the_session_is_sound_and_nothing_grows(
    tmp_path: Path, turns: int, growth_mb: float
) -> None:
    day, stage = Mischief(SEED), Stage(tmp_path)
    (stage.workspace / "notes.txt").write_text(LISTING, encoding="utf-8")
    provider = ScriptedProvider(day.answer)
    runtime = stage.runtime(provider, sleep=Waits().sleep, window=WINDOW, background=True)
    outcomes: set[str] = set()
    before, warm_mb = resources(), 0.0
    for number in range(turns):
        stop = day.chance.random() < ABORTED_SHARE
        going_on = number > 0 and day.chance.random() < 0.2
        events = runtime.continue_turn() if going_on else runtime.submit(f"question {number}")
        outcomes.add(await watch(runtime, events, stop))
        provider.requests.clear()
        if number == turns // 4:
            before, warm_mb = resources(), memory_mb()
    assert day.problems == []
    assert outcomes == {"done", "error", "length", "aborted"}
    assert [kind for kind in TURNS if not day.seen[kind]] == []
    assert any(day.seen[kind] for kind in SUMMARIES)
    assert memory_mb() - warm_mb < growth_mb
    day.is_tired = True
    assert only(await collect(runtime.submit("and now?")), TurnFinished).outcome == "done"
    path = runtime.conversation.log.path
    assert path is not None
    await runtime.aclose()
    assert [now <= then for now, then in zip(resources(), before, strict=True)] == [True] * 3
    await check_reopened(stage, path, day)


async def check_reopened(stage: Stage, path: Path, day: Mischief) -> None:
    """That the session can be read, sent, and gone on with."""
    with SessionLog.open(path, read_only=True) as log:
        assert log.warnings == ()
        assert_sendable(log.path_entries())
    again = stage.runtime(ScriptedProvider(day.answer), window=WINDOW)
    assert await again.sessions.open(str(path))
    assert only(await collect(again.submit("still there?")), TurnFinished).outcome == "done"
    await again.aclose()
