"""The files that commands change are found out beside the conversation, and none is lost."""

import asyncio
from pathlib import Path

import pytest

from agent_tui.events import ReplyStarted, ToolFinished, ToolOutputDelta, TurnFinished
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import FileTouches, ToolResultMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.tools.git.changes import GitChanges, Snapshot
from agent_tui.tools.git.status import WorkTree
from tests.support.runtime import Stage, collect

TOUCHED = FileTouches(edited=("/w/a.py",))


class HeldLook:
    """A look at the work tree that takes until it is let go; `begun` counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cwd: Path) -> None:
        self.begun = 0
        self.is_over = asyncio.Event()
        before = Snapshot(cwd, {}, None, WorkTree(cwd, "", {}), {})

        async def snapshot(*_: object) -> Snapshot:
            return before

        async def since(*_: object) -> FileTouches:
            self.begun += 1
            await self.is_over.wait()
            return TOUCHED

        monkeypatch.setattr(GitChanges, "snapshot", snapshot)
        monkeypatch.setattr(GitChanges, "since", since)


def results(entries: tuple[Entry, ...]) -> list[ToolResultMessage]:
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    return [message for message in messages if isinstance(message, ToolResultMessage)]


async def test_the_model_gets_the_result_before_it_is_known_what_a_command_changed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    look = HeldLook(monkeypatch, stage.workspace)
    runtime = stage.runtime(
        [Reply(tool_calls=(call("c1", "bash", command="echo x > a.py"),)), Reply(text="done")]
    )
    replies = 0
    async for event in runtime.submit("go"):
        if isinstance(event, ReplyStarted) and (replies := replies + 1) == 2:
            assert results(runtime.conversation.log.entries)[0].tool_details.files == FileTouches()
            look.is_over.set()
        if isinstance(event, TurnFinished):
            [result] = results(runtime.conversation.log.entries)
            assert result.tool_details.files == TOUCHED
    assert replies == 2
    await runtime.aclose()
    path = runtime.conversation.log.path
    assert path is not None
    [read] = results(SessionLog.open(path, read_only=True).entries)
    assert (read.tool_details.files, read.tool_details.exit_code) == (TOUCHED, 0)


async def test_nothing_changes_files_before_it_is_known_what_a_command_changed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    look = HeldLook(monkeypatch, stage.workspace)
    calls = (
        call("c1", "bash", command="echo x > a.py"),
        call("c2", "ls", path="."),
        call("c3", "write", path="b.py", content="new"),
    )
    runtime = stage.runtime([Reply(tool_calls=calls), Reply(text="done")])
    finished: list[str] = []
    async for event in runtime.submit("go"):
        if isinstance(event, ToolFinished):
            finished.append(event.call_id)
            if event.call_id == "c2":
                await asyncio.sleep(0)
                assert not (stage.workspace / "b.py").exists()
                look.is_over.set()
    assert finished == ["c1", "c2", "c3"]
    assert (stage.workspace / "b.py").exists()
    await runtime.aclose()


async def test_an_aborted_turn_ends_when_it_is_known_what_its_commands_changed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    look = HeldLook(monkeypatch, stage.workspace)
    calls = (call("c1", "bash", command="echo x > a.py"), call("c2", "bash", command="echo > b"))
    runtime = stage.runtime([Reply(tool_calls=calls), Reply(text="never")])
    async for event in runtime.submit("go"):
        if isinstance(event, ToolFinished) and event.call_id == "c1":
            runtime.abort()
            asyncio.get_running_loop().call_later(0, look.is_over.set)
    assert results(runtime.conversation.log.entries)[0].tool_details.files == TOUCHED
    await runtime.aclose()


async def test_what_an_interrupted_command_changed_is_recorded_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    look = HeldLook(monkeypatch, stage.workspace)
    look.is_over.set()
    command = "echo x > a.py; echo made; sleep 100"
    runtime = stage.runtime([Reply(tool_calls=(call("c1", "bash", command=command),))])
    async for event in runtime.submit("go"):
        if isinstance(event, ToolOutputDelta):
            runtime.abort()
    [result] = results(runtime.conversation.log.entries)
    assert result.tool_details.ending == "cancelled"
    assert result.tool_details.files == TOUCHED
    await runtime.aclose()


async def test_a_command_that_only_reads_is_not_looked_after(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    look = HeldLook(monkeypatch, stage.workspace)
    script = [Reply(tool_calls=(call("c1", "bash", command="ls | wc -l"),)), Reply(text="done")]
    await collect(stage.runtime(script).submit("go"))
    assert look.begun == 0
