"""Makes text readable in every theme, and without colours (``NO_COLOR``).

Some themes have little contrast even for plain text, and what is dimmed from that is lost.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rich.color import Color as RichColor
from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

TEXT_CONTRAST: Final = 4.5
"""What WCAG 2 asks of text (level AA)."""

SIGN_CONTRAST: Final = 3.0
"""The same for signs that are not read, such as line numbers and rules with a meaning."""

LINE_CONTRAST: Final = 2.0
"""The same for lines that only divide."""

_STEPS = 20
_BLACK, _WHITE = Color(0, 0, 0), Color(255, 255, 255)

_TEXT_VARIABLES = (
    "foreground",
    "foreground-muted",
    "text-primary",
    "text-secondary",
    "text-accent",
    "text-success",
    "text-warning",
    "text-error",
)
_SIGN_VARIABLES = (
    "foreground-disabled",
    "primary",
    "secondary",
    "accent",
    "success",
    "warning",
    "error",
)
_HIGHLIGHT_GROUNDS = ("block-cursor-background", "block-cursor-blurred-background")
_HIGHLIGHT_INKS = ("block-cursor-foreground", "block-cursor-blurred-foreground")
_FAINT_TEXT = {"text-disabled": "auto 50%"}
"""Lines of keys are written in it; Textual's 38 % is 2.5 to 1."""
MARKED_CONTRAST = 1.6
"""A ground with this contrast to its surroundings has a meaning: a selection, the cursor, changed
words. Panels and blocks of code have less."""

DIM_CONTRAST = 7.0
"""Text with less contrast counts as dimmed (WCAG 2 asks for this contrast at level AAA)."""

_ATTRIBUTES = ("bold", "italic", "underline", "underline2", "strike", "blink")


def contrast(one: Color, other: Color) -> float:
    """The contrast of two opaque colours, from 1 to 21 (WCAG 2)."""
    darker, brighter = sorted((_luminance(one), _luminance(other)))
    return (brighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (_linear(part / 255) for part in colour.rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4


def legible(ink: Color, ground: Color, least: float) -> Color:
    """`ink`, lightened or darkened just enough for the contrast `least` on `ground`."""
    if contrast(ink, ground) >= least:
        return ink
    goal = _WHITE if contrast(_WHITE, ground) >= contrast(_BLACK, ground) else _BLACK
    for step in range(1, _STEPS):
        nearer = ink.blend(goal, step / _STEPS)
        if contrast(nearer, ground) >= least:
            return nearer
    return goal


def legible_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """A theme's colour variables with those for text readable on its background and surfaces.

    Themes with the terminal's own colours stay as they are. ``match`` is new: for letters that
    match what was typed, also in a highlighted row.
    """
    background, surface = (Color.parse(variables[name]) for name in ("background", "surface"))
    grounds = (background, surface)
    if any(ground.ansi is not None for ground in grounds):
        return {**variables, "match": "ansi_default"}  # the highlight uses the primary colour
    changed = dict(variables)
    for names, least in ((_TEXT_VARIABLES, TEXT_CONTRAST), (_SIGN_VARIABLES, SIGN_CONTRAST)):
        for name in names:
            given = Color.parse(variables[name])
            ink = background.blend(given.with_alpha(1.0), given.a)
            for ground in grounds:
                ink = legible(ink, ground, least)
            if ink != given:
                changed[name] = ink.hex
    return changed | _FAINT_TEXT | _highlight(changed, surface)


def _highlight(variables: Mapping[str, str], surface: Color) -> dict[str, str]:
    """The selected row of a list: its background, with readable text."""
    foreground, muted, primary = (
        Color.parse(variables[name]) for name in ("foreground", "foreground-muted", "primary")
    )
    given = _color(variables["block-cursor-blurred-background"], surface)
    ground = next(
        (
            nearer
            for step in range(_STEPS * 2 // 3)  # nearer to the surface it is not seen any more
            if contrast(foreground, nearer := given.blend(surface, step / _STEPS)) >= TEXT_CONTRAST
            and contrast(muted, nearer) >= SIGN_CONTRAST
        ),
        surface.blend(_WHITE if foreground.brightness < 0.5 else _BLACK, 0.5),
    )
    changed = {"match": legible(primary, ground, SIGN_CONTRAST).hex}
    if ground != given:
        changed |= dict.fromkeys(_HIGHLIGHT_GROUNDS, ground.hex)
        changed |= dict.fromkeys(_HIGHLIGHT_INKS, foreground.hex)
    return changed


def _color(value: str, ground: Color) -> Color:
    """A variable's value, such as ``#rrggbb 30%``, as it is seen on `ground`."""
    name, _, share = value.partition(" ")
    colour = Color.parse(name)
    opacity = float(share.rstrip("%")) / 100 if share else colour.a
    return ground.blend(colour.with_alpha(1.0), opacity)


def legible_style(style: Style, ground: Color, least: float) -> Style:
    """`style` with an ink of at least contrast `least`, on `ground` if it has no other."""
    if style.color is None:
        return style
    on = Color.from_rich_color(style.bgcolor) if style.bgcolor else ground
    ink = legible(Color.from_rich_color(style.color), on, least)
    return style + Style(color=ink.rich_color)


class WithoutColours(LineFilter):
    """Removes all colours from what is drawn."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments without colours.

        Args:
            segments: One row of a widget.
            background: The widget's own ground.
        """
        return [
            Segment(text, style and colourless(style, background), control)
            for text, style, control in segments
        ]


@lru_cache(4096)
def colourless(style: Style, ground: Color) -> Style:
    """`style` without colours: reversed if its ground contrasts with `ground`, or dim."""
    ink, paper = _rgb(style.color), _rgb(style.bgcolor) or ground
    is_marked = contrast(paper, ground) >= MARKED_CONTRAST
    is_faint = ink is not None and contrast(ink, paper) < DIM_CONTRAST
    attributes = {name: getattr(style, name) for name in _ATTRIBUTES}
    return Style(
        **attributes,
        reverse=style.reverse or is_marked or None,
        dim=style.dim or (not style.bold and not is_marked and is_faint) or None,
        link=style.link,
        meta=style.meta or None,
    )


def _rgb(colour: RichColor | None) -> Color | None:
    """A colour that can be compared; None for those that only the terminal knows."""
    if colour is None or colour.type is not ColorType.TRUECOLOR:
        return None
    return Color.from_rich_color(colour)
