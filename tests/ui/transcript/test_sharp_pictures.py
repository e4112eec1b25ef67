"""Pictures in Kitty's graphics: what goes to the terminal, and that it is asked nothing."""

import os
import sys
from base64 import b64encode
from collections.abc import Generator
from pathlib import Path

import pytest
from textual.theme import BUILTIN_THEMES

from agent_tui.ui.theme.palette import make_palette
from agent_tui.ui.transcript.thumbnail import (
    SharpPictures,
    can_show_pictures,
    draw_sharply,
    picture_lines,
    thumbnail_lines,
)
from tests.support.images import png
from tests.support.pty_program import PtyProgram

PICTURE = b64encode(png(400, 200)).decode()
PALETTE = make_palette(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), ansi=False)
DRAWS = f"""
import sys
from agent_tui.ui.transcript.thumbnail import SharpPictures
rows = SharpPictures(sys.stdout.write).rows({PICTURE!r}, 20, 5)
print(len(rows), "rows; typed:", input())
"""


@pytest.fixture(autouse=True)
def half_blocks_again() -> Generator[None]:
    yield
    draw_sharply(None)


def test_a_picture_is_sent_once_and_has_the_cells_of_its_half_blocks():
    sent: list[str] = []
    draw_sharply(SharpPictures(sent.append))
    lines = picture_lines((PICTURE,), 60, PALETTE)
    half_blocks = thumbnail_lines(PICTURE, 60)
    assert [line.cells for line in lines[1:]] == [line.cells for line in half_blocks]
    assert all(line.text.startswith(chr(0x10EEEE)) for line in lines[1:])
    (told,) = sent
    assert told.startswith("\x1b_Gi=")
    assert "a=q" not in told, "a question would be answered into the prompt"
    assert picture_lines((PICTURE,), 60, PALETTE) == lines
    assert len(sent) == 1


def test_standard_output_is_as_before_also_after_a_failure():
    sent: list[str] = []
    before = sys.__stdout__
    with pytest.raises(OSError, match="identify"):
        SharpPictures(sent.append).rows(b64encode(b"no picture").decode(), 4, 2)
    assert sys.__stdout__ is before


def test_what_cannot_be_read_is_left_out():
    sent: list[str] = []
    draw_sharply(SharpPictures(sent.append))
    assert picture_lines((b64encode(b"no picture").decode(),), 60, PALETTE) == []


@pytest.mark.parametrize(
    ("term", "can"),
    [("xterm-kitty", True), ("xterm-ghostty", True), ("tmux-256color", False), ("", False)],
)
def test_the_terminal_is_known_by_its_name(term: str, can: bool):
    assert can_show_pictures({"TERM": term, "KITTY_WINDOW_ID": "1"}) is can


@pytest.mark.thorough
def test_a_terminal_that_answers_nothing_is_not_waited_for_and_keeps_its_keys(tmp_path: Path):
    command = [sys.executable, "-c", DRAWS]
    environ = {**os.environ, "TERM": "xterm-kitty"}
    with PtyProgram(command, environ=environ, cwd=tmp_path) as program:
        program.send("hello\n")
        program.wait_for("5 rows; typed: hello")
        program.wait_until_end()
        assert "\x1b[16t" not in program.output
        assert "\x1b[c" not in program.output
        assert "a=q" not in program.output
