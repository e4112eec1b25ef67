"""The program's own themes, dark and light, and the sizes at which screens look different."""

from textual.geometry import Size
from textual.theme import Theme

DARK = "agent-dark"
LIGHT = "agent-light"
CONTENT_WIDTH = 120
"""Cells of the column that chat, prompt, status bar and questions share on a wider screen."""

WIDTH_CLASSES = ((0, "-narrow"), (90, "-wide"))
HEIGHT_CLASSES = ((0, "-short"), (30, "-tall"))
"""The least number of cells, and the class of the screen from there on."""


def size_classes(size: Size) -> tuple[str, str]:
    """The classes of a screen of `size`.

    Textual sets them only once a screen was drawn; without them it would be seen for a moment
    in the looks of another size.
    """
    width = [name for least, name in WIDTH_CLASSES if size.width >= least]
    height = [name for least, name in HEIGHT_CLASSES if size.height >= least]
    return width[-1], height[-1]


def own_themes() -> tuple[Theme, Theme]:
    """`agent-dark` and `agent-light`; contrast of text on its ground is 4.5 to 1 or better."""
    dark = Theme(
        name=DARK,
        dark=True,
        primary="#7aa2f7",
        secondary="#7dcfff",
        accent="#bb9af7",
        foreground="#d5d9e6",
        background="#14161d",
        surface="#1b1e28",
        panel="#242836",
        success="#9ece6a",
        warning="#e0af68",
        error="#f7768e",
        variables={
            "border": "#4f5a80",
            "border-blurred": "#343a50",
            "block-cursor-background": "#2f3a5c",
            "block-cursor-foreground": "#e6e9f5",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#2a3350",
            "block-cursor-blurred-foreground": "#e6e9f5",
            "block-cursor-blurred-text-style": "none",
            "input-selection-background": "#7aa2f7 30%",
            "scrollbar": "#343a50",
            "scrollbar-hover": "#4f5a80",
            "scrollbar-active": "#7aa2f7",
            "scrollbar-background": "#14161d",
            "scrollbar-background-hover": "#14161d",
            "scrollbar-background-active": "#14161d",
        },
    )
    light = Theme(
        name=LIGHT,
        dark=False,
        primary="#2f5fc4",
        secondary="#0f7391",
        accent="#7a45b8",
        foreground="#24283a",
        background="#fbfbfd",
        surface="#f1f2f7",
        panel="#e6e8f0",
        success="#2f7d32",
        warning="#8a5a00",
        error="#c0263f",
        variables={
            "border": "#a3abc4",
            "border-blurred": "#ccd1e0",
            "block-cursor-background": "#d5def6",
            "block-cursor-foreground": "#1a1e2e",
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": "#dde4f5",
            "block-cursor-blurred-foreground": "#1a1e2e",
            "block-cursor-blurred-text-style": "none",
            "input-selection-background": "#2f5fc4 22%",
            "scrollbar": "#ccd1e0",
            "scrollbar-hover": "#a3abc4",
            "scrollbar-active": "#2f5fc4",
            "scrollbar-background": "#fbfbfd",
            "scrollbar-background-hover": "#fbfbfd",
            "scrollbar-background-active": "#fbfbfd",
        },
    )
    return dark, light


def theme_names() -> tuple[str, ...]:
    """Every theme that can be chosen: our own, then Textual's."""
    from textual.theme import BUILTIN_THEMES

    own = [theme.name for theme in own_themes()]
    return (*own, *sorted(name for name in BUILTIN_THEMES if name not in own))


def theme_kind(theme: Theme) -> str:
    """The kind of a theme, in a word or two."""
    if theme.ansi:
        return "terminal's own"
    return "dark" if theme.dark else "light"


def theme_or_default(setting: str, available: frozenset[str]) -> str:
    """The theme named by the setting, or the dark one if there is none of that name."""
    return setting if setting in available else DARK


def theme_for_colours(colorfgbg: str) -> str:
    """Our theme for a terminal by its ``COLORFGBG``, which rxvt, Konsole and iTerm2 set.

    ``0;15`` is black on white: the last number is the background, of the 16 colours. Empty where
    it is not known.
    """
    background = colorfgbg.rpartition(";")[2]
    if not background.isdecimal():
        return ""
    return LIGHT if background in ("7", "15") else DARK
