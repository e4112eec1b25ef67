"""Background jobs on the screen: the bar, the chat, and ``/jobs``."""

import asyncio
import socket
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.features.jobs.part import MOST_WAKES, JobsPart
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.screens.choice import ChoiceScreen
from agent_tui.ui.screens.listing import ListingScreen
from agent_tui.ui.screens.modal import PageScreen
from tests.support.processes import alive, nap
from tests.support.runtime import Stage
from tests.ui.app_support import Ui, held, running_app

WAIT = "until [ -e go ]; do sleep 0.01; done"


def begin(command: str, call_id: str = "c1") -> tuple[Reply, Reply]:
    begun = call(call_id, "bash", command=command, background=True)
    return Reply(tool_calls=(begun,)), Reply("It runs.")


async def drawn(ui: Ui) -> str:
    """What the screen on top shows."""
    await ui.drawn()
    strips = ui.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


async def page_of(port: int) -> str:
    """What a server that is about to begin answers."""
    for _ in range(2_000):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.to_thread(time.sleep, 0.01)  # time that does not leap
            continue
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer.decode().partition("\r\n\r\n")[2]
    raise AssertionError


def free(stage: Stage, *replies: Reply):
    return stage.runtime(list(replies))


async def test_a_server_of_one_turn_is_there_in_the_next_and_ends_with_the_screen(tmp_path: Path):
    stage, port = Stage(tmp_path), free_port()
    (stage.workspace / "index.html").write_text("hello from the job")
    command = f"exec {sys.executable} -u -m http.server {port} --bind 127.0.0.1"
    runtime = free(stage, *begin(command), Reply("Still there."))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        assert ui.status.jobs == 0
        await ui.send("start it")
        assert ui.status.jobs == 1
        assert await page_of(port) == "hello from the job"
        await ui.send("and now")
        assert await page_of(port) == "hello from the job"
        await ui.app.controller.aclose()
    assert alive(f"http.server {port}") == []


async def test_the_chat_says_when_a_job_ends_and_the_bar_no_longer_counts_it(tmp_path: Path):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=free(stage, *begin(WAIT))) as ui:
        await ui.send("start it")
        (stage.workspace / "go").touch()
        await ui.until(lambda: bool(ui.notices))
        assert ui.notices[0].startswith(f"Job 1 ({WAIT}) has ended: exit code 0 after ")
        assert ui.status.jobs == 0


async def test_jobs_are_picked_looked_at_and_stopped(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *begin("echo printed; sleep 76701"), *begin(nap(76702), "c2"))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("/jobs")
        assert ui.notices == ["No background jobs."]
        await ui.send("start it")
        await ui.send("and another")
        assert ui.status.jobs == 2
        await ui.send("/jobs")
        assert isinstance(ui.app.screen, ListingScreen)
        assert "echo printed; sleep 76701" in await drawn(ui)
        await ui.pilot.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("o")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        assert "printed" in await drawn(ui)
        assert "full output" in await drawn(ui)
        await ui.pilot.press("escape")
        await ui.send("/jobs")
        await ui.pilot.press("down", "enter")
        await ui.until(lambda: isinstance(ui.app.screen, ChoiceScreen))
        await ui.pilot.press("s")
        await ui.until(lambda: ui.status.jobs == 1)
        assert alive(nap(76702)) == []
        assert "has ended: stopped after" in ui.notices[-1]


async def test_jobs_are_named_by_their_ids(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *begin("sleep 76703"))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        await ui.send("/jobs kill 1")
        assert ui.notices[-1] == "/jobs takes ID or stop ID, not kill 1."
        await ui.send("/jobs stop 4")
        assert ui.notices[-1] == "No job 4. Jobs: 1."
        await ui.send("/jobs stop 1")
        await ui.until(lambda: ui.status.jobs == 0)
        await ui.send("/jobs stop 1")
        assert ui.notices[-1].startswith("Job 1 has already ended: stopped after")
        await ui.send("/jobs 1")
        assert isinstance(ui.app.screen, PageScreen)


async def test_a_long_output_opens_at_its_end(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *begin(f"seq -f 'line %g' 150; {WAIT}"))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        await ui.send("/jobs 1")
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.settle()
        assert "line 150" in await drawn(ui)


async def test_a_new_session_says_what_it_stopped(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *begin(nap(76704)))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        await ui.send("/new")
        assert ui.notices == [f"Stopped with the session that started them: {nap(76704)}"]
        assert ui.status.jobs == 0
        assert alive(nap(76704)) == []


async def test_a_running_command_is_moved_to_the_background(tmp_path: Path):
    stage = Stage(tmp_path)
    waits = Reply(tool_calls=(call("c1", "bash", command=WAIT, timeout=600),))
    async with running_app(tmp_path, stage=stage, runtime=free(stage, waits, Reply("Ok."))) as ui:
        await ui.write("start it")
        await ui.pilot.press("enter")
        await ui.until(lambda: "bash until" in ui.drawn_chat)
        await ui.until(lambda: bool(ui.app.controller.runtime.conversation.jobs.awaited))
        await ui.pilot.press("ctrl+b")
        await ui.settle()
        assert ui.status.jobs == 1
        assert "runs in the background: job 1" in ui.drawn_chat
        entries = ui.app.controller.runtime.conversation.log.path_entries()
        results = [str(getattr(entry, "message", "")) for entry in entries]
        told = "[runs in the background: job 1; the user moved it there. Use job"
        assert any(told in result for result in results)
        await ui.pilot.press("ctrl+b")
        await ui.settle()
        assert ui.notices[-1] == "No command has started that could go on in the background."


@pytest.mark.parametrize("sign", ["!", "!!"])
async def test_a_command_of_the_persons_is_moved_to_the_background(tmp_path: Path, sign: str):
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=free(stage, Reply("Ok."))) as ui:
        conversation = ui.app.controller.runtime.conversation
        await ui.write(f"{sign}echo begun; {WAIT}")
        await ui.pilot.press("enter")
        await ui.until(lambda: bool(conversation.jobs.awaited) and "│ begun" in ui.drawn_chat)
        await ui.pilot.press("ctrl+b")
        await ui.settle()
        assert ui.status.jobs == 1
        assert "runs in the background: job 1" in ui.drawn_chat
        assert "│ begun" in ui.drawn_chat
        (stage.workspace / "go").touch()
        await ui.until(lambda: bool(ui.notices))
        assert "has ended: exit code 0" in ui.notices[-1]
        await ui.send("and now")
        entries = conversation.log.path_entries()
        is_told = any("has ended" in str(getattr(entry, "content", "")) for entry in entries)
        assert is_told == (sign == "!")
        assert bool(conversation.jobs.seen) == (sign == "!")


async def test_a_resumed_session_shows_what_was_told_of_an_end(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *begin(WAIT), Reply("I see."))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        (stage.workspace / "go").touch()
        await ui.until(lambda: bool(ui.notices))
        await ui.send("and now")
        ui.redraw()
        await ui.settle()
        (told,) = ui.notices
        assert told.startswith(f"(Job 1 ({WAIT}) has ended: exit code 0 after ")


def naps_until(name: str, call_id: str = "c1") -> tuple[Reply, Reply]:
    return begin(f"until [ -e {name} ]; do sleep 0.01; done", call_id)


async def test_the_end_of_a_job_wakes_the_model(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *naps_until("go"), Reply("It has ended."))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        told = "Use job to get its further output; you are told when it ends, even after your turn]"
        assert told in str(runtime.conversation.log.entries)
        (stage.workspace / "go").touch()
        await ui.until(lambda: "It has ended." in ui.drawn_chat)


@pytest.mark.parametrize("draft", ["", "and then"])
async def test_a_stopped_turn_or_a_draft_keeps_the_end_of_a_job_for_the_next_message(
    tmp_path: Path, draft: str
):
    stage = Stage(tmp_path)
    begun = naps_until("go") if draft else (naps_until("go")[0], held("Waiting"))
    async with running_app(tmp_path, stage=stage, runtime=free(stage, *begun, Reply("Ok."))) as ui:
        await ui.submit("start it")
        await ui.until(lambda: ("It runs." if draft else "Waiting") in ui.drawn_chat)
        await ui.write(draft)
        if not draft:
            await ui.pilot.press("escape")
            await ui.settle()
        (stage.workspace / "go").touch()
        await ui.until(lambda: any("has ended" in notice for notice in ui.notices))
        await ui.settle()
        assert "Ok." not in ui.drawn_chat
        await ui.send("and then")
        assert "Ok." in ui.drawn_chat


async def test_a_draft_that_is_cleared_keeps_the_model_asleep_no_longer(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *naps_until("go"), Reply("It has ended."))
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        await ui.write("a")
        (stage.workspace / "go").touch()
        await ui.until(lambda: any("has ended" in notice for notice in ui.notices))
        await ui.pilot.press("backspace")
        await ui.until(lambda: "It has ended." in ui.drawn_chat)


async def test_a_setting_keeps_the_model_asleep(tmp_path: Path):
    stage = Stage(tmp_path)
    runtime = free(stage, *naps_until("go"), Reply("It has ended."))
    settings = runtime.services.settings
    runtime.services.settings = settings.model_copy(update={"continue_after_jobs": False})
    async with running_app(tmp_path, stage=stage, runtime=runtime) as ui:
        await ui.send("start it")
        (stage.workspace / "go").touch()
        await ui.until(lambda: bool(ui.notices))
        await ui.settle()
        assert "It has ended." not in ui.drawn_chat
        assert "you are told when" not in str(runtime.conversation.log.entries)


async def test_a_model_that_jobs_wake_again_and_again_comes_to_rest(tmp_path: Path):
    stage, told = Stage(tmp_path), list[object]()
    runtime = free(stage, *naps_until("go"))
    runtime.can_wake = True
    async with aclosing(runtime.submit("start it")) as events:
        [event async for event in events]
    (stage.workspace / "go").touch()
    job = runtime.conversation.jobs.find("1")
    assert job is not None
    while job.is_running:
        await asyncio.to_thread(time.sleep, 0.01)  # time that does not leap
    part = runtime.part(JobsPart)
    assert [part.wake() for _ in range(MOST_WAKES + 1)] == [True] * MOST_WAKES + [False]
    await part.before_continuing(told.append)
    assert f"{MOST_WAKES} times without you" in str(told)
    await part.before_message("I am here", told.append)
    assert part.wake()
    await runtime.aclose()
