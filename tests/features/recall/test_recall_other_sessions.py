"""Asking for what was said in other sessions of the same folder."""

from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.sessions.entries import Header
from agent_tui.sessions.lineage.chain import PastSessions, SessionChain
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.search import session_search
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.base import ToolContext
from tests.support.recalling import body, hits, look_in, recall
from tests.support.talk import Talk

SESSION_ID = "a1b2c3d4-0000-4000-8000-000000000001"


@pytest.fixture
def store(context: ToolContext) -> SessionStore:
    return SessionStore(context.cwd / "sessions", "none")


def said_in(store: SessionStore, cwd: Path, *prompts: str, session_id: str = SESSION_ID) -> Path:
    talk = Talk(prefix="f")
    for prompt in prompts:
        talk.user(prompt)
    with store.create(Header(id=session_id, cwd=str(cwd))) as log:
        log.append_many(talk.entries)
        assert log.path is not None
        return log.path


@pytest.fixture(params=["indexed", "not indexed", "stale"])
def fixed_before(request: pytest.FixtureRequest, context: ToolContext, store: SessionStore) -> None:
    """An earlier session told how the test was fixed; whatever the state of the index."""
    if request.param == "stale":
        said_in(store, context.cwd, "Hello.", session_id="b0000000-1")
        assert store.update_search() == 0
    said_in(store, context.cwd, "The flaky test waits for the port now.")
    if request.param == "indexed":
        assert store.update_search() == 0
    look_in(context, Talk().path)


@pytest.mark.usefixtures("fixed_before")
async def test_words_said_in_another_session_are_found_with_date_and_id(context) -> None:
    text = await recall(context, query="flaky test")
    assert "In other sessions of this project:" in text
    assert "a1b2c3d4:f0000000 · user message · 2023-11-14 22:13 · line 1" in text


@pytest.mark.usefixtures("fixed_before")
async def test_the_id_of_a_hit_gives_the_original(context) -> None:
    (found,) = hits(await recall(context, query="flaky test"))
    assert body(await recall(context, id=found)) == "The flaky test waits for the port now."


async def test_another_folder_is_never_searched(context, store) -> None:
    said_in(store, context.cwd.parent / "elsewhere", "The flaky test waits for the port.")
    look_in(context, Talk().path)
    assert "flaky" not in await recall(context, query="flaky test")
    with pytest.raises(ToolError, match="No readable session begins with a1b2c3d4"):
        await recall(context, id="a1b2c3d4:f0000000")


async def test_a_file_of_another_folder_among_ours_is_not_given(context, store) -> None:
    foreign = said_in(store, context.cwd.parent / "elsewhere", "The flaky test waits.")
    ours = said_in(store, context.cwd, "Hello.", session_id="b0000000-1")
    foreign.rename(ours.parent / foreign.name)
    look_in(context, Talk().path)
    assert "flaky" not in await recall(context, query="flaky test")
    with pytest.raises(ToolError, match="No readable session"):
        await recall(context, id="a1b2c3d4:f0000000")


async def test_a_deleted_session_is_forgotten(context, store) -> None:
    path = said_in(store, context.cwd, "The flaky test waits for the port.")
    assert store.update_search() == 0
    store.delete(path)
    look_in(context, Talk().path)
    assert hits(await recall(context, query="flaky test")) == []


async def test_a_session_that_another_process_writes_is_found(context, store) -> None:
    path = said_in(store, context.cwd, "The flaky test waits for the port.")
    look_in(context, Talk().path)
    with SessionLog.open(path, "none"):
        assert hits(await recall(context, query="flaky test")) == ["a1b2c3d4:f0000000"]


async def test_sessions_beyond_what_one_search_reads_are_told_of(
    context, store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_search, "_MOST_BYTES_AT_ONCE", 100)
    for session_id in ("a1b2c3d4-1", "b0000000-1"):
        said_in(store, context.cwd, "The flaky test waits.", session_id=session_id)
    look_in(context, Talk().path)
    assert "(1 of them could not be searched.)" in await recall(context, query="flaky test")


async def test_what_other_sessions_say_leaves_room_for_the_own(context, store) -> None:
    for number in range(5):
        said = [f"flaky {part} " + "x" * 400 for part in range(20)]
        said_in(store, context.cwd, *said, session_id=f"c000000{number}-1")
    talk = Talk()
    talk.user("The flaky test is mine.")
    look_in(context, talk.path)
    context.limits = type(context.limits)(max_bytes=1_500)
    text = await recall(context, query="flaky")
    assert hits(text)[0] == "e0000000"
    assert len(text.encode()) <= 1_500


async def test_a_conversation_kept_to_itself_finds_only_its_own(context, store) -> None:
    said_in(store, context.cwd, "The flaky test waits for the port.")
    context.history = SessionChain(SessionLog.create(None, Header()), PastSessions(store))
    assert hits(await recall(context, query="flaky")) == []
