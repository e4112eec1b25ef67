"""``NO_COLOR``: not a single colour reaches the terminal, and nothing is lost by that."""

from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from agent_tui.features.tour.scripted import Reply, call
from agent_tui.ui.screens.picker import RowList
from agent_tui.ui.theme.contrast import WithoutColours, colourless
from tests.support.rows import each_row
from tests.ui.app_support import Ui, running_app

GROUND = Color.parse("#14161d")
INK, FAINT, PAPER = "#d8d8d8", "#707070", "#1c1e26"


@pytest.fixture(autouse=True)
def no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def drawn(ui: Ui) -> list[Segment]:
    """All that is on the screen."""
    return [segment for strip in ui.app.screen._compositor.render_strips() for segment in strip]


def coloured(ui: Ui) -> list[Segment]:
    styles = ((segment, segment.style) for segment in drawn(ui))
    return [
        segment
        for segment, style in styles
        if style is not None
        and not all(colour is None or colour.is_default for colour in (style.color, style.bgcolor))
    ]


@pytest.mark.thorough
async def test_no_colour_is_on_any_screen(tmp_path: Path):
    (tmp_path / "work").mkdir()
    edit = call("c1", "write", path="a.py", content="def one():\n    return 'two'  # three\n")
    replies = Reply(text="# Head\n`code` and *more*\n```python\nx = 1\n```", tool_calls=(edit,))
    async with running_app(tmp_path, replies, size=(100, 40)) as ui:
        await ui.send("write it")
        assert ui.approval.display
        assert coloured(ui) == []
        await ui.pilot.press("escape")
        await ui.settle()
        for page in ("/help", "/context", "/theme", "/resume"):
            await ui.send(page)
            assert coloured(ui) == [], page
            await ui.pilot.press("escape")
            await ui.settle()


async def test_what_is_chosen_is_seen_all_the_same(tmp_path: Path):
    async with running_app(tmp_path) as ui:
        await ui.send("/theme")
        await ui.until(lambda: ui.app.screen.query_one(RowList).count)
        await ui.settle()
        chosen = [s for s in drawn(ui) if s.style and s.style.underline and s.style.bold]
        assert any("agent-dark" in segment.text for segment in chosen)


@each_row(
    ("style", "attributes"),
    [
        (Style(color=INK), Style()),
        (Style(color=INK, bold=True, italic=True), Style(bold=True, italic=True)),
        (Style(color=FAINT), Style(dim=True)),
        (Style(color=FAINT, bold=True), Style(bold=True)),
        (Style(color=INK, bgcolor=PAPER), Style()),
        (Style(color=GROUND.hex, bgcolor="#88aaff"), Style(reverse=True)),
        (Style(color="red"), Style()),
    ],
)
def test_attributes_say_what_colours_said(style: Style, attributes: Style):
    assert colourless(style, GROUND) == attributes


def test_a_link_goes_on_working():
    style = Style(color=INK, meta={"@click": "app.quit"}, link="https://example.org")
    (segment,) = WithoutColours().apply([Segment("x", style)], GROUND)
    assert segment.style is not None
    assert segment.style.meta == {"@click": "app.quit"}
    assert segment.style.link == "https://example.org"
