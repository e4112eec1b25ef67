"""Whether Git LFS would store a file as the commit has it, without running it."""

import hashlib
import re
from pathlib import Path
from typing import Final

from agent_tui.regular_files import open_regular_file

_POINTER: Final = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-.*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n"
)
"""What is in a commit in place of a large file: the docs/spec.md of Git LFS."""


def holds_large_file(file: Path, pointer: bytes) -> bool:
    """Whether the content of `file` is the one that `pointer`, its content in a commit, names.

    Blocking: the file is read. False if it cannot be.
    """
    match = _POINTER.fullmatch(pointer)
    if match is None:
        return False
    try:
        if file.lstat().st_size != int(match[2]):
            return False
        with open_regular_file(file, follow_links=False) as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest().encode() == match[1]
    except OSError:
        return False
