"""Images only for models that see them, and none that their provider refused."""

import hashlib
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from agent_tui.messages import ImageContent, Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import (
    Chunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    PrefillingProvider,
    Provider,
    ProviderError,
)

_NAMES_IMAGES = re.compile(r"\b(?:image|picture|vision|multi-?modal|media.type)", re.IGNORECASE)
_UNSEEN: Final = "[Image omitted: this model is not known to accept images.]"
_REFUSED: Final = "[Image omitted: the provider rejected it.]"


class PictureProvider:
    """Passes requests on with a line of text in the place of images that cannot be sent.

    A request that is refused because of its images is made once more without them, and they are
    left out from then on; later ones are sent.

    Args:
        inner: Where requests go.
        info: What is known of a model.
    """

    def __init__(self, inner: Provider, info: Callable[[ModelRef], ModelInfo]) -> None:
        self._inner = inner
        self._info = info
        self._refused: set[str] = set()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            ProviderError: the request failed, or the stream broke off.
        """
        first = self._rewritten(request)
        has_begun = False
        try:
            async with aclosing(self._inner.stream(first)) as chunks:
                async for chunk in chunks:
                    has_begun = True
                    yield chunk
            return
        except ProviderError as error:
            images = [image for message in first.messages for image in _images(message)]
            if has_begun or not images or not refuses_images(error):
                raise
            self._refused.update(map(_digest, images))
        async with aclosing(self._inner.stream(self._rewritten(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def prefill(self, request: ModelRequest) -> None:
        """Let a provider that can get ready for `request`; does nothing for others."""
        if isinstance(self._inner, PrefillingProvider):
            await self._inner.prefill(self._rewritten(request))

    async def warm(self, model: ModelRef) -> None:
        """See `Provider.warm`."""
        await self._inner.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._inner.aclose()

    def _rewritten(self, request: ModelRequest) -> ModelRequest:
        if not any(_images(message) for message in request.messages):
            return request
        sees = self._info(request.model).sees_images
        return replace(
            request, messages=tuple(self._without(message, sees) for message in request.messages)
        )

    def _without(self, message: Message, sees_images: bool) -> Message:
        """`message` with a word for each image that is not sent; the same one where all are."""
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
