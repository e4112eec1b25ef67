"""What an editor sends as a prompt."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from agent_tui.messages import ImageContent

Block: TypeAlias = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


def written(blocks: Sequence[Block]) -> tuple[str, tuple[ImageContent, ...]]:
    """What an editor sends, as the text and the images of a message."""
    parts: list[str] = []
    images: list[ImageContent] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                parts.append(text)
            case ImageContentBlock(data=data, mime_type=mime_type):
                base64.b64decode(data, validate=True)
                images.append(ImageContent(data=data, mime_type=mime_type))
            case ResourceContentBlock(uri=uri, name=name):
                parts.append(_mention(uri, name))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                parts.append(f'<file path="{_path(uri) or uri}">\n{text}\n</file>')
            case _:
                pass
    return "\n".join(filter(None, parts)).strip(), tuple(images)


def _mention(uri: str, name: str) -> str:
    path = _path(uri)
    return f'@"{path}"' if path else f"{name}: {uri}"


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return str(Path(unquote(parts.path))) if parts.scheme == "file" else ""
