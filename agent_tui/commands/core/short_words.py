"""Counts and paths in a short form, as all fronts show them."""

import re
from pathlib import Path

from agent_tui.durations import format_duration

_MAX_TITLE_CHARS = 72
# Patterns that `re` compiles and keeps at their first use: the first paint imports this module.
_COURTESIES = (
    r"(?i:(?:hi|hello|hey|ok|okay|please|now|so|and|then)\b[\s,!.]*"
    r"|(?:can|could|would|will) you (?:please )?"
    r"|i(?: want| need|'d like| would like) you to (?:please )?"
    r"|(?:let's|lets|let us) )+"
)
_SENTENCE_END = r"(?<=[\w)`'\"][.!?])\s"


def task_title(request: str) -> str:
    """A request in a few words: its first sentence without courtesies.

    Longer ones end at a word with ``…``; empty if there are no words.
    """
    text = " ".join(request.split()).lstrip("#*>- ")
    if courtesy := re.match(_COURTESIES, text):
        text = text[courtesy.end() :] or text
    text = re.split(_SENTENCE_END, text, maxsplit=1)[0].rstrip(":").removesuffix(".")
    if len(text) > _MAX_TITLE_CHARS:
        text = text[: _MAX_TITLE_CHARS - 1].rpartition(" ")[0] or text[: _MAX_TITLE_CHARS - 1]
        text = text.rstrip(" ,;:") + "…"
    return text


def count_text(number: int, one: str, many: str = "") -> str:
    """``1 line``, ``2,000 lines``; `many` is the plural if it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def short_count(count: int) -> str:
    """A token count in at most five characters: ``950``, ``12.3k``, ``1.2M``."""
    if count < 1_000:
        return str(count)
    if count < 99_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def size_text(size_bytes: int) -> str:
    """`size_bytes` in decimal units with up to three digits: ``98.4 MB``."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 99.95 else f"{size:.1f} {unit}"


def short_time(seconds: float) -> str:
    """A duration for display: ``3.2s``, ``47s``, ``2m 05s``, ``1h 02m``."""
    return f"{seconds:.1f}s" if seconds < 9.95 else format_duration(round(seconds))


def short_via(via: str) -> str:
    """The source of a model in a short form: ``Ollama :11434``."""
    return via.replace(" at 127.0.0.1:", " :")


def short_path(path: Path, home: Path) -> str:
    """`path` with the home folder as ``~``."""
    if path == home:
        return "~"
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def file_text(path: Path, cwd: Path) -> str:
    """`path` as written in `cwd`: relative to it or to the home folder, or absolute."""
    if path.is_relative_to(cwd):
        return str(path.relative_to(cwd))
    return short_path(path, Path.home())
