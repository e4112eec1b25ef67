"""What ``/keys`` says is what the keys do."""

import inspect
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widgets import TextArea

from agent_tui.events import ApprovalRequest
from agent_tui.key_actions import KEY_ACTIONS, KeyMap, format_key
from agent_tui.ui.approval_panel import answers_to
from agent_tui.ui.keys import APP_BINDINGS, AREA_BINDINGS, key_guide
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.screens.modal import PageScreen
from tests.ui.app_support import running_app

FIXED = {"tab", "up", "down", "enter", "ctrl+p", "ctrl+n"}  # in the menu
TOLD = " ".join(f"{keys}, {text}" for section in key_guide(KeyMap()) for keys, text in section.rows)
TOLD_KEYS = {word.strip(",;") for word in TOLD.split()}


def known_keys() -> set[str]:
    return {format_key(key) for action in KEY_ACTIONS.values() for key in action.keys} - {"super+z"}


def test_every_key_of_the_chat_and_of_the_prompt_is_on_the_page():
    assert (known_keys() | FIXED) - TOLD_KEYS == set()


def test_every_binding_has_a_name_in_the_settings_and_the_keys_it_says():
    for binding in (*APP_BINDINGS, *AREA_BINDINGS):
        assert binding.id is not None
        assert KEY_ACTIONS[binding.id].keys == tuple(binding.key.split(","))


def test_every_action_is_done_by_a_binding_or_by_the_prompt():
    bound = {binding.id for binding in (*APP_BINDINGS, *AREA_BINDINGS)}
    in_prompt = {name for name in KEY_ACTIONS if f'case "{name}"' in inspect.getsource(Prompt)}
    assert set(KEY_ACTIONS) - bound - in_prompt == {"newline"}


def test_the_answers_to_a_question_are_on_the_page():
    command = ApprovalRequest("r", "c", "bash", "x", "x", "command", "", "bash(x)", ("bash(x *)",))
    plan = ApprovalRequest("r", "c", "plan", "x", "x", "plan", "", "")
    keys = {answer.key for asked in (command, plan) for answer in answers_to(asked)}
    (told,) = [row for section in key_guide(KeyMap()) for row, _ in section.rows if "y a" in row]
    assert set(told.split()) == keys


def test_no_key_is_told_that_nothing_is_bound_to():
    """Of those with a modifier, where a slip is easy; the text field has its own."""
    of_text_fields = {
        key
        for entry in TextArea.BINDINGS
        if isinstance(entry, Binding)
        for key in entry.key.split(",")
    }
    with_modifier = {key for key in TOLD_KEYS if key.startswith(("ctrl+", "alt+", "shift+"))}
    assert with_modifier - known_keys() - of_text_fields - FIXED == set()


def test_bindings_that_the_palette_offers_say_what_they_do():
    for entry in APP_BINDINGS:
        assert len(entry.description) > 3


@pytest.mark.parametrize("command", ["/help", "/keys"])
async def test_the_pages_open_and_close(tmp_path: Path, command: str):
    async with running_app(tmp_path) as ui:
        await ui.send(command)
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.pilot.press("escape")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
