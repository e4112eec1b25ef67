"""Writing a conversation to a file of the person's."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_tui.sessions.log import SessionLog

_EXPORT_SUFFIXES = {"md": ".md", "html": ".html", "jsonl": ".jsonl"}


def export_target(argument: str, log: "SessionLog", cwd: Path) -> tuple[str, Path]:
    """The kind and the file an ``/export`` argument means; Markdown in `cwd` by default."""
    first, _, rest = argument.partition(" ")
    kind, written = (first, rest.strip()) if first in _EXPORT_SUFFIXES else ("", argument)
    if written:
        path = (cwd / Path(written).expanduser()).resolve()
        by_suffix = {suffix: kind for kind, suffix in _EXPORT_SUFFIXES.items()}
        return kind or by_suffix.get(path.suffix, "md"), path
    stamp = datetime.fromisoformat(log.header.timestamp).strftime("%Y-%m-%d-%H%M")
    kind = kind or "md"
    stem = f"session-{stamp}-{log.header.id[:8]}"
    return kind, _free_path(cwd, stem, _EXPORT_SUFFIXES[kind])


def _free_path(folder: Path, stem: str, suffix: str) -> Path:
    """A path in `folder` that no file has yet."""
    path, number = folder / f"{stem}{suffix}", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}{suffix}", number + 1
    return path


def write_export(kind: str, path: Path, log: "SessionLog") -> None:
    """Write the present branch (``jsonl``: the whole file) as a new file.

    Raises:
        OSError: it exists already or cannot be written.
    """
    from agent_tui.providers.keys import secret_values
    from agent_tui.sessions.export.markdown import exported

    text = exported(log, kind, secret_values(os.environ))
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
