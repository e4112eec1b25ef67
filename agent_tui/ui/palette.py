"""The colours of the chat as Rich styles, all derived from the theme in force."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from rich.style import Style
from textual.color import Color


@dataclass(frozen=True, slots=True)
class Palette:
    """Styles by what they are for. Themes with terminal colours get no backgrounds."""

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
    added_gutter: Style
    removed: Style
    removed_gutter: Style
    unchanged: Style
    unchanged_gutter: Style
    hunk: Style
    keyword: Style
    string: Style
    number: Style
    comment: Style
    name: Style
    type_name: Style


def plain_palette() -> Palette:
    """No colours and no attributes: for what is laid out before a theme is known."""
    return Palette(**{field.name: Style() for field in fields(Palette)})


def make_palette(variables: Mapping[str, str], *, ansi: bool) -> Palette:
    """The styles for a theme.

    Args:
        variables: The theme's colour variables (`App.theme_variables`).
        ansi: Whether the theme uses the terminal's own colours, which cannot be blended.
    """
    return _ansi_palette(variables) if ansi else _blended_palette(variables)


def _blended_palette(variables: Mapping[str, str]) -> Palette:
    """Styles of a true-colour theme: few hues, quiet surfaces mixed from them."""
    colours = {name: _parse(variables[name]) for name in _NAMES}
    background, foreground = colours["background"], colours["foreground"]

    def ink(colour: str, share: float = 1.0, **attributes: bool) -> Style:
        mixed = background.blend(colours[colour], share)
        return Style(color=mixed.rich_color, **attributes)

    def on(colour: str, share: float) -> Style:
        return Style(bgcolor=background.blend(colours[colour], share).rich_color)

    code = Style(
        color=foreground.rich_color, bgcolor=background.blend(foreground, 0.05).rich_color
    )
    return Palette(
        text=ink("foreground"),
        muted=ink("foreground", 0.62),
        faint=ink("foreground", 0.32),
        accent=ink("text-primary"),
        strong=ink("foreground", bold=True),
        emphasis=ink("foreground", italic=True),
        strike=ink("foreground", 0.62, strike=True),
        heading_1=ink("text-primary", bold=True, underline=True),
        heading_2=ink("text-primary", bold=True),
        heading_3=ink("foreground", bold=True),
        link=ink("text-primary", underline=True),
        inline_code=ink("text-accent") + on("foreground", 0.07),
        code=code,
        code_edge=ink("foreground", 0.25) + on("foreground", 0.05),
        quote_bar=ink("foreground", 0.32),
        user=ink("foreground") + on("primary", 0.13),
        user_bar=ink("primary") + on("primary", 0.13),
        thinking=ink("foreground", 0.55, italic=True),
        running=ink("text-warning"),
        success=ink("text-success"),
        warning=ink("text-warning"),
        error=ink("text-error"),
        added=ink("foreground") + on("success", 0.16),
        added_gutter=ink("text-success", 0.85) + on("success", 0.25),
        removed=ink("foreground") + on("error", 0.18),
        removed_gutter=ink("text-error", 0.85) + on("error", 0.28),
        unchanged=ink("foreground", 0.7),
        unchanged_gutter=ink("foreground", 0.35),
        hunk=ink("text-secondary", 0.7),
        keyword=ink("text-primary"),
        string=ink("text-success"),
        number=ink("text-warning"),
        comment=ink("foreground", 0.5, italic=True),
        name=ink("text-accent"),
        type_name=ink("text-secondary"),
    )


def _ansi_palette(variables: Mapping[str, str]) -> Palette:
    """Styles of a theme with terminal colours: hues and attributes, no backgrounds."""

    def ink(colour: str, **attributes: bool) -> Style:
        return Style(color=_parse(variables[colour]).rich_color, **attributes)

    plain, dim = Style(), Style(dim=True)
    return Palette(
        text=plain,
        muted=dim,
        faint=dim,
        accent=ink("primary"),
        strong=Style(bold=True),
        emphasis=Style(italic=True),
        strike=Style(strike=True, dim=True),
        heading_1=ink("primary", bold=True, underline=True),
        heading_2=ink("primary", bold=True),
        heading_3=Style(bold=True),
        link=ink("primary", underline=True),
        inline_code=ink("secondary"),
        code=plain,
        code_edge=dim,
        quote_bar=dim,
        user=Style(bold=True),
        user_bar=ink("primary"),
        thinking=Style(dim=True, italic=True),
        running=ink("warning"),
        success=ink("success"),
        warning=ink("warning"),
        error=ink("error"),
        added=ink("success"),
        added_gutter=ink("success"),
        removed=ink("error"),
        removed_gutter=ink("error"),
        unchanged=plain,
        unchanged_gutter=dim,
        hunk=ink("secondary"),
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
