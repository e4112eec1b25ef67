"""Sessions of every format version so far go on in this one; newer ones are left alone."""

from pathlib import Path

import pytest

from agent_tui.errors import NewerFormatError
from agent_tui.events import CompactionFinished, TurnFinished
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRequest
from agent_tui.sessions.entries import FORMAT_VERSION, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.killed_program import old_file
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, only

LINES = 60


def answer(request: ModelRequest) -> Reply:
    return Reply(GOOD_SUMMARY if request.purpose == "summary" else "Understood. " * 200)


def said(log: SessionLog) -> list[str]:
    messages = (entry.message for entry in log.entries if isinstance(entry, MessageEntry))
    return [message.text for message in messages if isinstance(message, UserMessage)]


def given(stage: Stage, version: int) -> Path:
    path = stage.sessions / "old" / f"0_v{version}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(old_file(version, LINES, str(stage.workspace)))
    return path


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
async def test_a_session_of_each_version_goes_on_is_compacted_and_resumed(
    tmp_path: Path, version: int
):
    stage = Stage(tmp_path)
    path = given(stage, version)
    before = path.read_bytes()
    runtime = stage.runtime(answer)
    await runtime.sessions.open(str(path))
    for number in range(3):
        events = await collect(runtime.submit(f"new {number}"))
        assert only(events, TurnFinished).outcome == "done"
    wanted = [f"old {number}" for number in range(LINES)] + [f"new {n}" for n in range(3)]
    again = SessionLog.open(path, read_only=True)
    assert (again.header.version, again.warnings, said(again)) == (FORMAT_VERSION, (), wanted)
    originals = [kept.read_bytes() for kept in path.parent.glob("*.bak")]
    assert originals == ([before] if version < FORMAT_VERSION else [])
    only(await collect(runtime.compact()), CompactionFinished)
    child = runtime.conversation.log
    assert child.path is not None
    assert child.header.parent_session == str(path)
    context = runtime.conversation.context().messages
    await runtime.aclose()
    last = stage.runtime(answer)
    await last.sessions.open(str(child.path))
    assert last.conversation.context().messages == context
    assert only(await collect(last.submit("last")), TurnFinished).outcome == "done"
    await last.aclose()


async def test_a_session_of_a_newer_version_is_read_and_copied_and_never_written(tmp_path: Path):
    stage = Stage(tmp_path)
    path = given(stage, FORMAT_VERSION + 1)
    before = path.read_bytes()
    runtime = stage.runtime(answer)
    for _ in range(2):
        with pytest.raises(NewerFormatError, match=r"has format version 4.*Update agent-tui"):
            await runtime.sessions.open(str(path))
    with pytest.raises(NewerFormatError):
        SessionStore(stage.sessions).rename(path, "named")
    await runtime.sessions.open(str(path), mode="read-only")
    await runtime.sessions.open(str(path), mode="fork")
    await collect(runtime.submit("new"))
    assert said(runtime.conversation.log)[-2:] == [f"old {LINES - 1}", "new"]
    assert runtime.conversation.log.header.version == FORMAT_VERSION
    await runtime.aclose()
    assert (list(path.parent.iterdir()), path.read_bytes()) == ([path], before)
