"""What was sent in this project before, shared with the screen: its private JSON-lines file."""

import json
import os
from pathlib import Path
from typing import cast

from agent_tui.paths import make_private_dir


def earlier_lines(path: Path) -> list[str]:
    """The one-line messages in the file, oldest first, none twice; those with pastes are left out.

    Lines that cannot be read are skipped, a file that cannot be is empty.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    texts = [text for line in lines if (text := _text_of(line))]
    return list(dict.fromkeys(reversed(texts)))[::-1]


def add_line(path: Path, text: str) -> None:
    """Append a message, as the screen does.

    Raises:
        OSError: The file cannot be written.
    """
    make_private_dir(path.parent)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps({"text": text}) + "\n")


def _text_of(line: str) -> str:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    fields = cast("dict[str, object]", value)
    text = fields.get("text")
    is_usable = isinstance(text, str) and "\n" not in text and not fields.get("pastes")
    return str(text) if is_usable else ""
