"""Sends images only to models that see them, and none that their provider refused."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from agent_tui.messages import ImageContent, Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest, ProviderError

_NAMES_IMAGES = re.compile(r"\b(?:image|picture|vision|multi-?modal|media.type)", re.IGNORECASE)
_UNSEEN: Final = "[Image omitted: this model is not known to accept images.]"
_REFUSED: Final = "[Image omitted: the provider rejected it.]"


class Pictures:
    """Replaces images that cannot be sent with a line of text.

    If a request is refused because of its images, they are left out from then on; later ones are
    sent.

    Args:
        info: Returns what is known of a model.
    """

    def __init__(self, info: Callable[[ModelRef], ModelInfo]) -> None:
        self._info = info
        self._refused: set[str] = set()

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """`request` without the images that its model or its provider does not accept."""
        if not any(_images(message) for message in request.messages):
            return request
        sees = self._info(request.model).sees_images
        return replace(
            request, messages=tuple(self._without(message, sees) for message in request.messages)
        )

    def learn(self, sent: ModelRequest, error: ProviderError) -> bool:
        """Whether `sent` was refused because of its images."""
        images = [image for message in sent.messages for image in _images(message)]
        if not images or not refuses_images(error):
            return False
        self._refused.update(map(_digest, images))
        return True

    def _without(self, message: Message, sees_images: bool) -> Message:
        """`message` with a note for each image that is not sent; the same object if all are."""
        if not _images(message) or not isinstance(message, UserMessage | ToolResultMessage):
            return message
        parts = (part for part in message.content if not isinstance(part, str))
        return message.model_copy(
            update={"content": tuple(self._part(p, sees_images) for p in parts)}
        )

    def _part(
        self, part: TextContent | ImageContent, sees_images: bool
    ) -> TextContent | ImageContent:
        if isinstance(part, TextContent):
            return part
        if not sees_images:
            return TextContent(text=_UNSEEN)
        return TextContent(text=_REFUSED) if _digest(part) in self._refused else part


def refuses_images(error: ProviderError) -> bool:
    """Whether a server refused a request because of an image in it."""
    return error.kind == "bad_request" and _NAMES_IMAGES.search(error.detail) is not None


def _images(message: Message) -> tuple[ImageContent, ...]:
    if not isinstance(message, UserMessage | ToolResultMessage) or isinstance(message.content, str):
        return ()
    return tuple(part for part in message.content if isinstance(part, ImageContent))


def _digest(image: ImageContent) -> str:
    return hashlib.sha256(image.data.encode()).hexdigest()
