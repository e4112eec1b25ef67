"""The conversation in the terminal's own scrollback: its end on leaving, all of it on request."""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from rich.cells import cell_len
from textual.app import App

from agent_tui.ui.transcript.blocks import Block, SummaryBlock
from agent_tui.ui.transcript.plain import plain_texts

_SCREENS_LEFT = 2
"""Screens of the conversation that stay in the terminal after exit."""

_CUT = "[…]"
_ASK = "--- End of the conversation. Press Enter to return. ---"

ReturnT = TypeVar("ReturnT")


def last_screens(blocks: Sequence[Block], columns: int, rows: int) -> str:
    """The end of a conversation as plain text, at most `_SCREENS_LEFT` screens of it.

    Summaries are left out, as they are folded on the screen; their heads stand.

    Args:
        blocks: All of it.
        columns: The terminal's width in cells.
        rows: The terminal's height.
    """
    room = _SCREENS_LEFT * rows
    kept: list[str] = []
    for line in _lines_from_the_end(blocks, columns):
        room -= max(-(-cell_len(line) // max(columns, 1)), 1)
        if room < 0:
            kept.append(_CUT)
            break
        kept.append(line)
    return "\n".join(reversed(kept)).strip("\n")


def _lines_from_the_end(blocks: Sequence[Block], columns: int) -> Iterable[str]:
    folded = [replace(b, summary="") if isinstance(b, SummaryBlock) else b for b in blocks]
    for number, text in enumerate(plain_texts(folded, columns, newest_first=True)):
        if number:
            yield ""
        yield from reversed(text.rstrip().split("\n"))


def show_whole(app: App[ReturnT], text: str, wait: Callable[[], None]) -> None:
    """Leave the screen for as long as `wait` takes, with `text` written to the terminal.

    Raises:
        SuspendNotSupported: the terminal cannot be left.
    """
    with app.suspend(), _end_on_ctrl_c():
        write_out(f"{text}\n\n{_ASK}\n")
        wait()
    app.refresh()


def write_out(text: str) -> None:
    """Print `text`; characters that the terminal's encoding lacks become ``?``."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def wait_for_enter() -> None:
    """Wait for a line or Ctrl+D. Blocking."""
    while (typed := os.read(0, 1_024)) and not typed.endswith(b"\n"):
        pass


@contextmanager
def _end_on_ctrl_c() -> Generator[None]:
    """Ctrl+C ends the block and nothing else: the event loop's handler would end the program."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
