"""A session as a file to keep or pass on, in one of `EXPORT_FORMATS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_tui.safe_paths import resolve_path
from agent_tui.sessions.export.atif import to_atif
from agent_tui.sessions.export.document import Document, document_of, other_branches
from agent_tui.sessions.export.markdown import to_markdown
from agent_tui.sessions.export.page import to_html
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One form a session is written in. `text` makes it of a log, without the given secrets."""

    suffix: str
    about: str
    text: Callable[[SessionLog, Sequence[str]], str]


def _document(log: SessionLog, secrets: Sequence[str]) -> Document:
    path = log.path_entries()
    return document_of(log.header, path, other_branches(log.entries, path), secrets)


EXPORT_FORMATS: Final = {
    "md": ExportFormat(
        ".md", "Markdown, for reading", lambda log, secrets: to_markdown(_document(log, secrets))
    ),
    "html": ExportFormat(
        ".html", "a self-contained web page", lambda log, secrets: to_html(_document(log, secrets))
    ),
    "jsonl": ExportFormat(".jsonl", "the whole session file", lambda log, _secrets: to_jsonl(log)),
    "atif": ExportFormat(
        ".json",
        "a trajectory in Harbor's ATIF",
        lambda log, secrets: to_atif(log.header, log.path_entries(), secrets),
    ),
}
"""By name; Markdown is what is made where nothing else is asked for."""


def exported(log: SessionLog, kind: str, secrets: Sequence[str] = ()) -> str:
    """The present branch of `log` in the format `kind`; as ``jsonl`` the whole file.

    It holds none of `secrets` and nothing that looks like one; only ``jsonl`` is exact.
    """
    return EXPORT_FORMATS[kind].text(log, secrets)


def kind_of(path: Path) -> str:
    """The format that the suffix of `path` stands for, else Markdown."""
    kinds = {each.suffix: kind for kind, each in EXPORT_FORMATS.items()}
    return kinds.get(path.suffix, "md")


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


def export_target(argument: str, log: SessionLog, cwd: Path) -> tuple[str, Path]:
    """The kind and the file an ``/export`` argument means; Markdown in `cwd` by default.

    Raises:
        OSError: No file can have this name.
    """
    first, _, rest = argument.partition(" ")
    kind, written = (first, rest.strip()) if first in EXPORT_FORMATS else ("", argument)
    if written:
        path = resolve_path(written, cwd)
        return kind or kind_of(path), path
    stamp = datetime.fromisoformat(log.header.timestamp).strftime("%Y-%m-%d-%H%M")
    kind = kind or "md"
    stem = f"session-{stamp}-{log.header.id[:8]}"
    return kind, _free_path(cwd, stem, EXPORT_FORMATS[kind].suffix)


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
