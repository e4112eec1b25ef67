import pytest
from textual.theme import BUILTIN_THEMES

from agent_tui.ui.palette import Palette, make_palette


@pytest.fixture(scope="session")
def palette() -> Palette:
    theme = BUILTIN_THEMES["textual-dark"]
    return make_palette(theme.to_color_system().generate(), ansi=False)
