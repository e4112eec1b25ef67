"""Commands that go on in the background: their output in pieces, their end, and the ends of all."""

import asyncio
import re
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.messages import Job
from agent_tui.tools import bash
from agent_tui.tools.base import ToolContext
from agent_tui.tools.job_table import MAX_RUNNING
from agent_tui.tools.shorten import OutputLimits
from tests.support.processes import alive, gone, nap
from tests.support.tool_calls import call_tool, intent_of

pytestmark = pytest.mark.usefixtures("no_settling")
STEPS = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3"


async def begin(context: ToolContext, command: str) -> str:
    output = await call_tool(context, "bash", {"command": command, "background": True})
    return output.for_person.jobs[0].id


async def read_until(context: ToolContext, id: str, text: str, before: str = "") -> None:
    """Look at a job until all of `text` was told; `before` was told already."""
    told = before
    while told != text:
        output = await call_tool(context, "job", {"id": id, "wait": 0.02})
        told += output.for_model.rpartition("\n[job")[0].replace("(no output)", "")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


async def test_a_job_is_told_in_pieces_and_its_end_with_the_last(
    context: ToolContext, workspace: Path
):
    begun = await call_tool(context, "bash", {"command": STEPS, "background": True})
    printed, _, ending = begun.for_model.partition("\n")
    assert printed in ("one", "(no output)")
    assert ending == "[runs in the background: job 1. Use job to get its further output]"
    assert not begun.is_error
    assert begun.for_person.summary == "runs in the background: job 1"
    assert begun.for_person.exit_code is None
    (fact,) = begun.for_person.jobs
    assert (fact.id, fact.command, fact.ending) == ("1", STEPS, "")
    await read_until(context, "1", "one", printed.replace("(no output)", ""))
    looked = await call_tool(context, "job", {"id": "1"})
    assert re.fullmatch(
        r"\(no output\)\n\[job 1: running for \d s; set wait to give it time\]", looked.for_model
    )
    (workspace / "go").touch()
    ended = await call_tool(context, "job", {"id": "1", "wait": 60})
    assert re.fullmatch(r"two\n\[job 1: exit code 3 after \d s\]", ended.for_model)
    assert ended.for_person.exit_code == 3
    assert ended.for_person.jobs[0].ending == context.jobs.require("1").ending
    again = await call_tool(context, "job", {"id": "1"})
    assert again.for_model.startswith("(no output)\n[job 1: exit code 3 after")


async def test_what_fails_at_once_in_the_background_is_told_as_any_other(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bash, "_SETTLE_S", 60.0)
    output = await call_tool(context, "bash", {"command": "no-such-thing", "background": True})
    assert output.for_model.endswith("[exit code 127]")
    assert output.is_error
    assert context.jobs.jobs == ()
    assert list(context.output_dir.iterdir()) == []


async def test_a_server_started_in_one_call_is_there_in_the_next_and_stops(
    context: ToolContext, workspace: Path
):
    (workspace / "index.html").write_text("hello from the job")
    port = free_port()
    command = f"exec {sys.executable} -u -m http.server {port} --bind 127.0.0.1"
    assert await begin(context, command) == "1"
    ask = (
        f"{sys.executable} -c 'import urllib.request as r;"
        f'print(r.urlopen("http://127.0.0.1:{port}/").read().decode())\''
    )
    tries = f"for _ in $(seq 200); do {ask} 2>/dev/null && break; sleep 0.05; done"
    assert (await call_tool(context, "bash", {"command": tries})).for_model.startswith("hello from")
    assert "GET / HTTP/1.1" in (await call_tool(context, "job", {"id": "1"})).for_model
    stopped = await call_tool(context, "job", {"id": "1", "stop": True})
    assert re.search(r"\[job 1: stopped after \d+ s\]$", stopped.for_model)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


async def test_what_a_command_leaves_running_goes_on_as_a_job(context: ToolContext):
    for command in (f"{nap(76511)} & echo up", f"nohup {nap(76511)} >/dev/null 2>&1 & echo up"):
        output = await call_tool(context, "bash", {"command": command})
        id = context.jobs.jobs[-1].id
        assert output.for_model == f"up\n[exit code 0; what is still running is job {id}]"
        assert output.for_person.exit_code == 0
        assert alive(nap(76511))
        await call_tool(context, "job", {"id": id, "stop": True})
        assert alive(nap(76511)) == []


async def test_a_command_that_is_put_into_the_background_twice_goes_on(context: ToolContext):
    assert await begin(context, "sleep 76512 &") == "1"
    assert [job.id for job in context.jobs.running] == ["1"]
    await context.jobs.leave()


async def test_a_command_nobody_set_a_time_for_goes_on_when_its_time_is_over(
    context: ToolContext, workspace: Path
):
    context.default_timeout_s = 0.5
    output = await call_tool(context, "bash", {"command": STEPS})
    assert "\n[runs in the background: job 1. Use job" in output.for_model
    (workspace / "go").touch()
    ended = await call_tool(context, "job", {"id": "1", "wait": 60})
    assert "two\n[job 1: exit code 3" in ended.for_model


async def test_a_command_of_the_persons_is_stopped_when_its_time_is_over(context: ToolContext):
    context.default_timeout_s = 0.5
    context.leaves_jobs = False
    output = await call_tool(context, "bash", {"command": "sleep 76513"})
    assert "[timeout: stopped after" in output.for_model
    assert context.jobs.jobs == ()


async def test_a_long_piece_is_shortened_and_the_whole_kept(context: ToolContext):
    context.limits = OutputLimits(max_bytes=1_000)
    command = "echo first; until [ -e go ]; do sleep 0.01; done; seq 1 100000"
    begun = await call_tool(context, "bash", {"command": command, "background": True})
    id, said = "1", begun.for_model.partition("\n")[0]
    await read_until(context, id, "first", said.replace("(no output)", ""))
    (context.cwd / "go").touch()
    output = await call_tool(context, "job", {"id": id, "wait": 60})
    assert output.for_person.truncated
    assert "left out" in output.for_model
    path = Path(output.for_person.full_output_path or "")
    rest = r"; read it with offset=(\d+) limit=(\d+) for the rest;"
    ((first, count),) = re.findall(rf"\[whole output: {path}{rest}", output.for_model)
    assert f"\n[... lines {first}-" in output.for_model
    lines = {"path": str(path), "offset": int(first), "limit": int(count)}
    rest = await call_tool(context, "read", lines)
    assert rest.for_model.startswith("9\t8\n10\t9\n")
    assert path.read_text() == "first\n" + "".join(f"{n}\n" for n in range(1, 100_001))
    assert context.jobs.require(id).command.output.last_lines().endswith("\n100000\n")


async def test_a_character_cut_between_two_looks_is_told_whole(context: ToolContext):
    command = r"printf 'a\303'; until [ -e go ]; do sleep 0.01; done; printf '\244'"
    begun = await call_tool(context, "bash", {"command": command, "background": True})
    id, said = "1", begun.for_model.partition("\n")[0]
    await read_until(context, id, "a", said.replace("(no output)", ""))
    (context.cwd / "go").touch()
    output = await call_tool(context, "job", {"id": id, "wait": 60})
    assert output.for_model.startswith("ä\n[")


async def test_a_key_cut_between_two_looks_is_in_neither(context: ToolContext):
    context.secrets = ("hunter2-hunter2",)
    wait = "until [ -e go ]; do sleep 0.01; done"
    command = {"command": f"printf 'x hunter2-h'; {wait}; echo unter2", "background": True}
    begun = await call_tool(context, "bash", command)
    said = begun.for_model.partition("\n")[0].replace("(no output)", "")
    await read_until(context, "1", "x ", said)
    (context.cwd / "go").touch()
    output = await call_tool(context, "job", {"id": "1", "wait": 60})
    assert output.for_model.startswith("[key removed]\n[job 1")
    path = context.jobs.require("1").command.output.path
    assert path is not None
    assert path.read_text() == "x [key removed]\n"


async def test_what_is_printed_in_the_background_is_not_shown_as_a_calls_output(
    context: ToolContext, emitted: list[str]
):
    id = await begin(context, "until [ -e go ]; do sleep 0.01; done; echo late")
    (context.cwd / "go").touch()
    assert (await call_tool(context, "job", {"id": id, "wait": 60})).for_model.startswith("late\n")
    assert emitted == []


async def test_what_prints_without_end_is_stopped_like_any_other(context: ToolContext):
    id = await begin(context, "yes")
    looked = await call_tool(context, "job", {"id": id, "wait": (wait := 0.02)})
    while not looked.for_person.truncated:
        looked = await call_tool(context, "job", {"id": id, "wait": (wait := 2 * wait)})
    assert "left out" in looked.for_model
    stopped = await call_tool(context, "job", {"id": id, "stop": True})
    assert "[job 1: stopped after" in stopped.for_model


async def test_without_an_id_all_jobs_are_told(context: ToolContext):
    assert (await call_tool(context, "job", {})).for_model == "(none)"
    await begin(context, "echo a;\n sleep 76514")
    await begin(context, "sleep 76515")
    await call_tool(context, "job", {"id": "1", "stop": True})
    output = await call_tool(context, "job", {})
    assert re.fullmatch(
        r"1: echo a; sleep 76514 \[stopped after \d+ s\]\n2: sleep 76515 \[running for \d+ s\]",
        output.for_model,
    )
    assert [bool(job.ending) for job in output.for_person.jobs] == [True, False]


async def test_an_id_that_is_none_is_answered_with_those_there_are(context: ToolContext):
    await begin(context, "sleep 76516")
    with pytest.raises(ToolError, match=r"no background job '7'. Jobs: 1\."):
        intent_of(context, "job", {"id": "7"})
    with pytest.raises(ToolError, match="stop needs an id"):
        intent_of(context, "job", {"stop": True})


async def test_only_so_many_run_at_a_time(context: ToolContext):
    await asyncio.gather(*(begin(context, nap(76517)) for _ in range(MAX_RUNNING)))
    with pytest.raises(ToolError, match="16 background jobs are running"):
        await begin(context, nap(76517))
    output = await call_tool(context, "bash", {"command": f"{nap(76518)} & echo up"})
    assert output.for_model == "up\n[exit code 0]"
    assert alive(nap(76518)) == []
    assert len(await context.jobs.leave()) == MAX_RUNNING
    assert alive(nap(76517)) == []


async def test_giving_up_waiting_for_a_job_leaves_it_running(context: ToolContext):
    id = await begin(context, "sleep 76519")
    waiting = asyncio.create_task(call_tool(context, "job", {"id": id, "wait": 3_000}))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert context.jobs.require(id).is_running


async def test_whoever_listens_hears_of_each_beginning_and_end_once(context: ToolContext):
    heard: list[Job] = []
    context.jobs.listen(heard.append)
    first = await begin(context, "until [ -e go ]; do sleep 0.01; done")
    second = await begin(context, "sleep 76520")
    third = await begin(context, "sleep 76520")
    assert [(job.id, job.ending) for job in heard] == [(first, ""), (second, ""), (third, "")]
    heard.clear()
    (context.cwd / "go").touch()
    await call_tool(context, "job", {"id": first, "wait": 60})
    await call_tool(context, "job", {"id": second, "stop": True})
    assert [job.id for job in await context.jobs.leave()] == [third]
    assert [(job.id, job.ending.split(" after ")[0]) for job in heard] == [
        (first, "exit code 0"),
        (second, "stopped"),
    ]


async def test_ids_go_on_after_those_that_were_used(context: ToolContext):
    context.jobs.spare(("3", "1", "odd", "9" * 5_000))
    assert await begin(context, "sleep 76521") == "4"


async def test_with_the_program_all_jobs_end(context: ToolContext):
    await begin(context, f"trap '' TERM; {nap(76522)} & setsid {nap(76522)}")
    while len(alive(nap(76522))) < 2:
        await asyncio.sleep(0.01)
    running = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in running:
        task.cancel()  # as the end of an event loop does
    await asyncio.wait(running)
    assert gone(nap(76522))


def test_the_person_is_told_that_a_command_goes_on_before_they_agree(context: ToolContext):
    arguments = {"command": "make", "background": True}
    intent = intent_of(context, "bash", arguments)
    assert (intent.access, intent.command, intent.note) == (
        "execute",
        "make",
        "runs in the background",
    )
    in_front = intent_of(context, "bash", {"command": "make"})
    assert in_front.note == ""
    assert in_front.fingerprint != intent.fingerprint
