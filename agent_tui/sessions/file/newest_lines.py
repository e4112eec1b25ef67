"""Reads a file of lines from its end."""

import os
from collections.abc import Iterator
from pathlib import Path

from agent_tui.regular_files import open_regular_file

_PIECE_BYTES = 32_768
"""Read at first from the end; each further piece is twice as large."""


def newest_lines(path: Path, most_bytes: int) -> Iterator[bytes]:
    r"""The lines of `path` without their ends, the last one first; empty lines are left out.

    Args:
        path: The file. It may grow meanwhile.
        most_bytes: Bytes at its end to look at; a line that begins before them is left out.

    Raises:
        OSError: The file cannot be read.
    """
    with open_regular_file(path, buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        least, begun, piece = max(start - most_bytes, 0), b"", _PIECE_BYTES
        while start > least:
            size = min(piece, start - least)
            start, piece = start - size, piece * 2
            file.seek(start)
            begun, *lines = (file.read(size) + begun).split(b"\n")
            yield from filter(None, reversed(lines))
        if begun and not start:
            yield begun
