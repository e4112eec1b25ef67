"""Where all words of this front end go: plain lines, each written once."""

from collections.abc import Callable, Iterable
from typing import TextIO

from agent_tui.safe_text import safe_text
from agent_tui.secret_text import mask_values


class LineWriter:
    """Writes lines, harmless ones: nothing steers the terminal, and no key is shown.

    Args:
        out: Where to.
        secrets: The keys that must not be shown, as they are at that moment.
    """

    def __init__(self, out: TextIO, secrets: Callable[[], Iterable[str]]) -> None:
        self._out = out
        self._secrets = secrets
        self._is_line_open = False

    def line(self, text: str = "") -> None:
        """Write `text` as a line, or as several where it has newlines."""
        self.end_line()
        self._write(f"{text}\n")

    def lines(self, texts: Iterable[str]) -> None:
        """Write each of `texts` as a line."""
        for text in texts:
            self.line(text)

    def piece(self, text: str) -> None:
        """Write the next words of a line; a newline in it ends that."""
        if text:
            self._write(text)
            self._is_line_open = not text.endswith("\n")

    def end_line(self) -> None:
        """End the line that `piece` has begun."""
        if self._is_line_open:
            self._is_line_open = False
            self._write("\n")

    def _write(self, text: str) -> None:
        self._out.write(safe_text(mask_values(text, self._secrets())))
        self._out.flush()
