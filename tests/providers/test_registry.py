from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from agent_tui.config import Settings
from agent_tui.messages import UserMessage
from agent_tui.providers.access import RoutedProvider, open_models
from agent_tui.providers.base import Chunk, FinishChunk, ModelRef, ModelRequest, TextChunk
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.registry import providers_with


class Named:
    """A provider that says its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_closed = False
        self.warmed: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        yield TextChunk(self.name)

    async def warm(self, model: ModelRef) -> None:
        self.warmed.append(model.name)

    async def aclose(self) -> None:
        self.is_closed = True


def request(model: ModelRef) -> ModelRequest:
    return ModelRequest(model, "", (UserMessage(content="hi"),))


async def test_a_request_goes_to_the_provider_that_its_model_names() -> None:
    host, local, own = Named("host"), Named("local"), Named("own")
    routed = RoutedProvider(cast(ProviderHost, host), {"own": own, "local": local})
    answered: list[str] = []
    for model in (
        ModelRef("own/x"),
        ModelRef("local/x"),
        ModelRef("openai/x"),
        ModelRef("own/x", base_url="http://127.0.0.1:1/v1"),
    ):
        async with aclosing(routed.stream(request(model))) as chunks:
            answered += [chunk.text async for chunk in chunks if isinstance(chunk, TextChunk)]
    assert answered == ["own", "local", "host", "host"]
    await routed.aclose()
    assert host.is_closed
    assert local.is_closed
    assert own.is_closed


async def test_only_what_answers_through_a_process_has_it_started() -> None:
    host, local, own = Named("host"), Named("local"), Named("own")
    routed = RoutedProvider(cast(ProviderHost, host), {"own": own, "local": local})
    for name in ("own/x", "local/x", "openai/x"):
        await routed.warm(ModelRef(name))
    assert (host.warmed, local.warmed, own.warmed) == (["openai/x"], [], [])


async def test_every_model_of_our_own_providers_is_known_and_answers() -> None:
    models = open_models(Settings(), {})
    for name, own in providers_with().items():
        for info in own.models:
            ref = models.catalog.resolve(info.name)
            assert ref.provider == name
            assert models.catalog.info(ref).window == info.window
            async with aclosing(models.provider.stream(request(ref))) as chunks:
                last = [chunk async for chunk in chunks][-1]
            assert isinstance(last, FinishChunk)
    await models.provider.aclose()
