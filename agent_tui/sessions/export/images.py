"""Images of a conversation as addresses that hold them whole."""

import re
from collections.abc import Container

from agent_tui.messages import ImageContent

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_IMAGE_ADDRESS = re.compile(rf"data:image/[a-z]+;base64,{_BASE64.pattern}")


def image_address(image: ImageContent, types: Container[str]) -> str | None:
    """`image` as a ``data:`` address; None where it is of none of `types` or no Base64."""
    data = "".join(image.data.split())
    if image.mime_type in types and _BASE64.fullmatch(data):
        return f"data:{image.mime_type};base64,{data}"
    return None


def is_image_address(text: str) -> bool:
    """Whether `text` is an address of `image_address` and nothing else."""
    return _IMAGE_ADDRESS.fullmatch(text) is not None
