"""An open goal in a session that a program continues with the library."""

from pathlib import Path

import pytest

from agent_tui import Agent, Session
from agent_tui.features.goal.goal import Goal, goal_entry, goal_in
from agent_tui.sessions.log import SessionLog
from tests.support.openai_server import OpenAiServer, Reply


async def test_an_open_goal_goes_on_in_a_session_that_the_library_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    folder = tmp_path / "kept"
    folder.mkdir()
    with OpenAiServer() as server:

        def agent(session: Session | Path) -> Agent:
            return Agent("some-model", base_url=server.base_url, cwd=tmp_path, session=session)

        server.play(Reply(text="Hello."))
        async with agent(folder) as one:
            await one.ask("Hello?")
            session = one.session
        assert session is not None
        log = SessionLog.open(session.path)
        log.append(goal_entry(Goal(text="It is said twice.")))
        log.close()
        server.play(
            Reply(text="Once."),
            Reply(text="VERDICT: not met\nMISSING:\n- it was said only once"),
            Reply(text="Twice."),
            Reply(text="VERDICT: met"),
        )
        async with agent(session) as again:
            assert await again.ask("Say it.") == "Twice."
    ended = goal_in(SessionLog.open(session.path, read_only=True).path_entries())
    assert ended is not None
    assert (ended.ending, ended.turns) == ("met", 2)
