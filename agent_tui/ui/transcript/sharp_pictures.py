"""Pictures in Kitty's graphics: cells of text that the terminal puts pixels in, so they scroll.

They need the extra ``images``. Its package asks the terminal what it can when it is imported, and
how large a cell is when it draws. Neither may happen here: an answer would be read as keys, and a
terminal that gives none would be waited for. So the terminal is known by its name, and the package
finds no terminal; what it writes for one goes out with everything else.
"""

import sys
from base64 import b64decode
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO, StringIO

from rich.console import Console
from rich.segment import Segment

from agent_tui.ui.styled_lines import Line

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
    """Standard output is what this yields, and so no terminal, in a ``with`` block."""
    kept, told = sys.__stdout__, StringIO()
    setattr(sys, _STANDARD_OUTPUT, told)
    try:
        yield told
    finally:
        setattr(sys, _STANDARD_OUTPUT, kept)
