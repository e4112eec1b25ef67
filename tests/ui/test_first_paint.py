import subprocess
import sys
from pathlib import Path

import pytest
from textual.color import Color
from textual.css.stylesheet import Stylesheet
from textual.screen import Screen

from agent_tui.ui.theme.themes import DARK, LIGHT, own_themes
from tests.ui.app_support import running_app

NOT_YET = {
    *("pydantic", "agent_tui.events", "agent_tui.messages", "agent_tui.agent.runtime"),
    *("agent_tui.tools.files.images", "agent_tui.ui.status.status_line"),
    "agent_tui.ui.prompt.completer",
}


def test_the_first_paint_waits_neither_for_pydantic_nor_for_the_conversation():
    code = "import sys, agent_tui.ui.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & NOT_YET == set()


async def test_the_css_is_read_once_with_the_theme_and_the_menu_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[dict[str, str]] = []
    reparse = Stylesheet.reparse

    def counted(stylesheet: Stylesheet) -> None:
        read.append(stylesheet._variables)
        reparse(stylesheet)

    monkeypatch.setattr(Stylesheet, "reparse", counted)
    async with running_app(tmp_path) as ui:
        assert read == []
        dark, light = own_themes()
        assert ui.app.theme == DARK
        assert ui.app.screen.styles.background == Color.parse(dark.background or "")
        assert ui.app.has_class("-dark-mode", f"-theme-{DARK}")
        assert ui.app.prompt.menu.is_attached
        ui.app.theme = LIGHT
        await ui.settle()
        assert len(read) == 1
        assert ui.app.screen.styles.background == Color.parse(light.background or "")
        assert ui.app.query_one("#activity").styles.max_width is not None


async def test_a_letter_in_the_prompt_looks_for_no_bindings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    looked: list[str] = []
    chain = Screen._binding_chain

    def counted(screen: Screen[object]) -> object:
        looked.append("bindings")
        return chain.__get__(screen)

    async with running_app(tmp_path) as ui:
        monkeypatch.setattr(Screen, "_binding_chain", property(counted))
        await ui.pilot.press("a", "?", "ж")
        assert ui.text == "a?ж"
        assert looked == []
        await ui.pilot.press("ctrl+c")
        assert ui.text == ""
        assert looked
