from pathlib import Path

import pytest

from agent_tui.commands.core.registry import load_commands
from agent_tui.key_actions import KeyMap
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.screens.listing import CommandPalette, PaletteChoice, palette_rows, rank_rows
from tests.ui.app_support import Ui, running_app

ACTIONS = [entry for entry in APP_BINDINGS if entry.show]
ROWS = palette_rows((*load_commands().commands, *ACTIONS), KeyMap())


def found(wanted: str) -> list[str]:
    return [row.columns[0] for row in rank_rows(ROWS, wanted)]


async def opened(ui: Ui) -> CommandPalette:
    await ui.pilot.press("ctrl+p")
    await ui.until(lambda: isinstance(ui.app.screen, CommandPalette))
    await ui.settle()
    screen = ui.app.screen
    assert isinstance(screen, CommandPalette)
    return screen


def test_every_command_and_every_named_action_is_there():
    assert len(found("")) == len(load_commands().commands) + len(ACTIONS)
    assert all(row.title for row in ROWS)


def test_names_come_before_words_and_letters_in_order_are_enough():
    assert found("comp")[0] == "/compact"
    assert found("/comp")[0] == "/compact"
    assert found("cmpct")[0] == "/compact"
    assert found("tool output")[0] == "ctrl+o"
    assert found("quit")[0] == "/exit"
    assert found("mouse")[:2] == ["/mouse", "alt+m"]
    assert found("ctrl+t")[0] == "ctrl+t"


def test_a_slip_of_the_finger_still_finds_it():
    assert "/theme" in found("colurs")


def test_what_nothing_is_like_finds_nothing():
    assert found("zzzzzz") == []


async def test_a_command_runs_from_the_palette_and_the_draft_stays(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("draft")
        await opened(ui)
        await ui.write("cost")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.notices)
        assert "0 tokens in" in ui.notices[-1]
        assert ui.text == "draft"


async def test_a_command_that_needs_an_argument_goes_into_the_prompt(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await opened(ui)
        await ui.write("queue a")
        await ui.pilot.press("escape")
        palette = await opened(ui)
        await ui.write("queue")
        assert palette.present_row is not None
        choice: PaletteChoice = palette.present_row.value
        assert choice.description.startswith("Send a message")
        await ui.pilot.press("enter")
        await ui.settle()
        assert ui.text == "/queue "
        assert ui.app.focused is ui.app.prompt.area


@pytest.mark.thorough
async def test_an_action_of_a_key_is_done_and_the_menu_keeps_the_key_while_open(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.write("/co")
        assert ui.app.prompt.menu.is_open
        before = ui.app.prompt.menu.highlighted
        await ui.pilot.press("ctrl+p")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
        assert ui.app.prompt.menu.highlighted != before
        await ui.pilot.press("escape")
        await opened(ui)
        await ui.write("permission mode")
        await ui.pilot.press("enter")
        await ui.until(lambda: ui.status.mode == "accept-edits")
