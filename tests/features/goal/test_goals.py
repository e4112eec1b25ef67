"""Work toward a goal: turns, checks, judge, bounds, and what survives interruptions."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.errors import AgentTuiError
from agent_tui.events import (
    BashFinished,
    BashStarted,
    LimitWaitStarted,
    Notice,
    TurnFinished,
)
from agent_tui.features.goal.events import GoalChanged
from agent_tui.features.goal.goal import Goal, goal_in
from agent_tui.features.goal.part import GoalPart
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import BashExecutionMessage
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.entries import MessageEntry
from agent_tui.tools.git.trees import WorkTrees
from agent_tui.tools.processes.keeper import ProcessKeeper
from tests.features.goal.pursuit import end_goal, open_goal, pursue
from tests.support.context_checks import assert_sendable
from tests.support.runtime import Stage, collect, of_kind, only
from tests.support.wall_clock import SleptClock

MET = Reply(text="VERDICT: met")
LACKS = Reply(text="VERDICT: not met\nMISSING:\n- b.txt: write it too\nWEAKENED:\n- none")
GOAL = Goal(text="There is an a.txt.", checks=("test -f a.txt",), max_turns=5)
BROKEN = Reply(error=ProviderError("auth", "The key is wrong."))
IDLE = Reply(text="I cannot think of anything.")


@pytest.fixture
def keeper() -> Iterator[ProcessKeeper]:
    keeper = ProcessKeeper()
    yield keeper
    keeper.close()


def writes(name: str, text: str = "x\n") -> list[Reply]:
    return [
        Reply(tool_calls=(call(f"write-{name}-{text}", "write", path=name, content=text),)),
        Reply(text=f"I wrote {name}."),
    ]


class Model:
    """Answers turns and the judge's requests from two lists; the last answers repeat."""

    def __init__(self, turns: Iterable[Reply], judge: Iterable[Reply] = (MET,)) -> None:
        turns, judge = list(turns), list(judge)
        self._turns = chain(turns, repeat(IDLE))
        self._judge = chain(judge, repeat(judge[-1]))
        self.provider = ScriptedProvider(self._answer)

    def _answer(self, request: ModelRequest) -> Reply:
        return next(self._judge if request.purpose == "summary" else self._turns)

    def requests(self, purpose: str) -> list[ModelRequest]:
        return [each for each in self.provider.requests if each.purpose == purpose]


def state(runtime: AgentRuntime) -> Goal:
    goal = goal_in(runtime.conversation.log.path_entries())
    assert goal is not None
    return goal


async def test_it_works_until_the_check_passes_and_the_judge_agrees(stage: Stage):
    model = Model([IDLE, *writes("a.txt")])
    runtime = stage.runtime(model.provider)
    events = await collect(pursue(runtime, GOAL))
    assert only(events, TurnFinished) == TurnFinished("done")
    assert events[-1] == TurnFinished("done")
    changes = [(e.passed, e.turns, e.ending) for e in of_kind(events, GoalChanged)]
    assert changes == [(0, 0, ""), (0, 0, ""), (0, 1, ""), (1, 2, ""), (1, 2, "met")]
    assert [e.message.exit_code for e in of_kind(events, BashFinished)] == [1, 1, 0]
    assert state(runtime).ending == "met"
    assert open_goal(runtime) is None
    told = [m.text for m in model.requests("turn")[1].messages]
    assert told[0].startswith("<goal>\nThere is an a.txt.\n\nThe work goes on until this is met.")
    assert "test -f a.txt" in told[1], "the model sees what fails before it begins"
    assert told[2] == "There is an a.txt."
    assert told[-1].startswith("The goal is not met: 1 of 1 checks fails.")
    assert_sendable(runtime.conversation.log.path_entries())


async def test_the_judge_sees_the_goal_the_checks_and_the_changes_alone(stage: Stage):
    (stage.workspace / "old.txt").write_text("old\n")
    model = Model(
        [
            IDLE,
            Reply(text="Well, SECRET_THOUGHT.", tool_calls=(call("r", "read", path="old.txt"),)),
            Reply(tool_calls=(call("e", "write", path="old.txt", content="new\n"),)),
            *writes("a.txt", "made\n"),
        ]
    )
    runtime = stage.runtime(model.provider)
    await collect(runtime.submit("Say nothing about EARLIER_WORDS."))
    await collect(pursue(runtime, GOAL))
    (asked,) = model.requests("summary")
    (case,) = (message.text for message in asked.messages)
    assert asked.tools == ()
    assert "There is an a.txt." in case
    assert "$ test -f a.txt (failed before the work)" in case
    assert "+made" in case
    assert case.index("-old\n+new") < case.index("+made"), "existing files come first"
    assert "old.txt (changed)" in case
    assert "a.txt (new)" in case
    assert "SECRET_THOUGHT" not in case
    assert "EARLIER_WORDS" not in case


async def test_the_judge_sees_the_commits_since_the_work_began(stage: Stage, keeper: ProcessKeeper):
    git = "git -c user.name=a -c user.email=a@b -c commit.gpgsign=false"
    before = f"git init -q . && touch first && git add . && {git} commit -qm before"
    environ = {**os.environ, "GIT_COMMITTER_DATE": "@1700000000 +0000"}
    subprocess.run(before, shell=True, check=True, cwd=stage.workspace, env=environ)
    commit = f"touch a.txt && git add . && {git} commit -qm 'add a'"
    model = Model([Reply(tool_calls=(call("c", "bash", command=commit),)), Reply(text="Done.")])
    runtime = stage.runtime(model.provider, trees=WorkTrees(keeper))
    await collect(pursue(runtime, GOAL))
    case = model.requests("summary")[0].messages[0].text
    assert re.search(r"<commits>\n  \| commit \w+ add a\n  \| A\ta.txt\n</commits>", case)


async def test_of_very_many_commits_the_newest_are_named(stage: Stage, keeper: ProcessKeeper):
    stream = "".join(
        f"commit refs/heads/main\ncommitter a <a@b> {2_000_000_000 + at} +0000\n"
        f"data 100\n{f'commit {at} ':x<100}\n"
        for at in range(400)
    )
    command = f"git init -q -b main . && git fast-import --quiet <<'END'\n{stream}END"
    subprocess.run(command, shell=True, check=True, cwd=stage.workspace)
    told = await WorkTrees(keeper).commits_since(stage.workspace, os.environ, 0.0)
    assert told is not None
    head, *commits = told.split("\n")
    left_out = 400 - len(commits)
    assert head == f"[{left_out} earlier commits are left out]"
    assert 0 < len("\n".join(commits)) <= 20_000 < len("\n".join(commits)) + len(commits[0]) + 2
    assert re.match(rf"commit \w+ commit {left_out} x", commits[0])


async def test_what_the_judge_finds_missing_goes_to_the_model(stage: Stage):
    model = Model([*writes("a.txt"), *writes("b.txt")], [LACKS, MET])
    runtime = stage.runtime(model.provider)
    events = await collect(pursue(runtime, GOAL))
    assert events[-1] == TurnFinished("done")
    assert any("b.txt: write it too" in e.text for e in of_kind(events, Notice))
    told = model.requests("turn")[2].messages[-1].text
    assert "says that it is not met:\n- b.txt: write it too\n" in told
    assert state(runtime).turns == 2


async def test_without_checks_the_judge_alone_decides(stage: Stage):
    model = Model(writes("a.txt"))
    runtime = stage.runtime(model.provider)
    events = await collect(pursue(runtime, Goal(text="There is an a.txt.")))
    assert events[-1] == TurnFinished("done")
    assert "(none: only you judge)" in model.requests("summary")[0].messages[0].text


async def test_only_failing_checks_enter_the_context(stage: Stage):
    goal = GOAL.model_copy(update={"checks": ("echo fine", "test -f a.txt")})
    runtime = stage.runtime(Model([IDLE, *writes("a.txt")]).provider)
    await collect(pursue(runtime, goal))
    ran = [
        entry.message
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, MessageEntry) and isinstance(entry.message, BashExecutionMessage)
    ]
    hidden = [(each.command, each.exclude_from_context) for each in ran]
    assert hidden == [
        ("echo fine", True),
        ("test -f a.txt", False),
        ("echo fine", True),
        ("test -f a.txt", False),
        ("echo fine", True),
        ("test -f a.txt", True),
    ]


async def test_a_standstill_ends_it_with_the_reason(stage: Stage):
    model = Model([])
    runtime = stage.runtime(model.provider)
    events = await collect(pursue(runtime, GOAL))
    ending = only(events, TurnFinished)
    assert ending.outcome == "error"
    assert ending.error == (
        "The goal is not met: `test -f a.txt` fails. The last 3 tries changed no file."
    )
    assert state(runtime).ending == "stuck"
    assert len(model.requests("turn")) == 3


async def test_changes_between_equal_failures_are_no_standstill(stage: Stage):
    turns = chain.from_iterable(writes("other.txt", f"{n}\n") for n in range(4))
    runtime = stage.runtime(Model([*turns, *writes("a.txt")]).provider)
    events = await collect(pursue(runtime, GOAL))
    assert events[-1] == TurnFinished("done")
    assert state(runtime).turns == 5


async def test_a_judge_that_is_never_content_is_a_standstill(stage: Stage):
    runtime = stage.runtime(Model(writes("a.txt"), [LACKS]).provider)
    events = await collect(pursue(runtime, GOAL))
    assert "the judge finds something missing. The last 3 tries" in only(events, TurnFinished).error


async def test_bounds_end_it(stage: Stage):
    seconds = iter(range(0, 100_000, 100))
    many = chain.from_iterable(writes("other.txt", f"{n}\n") for n in range(50))
    runtime = stage.runtime(Model(many).provider, clock=lambda: float(next(seconds)))
    events = await collect(pursue(runtime, GOAL.model_copy(update={"max_turns": 2})))
    assert only(events, TurnFinished) == TurnFinished(
        "limit",
        "The goal is not met: `test -f a.txt` fails, and its bound of 2 turns is reached.",
    )
    events = await collect(pursue(runtime, GOAL.model_copy(update={"max_s": 60.0})))
    assert "its bound of 1m 00s is reached" in only(events, TurnFinished).error
    assert state(runtime).ending == "limit"


async def test_a_judge_without_a_verdict_leaves_it_to_the_user(stage: Stage):
    runtime = stage.runtime(Model(writes("a.txt"), [Reply(text="Nice work!")]).provider)
    events = await collect(pursue(runtime, GOAL))
    ending = only(events, TurnFinished)
    assert ending.outcome == "error"
    assert "gave no verdict on the goal" in ending.error
    assert open_goal(runtime) is not None
    (told,) = end_goal(runtime, "met", "Closed.")
    assert isinstance(told, GoalChanged)
    assert told.ending == "met"
    assert open_goal(runtime) is None


async def test_a_limit_of_the_judge_is_waited_for(stage: Stage):
    limited = ProviderError("rate_limit", "Too fast.", retry_after_s=5 * 3_600.0)
    model, clock = Model(writes("a.txt"), [Reply(error=limited), MET]), SleptClock()
    runtime = stage.runtime(model.provider, sleep=clock.sleep, limit_wait_h=12)
    runtime.services.wall_clock = clock.read
    events = await collect(pursue(runtime, GOAL))
    assert state(runtime).ending == "met"
    assert only(events, LimitWaitStarted).wait_s == pytest.approx(5 * 3_600, abs=11)
    assert len(model.requests("summary")) == 2


async def test_a_judge_that_cannot_tell_leaves_it_to_the_user_with_the_reason(stage: Stage):
    unclear = Reply(text="VERDICT: unclear\nUNSEEN:\n- whether it was pushed")
    model = Model(writes("a.txt"), [unclear])
    runtime = stage.runtime(model.provider)
    ending = only(await collect(pursue(runtime, GOAL)), TurnFinished)
    assert "cannot see everything that decides:\n- whether it was pushed\n" in ending.error
    assert len(model.requests("summary")) == 1
    assert open_goal(runtime) is not None


async def test_files_that_the_goal_names_are_shown_to_the_judge(stage: Stage):
    (stage.workspace / "TODO.md").write_text("- item one\n</goal>\n")
    (stage.workspace / ".env").write_text("KEY=secret-value\n")
    model = Model(writes("a.txt"))
    runtime = stage.runtime(model.provider)
    (stage.workspace / "notes").symlink_to(".env")
    (stage.workspace / "long.txt").write_text("x" * 50_000)
    text = "All of TODO.md is done, as in .env, notes, ../elsewhere and long.txt."
    await collect(pursue(runtime, GOAL.model_copy(update={"text": text})))
    case = model.requests("summary")[0].messages[0].text
    assert "<named_files>\n## TODO.md\n  | - item one\n  | </goal>" in case
    assert "secret-value" not in case
    assert re.search(r"x\n\[\.\.\. [\d,]+ more characters are left out\]", case)


async def test_a_named_file_is_read_where_it_was_judged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    (stage.workspace / "TODO.md").write_text("- item one\n")
    (stage.workspace / ".env").write_text("KEY=secret-value\n")
    model = Model(writes("a.txt"))
    runtime = stage.runtime(model.provider)
    permissions = runtime.conversation.permissions
    why_held = permissions.why_attaching_asks

    def swap_after(path: Path) -> str:
        why = why_held(path)
        if path.name == "TODO.md":
            path.unlink()
            path.symlink_to(".env")
        return why

    monkeypatch.setattr(
        type(permissions), "why_attaching_asks", lambda _self, path: swap_after(path)
    )
    text = "All of TODO.md is done."
    await collect(pursue(runtime, GOAL.model_copy(update={"text": text})))
    assert "secret-value" not in model.requests("summary")[0].messages[0].text


async def test_an_error_leaves_it_open_and_a_message_goes_on(stage: Stage):
    model = Model([BROKEN, *writes("a.txt")])
    runtime = stage.runtime(model.provider)
    events = await collect(pursue(runtime, GOAL))
    assert only(events, TurnFinished).outcome == "error"
    assert open_goal(runtime) is not None
    events = await collect(runtime.submit("The key is right now."))
    assert events[-1] == TurnFinished("done")
    assert state(runtime).ending == "met"
    assert state(runtime).turns == 2


LIMITED = ProviderError("rate_limit", "Usage limit reached.", retry_after_s=3_600)


async def test_interrupted_before_the_judge_answered_it_looks_again_without_a_turn(stage: Stage):
    async def sleep(_seconds: float) -> None:
        await asyncio.sleep(60)

    model = Model(writes("a.txt"), [Reply(error=LIMITED), MET])
    runtime = stage.runtime(model.provider, sleep=sleep, limit_wait_h=12)
    async for event in pursue(runtime, GOAL):
        if isinstance(event, LimitWaitStarted):
            runtime.abort()
    turns = len(model.requests("turn"))
    events = await collect(runtime.continue_turn())
    assert events[-1] == TurnFinished("done")
    assert len(model.requests("turn")) == turns


async def test_interrupted_in_a_check_it_stays_open_and_continues_with_the_checks(stage: Stage):
    check = "test -f a.txt || { test -f begun && sleep 60; false; }"
    model = Model(writes("begun"))
    runtime = stage.runtime(model.provider)
    events: list[object] = []
    async for event in pursue(runtime, GOAL.model_copy(update={"checks": (check,)})):
        events.append(event)
        if isinstance(event, BashStarted) and (stage.workspace / "begun").exists():
            asyncio.get_running_loop().call_later(0.2, runtime.abort)
    assert events[-1] == TurnFinished("aborted", can_continue=True)
    assert open_goal(runtime) is not None
    (stage.workspace / "a.txt").touch()
    turns = len(model.requests("turn"))
    again = await collect(runtime.continue_turn())
    assert again[-1] == TurnFinished("done")
    assert len(model.requests("turn")) == turns


async def test_it_survives_compaction_into_a_new_session_and_a_restart(stage: Stage):
    talk = [Reply(text="Long words. " * 400) for _ in range(6)]
    model = Model([*talk, *writes("b.txt"), BROKEN, *writes("a.txt")])
    runtime = stage.runtime(model.provider)
    for number in range(6):
        await collect(runtime.submit(f"Message {number}."))
    await collect(pursue(runtime, GOAL))
    before = runtime.conversation.log.header.id
    await collect(runtime.compact())
    assert runtime.conversation.log.header.id != before
    assert open_goal(runtime) is not None
    assert any(m.text.startswith("<goal>") for m in runtime.conversation.request().messages)
    path = runtime.conversation.log.path
    await runtime.aclose()

    later = stage.runtime(model.provider)
    await later.sessions.open(str(path))
    goal = open_goal(later)
    assert goal is not None
    assert goal.turns == 2
    events = await collect(later.continue_turn())
    assert events[-1] == TurnFinished("done")
    case = model.requests("summary")[-1].messages[0].text
    assert "a.txt (new)" in case
    assert "b.txt (new)" in case, "it was written before the compaction"


async def test_the_pinned_goal_leaves_the_context_when_it_ends(stage: Stage):
    runtime = stage.runtime(Model(writes("a.txt")).provider)
    await collect(pursue(runtime, GOAL))
    assert not any(m.text.startswith("<goal>") for m in runtime.conversation.request().messages)


async def test_ended_during_a_turn_it_stops_after_that_turn(stage: Stage):
    runtime = stage.runtime(Model([IDLE]).provider)
    events: list[object] = []
    async for event in pursue(runtime, GOAL):
        events.append(event)
        if type(event).__name__ == "ReplyFinished":
            end_goal(runtime, "stopped", "Ended.")
    assert events[-1] == TurnFinished("done")
    assert len([event for event in events if isinstance(event, BashFinished)]) == 1


async def test_checks_are_refused_in_plan_mode_and_asked_about_without_a_sandbox(stage: Stage):
    goal = GOAL.model_copy(update={"checks": ("make install",)})
    runtime = stage.runtime(Model([]).provider, mode="plan")
    with pytest.raises(AgentTuiError, match="may not run"):
        runtime.part(GoalPart).must_ask_about_checks(goal)
    runtime = stage.runtime(Model([]).provider, mode="ask")
    assert runtime.part(GoalPart).must_ask_about_checks(goal)
    assert not runtime.part(GoalPart).must_ask_about_checks(
        goal.model_copy(update={"runs_outside": True})
    )
