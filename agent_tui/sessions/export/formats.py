"""A session as a file to keep or share, in one of `own_formats`."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Final, cast

from agent_tui.errors import SessionError
from agent_tui.feature import own_objects
from agent_tui.messages import ImageContent
from agent_tui.safe_paths import resolve_path
from agent_tui.safe_text import strip_control_characters
from agent_tui.secret_text import mask_secrets
from agent_tui.sessions.export.document import (
    Block,
    Document,
    document_of,
    image_address,
    other_branches,
)
from agent_tui.sessions.format.codec import encode_entry, encode_header
from agent_tui.sessions.log import SessionLog

_SUFFIX = re.compile(r"\.[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """A session that is exported.

    Attributes:
        log: All of it, as it is: what is taken from here may hold keys.
        secrets: Values that must not be exported.
    """

    log: SessionLog
    secrets: Sequence[str] = ()

    @property
    def document(self) -> Document:
        """The present branch as a title, facts and blocks, with keys removed."""
        log = self.log
        path = log.path_entries()
        return document_of(log.header, path, other_branches(log.entries, path), self.secrets)


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One form a session is written in.

    Attributes:
        name: What a person calls it by, after ``--format`` and ``/export``.
        suffix: Of a file in this format: ``.txt``. If formats share one, the first is meant.
        about: What it is, in a few words: "a web page".
        text: What the file holds.

    Raises:
        ValueError: `suffix` is not a dot and then letters or digits.
    """

    name: str
    suffix: str
    about: str
    text: Callable[[ExportedSession], str]

    def __post_init__(self) -> None:
        """Check the suffix, which becomes part of names of files."""
        if not _SUFFIX.fullmatch(self.suffix):
            raise ValueError(f"the suffix {self.suffix!r} is not like '.txt'")


def guard_export(known: ExportFormat) -> ExportFormat:
    """`known` as a format of another package: its text holds no keys and no control characters.

    It raises nothing but `SessionError`.
    """

    def text(session: ExportedSession) -> str:
        try:
            made = str(known.text(session))
        except Exception as error:
            raise SessionError(
                f"The export format {known.name} failed: {type(error).__name__}: {error}.",
                "Report it to the author of the plugin.",
            ) from error
        return strip_control_characters(mask_secrets(made, session.secrets))

    return replace(known, text=text)


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
    shown = _fence(text) if block.is_code else text + _missing_end(text)
    images = [f"[image, {strip_control_characters(i.mime_type)}]" for i in block.images]
    return "\n\n".join([*([shown] if text or not images else []), *images])


def _fence(text: str) -> str:
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


def to_jsonl(log: SessionLog) -> str:
    """The whole session, every branch, in the session format."""
    lines = [encode_header(log.header), *(encode_entry(entry) for entry in log.entries)]
    return b"".join(lines).decode("utf-8")


MARKDOWN: Final = ExportFormat(
    "md", ".md", "Markdown", lambda session: to_markdown(session.document)
)
"""The default."""

HTML: Final = ExportFormat("html", ".html", "a web page", lambda session: to_html(session.document))
JSONL: Final = ExportFormat(
    "jsonl", ".jsonl", "the session format", lambda session: to_jsonl(session.log)
)
"""The only one that is exact: the whole file, with any keys in it."""


def own_formats() -> tuple[ExportFormat, ...]:
    """The formats that agent-tui ships, those of features last."""
    return (
        MARKDOWN,
        HTML,
        JSONL,
        *cast("Iterator[ExportFormat]", own_objects("agent_tui.exports")),
    )


def export_text(log: SessionLog, form: ExportFormat, secrets: Sequence[str] = ()) -> str:
    """The present branch of `log` in a format; as ``jsonl`` the whole file.

    Masks `secrets` and everything that looks like one; only ``jsonl`` is exact.

    Raises:
        SessionError: A format of another package failed.
    """
    return form.text(ExportedSession(log, secrets))


def form_of(path: Path, formats: Sequence[ExportFormat]) -> ExportFormat:
    """The format of the suffix of `path`, else Markdown."""
    return next((form for form in formats if form.suffix == path.suffix), MARKDOWN)


def export_target(
    argument: str, log: SessionLog, cwd: Path, formats: Sequence[ExportFormat]
) -> tuple[ExportFormat, Path]:
    """The format and the file that an ``/export`` argument names; Markdown in `cwd` by default.

    Raises:
        OSError: No file can have this name.
    """
    first, _, rest = argument.partition(" ")
    named = next((form for form in formats if form.name == first), None)
    written = rest.strip() if named else argument
    if written:
        path = resolve_path(written, cwd)
        return named or form_of(path, formats), path
    stamp = datetime.fromisoformat(log.header.timestamp).strftime("%Y-%m-%d-%H%M")
    form = named or MARKDOWN
    return form, _free_path(cwd, f"session-{stamp}-{log.header.id[:8]}", form.suffix)


def _free_path(folder: Path, stem: str, suffix: str) -> Path:
    """A path in `folder` that no file has yet."""
    path, number = folder / f"{stem}{suffix}", 2
    while path.exists():
        path, number = folder / f"{stem}-{number}{suffix}", number + 1
    return path


def write_export(form: ExportFormat, path: Path, log: SessionLog, secrets: Sequence[str]) -> None:
    """Write the export of `log` to a new file.

    Raises:
        OSError: It exists already or cannot be written.
        SessionError: A format of another package failed.
    """
    text = export_text(log, form, secrets)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
