"""The app over a whole runtime, made to suffer, and what must hold afterwards."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.config import CompactionSettings
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.providers.base import ModelRequest, ProviderError
from agent_tui.sessions.log import SessionLog
from agent_tui.ui.app import AgentApp
from agent_tui.ui.options import UiOptions
from agent_tui.ui.terminal.outcome import UiOutcome
from tests.support.models import listed_services
from tests.support.runtime import GOOD_SUMMARY, Stage
from tests.support.terminal_attacks import ATTACKS, MARKUP
from tests.ui.app_support import wait_until
from tests.ui.scenes import StillClock

WINDOW = 11_000
COMPACTION = CompactionSettings(protected_messages=2, keep_recent_tokens=300, target=0.2)
TEXTS = (
    "A word.",
    "# Head\n\n| a | b |\n|---|---|\n| 漢字 | 👩‍👩‍👧 |\n\n```python\nprint(1)\n```\n",
    "- one\n- two\n" * 40,
    "x" * 5_000,
    *ATTACKS.values(),
    *MARKUP,
)
_FAULTS = (
    ProviderError("rate_limit", "Too many requests.", retry_after_s=20.0),
    ProviderError("network", "The connection was lost.", "Check the network."),
    ProviderError("auth", "The key was refused.", "Set another one."),
    ProviderError("bad_request", "It was not understood."),
)


class Fuzzed:
    """The running app and what happens to it."""

    def __init__(
        self, app: AgentApp, pilot: Pilot[UiOutcome], clock: StillClock, size: tuple[int, int]
    ) -> None:
        self.app, self.pilot, self.clock, self.size = app, pilot, clock, size

    @property
    def runtime(self) -> AgentRuntime:
        return self.app.runtime

    async def until(self, is_so, what: str) -> None:
        def describe() -> str:
            return f"{what}; the chat is:\n{self.app.view.widgets.transcript.to_text()[-2_000:]}"

        await wait_until(self.pilot, is_so, describe)

    async def send(self, text: str) -> None:
        self.app.prompt.area.load_text(text)
        self.app.prompt.area.move_cursor(self.app.prompt.area.document.end)
        await self.pilot.pause()
        self.app.prompt.close_menu()
        await self.pilot.press("enter")

    async def be_alone(self) -> None:
        """Esc until nothing runs and nothing lies above the chat, as a person would."""
        app = self.app
        for _ in range(12):
            await self.pilot.pause()
            is_idle = len(app.screen_stack) == 1 and not app.controller.turns.is_running
            if is_idle and app.focused is app.prompt.area:  # else a bar of the chat has it
                break
            self.clock.now += 10
            await self.pilot.press("escape")
        await self.until(lambda: not app.controller.turns.is_running, "something runs on after Esc")
        assert len(app.screen_stack) == 1, f"{app.screen} does not go away"

    async def check(self) -> None:
        """The screen works: it echoes what is typed, and the session file is whole."""
        app = self.app
        await self.be_alone()
        await self.pilot.resize_terminal(*self.size)
        for _ in range(4):  # one may only copy a selection, and what was not sent may come back
            self.clock.now += 10
            await self.pilot.press("ctrl+c")
            await self.pilot.pause()
        assert app.prompt.area.text == ""
        await self.pilot.press("z", "q")
        await self.pilot.pause()
        written = app.prompt.area.text
        assert written == "zq", f"the keys go to {app.focused}, the prompt has {written[:40]!r}"
        rows = [app.prompt.area.render_line(y).text for y in range(app.prompt.area.size.height)]
        assert "zq" in "".join(rows), f"{rows} is {app.prompt.area.size} of {app.size}"
        assert "[ctx: " in str(app.status.render())
        assert app.view.widgets.activity.state is None
        assert not app.view.widgets.approval.display
        assert app.view.widgets.transcript.size.height > 0
        self.clock.now += 10
        await self.pilot.press("ctrl+c")
        assert app._exception is None
        assert app.is_running
        self.check_session()

    def check_session(self) -> None:
        """The file holds what the program holds, and is read without a complaint."""
        log = self.runtime.conversation.log
        if log.path is not None and log.path.exists():
            with SessionLog.open(log.path, read_only=True) as read:
                assert read.warnings == ()
                assert [e.id for e in read.entries] == [e.id for e in log.entries]


@asynccontextmanager
async def fuzzed_app(
    stage: Stage, script, *, size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[Fuzzed]:
    """The app over `script`; it asks before it runs commands."""
    clock = StillClock()
    runtime = stage.runtime(script, mode="ask", window=WINDOW, compaction=COMPACTION)
    options = UiOptions(
        runtime,
        listed_services(),
        approval_quiet_s=0.01,
        clock=clock,
        history_file=stage.folder / "history.jsonl",
    )
    app = AgentApp(lambda: options)
    app.prompt.area.burst_s = 0.0
    async with app.run_test(size=size) as pilot:
        fuzzed = Fuzzed(app, pilot, clock, size)
        await fuzzed.until(lambda: app.loaded is not None, "it does not start")
        await pilot.pause()
        yield fuzzed


class RandomModel:
    """Answers anything: text, thinking, calls, faults; some replies stand still for ever."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._calls = 0

    def __call__(self, request: ModelRequest) -> Reply:
        dice = self._dice
        if request.purpose != "turn":
            summaries = (Reply(text=GOOD_SUMMARY), Reply(text=""), Reply(error=_FAULTS[2]))
            return dice.choice(summaries)
        if dice.random() < 0.1:
            return Reply(text="Held", gate=asyncio.Event())
        if dice.random() < 0.2:
            return Reply(text=dice.choice(TEXTS), error=dice.choice(_FAULTS))
        if dice.random() < 0.05:
            return Reply(text="Cut o", cut=True)
        thinking = dice.choice(TEXTS) if dice.random() < 0.3 else ""
        if dice.random() < 0.5:
            return Reply(text=dice.choice(TEXTS), thinking=thinking)
        return Reply(text="Let me see.", thinking=thinking, tool_calls=self._some_calls())

    def _some_calls(self):
        made = []
        for _ in range(self._dice.randrange(1, 3)):
            self._calls += 1
            made.append(self._one_call(f"c{self._calls}"))
        return tuple(made)

    def _one_call(self, call_id: str):
        match self._dice.randrange(6):
            case 0:
                return call(call_id, "read", path="log.txt")
            case 1:
                return call(call_id, "write", path="new.txt", content="one\ntwo\n")
            case 2:
                return call(call_id, "bash", command="sleep 30")
            case 3:
                return call(call_id, "nonsense", x=1)
            case 4:
                todos = [{"text": "one", "status": "pending"}, {"text": "two", "status": "done"}]
                return call(call_id, "todo", todos=todos)
            case _:
                return call(call_id, "bash", command="touch made.txt; printf 'a\\033[2Jb\\n'")


class ErrorLog(logging.Handler):
    """Keeps what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))
