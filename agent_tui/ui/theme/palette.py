"""The colours of the chat as Rich styles, all derived from the theme in force."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App
from textual.color import Color

from agent_tui.ui.theme.contrast import LINE_CONTRAST, SIGN_CONTRAST, TEXT_CONTRAST, legible_style

_PLAIN = Style()
_BOLD = Style(bold=True)
_DIM = Style(dim=True)
_ITALIC = Style(italic=True)
_UNDERLINE = Style(underline=True)
_STRIKE = Style(strike=True)
_FADED = 0.5
"""The share of the background in dimmed colours."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How one style is mixed from the colour variables of a theme.

    Attributes:
        ink: The variable for the text; empty for none.
        share: How much of `ink` is blended with the background.
        on: The variable for the surface, and its share; empty for none.
        look: Bold and the like.
        hue: The variable for the text where colours are the terminal's own; empty for none.
        ansi: `look` in such themes.
        least: The contrast it must have.
    """

    ink: str
    share: float
    on: tuple[str, float]
    look: Style
    hue: str
    ansi: Style
    least: float


def _style(
    ink: str = "",
    share: float = 1.0,
    *,
    on: tuple[str, float] = ("", 0.0),
    look: Style = _PLAIN,
    hue: str | None = None,
    ansi: Style | None = None,
    least: float = TEXT_CONTRAST,
) -> Style:
    """A field of `Palette` with its `_Recipe`; without `hue` and `ansi` those follow the others."""
    if hue is None:
        hue = "" if ink in ("foreground", "background") else ink.removeprefix("text-")
    recipe = _Recipe(ink, share, on, look, hue, look if ansi is None else ansi, least)
    return field(default=_PLAIN, metadata={"recipe": recipe})


@dataclass(frozen=True, slots=True)
class Palette:
    """Styles by what they are for, each with how it is mixed; without arguments all are plain.

    Themes with the terminal's own colours get no surfaces: those cannot be blended.
    """

    ground: Style = _style(on=("background", 1.0))
    text: Style = _style("foreground")
    muted: Style = _style("foreground", 0.62, ansi=_DIM)
    faint: Style = _style("foreground", 0.32, ansi=_DIM, least=LINE_CONTRAST)
    accent: Style = _style("text-primary")
    strong: Style = _style("foreground", look=_BOLD)
    emphasis: Style = _style("foreground", look=_ITALIC)
    strike: Style = _style("foreground", 0.62, look=_STRIKE, ansi=_STRIKE + _DIM)
    heading_1: Style = _style("text-primary", look=_BOLD + _UNDERLINE)
    heading_2: Style = _style("text-primary", look=_BOLD)
    heading_3: Style = _style("foreground", look=_BOLD)
    link: Style = _style("text-primary", look=_UNDERLINE)
    inline_code: Style = _style("text-accent", on=("foreground", 0.07), hue="secondary")
    code: Style = _style("foreground", on=("foreground", 0.05))
    code_edge: Style = _style(
        "foreground", 0.25, on=("foreground", 0.05), ansi=_DIM, least=LINE_CONTRAST
    )
    quote_bar: Style = _style("foreground", 0.32, ansi=_DIM, least=LINE_CONTRAST)
    user: Style = _style("foreground", on=("primary", 0.13), ansi=_BOLD)
    user_bar: Style = _style("primary", on=("primary", 0.13), least=SIGN_CONTRAST)
    thinking: Style = _style("foreground", 0.55, look=_ITALIC, ansi=_DIM + _ITALIC)
    running: Style = _style("text-warning")
    success: Style = _style("text-success")
    warning: Style = _style("text-warning")
    error: Style = _style("text-error")
    added: Style = _style("foreground", on=("success", 0.16), hue="success")
    added_word: Style = _style("foreground", on=("success", 0.36), ansi=_BOLD + _UNDERLINE)
    added_gutter: Style = _style("text-success", 0.85, on=("success", 0.25))
    removed: Style = _style("foreground", on=("error", 0.18), hue="error")
    removed_word: Style = _style("foreground", on=("error", 0.4), ansi=_BOLD + _UNDERLINE)
    removed_gutter: Style = _style("text-error", 0.85, on=("error", 0.28))
    unchanged: Style = _style("foreground", 0.7)
    unchanged_gutter: Style = _style("foreground", 0.35, ansi=_DIM, least=SIGN_CONTRAST)
    hunk: Style = _style("text-secondary", 0.7)
    found: Style = _style("foreground", on=("warning", 0.4), look=_UNDERLINE)
    found_current: Style = _style(
        "background", on=("warning", 1.0), look=_BOLD, ansi=_BOLD + Style(reverse=True)
    )
    keyword: Style = _style("text-primary")
    string: Style = _style("text-success")
    number: Style = _style("text-warning")
    comment: Style = _style("foreground", 0.5, look=_ITALIC, ansi=_DIM + _ITALIC)
    name: Style = _style("text-accent", hue="secondary")
    type_name: Style = _style("text-secondary")

    def with_styles(self, change: Callable[[Style], Style]) -> "Palette":
        """The palette with every style as `change` returns it."""
        return Palette(*(change(getattr(self, name)) for name in _RECIPES))


_RECIPES: Mapping[str, _Recipe] = {
    style.name: style.metadata["recipe"] for style in fields(Palette)
}


def palette_of(app: App[object]) -> Palette:
    """The styles for the app's present theme and terminal."""
    if app.no_color:
        return make_palette(app.theme_variables, ansi=True).with_styles(lambda s: s.without_color)
    return make_palette(app.theme_variables, ansi=app.native_ansi_color)


def make_palette(variables: Mapping[str, str], *, ansi: bool) -> Palette:
    """The styles for a theme.

    Args:
        variables: The theme's colour variables (`App.theme_variables`).
        ansi: Whether the theme uses the terminal's own colours, which cannot be blended.
    """
    mix = _in_terminal_colours if ansi else _blend
    return Palette(*(mix(recipe, variables) for recipe in _RECIPES.values()))


def dim_palette(palette: Palette) -> Palette:
    """`palette` for dimmed text: every ink nearer to the background, without bright grounds."""
    ground = palette.ground.bgcolor
    if ground is None:
        return palette.with_styles(lambda style: style + _DIM)
    background = Color.from_rich_color(ground)

    def nearer(colour: RichColor | None) -> RichColor | None:
        blended = colour and Color.from_rich_color(colour).blend(background, _FADED)
        return blended.rich_color if blended else None

    def fade(style: Style) -> Style:
        ink = Style(color=nearer(style.color), bgcolor=nearer(style.bgcolor))
        return legible_style(style + ink, background, LINE_CONTRAST)

    return palette.with_styles(fade)


def _blend(recipe: _Recipe, variables: Mapping[str, str]) -> Style:
    """A style of a true-colour theme, readable on its ground whatever the theme."""
    background = _parse(variables["background"])

    def mix(name: str, share: float) -> RichColor | None:
        return background.blend(_parse(variables[name]), share).rich_color if name else None

    style = Style(color=mix(recipe.ink, recipe.share), bgcolor=mix(*recipe.on)) + recipe.look
    return legible_style(style, background, recipe.least)


def _in_terminal_colours(recipe: _Recipe, variables: Mapping[str, str]) -> Style:
    """A style of a theme with terminal colours: hue and attributes, no surface."""
    ink = _parse(variables[recipe.hue]).rich_color if recipe.hue else None
    return Style(color=ink) + recipe.ansi


def _parse(value: str) -> Color:
    """A theme variable as a colour without its share of opacity (``#rrggbb 50%``)."""
    colour = Color.parse(value.split()[0])
    return colour if colour.ansi is not None else colour.with_alpha(1.0)
