"""A reply is on disk while it is streamed; after a kill it is part of the session, as after Esc."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_tui.agent.turn import reply_keeper
from agent_tui.messages import AssistantMessage
from agent_tui.providers.scripted.provider import Reply
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from tests.support.runtime import Stage


async def wait_for(path: Path, words: bytes) -> bytes:
    while True:
        if path.exists() and words in (content := path.read_bytes()):
            return content
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("ending", ["finished", "aborted"])
async def test_a_reply_is_kept_while_it_is_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
):
    monkeypatch.setattr(reply_keeper, "KEEP_S", 0.0)
    gate = asyncio.Event()
    stage = Stage(tmp_path)
    runtime = stage.runtime([Reply(text="Half of sk-canary.", gate=gate)], secrets=("sk-canary",))
    session = runtime.conversation.log.path
    assert session is not None

    async def run() -> None:
        async with aclosing(runtime.submit("go")) as events:
            async for _ in events:
                pass

    turn = asyncio.create_task(run())
    left = await wait_for(session.with_suffix(".reply"), b"Half of")
    assert b"canary" not in left
    as_killed = tmp_path / "killed.jsonl"
    as_killed.write_bytes(session.read_bytes())
    if ending == "finished":
        gate.set()
    else:
        runtime.abort()
    await turn
    assert not session.with_suffix(".reply").exists()
    await runtime.aclose()
    as_killed.with_suffix(".reply").write_bytes(left)

    again = stage.runtime([Reply(text="Done.")])
    await again.sessions.open(str(as_killed), here=True)
    newest = again.conversation.log.path_entries()[-1]
    await again.aclose()
    assert isinstance(newest, MessageEntry)
    assert isinstance(newest.message, AssistantMessage)
    assert newest.message.stop_reason == "aborted"
    if ending == "aborted":
        stored = [
            one.message
            for one in SessionLog.open(session, read_only=True).entries
            if isinstance(one, MessageEntry) and isinstance(one.message, AssistantMessage)
        ]
        assert newest.message.content == stored[-1].content, "the same as a cancel stores"
