"""Random keys, pastes, sizes, commands, clicks and faults leave a screen that works."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest
from textual import events
from textual.errors import NoWidget
from textual.geometry import Size

from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.commands.core.registry import load_commands
from agent_tui.features.tour.scripted import Reply
from agent_tui.ui.app import AgentApp
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.options import UiOptions
from tests.support.models import ListedModels
from tests.support.runtime import Stage
from tests.support.terminal_attacks import ATTACKS
from tests.ui.app_support import Ui, asking
from tests.ui.fuzzing import ErrorLog, Fuzzed, RandomModel, fuzzed_app
from tests.ui.scenes import StillClock
from tests.ui.test_fuzz_escape import LOG

LEAVING = {"quit", "leave_if_empty", "suspend_process"}
APP_KEYS = [
    key
    for binding in APP_BINDINGS
    if binding.action not in LEAVING
    for key in binding.key.split(",")
]
WRITING_KEYS = (
    *("up", "down", "left", "right", "home", "end", "tab", "enter", "escape", "backspace"),
    *("delete", "shift+left", "shift+up", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w"),
    *("ctrl+j", "shift+enter", "ctrl+r", "ctrl+y", "ctrl+underscore", "alt+b", "alt+f"),
    *("slash", "at", "exclamation_mark", "backslash", "a", "b", "y", "n", "e", "p", "space"),
    *("r", "t", "s", "f", "l", "j", "k", "f1", "f2", "f10", "shift+f6", "ctrl+p", "ctrl+n"),
)
STAYS = [name.name for name in load_commands().commands if name.name != "exit"]
ARGUMENTS = ("", "", "", "x", "--preview", "2 say b", "over a,b say {item} compress", "agent-light")
SIZES = ((1, 1), (2, 60), (300, 2), (10, 5), (39, 12), (80, 24), (120, 40), (300, 100))
PASTES = (
    *("a", "a\nb\n", "漢字 é\u0301 👩‍👩‍👧\n" * 30, "/help", "a" * 500_000, "line\n" * 100_000),
    *ATTACKS.values(),
)
THEMES = ("agent-dark", "agent-light", "textual-dark", "nord", "ansi-dark", "ansi-light")


class Hands:
    """Does random things to an app, and remembers which, for the report of a failure."""

    def __init__(self, ui: Fuzzed, dice: random.Random) -> None:
        self._ui, self._dice = ui, dice
        self.done: list[str] = []
        self._deeds: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self._press_some,) * 5,
            *(self._press_app_key,) * 4,
            *(self._send,) * 4,
            *(self._command,) * 4,
            self._paste,
            self._resize,
            self._storm,
            self._theme,
            self._look_away,
            self._click,
            self._scroll,
            self._wait,
        )

    async def act(self) -> None:
        await self._dice.choice(self._deeds)()

    def _note(self, what: str) -> None:
        self._ui.clock.now += self._dice.choice((0.1, 3.0))
        self.done.append(what)

    async def _press(self, *keys: str) -> None:
        self._note(f"press {' '.join(keys)}")
        if keys.count("ctrl+c") > 1:
            keys = ("ctrl+c",)
        if "ctrl+c" in keys:  # twice within 1.5 s leaves
            self._ui.clock.now += 10
        await self._ui.pilot.press(*keys)

    async def _press_some(self) -> None:
        await self._press(*self._dice.choices(WRITING_KEYS, k=self._dice.randrange(1, 6)))

    async def _press_app_key(self) -> None:
        await self._press(self._dice.choice(APP_KEYS))

    async def _send(self) -> None:
        text = self._dice.choice(("ab", "look at @log.txt", "!echo ab", "!!true", "/nonsense"))
        self._note(f"send {text}")
        await self._ui.send(text)

    async def _command(self) -> None:
        line = f"/{self._dice.choice(STAYS)} {self._dice.choice(ARGUMENTS)}".rstrip()
        self._note(f"send {line}")
        await self._ui.send(line)

    async def _paste(self) -> None:
        text = self._dice.choice(PASTES)
        self._note(f"paste {len(text)} {text[:12]!r}")
        self._ui.app.post_message(events.Paste(text))

    async def _resize(self) -> None:
        size = self._dice.choice(SIZES)
        self._note(f"resize {size}")
        await self._ui.pilot.resize_terminal(*size)

    async def _storm(self) -> None:
        self._note("storm of sizes")
        for width, height in self._dice.choices(SIZES, k=12):
            size = Size(width, height)
            self._ui.app.post_message(events.Resize(size, size))

    async def _theme(self) -> None:
        name = self._dice.choice(THEMES)
        self._note(f"theme {name}")
        self._ui.app.theme = name

    async def _look_away(self) -> None:
        self._note("focus")
        self._ui.app.post_message(self._dice.choice((events.AppBlur, events.AppFocus))())

    async def _click(self) -> None:
        width, height = self._ui.app.size
        place = self._dice.randrange(width), self._dice.randrange(height)
        self._note(f"click {place}")
        times = self._dice.randrange(1, 4)
        with suppress(NoWidget):  # the sizes of screen and app may differ during a storm
            await self._ui.pilot.click(offset=place, times=times)

    async def _scroll(self) -> None:
        self._note("wheel")
        chat = self._ui.app.view.widgets.transcript
        chat.scroll_relative(y=self._dice.choice((-500, -3, 3, 500)), animate=False)

    async def _wait(self) -> None:
        self._note("wait")
        for _ in range(self._dice.randrange(1, 20)):
            await self._ui.pilot.pause()


def seeds(count: int, *, start: int = 0) -> range:
    return range(start, start + count)


@pytest.mark.parametrize(
    "seed",
    [
        *seeds(1),
        *(pytest.param(n, marks=pytest.mark.thorough) for n in seeds(5, start=1)),
        *(pytest.param(n, marks=pytest.mark.slow) for n in seeds(200, start=6)),
    ],
)
async def test_whatever_is_done_the_screen_works_afterwards(tmp_path: Path, seed: int):
    dice, log = random.Random(seed), ErrorLog()
    logging.getLogger().addHandler(log)
    stage = Stage(tmp_path)
    (stage.workspace / "log.txt").write_text(LOG, encoding="utf-8")
    try:
        async with fuzzed_app(stage, RandomModel(dice)) as ui:
            hands = Hands(ui, dice)
            try:
                for _ in range(3):
                    for _ in range(12):
                        await hands.act()
                    await ui.check()
                    hands.done.append("-- checked")
            except BaseException as error:
                error.add_note("\n".join(hands.done))
                raise
    finally:
        logging.getLogger().removeHandler(log)
    assert log.lines == []


async def test_a_provider_that_stands_still_leaves_the_screen_free(tmp_path: Path):
    held = Reply(text="Held", gate=asyncio.Event())
    async with fuzzed_app(Stage(tmp_path), [held, Reply(text="Free again.")]) as ui:
        await ui.send("go")
        chat, turns = ui.app.view.widgets.transcript, ui.app.controller.turns
        await ui.until(lambda: "Held" in chat.to_text(), "nothing came")
        for line in ("/context", "/help", "/permissions", "/compact --preview"):
            await ui.send(line)
            await ui.until(lambda: len(ui.app.screen_stack) > 1, f"{line} does not open")
            await ui.pilot.press("escape")
            await ui.until(lambda: len(ui.app.screen_stack) == 1, f"{line} does not close")
            assert turns.is_running, f"Esc on {line} stopped the turn"
        ui.app.post_message(events.Paste("word " * 100_000))
        await ui.pilot.pause()
        assert len(ui.app.prompt.draft.full_text) == 500_000
        await ui.check()
        await ui.send("again")
        await ui.until(lambda: "Free again." in chat.to_text(), "nothing more came")
        await ui.check()


async def test_every_key_is_harmless_before_the_conversation_is_there(tmp_path: Path):
    stage, may_load, models = Stage(tmp_path), Event(), ListedModels()
    runtime = asking(stage, Reply(text="Hello."), models=models)

    def load() -> UiOptions:
        may_load.wait()
        return UiOptions(runtime, CommandServices(models, KnownModels()), clock=StillClock())

    app = AgentApp(load)
    async with app.run_test() as pilot:
        try:
            for key in (*APP_KEYS, "escape", "tab", "up", "down", "ctrl+r"):
                await pilot.press(key)
            await pilot.press("h", "i")
            assert app.prompt.area.text == "hi"
        finally:
            may_load.set()
        ui = Ui(app, runtime, pilot, stage)
        await ui.started()
        await pilot.press("enter")
        await ui.settle()
        assert ui.sent == ["hi"]
