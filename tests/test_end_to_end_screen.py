"""The whole screen over the real provider process, against an HTTP server on loopback."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_tui.features.first_run.screen import FirstRunScreen
from agent_tui.features.session_picker.screen import SessionPicker
from agent_tui.ui.chat.lines_above_prompt import StepsView
from agent_tui.ui.screens.picker import RowList
from tests.support.openai_server import Call, OpenAiServer, Reply, rate_limited
from tests.support.screen import screen


@pytest.fixture
def server() -> Iterator[OpenAiServer]:
    with OpenAiServer() as running:
        yield running


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"AGENT_TUI_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("TEST_KEY", "sk-canary-0123456789")
    (tmp_path / "workspace").mkdir()
    monkeypatch.chdir(tmp_path / "workspace")


def on(server: OpenAiServer) -> list[str]:
    """The arguments that lead to the test server."""
    return ["-m", "test-model", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]


async def test_a_working_day_on_the_screen(server: OpenAiServer):
    workspace = Path.cwd()
    server.play(
        Reply(
            text="I will write it.",
            tool_calls=(Call("write", {"path": "greet.py", "content": "print('hi')\n"}),),
        ),
        rate_limited(retry_after="0"),
        Reply(
            tool_calls=(
                Call("edit", {"path": "greet.py", "edits": [{"old": "hi", "new": "hello"}]}),
            )
        ),
        Reply(text="It **greets** now."),
        Reply(text="this much came", ending="close"),
        Reply(text=("and the rest",)),
        Reply(text="going on", ending="hang"),
        Reply(text="All is well."),
    )
    async with screen(*on(server), "--permission-mode", "accept-edits") as here:
        await here.send("write greet.py")
        await here.until_shown("It greets now.")
        await here.until_idle()
        assert (workspace / "greet.py").read_text() == "print('hello')\n"
        assert len(server.chats) == 4

        await here.send("and a cut stream?")
        await here.until_idle()
        assert (here.last_message.text, here.last_message.stop_reason) == ("and the rest", "stop")
        assert "this much came" in here.text

        await here.send("and a stop?")
        await here.until_shown("going on")
        await here.pilot.press("escape")
        await here.until_idle()
        assert server.wait_for_disconnects(1)
        assert here.last_message.stop_reason == "aborted"

        await here.send("still there?")
        await here.until_shown("All is well.")
        await here.until_idle()
        assert "[ctx: " in here.app.view.status.fields().usage.label
        session = here.app.runtime.conversation.log.header.id

    server.play(Reply(text="Of course."))
    async with screen(*on(server), "-r", session[:8]) as here:
        await here.until_shown("All is well.")
        await here.send("do you remember?")
        await here.until_shown("Of course.")
        await here.until_idle()
    sent = [message.get("content") for message in server.chats[-1].body["messages"]]
    assert sent[-1] == "do you remember?"
    assert "write greet.py" in sent


@pytest.mark.thorough
async def test_the_tour_compacts_and_goes_on_in_a_session_of_its_own():
    async with screen("--demo") as here:
        await here.send("hello")
        for _ in ("run the test", "make the change", "run it again"):
            await here.approve()
        await here.until_shown("The test passes.")
        await here.until_idle()
        before = here.app.runtime.conversation.log
        await here.send("/compact focus on the greeting")
        await here.until(lambda: here.app.runtime.conversation.log is not before)
        await here.until_idle()
        assert here.app.runtime.conversation.log.header.parent_session == str(before.path)
        await here.send("what now?")
        await here.until(lambda: "what now?" in here.text)
        await here.until_idle()
        child = here.app.runtime.conversation.log.header.id
        assert "or 'world'" in (here.app.runtime.conversation.cwd / "greet.py").read_text()

    async with screen("-r", child) as here:  # -c is for conversations of one's own
        assert not here.app.query_one(StepsView).display
        await here.until(lambda: here.app.runtime.conversation.log.header.id == child)
        await here.until_shown("what now?")
        assert "context compacted" in here.text or "## Goal" in here.text
        assert here.app.runtime.conversation.model.name == "scripted/tour"


@pytest.mark.thorough
async def test_the_tour_is_done_with_enter_and_yes_alone():
    async with screen("--demo") as here:
        tour = here.app.query_one(StepsView)

        def says(text: str) -> bool:
            return text in str(tour.render())

        await here.until(lambda: says("Tour 1/5"))
        await here.pilot.press("enter")
        await here.until(lambda: says("Tour 2/5"))
        for _ in range(3):
            await here.approve()
        await here.until(lambda: says("Tour 3/5"))
        whole = here.app.runtime.conversation.log.header.id
        assert "or 'world'" in (here.app.runtime.conversation.cwd / "greet.py").read_text()
        await here.pilot.press("enter")
        await here.until(lambda: says("Tour 4/5"))
        assert here.app.runtime.conversation.log.header.id != whole
        await here.until_idle()
        await here.pilot.press("enter")
        await here.until(lambda: isinstance(here.app.screen, SessionPicker))
        await here.until(lambda: here.app.screen.query_one(RowList).count)
        await here.pilot.press("enter")
        await here.until(lambda: says("Tour 5/5"))
        assert here.app.runtime.conversation.log.header.id == whole
        await here.pilot.press("enter")
        await here.until(lambda: isinstance(here.app.screen, FirstRunScreen))
