"""References below ``refs/replace``, which have git show another object instead of one.

With one, a branch looks as before and a checkout writes other files (``git replace``).
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.regular_files import open_regular_file

_FOLDER: Final = "refs/replace"
_PACKED: Final = "packed-refs"
_MARK: Final = b" refs/replace/"


def find_replacements(git: Path) -> Iterator[Path]:
    """The files in the git folder `git` that hold some: one each, or ``packed-refs`` for many."""
    for folder, _, names in os.walk(git / _FOLDER):
        yield from (Path(folder, name) for name in names)
    if any(_MARK in line for line in _lines(git / _PACKED)):
        yield git / _PACKED


def is_replacement(file: Path, before: bytes | None, now: bytes) -> bool:
    """Whether a `file` that was found holds one `now` that it did not hold `before`."""
    known = _known(before)
    return file.name != _PACKED or any(_MARK in line for line in _known(now) - known)


def without_replacements(file: Path, before: bytes | None, now: bytes) -> bytes:
    """``packed-refs`` as it is `now` with no replacement that it did not hold `before`.

    Any other as before.
    """
    if file.name != _PACKED:
        return before or b""
    known, kept, is_kept = _known(before), list[bytes](), True
    for line in now.splitlines(keepends=True):
        if not line.startswith(b"^"):  # this says more about the reference before it
            is_kept = _MARK not in line or line in known
        kept += [line] if is_kept else []
    return b"".join(kept)


def _known(before: bytes | None) -> set[bytes]:
    return set((before or b"").splitlines(keepends=True))


def _lines(file: Path) -> Iterable[bytes]:
    """The lines of a file; none if it cannot be read, which git cannot either."""
    with suppress(OSError), open_regular_file(file, follow_links=False) as lines:
        yield from lines
