"""A session as a file to keep or share, in one of `EXPORT_FORMATS`."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Final

from agent_tui.messages import ImageContent
from agent_tui.safe_paths import resolve_path
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.export.atif import to_atif
from agent_tui.sessions.export.document import (
    Block,
    Document,
    document_of,
    image_address,
    other_branches,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def to_markdown(document: Document) -> str:
    """`document` as Markdown, without control characters."""
    lines = [f"# {document.title}", "", *(f"- {fact}" for fact in document.facts), ""]
    for block in document.blocks:
        title = " ".join(strip_control_characters(block.title).split())
        lines += [f"## {title}", "", _block_markdown(block), ""]
    return "\n".join(lines)


def _block_markdown(block: Block) -> str:
    text = strip_control_characters(block.text).strip("\n")
    shown = _fenced(text) if block.is_code else text + _missing_end(text)
    images = [f"[image, {strip_control_characters(i.mime_type)}]" for i in block.images]
    return "\n\n".join([*([shown] if text or not images else []), *images])


def _fenced(text: str) -> str:
    """`text` in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _missing_end(text: str) -> str:
    """The end of a fence that `text` leaves open, which would swallow the rest."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        if found is None:
            continue
        mark, rest = found[1], found[2]
        if not fence:
            fence = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return f"\n{fence}" if fence else ""


_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Images that contain only pixels; an SVG may contain anything."""


def to_html(document: Document) -> str:
    """`document` as an HTML page, without control characters."""
    facts = "".join(f"<li>{_escape(fact)}</li>" for fact in document.facts)
    body = "\n".join(map(_block_html, document.blocks))
    page = files("agent_tui.sessions.export").joinpath("page.html").read_text(encoding="utf-8")
    # One pass, so that placeholders mentioned in the conversation are not filled in.
    values = {"title": _escape(document.title), "facts": facts, "body": body}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], page)


def _block_html(block: Block) -> str:
    title = _escape(" ".join(block.title.split()))
    text = _escape(block.text.strip("\n"))
    images = "".join(map(_image_html, block.images))
    if block.is_code:
        folded = f"<summary>{title}</summary><pre>{text}</pre>{images}"
        return f'<details class="{block.kind}">{folded}</details>'
    return f'<section class="{block.kind}"><h2>{title}</h2><div>{text}</div>{images}</section>'


def _image_html(image: ImageContent) -> str:
    if (address := image_address(image, _SHOWN_IMAGES)) is not None:
        return f'<img alt="An image" src="{address}">'
    return f"<p>[image, {_escape(image.mime_type)}]</p>"


def _escape(text: str) -> str:
    return html.escape(strip_control_characters(text))


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One export format. `text` renders a log with the given secrets masked."""

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
"""By name; Markdown is the default."""


def exported(log: SessionLog, kind: str, secrets: Sequence[str] = ()) -> str:
    """The present branch of `log` in the format `kind`; as ``jsonl`` the whole file.

    Masks `secrets` and everything that looks like one; only ``jsonl`` is exact.
    """
    return EXPORT_FORMATS[kind].text(log, secrets)


def kind_of(path: Path) -> str:
    """The format of the suffix of `path`, else Markdown."""
    kinds = {each.suffix: kind for kind, each in EXPORT_FORMATS.items()}
    return kinds.get(path.suffix, "md")


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


def export_target(argument: str, log: SessionLog, cwd: Path) -> tuple[str, Path]:
    """The format and the file that an ``/export`` argument names; Markdown in `cwd` by default.

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
    """Write the export of `log` to a new file.

    Raises:
        OSError: It exists already or cannot be written.
    """
    text = exported(log, kind, secrets)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
