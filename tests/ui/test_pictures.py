"""Each screen as a picture; those of the light theme and of large screens are thorough tests.

``pytest tests/ui -m "thorough or not thorough" --snapshot-update`` takes all anew; look at them.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from agent_tui.ui.lines_field import LinesField
from agent_tui.ui.terminal.outcome import UiOutcome
from agent_tui.ui.theme.themes import DARK, LIGHT
from tests.ui.scenes import SCENES, scene_app

SMALL, MEDIUM, LARGE = (80, 24), (120, 40), (200, 60)
IN_MEDIUM = (
    *(
        "returning",
        "preview",
        "keeping",
        "plan_panel",
        "compactions_unfolded",
        "tree",
        "changes",
        "review",
    ),
)
IN_LARGE = ("chat", "approval_armed", "session_picker", "help_page")
_HOME_CHARS = 73
PICTURES = [
    *((name, theme, SMALL) for name in SCENES for theme in (DARK, LIGHT)),
    *((name, theme, MEDIUM) for name in IN_MEDIUM for theme in (DARK, LIGHT)),
    *((name, theme, LARGE) for name in IN_LARGE for theme in (DARK, LIGHT)),
]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are those of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose path is as long everywhere: requests name it, and their sizes are shown.

    So is the path of the manual, which they name, too.
    """
    folder = tmp_path.parent
    home = folder / tmp_path.name[-8:].rjust(_HOME_CHARS - len(f"{folder}/"), "h")
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("agent_tui.agent.session.opening.find_manual", lambda: Path("/manual"))
    return home


def _marks(theme: str, size: tuple[int, int]) -> tuple[pytest.MarkDecorator, ...]:
    is_quick = theme == DARK and size == SMALL
    return () if is_quick else (pytest.mark.thorough,)


def _id(name: str, theme: str, size: tuple[int, int]) -> str:
    return f"{name}-{theme}-{size[0]}x{size[1]}"


@pytest.mark.parametrize(
    ("name", "theme", "size"),
    [pytest.param(*picture, id=_id(*picture), marks=_marks(*picture[1:])) for picture in PICTURES],
)
def test_the_screen_looks_as_it_did(
    name: str,
    theme: str,
    size: tuple[int, int],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    snap_compare,
):
    monkeypatch.setattr("agent_tui.ui.chat.welcome.__version__", "1.0")
    app, driven_by = scene_app(name, theme, home)

    async def lead_there(pilot: Pilot[UiOutcome]) -> None:
        ui = driven_by(pilot)
        app.prompt.area.cursor_blink = False
        await ui.until(lambda: app.status.fields is not None and app.status.fields.branch)
        await ui.settle()
        await SCENES[name](ui)
        for field in (*app.screen.query(Input), *app.screen.query(LinesField)):
            field.cursor_blink = False
        await ui.measured()

    assert snap_compare(app, terminal_size=size, run_before=lead_there)
