"""From which size on a screen looks different, known before it is first drawn."""

from textual.geometry import Size

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
