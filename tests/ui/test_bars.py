"""Bars of features above the prompt."""

from pathlib import Path

from agent_tui.ui.chat.bar import ChatBar
from tests.ui.app_support import Ui, running_app


class One(ChatBar):
    """A bar."""


class Two(ChatBar):
    """Another."""


def shown(ui: Ui) -> list[type[ChatBar]]:
    return [type(bar) for bar in ui.app.query(ChatBar)]


async def test_a_bar_takes_the_place_of_another_and_esc_closes_it(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        screen = ui.app.controller.front.screen
        assert screen is not None
        await screen.show_bar(One, "")
        first = ui.app.query_one(One)
        await screen.show_bar(One, "text")
        assert ui.app.query_one(One) is first
        await screen.show_bar(Two, "")
        await ui.until(lambda: shown(ui) == [Two])
        await ui.pilot.press("escape")
        await ui.until(lambda: shown(ui) == [])
