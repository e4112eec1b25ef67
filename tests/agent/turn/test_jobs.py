"""What the model is told of background commands: in later turns, sessions and summaries."""

import asyncio
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.events import Notice
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.features.tree.branches import Branches
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.sessions.replay.notes import JOBS_ENDED
from tests.support.patience import PATIENCE_S
from tests.support.processes import alive, nap
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind

pytestmark = pytest.mark.usefixtures("no_settling")
WAIT = "until [ -e go ]; do sleep 0.01; done; echo done"


def begin(command: str = WAIT) -> list[Reply]:
    call_it = call("c1", "bash", command=command, background=True)
    return [Reply(tool_calls=(call_it,)), Reply(text="It runs.")]


def said(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def told(runtime: AgentRuntime) -> list[str]:
    return [
        entry.text
        for entry in runtime.conversation.log.path_entries()
        if isinstance(entry, CustomMessageEntry) and entry.custom_type == JOBS_ENDED
    ]


async def ended(runtime: AgentRuntime, workspace: Path) -> None:
    (workspace / "go").touch()
    for job in runtime.conversation.jobs.jobs:
        await job.command.wait(PATIENCE_S)


async def test_at_the_next_turn_the_model_is_told_once_that_a_job_has_ended(stage: Stage):
    runtime = stage.runtime([*begin(), Reply(text="b"), Reply(text="c")])
    await collect(runtime.submit("start it"))
    assert told(runtime) == []
    await ended(runtime, stage.workspace)
    await collect(runtime.submit("what now"))
    ending = runtime.conversation.jobs.require("1").ending
    line = f"(Job 1 ({WAIT}) has ended: {ending}.)"
    assert ending.startswith("exit code 0 after ")
    assert said(stage.model.requests[-1]) == ["start it", "what now", line]
    await collect(runtime.submit("and now"))
    assert said(stage.model.requests[-1]) == ["start it", "what now", line, "and now"]


async def test_in_a_running_turn_the_model_is_told_at_the_next_step(stage: Stage):
    over = "until [ -s pid ]; do :; done; touch go; while kill -0 $(cat pid) 2>&-; do :; done"
    touch = call("c2", "bash", command=over)
    script = [
        Reply(tool_calls=(call("c1", "bash", command=f"echo $$ > pid; {WAIT}", background=True),)),
        Reply(tool_calls=(touch,)),
        Reply(text="done"),
    ]
    runtime = stage.runtime(script)
    await collect(runtime.submit("start it"))
    assert [line.partition(" after")[0] for line in told(runtime)] == [
        f"(Job 1 (echo $$ > pid; {WAIT}) has ended: exit code 0"
    ]
    assert said(stage.model.requests[-1])[-1] == told(runtime)[0]


async def test_an_end_that_a_call_has_shown_is_not_told_again(stage: Stage):
    script = [
        *begin(nap(76601)),
        Reply(tool_calls=(call("c2", "job", id="1", stop=True),)),
        Reply(text="stopped"),
    ]
    runtime = stage.runtime(script)
    await collect(runtime.submit("start it"))
    await collect(runtime.submit("stop it"))
    assert alive(nap(76601)) == []
    assert told(runtime) == []
    assert stage.model.remaining == 0


async def test_a_resumed_session_says_that_its_jobs_ended_with_the_program(stage: Stage):
    runtime = stage.runtime(begin(nap(76602)))
    await collect(runtime.submit("start it"))
    path = str(runtime.conversation.log.path)
    while not alive(nap(76602)):
        await asyncio.sleep(0.01)
    await runtime.aclose()
    assert alive(nap(76602)) == []
    again = stage.runtime([*begin("echo x; sleep 76603"), Reply(text="ok")])
    opened = await again.sessions.open(path)
    how = "it ended with the program or session that ran it"
    line = f"Job 1 ({nap(76602)}) has ended: {how}."
    assert line in [notice.text for notice in of_kind(list(opened), Notice)]
    await collect(again.submit("go on"))
    assert said(stage.model.requests[0])[-1] == f"({line})"
    assert [job.id for job in again.conversation.jobs.running] == ["2"]
    await collect(again.submit("more"))
    assert len(told(again)) == 1
    await again.aclose()


async def test_a_new_session_ends_the_jobs_of_the_one_before_and_says_so(stage: Stage):
    runtime = stage.runtime(begin(nap(76604)))
    await collect(runtime.submit("start it"))
    events = list(await runtime.sessions.start_new())
    assert [notice.text for notice in of_kind(events, Notice)] == [
        f"Stopped with the session that started them: {nap(76604)}"
    ]
    assert alive(nap(76604)) == []
    assert runtime.conversation.jobs.jobs == ()


async def test_opening_another_session_ends_the_jobs_of_the_present_one(stage: Stage):
    first = stage.runtime([Reply(text="hello")])
    await collect(first.submit("hi"))
    await first.aclose()
    runtime = stage.runtime(begin(nap(76605)))
    await collect(runtime.submit("start it"))
    events = await runtime.sessions.open(str(first.conversation.log.path))
    assert f"Stopped with the session that started them: {nap(76605)}" in [
        notice.text for notice in of_kind(list(events), Notice)
    ]
    assert alive(nap(76605)) == []


async def test_a_compaction_keeps_the_jobs_and_says_which_run(stage: Stage):
    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "summary":
            return Reply(text=GOOD_SUMMARY)
        if len(request.messages) == 1:
            job = call("c1", "bash", command="touch a; sleep 76606", background=True)
            over = call("c2", "bash", command="touch b; sleep 76607", background=True)
            return Reply(tool_calls=(job, over))
        if len(request.messages) == 4:
            return Reply(tool_calls=(call("c3", "job", id="2", stop=True),))
        return Reply(text="word " * 2_000)

    runtime = stage.runtime(answer)
    for text in ("start it", "two", "three", "four"):
        await collect(runtime.submit(text))
    await collect(runtime.compact())
    summary = runtime.conversation.context().summary
    assert "- background job 1 running since 20" in summary
    assert "UTC: `touch a; sleep 76606`" in summary
    assert "background job 2" not in summary
    assert [job.id for job in runtime.conversation.jobs.running] == ["1"]
    for text in ("five", "six", "seven"):
        await collect(runtime.submit(text))
    await collect(runtime.compact())
    assert summary != runtime.conversation.context().summary
    assert "`touch a; sleep 76606`" in runtime.conversation.context().summary
    await runtime.conversation.jobs.require("1").stop()
    await collect(runtime.submit("and now"))
    assert any("has ended: stopped" in line for line in told(runtime))


async def test_a_fork_goes_on_with_the_jobs(stage: Stage):
    runtime = stage.runtime([*begin("sleep 76608"), Reply(text="ok")])
    await collect(runtime.submit("start it"))
    await Branches(runtime).fork()
    await collect(runtime.submit("go on"))
    assert [job.id for job in runtime.conversation.jobs.running] == ["1"]
    assert told(runtime) == []
    await runtime.aclose()


async def test_where_a_branch_knows_of_no_job_none_is_told(stage: Stage):
    runtime = stage.runtime([Reply(text="hello"), *begin(), Reply(text="ok")])
    await collect(runtime.submit("hi"))
    here = runtime.conversation.log.leaf_id
    assert here is not None
    await collect(runtime.submit("start it"))
    await ended(runtime, stage.workspace)
    await Branches(runtime).go_back(here)
    await collect(runtime.submit("something else"))
    assert told(runtime) == []


async def test_keys_in_a_command_are_in_nothing_that_is_told(stage: Stage):
    script = [*begin(f"echo hunter2-hunter2 >/dev/null; {WAIT}"), Reply(text="ok")]
    runtime = stage.runtime(script, secrets=("hunter2-hunter2",))
    await collect(runtime.submit("start it"))
    await ended(runtime, stage.workspace)
    await collect(runtime.submit("and"))
    assert "(echo [key removed] >/dev/null;" in told(runtime)[0]
    assert runtime.conversation.log.path is not None
    runtime.conversation.log.sync()
    assert "hunter2-hunter2" not in runtime.conversation.log.path.read_text()
