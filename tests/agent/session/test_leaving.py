"""What a session keeps of how the person left it: when, and in which permission mode."""

import shutil
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import PermissionMode
from agent_tui.events import Notice
from agent_tui.features.tour.scripted import Reply
from tests.support.runtime import Stage, collect


async def left(stage: Stage, mode: PermissionMode, first: PermissionMode = "ask") -> Path:
    """A session that began in the mode `first` and was left in `mode`."""
    runtime = stage.runtime([Reply("Fine.")], mode=first)
    await collect(runtime.submit("hi"))
    runtime.conversation.permissions.mode = mode
    await runtime.aclose()
    path = runtime.conversation.log.path
    assert path is not None
    return path


async def reopened(runtime: AgentRuntime, path: Path) -> tuple[str, str]:
    """The mode after opening `path`, and what was said."""
    events = await runtime.sessions.open(str(path))
    told = " ".join(event.text for event in events if isinstance(event, Notice))
    return runtime.conversation.permissions.mode, told


@pytest.mark.parametrize("mode", ["accept-edits", "plan"])
async def test_a_session_opens_in_the_mode_it_was_left_in(stage: Stage, mode: PermissionMode):
    path = await left(stage, mode)
    found, told = await reopened(stage.runtime([], mode="ask"), path)
    assert found == mode
    assert told == f"Permission mode: {mode}, as you left this session. /permissions changes it."


async def test_a_killed_session_opens_in_the_mode_that_was_in_force(stage: Stage):
    first = stage.runtime([Reply("Fine.")], mode="ask")
    first.sessions.use_mode("plan")
    assert first.conversation.log.entries == (), "no file is made for it"
    await collect(first.submit("hi"))
    path = first.conversation.log.path
    assert path is not None
    for mode in ("plan", "accept-edits", "plan", "ask"):
        first.sessions.use_mode(mode)
        killed = path.with_name("killed.jsonl")
        shutil.copy(path, killed)
        again = stage.runtime([], mode="ask")
        assert (await reopened(again, killed))[0] == mode
        await again.aclose()
    await first.aclose()


async def test_full_mode_is_chosen_again(stage: Stage):
    found, told = await reopened(stage.runtime([], mode="ask"), await left(stage, "full"))
    assert found == "ask"
    assert "You left this session in full mode. It opens in ask" in told


async def test_a_session_left_in_the_default_mode_says_nothing(stage: Stage):
    path = await left(stage, "ask")
    assert "permission_mode" not in path.read_text()
    assert await reopened(stage.runtime([], mode="ask"), path) == ("ask", "")


async def test_the_newest_mode_counts(stage: Stage):
    path = await left(stage, "accept-edits")
    runtime = stage.runtime([], mode="ask")
    await reopened(runtime, path)
    runtime.conversation.permissions.mode = "ask"
    await runtime.sessions.start_new()
    assert await reopened(stage.runtime([], mode="ask"), path) == ("ask", "")


async def test_a_setting_or_a_flag_wins_and_what_was_chosen_meanwhile(stage: Stage):
    path = await left(stage, "accept-edits")
    runtime = stage.runtime([], mode="ask")
    runtime.services.keeps_mode = True
    assert (await reopened(runtime, path))[0] == "ask"
    await runtime.aclose()
    path = await left(stage, "accept-edits")
    runtime = stage.runtime([], mode="ask")
    runtime.conversation.permissions.mode = "plan"
    assert (await reopened(runtime, path))[0] == "plan"


async def test_a_session_file_from_elsewhere_chooses_no_mode(stage: Stage):
    path = await left(stage, "accept-edits")
    other = stage.folder / "given.jsonl"
    shutil.copy(path, other)
    assert (await reopened(stage.runtime([], mode="ask"), other))[0] == "ask"


async def test_opening_or_leaving_a_session_makes_it_the_one_left_last(stage: Stage):
    one, two = await left(stage, "ask"), await left(stage, "ask")
    runtime = stage.runtime([], mode="ask")
    store = runtime.services.store
    assert store.find_left_last(stage.workspace) == two
    before = one.stat()
    await runtime.sessions.open(str(one))
    assert store.find_left_last(stage.workspace) == one
    await runtime.sessions.open(str(two))
    await runtime.sessions.open(str(one))
    await runtime.aclose()
    assert store.find_left_last(stage.workspace) == one
    assert one.stat().st_mtime_ns == before.st_mtime_ns


async def test_what_a_script_leaves_is_not_noted(stage: Stage):
    path = await left(stage, "ask")
    runtime = stage.runtime([Reply("Fine.")], mode="ask")
    runtime.services.origin = "print"
    await runtime.sessions.start_new()
    await collect(runtime.submit("hi"))
    runtime.conversation.permissions.mode = "plan"
    await runtime.aclose()
    assert runtime.services.store.find_left_last(stage.workspace) == path
    written = runtime.conversation.log.path
    assert written is not None
    assert "permission_mode" not in written.read_text()
