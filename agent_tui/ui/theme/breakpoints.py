"""How wide the content is, and from which size on a screen looks different."""

from textual.geometry import Size

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
