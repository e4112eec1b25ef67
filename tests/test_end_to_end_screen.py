"""The whole screen over the real provider process, against an HTTP server on loopback."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from agent_tui.cli.arguments import parse_arguments
from agent_tui.cli.screen_options import load_options
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import MessageEntry
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.outcome import UiOutcome
from tests.support.openai_server import Call, OpenAiServer, Reply, rate_limited


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


class Screen:
    """The running app, and waiting for what it shows."""

    def __init__(self, app: AgentApp, pilot: Pilot[UiOutcome]) -> None:
        self.app = app
        self.pilot = pilot

    async def send(self, text: str) -> None:
        self.app.prompt.area.load_text(text)
        await self.pilot.pause()
        await self.pilot.press("enter")

    async def until(self, is_so: Callable[[], object]) -> None:
        for _ in range(3_000):
            if is_so():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"it did not come to that; the chat is:\n{self.text}")

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in self.text)

    async def approve(self) -> None:
        """Say yes to the next question; a key that came too early is typed again."""
        panel = self.app.ready.approval
        await self.until(lambda: panel.request is not None)
        asked = panel.request
        while panel.request is asked:
            if panel.is_armed:
                await self.pilot.press("y")
            await self.pilot.pause(0.05)

    async def until_idle(self) -> None:
        await self.until(lambda: not self.app.ready.turns.is_running)

    @property
    def text(self) -> str:
        return self.app.ready.chat.to_text()

    @property
    def last_message(self) -> AssistantMessage:
        entries = [e for e in self.app.runtime.history() if isinstance(e, MessageEntry)]
        assert isinstance(entries[-1].message, AssistantMessage)
        return entries[-1].message


def on(server: OpenAiServer) -> list[str]:
    """The arguments that lead to the test server."""
    return ["-m", "test-model", "--base-url", server.base_url, "--api-key-env", "TEST_KEY"]


@asynccontextmanager
async def screen(*argv: str) -> AsyncGenerator[Screen, None]:
    def load() -> UiOptions:
        return replace(load_options(parse_arguments(argv)), approval_quiet_s=0.01)

    app = AgentApp(load)
    async with app.run_test(size=(100, 40)) as pilot:
        here = Screen(app, pilot)
        await here.until(lambda: app.parts is not None)
        yield here


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
        Reply(text="going on", ending="hang"),
        Reply(text="All is well."),
    )
    async with screen(*on(server), "--permission-mode", "accept-edits") as here:
        await here.send("write greet.py")
        await here.until_shown("It **greets** now.")
        await here.until_idle()
        assert (workspace / "greet.py").read_text() == "print('hello')\n"
        assert len(server.chats) == 4

        await here.send("and a cut stream?")
        await here.until_idle()
        assert (here.last_message.text, here.last_message.stop_reason) == (
            "this much came",
            "error",
        )
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
        assert "[ctx: " in here.app.ready.status.fields().usage.label
        session = here.app.runtime.log.header.id

    server.play(Reply(text="Of course."))
    async with screen(*on(server), "-r", session[:8]) as here:
        await here.until_shown("All is well.")
        await here.send("do you remember?")
        await here.until_shown("Of course.")
        await here.until_idle()
    sent = [message.get("content") for message in server.chats[-1].body["messages"]]
    assert sent[-1] == "do you remember?"
    assert "write greet.py" in sent


async def test_the_tour_compacts_and_goes_on_in_a_session_of_its_own():
    async with screen("--demo") as here:
        await here.send("hello")
        for _ in ("run the test", "make the change", "run it again"):
            await here.approve()
        await here.until_shown("The test passes.")
        await here.until_idle()
        before = here.app.runtime.log
        await here.send("/compact focus on the greeting")
        await here.until(lambda: here.app.runtime.log is not before)
        await here.until_idle()
        assert here.app.runtime.log.header.parent_session == str(before.path)
        await here.send("what now?")
        await here.until(lambda: "what now?" in here.text)
        await here.until_idle()
        child = here.app.runtime.log.header.id
        assert "or 'world'" in (here.app.runtime.cwd / "greet.py").read_text()

    async with screen("-c") as here:
        await here.until(lambda: here.app.runtime.log.header.id == child)
        await here.until_shown("what now?")
        assert "context compacted" in here.text or "## Goal" in here.text
        assert here.app.runtime.model.name == "scripted/tour"
