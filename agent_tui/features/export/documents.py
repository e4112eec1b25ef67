"""A session as Markdown and as a web page."""

import html
import re
from importlib.resources import files
from typing import Final

from agent_tui.messages import ImageContent
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.export.document import (
    Block,
    Document,
    image_address,
)
from agent_tui.sessions.export.formats import ExportFormat

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
    page = files("agent_tui.features.export").joinpath("page.html").read_text(encoding="utf-8")
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


MARKDOWN: Final = ExportFormat(
    "md", ".md", "Markdown", lambda session: to_markdown(session.document)
)
"""The default: the first format of the feature."""

HTML: Final = ExportFormat("html", ".html", "a web page", lambda session: to_html(session.document))
