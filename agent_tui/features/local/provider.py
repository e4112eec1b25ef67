"""Models on this machine: ``local/<name>`` is called through the host once its server runs."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from agent_tui.features.local.pool import LocalServerProcess, LocalServers
from agent_tui.features.local.server_messages import ServedLocal
from agent_tui.messages import UserMessage
from agent_tui.providers.base import Chunk, ModelRef, ModelRequest, Provider, ProviderError
from agent_tui.providers.silence import NO_LIMIT, SilenceLimits

KEY_VARIABLE: Final = "AGENT_TUI_LOCAL_KEY"
"""Where the host's process finds the servers' key; never in our own environment."""

_AS_LONG_AS_IT_LIVES: Final = SilenceLimits(NO_LIMIT, NO_LIMIT)
"""Reading a prompt or waiting for a turn may take hours; a dead server breaks the connection."""

_END_NOTICE_S = 1.0
_BROKEN_KINDS = ("network", "interrupted", "server")


class LocalProvider:
    """Answers ``local/<name>``: starts the model's server and lets the host call it.

    One server runs at a time, and none until it is needed; see `LocalServers`.

    Args:
        host: Sends the requests; finds the servers' key under `KEY_VARIABLE`. It is not closed
            here.
        servers: The models' servers.
    """

    def __init__(self, host: Provider, servers: LocalServers) -> None:
        self._host = host
        self.servers = servers
        self._prefill: tuple[ModelRequest, asyncio.Task[None]] | None = None
        self._streams = 0

    async def start_server(self, name: str) -> ServedLocal:
        """What the server of model `name` reports; it is started if necessary.

        Raises:
            ProviderError: There is no such model, or it cannot be loaded.
        """
        async with self.servers.use(name) as server:
            return server.served

    async def warm(self, model: ModelRef) -> None:
        """Do nothing: a model is loaded on its first request."""

    async def prefill(self, request: ModelRequest) -> None:
        """Have the server read `request` in advance, so that one that continues it starts at once.

        Returns when it is read, has failed, or had to yield: a request with another beginning stops
        it, and what was read by then is kept. Does nothing while a request is answered.
        """
        if self._streams:
            return
        await self._stop_prefill()
        reading = asyncio.create_task(self._read(request))
        self._prefill = (request, reading)
        try:
            await asyncio.wait({reading})
        finally:
            reading.cancel()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`. If the server dies before the first chunk, it is restarted once.

        Raises:
            ProviderError: There is no such model, it cannot be loaded, or the request failed.
        """
        self._streams += 1
        try:
            if self._prefill is not None and not _goes_on_from(self._prefill[0], request):
                await self._stop_prefill()
            async with aclosing(self._attempts(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._streams -= 1

    async def aclose(self) -> None:
        """End every server and wait until it is gone; no more requests are possible."""
        await self._stop_prefill()
        await self.servers.aclose()

    async def _attempts(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        for is_last_attempt in (False, True):
            has_begun = False
            async with self.servers.use(request.model.model_id) as server:
                try:
                    async with aclosing(self._ask(server, request)) as chunks:
                        async for chunk in chunks:
                            has_begun = True
                            yield chunk
                    return
                except ProviderError as error:
                    if not await _is_its_death(error, server):
                        raise
                    self.servers.note(f"the server of {request.model.name} exited: {error.message}")
                    if has_begun or is_last_attempt:
                        raise ProviderError(
                            "crashed",
                            "The local model's server exited mid-reply. The next request starts it "
                            "again.",
                        ) from error

    def _ask(
        self, server: LocalServerProcess, request: ModelRequest
    ) -> AsyncGenerator[Chunk, None]:
        model = replace(request.model, base_url=server.served.url, api_key_env=KEY_VARIABLE)
        return self._host.stream(replace(request, model=model, silence=_AS_LONG_AS_IT_LIVES))

    async def _read(self, request: ModelRequest) -> None:
        shortest = replace(
            request,
            messages=request.messages or (UserMessage(content="."),),  # most templates need one
            max_output_tokens=1,
        )
        with contextlib.suppress(ProviderError):  # a real request will report it
            async with (
                self.servers.use(request.model.model_id) as server,
                aclosing(self._ask(server, shortest)) as chunks,
            ):
                async for _ in chunks:
                    pass

    async def _stop_prefill(self) -> None:
        if self._prefill is not None:
            _, reading = self._prefill
            self._prefill = None
            reading.cancel()
            await asyncio.wait({reading})


def _goes_on_from(start: ModelRequest, request: ModelRequest) -> bool:
    """Whether `request` begins with all of `start`, so reading `start` first costs nothing."""
    is_same_head = (start.model, start.system, start.tools) == (
        request.model,
        request.system,
        request.tools,
    )
    return is_same_head and request.messages[: len(start.messages)] == start.messages


async def _is_its_death(error: ProviderError, server: LocalServerProcess) -> bool:
    """Whether `error` was caused by the server's end, which may be noticed a little later."""
    return error.kind in _BROKEN_KINDS and await server.ends_within(_END_NOTICE_S)
