"""Images in the chat: half blocks, two pixels a cell."""

from base64 import b64encode
from io import BytesIO

from PIL import Image
from textual.theme import BUILTIN_THEMES

from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.transcript.blocks import ToolBlock, UserBlock
from agent_tui.ui.transcript.markdown import markdown_parser
from agent_tui.ui.transcript.painter import BlockPainter
from agent_tui.ui.transcript.thumbnail import MAX_COLUMNS, MAX_ROWS, thumbnail_lines

VARIABLES = BUILTIN_THEMES["textual-dark"].to_color_system().generate()
RED, BLUE = (255, 0, 0), (0, 0, 255)


def encoded(image: Image.Image, form: str = "PNG") -> str:
    out = BytesIO()
    image.save(out, form)
    return b64encode(out.getvalue()).decode()


def two_colours(width: int, height: int) -> str:
    """Red above, blue below."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (0, height // 2, width, height))
    return encoded(image)


def painted(*, ansi: bool = False) -> BlockPainter:
    palette = make_palette(VARIABLES, ansi=ansi)
    return BlockPainter(palette, markdown_parser(), 80, show_thinking=False)


def test_a_cell_shows_two_pixels():
    (line,) = thumbnail_lines(two_colours(3, 2), 40)
    assert line.row == "▀▀▀"
    style = line.segments[0].style
    assert style is not None
    assert style.color is not None
    assert style.bgcolor is not None
    assert (style.color.triplet, style.bgcolor.triplet) == (RED, BLUE)


def test_a_large_image_is_made_to_fit_and_keeps_its_shape():
    lines = thumbnail_lines(two_colours(1_600, 800), 200)
    assert (len(lines), lines[0].cells) == (MAX_COLUMNS // 4, MAX_COLUMNS)
    tall = thumbnail_lines(two_colours(100, 1_000), 200)
    assert len(tall) == MAX_ROWS


def test_what_is_no_image_is_not_drawn():
    assert thumbnail_lines("AAAA", 40) == ()
    assert thumbnail_lines(b64encode(b"\x89PNG\r\n\x1a\nbroken").decode(), 40) == ()


def test_the_person_s_images_are_seen_where_the_theme_has_surfaces_and_else_counted():
    block = UserBlock("look", (two_colours(8, 8), "AAAA"))
    rows = [line.row for line in painted().paint(block, is_expanded=False)]
    assert sum("▀" * 8 in row for row in rows) == 4
    plain = [line.row.strip() for line in painted(ansi=True).paint(block, is_expanded=False)]
    assert plain[-1] == "▌ + 2 images"


def test_an_image_that_was_read_is_seen_when_the_call_is_unfolded():
    block = ToolBlock("c", "read", "shot.png", "ok", images=(two_colours(8, 8),))
    folded = painted().paint(block, is_expanded=False)
    unfolded = painted().paint(block, is_expanded=True)
    assert (len(folded), len(unfolded)) == (1, 1 + 1 + 4)
