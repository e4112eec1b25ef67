"""What stands beside a list, and what of it is marked."""

from agent_tui.ui.parts import PaintedLines
from agent_tui.ui.theme.palette import palette_of
from tests.ui.app_support import Ui


def painted(ui: Ui) -> str:
    """The rows that are drawn beside the list."""
    end = ui.app.screen.query_one("#picker-preview-end", PaintedLines)
    return "\n".join(end.render_line(y).text.rstrip() for y in range(end.size.height))


def marked_words(ui: Ui) -> list[str]:
    """What of them has the colour of what is found."""
    end = ui.app.screen.query_one("#picker-preview-end", PaintedLines)
    segments = [each for y in range(end.size.height) for each in end.render_line(y)]
    colour = palette_of(end.app).found.bgcolor
    return [each.text for each in segments if each.style and each.style.bgcolor == colour]
