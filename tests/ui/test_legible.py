"""Every theme that can be chosen can be read."""

from dataclasses import fields

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from agent_tui.ui.theme.contrast import (
    LINE_CONTRAST,
    SIGN_CONTRAST,
    TEXT_CONTRAST,
    contrast,
    legible,
    legible_variables,
)
from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.theme.themes import own_themes
from tests.support.rows import each_row

THEMES = [*own_themes(), *BUILTIN_THEMES.values()]
BLENDED = [theme for theme in THEMES if not theme.name.startswith("ansi")]
BLACK, WHITE = Color(0, 0, 0), Color(255, 255, 255)


def variables_of(theme: Theme) -> dict[str, str]:
    return {**theme.to_color_system().generate(), **theme.variables}


def test_contrast_is_measured_as_the_web_guidelines_do():
    assert contrast(BLACK, WHITE) == pytest.approx(21.0)
    assert contrast(WHITE, Color.parse("#777777")) == pytest.approx(4.48, abs=0.01)


def test_an_ink_that_stands_out_is_left_alone_and_another_is_moved_just_enough():
    good = Color.parse("#dddddd")
    assert legible(good, BLACK, 4.5) is good
    moved = legible(Color.parse("#333333"), BLACK, 4.5)
    assert 4.5 <= contrast(moved, BLACK) < 6
    assert legible(WHITE, Color.parse("#777777"), 21.0) == BLACK  # as far as it goes


@each_row("theme", BLENDED, ids=lambda theme: theme.name)
def test_all_text_of_the_chat_stands_out(theme: Theme):
    variables = legible_variables(variables_of(theme))
    background = Color.parse(variables["background"])
    palette = make_palette(variables, ansi=False)
    weak = {}
    for field in fields(palette):
        style = getattr(palette, field.name)
        assert isinstance(style, Style)
        ink = Color.from_rich_color(style.color) if style.color else None
        ground = Color.from_rich_color(style.bgcolor) if style.bgcolor else background
        if ink is not None and contrast(ink, ground) < TEXT_CONTRAST:
            weak[field.name] = contrast(ink, ground)
    decoration = {"faint", "code_edge", "quote_bar"}
    assert weak.keys() <= decoration | {"user_bar", "unchanged_gutter"}
    for name, value in weak.items():
        assert value >= (LINE_CONTRAST if name in decoration else SIGN_CONTRAST), name


@each_row("theme", BLENDED, ids=lambda theme: theme.name)
@each_row("ground", ["background", "surface"])
def test_text_of_menus_and_bars_stands_out(theme: Theme, ground: str):
    variables = legible_variables(variables_of(theme))
    for name in ("foreground", "foreground-muted", "text-warning", "text-error", "text-accent"):
        shown = Color.parse(variables[ground]).blend(Color.parse(variables[name]), 1.0)
        assert contrast(shown, Color.parse(variables[ground])) >= TEXT_CONTRAST - 0.05, name


@each_row("theme", BLENDED, ids=lambda theme: theme.name)
def test_the_chosen_row_of_a_list_is_seen_and_read(theme: Theme):
    variables = legible_variables(variables_of(theme))
    surface = Color.parse(variables["surface"])
    given = Color.parse(variables["block-cursor-blurred-background"])
    chosen = surface.blend(given.with_alpha(1.0), given.a)
    assert contrast(chosen, surface) > 1.1
    assert contrast(Color.parse(variables["foreground"]), chosen) >= TEXT_CONTRAST
    for name in ("foreground-muted", "match"):
        assert contrast(Color.parse(variables[name]), chosen) >= SIGN_CONTRAST - 0.05, name


@pytest.mark.parametrize("name", ["ansi-dark", "ansi-light"])
def test_themes_with_the_terminals_own_colours_have_no_colours_of_ours(name: str):
    variables = variables_of(BUILTIN_THEMES[name])
    assert legible_variables(variables) == {**variables, "match": "ansi_default"}
    palette = make_palette(variables, ansi=True)
    styles = [getattr(palette, field.name) for field in fields(palette)]
    assert all(style.bgcolor is None for style in styles)
    assert not any(
        style.color.is_default is False and style.color.triplet
        for style in styles
        if style.color is not None
    )
