"""The colours of the chat as Rich styles, all derived from the theme in force."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App
from textual.color import Color

from agent_tui.ui.theme.contrast import LINE_CONTRAST, SIGN_CONTRAST, TEXT_CONTRAST, legible_style

_PLAIN = Style()
_BOLD = Style(bold=True)
_ITALIC = Style(italic=True)
_UNDERLINE = Style(underline=True)
_STRIKE = Style(strike=True)


@dataclass(frozen=True, slots=True)
class Palette:
    """Styles by what they are for. Themes with terminal colours get no backgrounds."""

    ground: Style
    text: Style
    muted: Style
    faint: Style
    accent: Style
    strong: Style
    emphasis: Style
    strike: Style
    heading_1: Style
    heading_2: Style
    heading_3: Style
    link: Style
    inline_code: Style
    code: Style
    code_edge: Style
    quote_bar: Style
    user: Style
    user_bar: Style
    thinking: Style
    running: Style
    success: Style
    warning: Style
    error: Style
    added: Style
    added_word: Style
    added_gutter: Style
    removed: Style
    removed_word: Style
    removed_gutter: Style
    unchanged: Style
    unchanged_gutter: Style
    hunk: Style
    found: Style
    found_current: Style
    keyword: Style
    string: Style
    number: Style
    comment: Style
    name: Style
    type_name: Style


def plain_palette() -> Palette:
    """No colours and no attributes: for what is laid out before a theme is known."""
    return Palette(**{field.name: Style() for field in fields(Palette)})


def palette_of(app: App[object]) -> Palette:
    """The styles for the app's present theme and terminal."""
    if app.no_color:
        palette = _ansi_palette(app.theme_variables)
        styles = {field.name: getattr(palette, field.name) for field in fields(Palette)}
        return Palette(**{name: style.without_color for name, style in styles.items()})
    return make_palette(app.theme_variables, ansi=app.native_ansi_color)


def make_palette(variables: Mapping[str, str], *, ansi: bool) -> Palette:
    """The styles for a theme.

    Args:
        variables: The theme's colour variables (`App.theme_variables`).
        ansi: Whether the theme uses the terminal's own colours, which cannot be blended.
    """
    if ansi:
        return _ansi_palette(variables)
    return _legible(_blended_palette(variables), _parse(variables["background"]))


def dimmed(palette: Palette) -> Palette:
    """`palette` for what is past: every ink nearer to the background, and no bright grounds."""
    styles: dict[str, Style] = {
        field.name: getattr(palette, field.name) for field in fields(Palette)
    }
    ground = palette.ground.bgcolor
    if ground is None:
        return Palette(**{name: style + Style(dim=True) for name, style in styles.items()})
    background = Color.from_rich_color(ground)

    def nearer(colour: RichColor | None) -> RichColor | None:
        faded = colour and Color.from_rich_color(colour).blend(background, _FADED)
        return faded.rich_color if faded else None

    def faded(style: Style) -> Style:
        ink = Style(color=nearer(style.color), bgcolor=nearer(style.bgcolor))
        return legible_style(style + ink, background, LINE_CONTRAST)

    return Palette(**{name: faded(style) for name, style in styles.items()})


def _legible(palette: Palette, background: Color) -> Palette:
    """`palette` with every style readable on its ground, whatever theme it was mixed from."""
    styles: dict[str, Style] = {
        field.name: getattr(palette, field.name) for field in fields(Palette)
    }
    for name, style in styles.items():
        least = _LEAST_CONTRAST.get(name, TEXT_CONTRAST)
        styles[name] = legible_style(style, background, least)
    return Palette(**styles)


_FADED = 0.5
"""How much of the background is in the colours of what is past."""

_LEAST_CONTRAST = {
    **dict.fromkeys(("faint", "code_edge", "quote_bar"), LINE_CONTRAST),
    **dict.fromkeys(("user_bar", "unchanged_gutter"), SIGN_CONTRAST),
}


def _blended_palette(variables: Mapping[str, str]) -> Palette:
    """Styles of a true-colour theme: few hues, quiet surfaces mixed from them."""
    colours = {name: _parse(variables[name]) for name in _NAMES}
    background, foreground = colours["background"], colours["foreground"]

    def ink(colour: str, share: float = 1.0, look: Style = _PLAIN) -> Style:
        return Style(color=background.blend(colours[colour], share).rich_color) + look

    def on(colour: str, share: float) -> Style:
        return Style(bgcolor=background.blend(colours[colour], share).rich_color)

    code = Style(color=foreground.rich_color, bgcolor=background.blend(foreground, 0.05).rich_color)
    return Palette(
        ground=Style(bgcolor=background.rich_color),
        text=ink("foreground"),
        muted=ink("foreground", 0.62),
        faint=ink("foreground", 0.32),
        accent=ink("text-primary"),
        strong=ink("foreground", look=_BOLD),
        emphasis=ink("foreground", look=_ITALIC),
        strike=ink("foreground", 0.62, look=_STRIKE),
        heading_1=ink("text-primary", look=_BOLD + _UNDERLINE),
        heading_2=ink("text-primary", look=_BOLD),
        heading_3=ink("foreground", look=_BOLD),
        link=ink("text-primary", look=_UNDERLINE),
        inline_code=ink("text-accent") + on("foreground", 0.07),
        code=code,
        code_edge=ink("foreground", 0.25) + on("foreground", 0.05),
        quote_bar=ink("foreground", 0.32),
        user=ink("foreground") + on("primary", 0.13),
        user_bar=ink("primary") + on("primary", 0.13),
        thinking=ink("foreground", 0.55, look=_ITALIC),
        running=ink("text-warning"),
        success=ink("text-success"),
        warning=ink("text-warning"),
        error=ink("text-error"),
        added=ink("foreground") + on("success", 0.16),
        added_word=ink("foreground") + on("success", 0.36),
        added_gutter=ink("text-success", 0.85) + on("success", 0.25),
        removed=ink("foreground") + on("error", 0.18),
        removed_word=ink("foreground") + on("error", 0.4),
        removed_gutter=ink("text-error", 0.85) + on("error", 0.28),
        unchanged=ink("foreground", 0.7),
        unchanged_gutter=ink("foreground", 0.35),
        hunk=ink("text-secondary", 0.7),
        found=ink("foreground") + on("warning", 0.4) + _UNDERLINE,
        found_current=Style(color=background.rich_color, bgcolor=colours["warning"].rich_color)
        + _BOLD,
        keyword=ink("text-primary"),
        string=ink("text-success"),
        number=ink("text-warning"),
        comment=ink("foreground", 0.5, look=_ITALIC),
        name=ink("text-accent"),
        type_name=ink("text-secondary"),
    )


def _ansi_palette(variables: Mapping[str, str]) -> Palette:
    """Styles of a theme with terminal colours: hues and attributes, no backgrounds."""

    def ink(colour: str, look: Style = _PLAIN) -> Style:
        return Style(color=_parse(variables[colour]).rich_color) + look

    plain, dim = _PLAIN, Style(dim=True)
    return Palette(
        ground=plain,
        text=plain,
        muted=dim,
        faint=dim,
        accent=ink("primary"),
        strong=_BOLD,
        emphasis=_ITALIC,
        strike=Style(strike=True, dim=True),
        heading_1=ink("primary", look=_BOLD + _UNDERLINE),
        heading_2=ink("primary", look=_BOLD),
        heading_3=_BOLD,
        link=ink("primary", look=_UNDERLINE),
        inline_code=ink("secondary"),
        code=plain,
        code_edge=dim,
        quote_bar=dim,
        user=_BOLD,
        user_bar=ink("primary"),
        thinking=Style(dim=True, italic=True),
        running=ink("warning"),
        success=ink("success"),
        warning=ink("warning"),
        error=ink("error"),
        added=ink("success"),
        added_word=_BOLD + _UNDERLINE,
        added_gutter=ink("success"),
        removed=ink("error"),
        removed_word=_BOLD + _UNDERLINE,
        removed_gutter=ink("error"),
        unchanged=plain,
        unchanged_gutter=dim,
        hunk=ink("secondary"),
        found=_UNDERLINE,
        found_current=Style(reverse=True, bold=True),
        keyword=ink("primary"),
        string=ink("success"),
        number=ink("warning"),
        comment=Style(dim=True, italic=True),
        name=ink("secondary"),
        type_name=ink("secondary"),
    )


_NAMES = (
    "background",
    "foreground",
    "primary",
    "success",
    "warning",
    "error",
    "text-primary",
    "text-secondary",
    "text-accent",
    "text-success",
    "text-warning",
    "text-error",
)


def _parse(value: str) -> Color:
    """A theme variable as a colour without its share of opacity (``#rrggbb 50%``)."""
    colour = Color.parse(value.split()[0])
    return colour if colour.ansi is not None else colour.with_alpha(1.0)
