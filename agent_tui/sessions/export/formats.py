"""A session as a file to keep or pass on: Markdown, one web page, or its own format."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agent_tui.sessions.export.document import document_of, other_branches
from agent_tui.sessions.export.markdown import to_markdown
from agent_tui.sessions.export.page import to_html
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog

_EXPORT_SUFFIXES = {"md": ".md", "html": ".html", "jsonl": ".jsonl"}


def exported(log: SessionLog, kind: str, secrets: Sequence[str] = ()) -> str:
    """The present branch of `log` as ``html`` or Markdown; as ``jsonl`` the whole file.

    Documents hold none of `secrets` and nothing that looks like one; ``jsonl`` is exact.
    """
    if kind == "jsonl":
        return to_jsonl(log)
    path = log.path_entries()
    document = document_of(log.header, path, other_branches(log.entries, path), secrets)
    return to_html(document) if kind == "html" else to_markdown(document)


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


def export_target(argument: str, log: SessionLog, cwd: Path) -> tuple[str, Path]:
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


def write_export(kind: str, path: Path, log: SessionLog, secrets: Sequence[str]) -> None:
    """Write what `exported` makes of `log` as a new file.

    Raises:
        OSError: It exists already or cannot be written.
    """
    text = exported(log, kind, secrets)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
