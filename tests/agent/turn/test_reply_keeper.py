"""A reply is on disk while it is streamed; after a kill it is part of the session, as after Esc."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from agent_tui.agent.turn import reply_keeper
from agent_tui.agent.turn.reply_keeper import ReplyKeeper
from agent_tui.features.tour.scripted import Reply
from agent_tui.messages import AssistantMessage, TextContent
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.partial_reply import PartialReply
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
    replies = [Reply(text="Hello."), Reply(text="Half of sk-canary.", gate=gate)]
    runtime = stage.runtime(replies, secrets=("sk-canary",))
    session = runtime.conversation.log.path
    assert session is not None

    async def run(text: str) -> None:
        async with aclosing(runtime.submit(text)) as events:
            async for _ in events:
                pass

    await run("hi")
    turn = asyncio.create_task(run("go"))
    left = await wait_for(session.with_suffix(".reply"), b"removed]")
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


async def test_a_reply_is_written_when_it_has_grown_in_a_thread_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reply_keeper, "KEEP_S", 0.0)
    runtime = Stage(tmp_path).runtime([Reply(text="Hello.")])
    async with aclosing(runtime.submit("hi")) as events:
        async for _ in events:
            pass
    written: list[tuple[str, bool]] = []

    def write(_file: PartialReply, message: AssistantMessage, _parent_id: str | None) -> None:
        written.append((message.text, current_thread() is main_thread()))

    monkeypatch.setattr(PartialReply, "write", write)
    said: list[str] = []
    looks = 0

    def so_far() -> AssistantMessage | None:
        nonlocal looks
        looks += 1
        text = "".join(said)
        content = (TextContent(text=text),)
        return AssistantMessage(content=content, timestamp=1) if text else None

    async def look_often() -> None:
        before = looks
        while looks < before + 3:
            await asyncio.sleep(0)

    with ReplyKeeper(runtime.conversation, so_far):
        for word in ("", "one", " two"):
            said.append(word)
            await look_often()
    at_end = looks
    for _ in range(9):
        await asyncio.sleep(0)
    assert looks == at_end
    await asyncio.get_running_loop().shutdown_default_executor()
    assert written == [("one", False), ("one two", False)]
    await runtime.aclose()
