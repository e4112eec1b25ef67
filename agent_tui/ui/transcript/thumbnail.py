"""Images as rows of half blocks, two pixels a cell: small, but in every terminal with colours.

Where the terminal draws pictures in cells of text, they are sharp (see `sharp_pictures`). Other
protocols (iTerm2, Sixel) draw beside the cells a program writes, and do not scroll with them.
"""

from base64 import b64decode
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from agent_tui.ui.styled_lines import Line
from agent_tui.ui.theme.palette import Palette
from agent_tui.ui.transcript.sharp_pictures import SharpPictures

MAX_COLUMNS = 56
MAX_ROWS = 16
_HALF = "▀"
_SEEN_THROUGH = (128, 128, 128)
"""What stands behind transparent parts."""


_sharp: list[SharpPictures] = []


def draw_sharply(pictures: SharpPictures | None) -> None:
    """Have all images drawn by `pictures` from now on; None: as half blocks."""
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
    """An image, sharp where that can be, in the cells of its half blocks."""
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
