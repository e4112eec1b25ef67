"""One provider for all models: each request goes where its model's name leads."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from agent_tui.providers.base import Chunk, ModelRef, ModelRequest, Provider
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.local.provider import LocalProvider


class RoutedProvider:
    """Sends ``local/...`` and the models of `own` providers to them, all others to the host.

    A name with a ``base_url`` is that server's, whatever it begins with.
    """

    def __init__(
        self, host: ProviderHost, local: LocalProvider, own: Mapping[str, Provider]
    ) -> None:
        self._host = host
        self._local = local
        self._by_name: dict[str, Provider] = {**own, "local": local}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`."""
        async with aclosing(self._provider_of(request.model).stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def prefill(self, request: ModelRequest) -> None:
        """See `LocalProvider.prefill`; does nothing for other models."""
        if self._provider_of(request.model) is self._local:
            await self._local.prefill(request)

    async def warm(self, model: ModelRef) -> None:
        """See `ProviderHost.warm`; others need no process, or load when they are first asked."""
        if self._provider_of(model) is self._host:
            await self._host.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        providers = (self._host, *self._by_name.values())
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _provider_of(self, model: ModelRef) -> Provider:
        if model.base_url:
            return self._host
        return self._by_name.get(model.provider, self._host)
