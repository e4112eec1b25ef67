"""A session as one web page that needs no network, runs no script and fits a phone."""

import html
import re
from importlib.resources import files

from agent_tui.messages import ImageContent
from agent_tui.safe_text import strip_control_characters
from agent_tui.sessions.export.document import Block, Document, image_address

_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Images that are nothing but pixels; an SVG may hold anything."""


def to_html(document: Document) -> str:
    """`document` as a page; control characters are left out."""
    facts = "".join(f"<li>{_escape(fact)}</li>" for fact in document.facts)
    body = "\n".join(map(_block_html, document.blocks))
    page = files("agent_tui.sessions.export").joinpath("page.html").read_text(encoding="utf-8")
    # One pass, so that a conversation that mentions a placeholder is not filled in itself.
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
