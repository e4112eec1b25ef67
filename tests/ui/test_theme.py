"""Which theme a terminal gets when the person has chosen none."""

from pathlib import Path

from agent_tui.config import Settings
from agent_tui.ui.theme.themes import DARK, LIGHT, theme_for_colours
from tests.support.rows import each_row
from tests.ui.app_support import running_app


@each_row(
    ("colours", "theme"),
    [
        ("0;15", LIGHT),
        ("0;default;15", LIGHT),
        ("0;7", LIGHT),
        ("15;0", DARK),
        ("7;8", DARK),
        ("0;default", ""),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_a_light_terminal_gets_the_light_theme(colours: str, theme: str):
    assert theme_for_colours(colours) == theme


async def test_a_theme_that_there_is_not_is_said(tmp_path: Path):
    async with running_app(tmp_path, settings=Settings(theme="nope")) as ui:
        await ui.settle()
        assert ui.notices == ["No theme is named nope. /theme lists them."]
        assert ui.app.theme == DARK
