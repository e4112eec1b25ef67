"""What ``/keys`` says is what the keys do."""

import ast
import inspect
import textwrap
from pathlib import Path

import pytest
from textual.binding import Binding

from agent_tui.ui.approval.panel import OPTIONS
from agent_tui.ui.key_guide import KEYS
from agent_tui.ui.keys import APP_BINDINGS
from agent_tui.ui.prompt.area import NEW_LINE_KEYS, PromptArea
from agent_tui.ui.prompt.prompt import Prompt
from agent_tui.ui.screens.page import PageScreen
from tests.ui.app_support import running_app

WRITTEN = {"escape": "esc", "ctrl+underscore": "ctrl+_", "question_mark": "?"}
NOT_WRITTEN = {"super+z"}  # what a terminal on macOS may make of ctrl+_
AS_TMUX_SENDS_THEM = {"shift+\r", "ctrl+\r"}
TOLD = " ".join(f"{keys}, {text}" for section in KEYS for keys, text in section.rows)
TOLD_KEYS = {word.strip(",;") for word in TOLD.split()}


def told(bindings: object) -> set[str]:
    """The keys of bindings as the page writes them."""
    assert isinstance(bindings, list | tuple)
    keys = {key for entry in bindings if isinstance(entry, Binding) for key in entry.key.split(",")}
    return {WRITTEN.get(key, key) for key in keys - NOT_WRITTEN}


def keys_the_prompt_takes() -> set[str]:
    """What its ``match key`` statements name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(Prompt)))
    cases = [node.value for node in ast.walk(tree) if isinstance(node, ast.MatchValue)]
    named = {case.value for case in cases if isinstance(case, ast.Constant)}
    assert {"enter", "tab", "up", "down", "ctrl+r"} <= named
    return {WRITTEN.get(key, key) for key in named if isinstance(key, str)}


def test_every_key_of_the_chat_and_of_the_prompt_is_on_the_page():
    assert told(APP_BINDINGS) - TOLD_KEYS == set()
    assert told(PromptArea.BINDINGS) - TOLD_KEYS == set()
    assert not NEW_LINE_KEYS - AS_TMUX_SENDS_THEM - TOLD_KEYS
    assert keys_the_prompt_takes() - TOLD_KEYS == set()


def test_the_answers_to_a_question_are_on_the_page():
    assert f" {' '.join(option.key for option in OPTIONS)}," in TOLD


def test_no_key_is_told_that_nothing_is_bound_to():
    """Of those with a modifier, where a slip is easy; the text field has its own."""
    bound = told([*APP_BINDINGS, *PromptArea.BINDINGS, *PromptArea.__mro__[1].BINDINGS])
    known = bound | NEW_LINE_KEYS | keys_the_prompt_takes()
    with_modifier = {key for key in TOLD_KEYS if key.startswith(("ctrl+", "alt+", "shift+"))}
    assert with_modifier - known == set()


def test_bindings_that_the_palette_offers_say_what_they_do():
    for entry in APP_BINDINGS:
        assert isinstance(entry, Binding)
        assert len(entry.description) > 3


@pytest.mark.parametrize("command", ["/help", "/keys"])
async def test_the_pages_open_and_close(tmp_path: Path, command: str):
    async with running_app(tmp_path) as ui:
        await ui.send(command)
        await ui.until(lambda: isinstance(ui.app.screen, PageScreen))
        await ui.pilot.press("escape")
        await ui.settle()
        assert len(ui.app.screen_stack) == 1
