"""Files with the whole output of a call, of which the model gets a shortened text."""

import os
import secrets
from pathlib import Path
from typing import BinaryIO

from agent_tui.paths import make_private_dir


def new_output_file(folder: Path, tool: str, suffix: str) -> tuple[Path, BinaryIO]:
    """Create a file that only its owner can read, open for writing.

    Args:
        folder: Where it goes; created if missing.
        tool: The start of its name, before a random part.
        suffix: The end of its name, such as ``.txt``.

    Raises:
        OSError: It cannot be created.
    """
    path = make_private_dir(folder) / f"{tool}-{secrets.token_hex(8)}{suffix}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return path, os.fdopen(descriptor, "wb")


def keep_output(text: str, folder: Path, tool: str, suffix: str) -> Path | None:
    """Write all of `text` to a new file; None if that fails."""
    try:
        path, file = new_output_file(folder, tool, suffix)
        with file:
            file.write(text.encode("utf-8", "replace"))
    except OSError:
        return None
    return path
