"""``NO_COLOR``: the terminal's own two colours, and attributes for what colours would tell.

Textual makes greys instead, on a dark ground whatever the terminal's is. See https://no-color.org.
"""

from functools import lru_cache

from rich.color import Color as RichColor
from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from agent_tui.ui.theme.contrast import contrast

MARKED_CONTRAST = 1.6
"""From here on a ground other than what is around it means something: what is selected, where the
cursor is, the words that changed. Below are panels and blocks of code."""

DIM_CONTRAST = 7.0
"""Below it a text is meant to stand back (above is what WCAG 2 asks of text at level AAA)."""

_ATTRIBUTES = ("bold", "italic", "underline", "underline2", "strike", "blink")


class WithoutColours(LineFilter):
    """Takes all colours out of what is drawn."""

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
    """`style` without colours: reversed where its ground stands out of `ground`, or dim."""
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
    """A colour that can be compared; None for those only the terminal knows."""
    if colour is None or colour.type is not ColorType.TRUECOLOR:
        return None
    return Color.from_rich_color(colour)
