"""Images as rows of half blocks, two pixels a cell: small, but in every terminal with colours.

Where the terminal draws pictures in cells of text, they are sharp (see `SharpPictures`). Other
protocols (iTerm2, Sixel) draw beside the cells a program writes, and do not scroll with them.
"""

import sys
from base64 import b64decode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO, StringIO

from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from agent_tui.ui.styled_lines import Line
from agent_tui.ui.theme.palette import Palette

MAX_COLUMNS = 56
MAX_ROWS = 16
_HALF = "▀"
_SEEN_THROUGH = (128, 128, 128)
"""The background of transparent parts."""


_TERMINALS = frozenset({"xterm-kitty", "xterm-ghostty"})
"""The values of TERM of those that draw pictures in cells of text."""

_MOST_PICTURES = 64
_STANDARD_OUTPUT = "__stdout__"
"""Where the package looks for a terminal."""


def can_show_pictures(environ: Mapping[str, str]) -> bool:
    """Whether the terminal draws such pictures, and the package for it is installed."""
    return environ.get("TERM") in _TERMINALS and find_spec("textual_image") is not None


class SharpPictures:
    """Hands pictures to the terminal, each once, and has rows of cells that show them.

    They are Kitty's graphics: cells of text that the terminal puts pixels in, so they scroll. They
    need the extra ``images``. Its package asks the terminal what it can when it is imported, and
    how large a cell is when it draws. Neither may happen here: an answer would be read as keys, and
    a terminal that gives none would be waited for. So the terminal is known by its name, and the
    package finds no terminal; what it writes for one goes out with everything else.

    Args:
        write: Sends bytes to the terminal.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._drawn: dict[tuple[str, int, int], tuple[Line, ...]] = {}

    def rows(self, data: str, columns: int, rows: int) -> tuple[Line, ...]:
        """A picture in so many cells.

        Args:
            data: The file's bytes in base64, of a picture that can be read.
            columns: Cells of a row.
            rows: How many of them.
        """
        key = (data, columns, rows)
        if key not in self._drawn:
            if len(self._drawn) >= _MOST_PICTURES:
                self._drawn.clear()
            self._drawn[key] = self._draw(data, columns, rows)
        return self._drawn[key]

    def _draw(self, data: str, columns: int, rows: int) -> tuple[Line, ...]:
        console = Console(width=columns, height=rows, file=StringIO(), color_system="truecolor")
        with _no_terminal() as told:
            from textual_image.renderable import TGPImage

            image = TGPImage(BytesIO(b64decode(data)), width=columns, height=rows)
            cells = list(console.render(image))
        self._write(told.getvalue())
        shown = (Segment(cell.text.rstrip("\n"), cell.style) for cell in cells)
        return tuple(Line((cell,), is_decoration=True) for cell in shown if cell.text)


@contextmanager
def _no_terminal() -> Generator[StringIO]:
    """Replace standard output by a buffer, which is no terminal, inside the block; yields it."""
    kept, told = sys.__stdout__, StringIO()
    setattr(sys, _STANDARD_OUTPUT, told)
    try:
        yield told
    finally:
        setattr(sys, _STANDARD_OUTPUT, kept)


_sharp: list[SharpPictures] = []


def draw_sharply(pictures: SharpPictures | None) -> None:
    """Draw all images with `pictures` from now on; None draws half blocks."""
    _sharp[:] = [pictures] if pictures is not None else []


def picture_lines(images: Sequence[str], columns: int, palette: Palette) -> list[Line]:
    """All of `images`, an empty row before each; nothing where the theme has no surfaces.

    Args:
        images: Files in base64.
        columns: Cells there is room for.
        palette: The colours in force.
    """
    if palette.added.bgcolor is None:
        return []
    drawn = (_picture(image, columns) for image in images)
    gap = Line((), is_decoration=True)
    return [line for lines in drawn if lines for line in (gap, *lines)]


def _picture(data: str, columns: int) -> tuple[Line, ...]:
    """An image in the cells that its half blocks take, drawn sharply if the terminal can."""
    lines = thumbnail_lines(data, columns)
    return _sharp[0].rows(data, lines[0].cells, len(lines)) if lines and _sharp else lines


@lru_cache(64)
def thumbnail_lines(data: str, columns: int) -> tuple[Line, ...]:
    """An image in at most `columns` by `MAX_ROWS` cells; nothing where it cannot be read.

    Args:
        data: The file's bytes in base64.
        columns: Cells there is room for.
    """
    from PIL import Image  # not before there is an image

    try:
        with Image.open(BytesIO(b64decode(data))) as image:
            size = (min(columns, MAX_COLUMNS), 2 * MAX_ROWS)
            image.draft("RGB", size)
            image.thumbnail(size)
            shown = Image.new("RGB", image.size, _SEEN_THROUGH)
            coloured = image.convert("RGBA")
            shown.paste(coloured, mask=coloured.getchannel("A"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return ()
    (width, height), pixels = shown.size, shown.tobytes()

    def colour(x: int, y: int) -> Color:
        at = 3 * (y * width + x)
        return Color.from_rgb(*pixels[at : at + 3])

    rows: list[Line] = []
    for y in range(0, max(height - 1, 1), 2):
        below = min(y + 1, height - 1)
        styles = (Style(color=colour(x, y), bgcolor=colour(x, below)) for x in range(width))
        rows.append(Line(tuple(Segment(_HALF, style) for style in styles), is_decoration=True))
    return tuple(rows)
