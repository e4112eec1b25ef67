"""``@path`` in what the person writes: the text stays, the files go along with it."""

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent_tui.tools.limits import OutputLimits, output_limits
from agent_tui.tools.shorten import keep_head

MAX_LISTED = 200
MAX_ATTACHMENTS = 20
_BINARY_PROBE_BYTES = 8_000

_MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"'`,;]))@(?:\"([^\"\n]+)\"|([^\s\"]+))")
_ATTACHED = re.compile(r'\n\n<(?:file|folder) path="([^"\n]*)"')
_TRAILING = ".,;:!?)]}'`"


def attach_mentions(text: str, cwd: Path, window: int = 0) -> str:
    """`text` followed by what its mentions name, each in a ``<file>`` or ``<folder>`` block.

    Paths are relative to `cwd`, ``~`` is the home folder, a path with blanks is written
    ``@"like this"``. A mention that names nothing (``@someone``) changes nothing. What goes along
    is bounded like the outputs of as many tool calls: of a larger file the beginning is attached,
    and the block says so; of a binary file only its size.

    Args:
        text: What the person wrote.
        cwd: The workspace.
        window: Tokens of the model's window; 0 where it is not known.
    """
    mentioned = mentioned_paths(text, cwd)
    limits = output_limits(window, len(mentioned))
    blocks = [_attachment(path, name, limits) for name, path in mentioned]
    return "\n\n".join([text, *blocks]) if blocks else text


def without_attachments(text: str) -> str:
    """What the person wrote, from what `attach_mentions` made of it."""
    for start in _ATTACHED.finditer(text):
        written = html.unescape(start[1])
        if f"@{written}" in text[: start.start()] or f'@"{written}"' in text[: start.start()]:
            return text[: start.start()]
    return text


def mentioned_paths(text: str, cwd: Path) -> list[tuple[str, Path]]:
    """The existing paths `text` mentions, as written and resolved, each once."""
    found: dict[Path, str] = {}
    for written in _written_paths(text):
        for candidate in (written, written.rstrip(_TRAILING)):
            path = _existing(candidate, cwd)
            if path is not None:
                found.setdefault(path, candidate)
                break
        if len(found) == MAX_ATTACHMENTS:
            break
    return [(name, path) for path, name in found.items()]


def _written_paths(text: str) -> Iterator[str]:
    for mention in _MENTION.finditer(text):
        yield mention[1] or mention[2]


def _existing(written: str, cwd: Path) -> Path | None:
    if not written:
        return None
    try:
        path = (cwd / Path(written).expanduser()).resolve()
        return path if path.is_file() or path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # name too long, unknown ~user, NUL
        return None


def _attachment(path: Path, name: str, limits: OutputLimits) -> str:
    shown = _attribute(name)
    try:
        if path.is_dir():
            return f'<folder path="{shown}">\n{_listing(path, limits)}\n</folder>'
        size = path.stat().st_size
        with path.open("rb") as file:
            data = file.read(limits.max_bytes)
    except OSError as error:
        return f'<file path="{shown}" error="{_attribute(error.strerror or "unreadable")}" />'
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        return f'<file path="{shown}" binary="true" bytes="{size}" />'
    body = data.decode("utf-8", "replace")
    if size <= limits.max_bytes:
        return f'<file path="{shown}">\n{body.rstrip()}\n</file>'
    body = body.rpartition("\n")[0] or body
    note = f"[cut here: {limits.max_bytes:,} of {size:,} bytes; use the read tool for the rest]"
    return f'<file path="{shown}">\n{body}\n{note}\n</file>'


def _listing(folder: Path, limits: OutputLimits) -> str:
    with os.scandir(folder) as entries:
        names = sorted(e.name + ("/" if e.is_dir(follow_symlinks=False) else "") for e in entries)
    listing = "\n".join(names)
    kept = keep_head(
        listing, max_lines=min(MAX_LISTED, limits.max_lines), max_bytes=limits.max_bytes
    )
    more = f"\n[and {kept.omitted_lines:,} more]" if kept.omitted_lines else ""
    return f"{kept.text}{more}"


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
