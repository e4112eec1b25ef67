from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from agent_tui.features.tour.scripted import Reply, ScriptedProvider
from agent_tui.messages import (
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
)
from agent_tui.providers.access import AdaptingProvider
from agent_tui.providers.base import (
    Chunk,
    FaultKind,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    ProviderError,
    TextChunk,
)

MODEL = ModelRef("some", "model")
ONE = ImageContent(data="b25l", mime_type="image/png")
TWO = ImageContent(data="dHdv", mime_type="image/png")


class Server:
    """Answers; or refuses requests with `bad` in them, or after the first words of its answer."""

    def __init__(
        self,
        bad: ImageContent | None = None,
        error: str = "",
        *,
        kind: FaultKind = "bad_request",
        late: bool = False,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self._bad, self._error, self._late = bad, error, late
        self._kind: FaultKind = kind

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        if self._late:
            yield TextChunk("So")
        if any(self._bad in images_of(message) for message in request.messages):
            raise ProviderError(self._kind, self._error)
        yield FinishChunk("stop")

    async def warm(self, model: ModelRef) -> None: ...

    async def aclose(self) -> None: ...


def images_of(message: Message) -> list[ImageContent]:
    assert isinstance(message, UserMessage | ToolResultMessage)
    return [part for part in message.content if isinstance(part, ImageContent)]


def text_of(message: Message) -> str:
    assert isinstance(message, UserMessage | ToolResultMessage)
    return message.text


def asking(*images: ImageContent) -> ModelRequest:
    said = UserMessage(content=(TextContent(text="look"), *images))
    read = ToolResultMessage(tool_call_id="c", tool_name="read", content=images)
    return ModelRequest(MODEL, "", (said, read, UserMessage(content="go on")))


def over(server: Server, *, sees: bool = True) -> AdaptingProvider:
    return AdaptingProvider(server, lambda ref: ModelInfo(ref.name, 1_000, 100, sees_images=sees))


async def send(provider: AdaptingProvider, request: ModelRequest) -> list[Chunk]:
    async with aclosing(provider.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


async def test_a_model_that_sees_images_gets_them_as_they_are():
    server = Server()
    request = asking(ONE)
    await send(over(server), request)
    assert server.requests[0].messages == request.messages


async def test_one_that_sees_none_gets_a_line_of_text_for_each():
    server = Server()
    await send(over(server, sees=False), asking(ONE, TWO))
    for message in server.requests[0].messages[:2]:
        assert images_of(message) == []
        assert text_of(message).count("not known to accept images") == 2


@pytest.mark.parametrize(
    "error",
    [
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum",
        "Invalid content type. image_url is only supported by certain models.",
        "Could not process image",
        "This model does not support multimodal input",
    ],
)
async def test_what_is_refused_for_its_images_is_sent_again_without_them(error: str):
    server = Server(ONE, error)
    provider = over(server)
    assert await send(provider, asking(ONE)) == [FinishChunk("stop")]
    assert "the provider rejected it" in text_of(server.requests[1].messages[0])
    await send(provider, asking(ONE, TWO))
    assert images_of(server.requests[2].messages[0]) == [TWO]
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("kind", "error"),
    [("bad_request", "max_tokens is too large"), ("rate_limit", "too many image requests")],
)
async def test_another_refusal_is_no_matter_of_images(kind: FaultKind, error: str):
    server = Server(ONE, error, kind=kind)
    with pytest.raises(ProviderError):
        await send(over(server), asking(ONE))
    assert len(server.requests) == 1


async def test_a_reply_that_has_begun_is_not_asked_for_again():
    server = Server(ONE, "image", late=True)
    with pytest.raises(ProviderError):
        await send(over(server), asking(ONE))
    assert len(server.requests) == 1


async def test_a_request_is_adapted_after_one_refusal_and_the_next():
    tools = (ToolSpec(name="ls", description="List a folder.", parameters={}),)
    script = ScriptedProvider(
        [
            Reply(error=ProviderError("bad_request", "tools are not supported")),
            Reply(error=ProviderError("bad_request", "cannot read the image")),
            Reply("Done."),
        ]
    )
    info = ModelInfo("model", 1_000, 100, sees_images=True)
    provider = AdaptingProvider(script, lambda _ref: info)
    said = UserMessage(content=(TextContent(text="look"), ONE))
    assert TextChunk("Done.") in await send(provider, ModelRequest(MODEL, "", (said,), tools))
    assert [request.tools for request in script.requests] == [tools, (), ()]
    assert "# Tools" in script.requests[1].system
    assert [len(images_of(request.messages[0])) for request in script.requests] == [1, 1, 0]
