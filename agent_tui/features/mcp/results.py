"""Converts a server's answer to a call for the model and the user."""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_tui.features.mcp.json_rpc import items_in
from agent_tui.messages import ImageContent, JsonObject, ToolDetails
from agent_tui.secret_text import mask_values
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.shorten import OutputLimits, keep_ends, keep_output, plain_text

_MAX_IMAGES: Final = 4
_MAX_IMAGE_CHARS: Final = 5_000_000
"""Bytes in base64; Anthropic accepts no larger one."""

_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_NOTHING = "(no output)"


def call_output(
    result: JsonObject,
    *,
    limits: OutputLimits,
    output_dir: Path | None,
    known_secrets: Sequence[str],
) -> ToolOutput:
    """The output of a call. May write a file: not for the event loop.

    Args:
        result: The server's answer to ``tools/call``.
        limits: How much of it the model may receive.
        output_dir: Where the whole text goes if that is less; None for nowhere.
        known_secrets: Values that must not be in the result or that file.
    """
    texts, images = _parts(result)
    text = mask_values(plain_text("\n".join(texts)), known_secrets).strip("\n")
    is_error = result.get("isError") is True
    kept = keep_ends(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    path = keep_output(text, output_dir, "mcp", ".txt") if kept.is_cut and output_dir else None
    shown = kept.text or ("" if images else _NOTHING)
    if path is not None:
        shown += f"\n[The whole output is in {path}]"
    lines = text.count("\n") + 1 if text else 0
    details = ToolDetails(
        summary=_summary(lines, len(images), is_error=is_error),
        truncated=kept.is_cut,
        full_output_path=str(path) if path is not None else None,
    )
    return ToolOutput(shown, details, is_error=is_error, images=tuple(images))


def content_texts(content: Sequence[JsonValue]) -> list[str]:
    """The texts in a result or in a message of a prompt."""
    return [text for item in content for text in _texts(item)]


def _parts(result: JsonObject) -> tuple[list[str], list[ImageContent]]:
    """The texts and the pictures of a result."""
    content, structured = result.get("content"), result.get("structuredContent")
    texts: list[str] = []
    images: list[ImageContent] = []
    for item in items_in(content):
        image = _image(item) if len(images) < _MAX_IMAGES else None
        if image is not None:
            images.append(image)
        else:
            texts += _texts(item)
    if not any(texts) and structured is not None:
        texts = [json.dumps(structured, ensure_ascii=False, indent=1)]
    if result.get("resultType") == "input_required":
        texts.append("The server wants to ask the user something, which is not possible here.")
    return texts, images


def _image(item: JsonValue) -> ImageContent | None:
    """The picture in `item`, if it can be shown to a model."""
    if not isinstance(item, dict) or item.get("type") != "image":
        return None
    data, mime_type = item.get("data"), item.get("mimeType")
    if not isinstance(data, str) or not isinstance(mime_type, str):
        return None
    if mime_type not in _IMAGE_TYPES or not data or len(data) > _MAX_IMAGE_CHARS:
        return None
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return ImageContent(data=data, mime_type=mime_type)


def _texts(item: JsonValue) -> Iterator[str]:
    """The texts for `item`, which is not a picture, in the result."""
    if not isinstance(item, dict):
        return
    match item:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            yield f"{uri}:\n{text}"
        case {"type": "resource", "resource": {"uri": str(uri)}}:
            yield f"[{uri}, not text]"
        case {"type": "resource_link", "uri": str(uri)}:
            yield f"[{uri}]"
        case {"type": str(kind)}:
            yield f"[{kind[:40]}, {str(item.get('mimeType', 'unknown'))[:60]}: cannot be shown]"
        case _:
            pass


def _summary(lines: int, images: int, *, is_error: bool) -> str:
    said = [f"{lines} line{'' if lines == 1 else 's'}"] if lines or not images else []
    said += [f"{images} image{'' if images == 1 else 's'}"] if images else []
    return ", ".join((["failed"] if is_error else []) + said)
