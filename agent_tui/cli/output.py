"""Printing what may hold any character, whatever the locale says."""

import json
import sys

from pydantic import JsonValue

from agent_tui.safe_text import safe_json


def write_text(text: str) -> None:
    """Write `text` to standard output as UTF-8."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def write_json(value: JsonValue) -> None:
    """Write `value` to standard output as indented JSON."""
    write_text(safe_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")
