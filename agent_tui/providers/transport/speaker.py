"""Calls models over the program's own wires, in its own event loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.keys import secret_values
from agent_tui.providers.silence import SilenceLimits
from agent_tui.providers.transport.listening import Listener
from agent_tui.providers.transport.serving import ServedEvent, serve
from agent_tui.providers.wires.base import Address, Link, Stream, Way

if TYPE_CHECKING:
    from agent_tui.providers.transport.http_client import HttpClient


class Speaker:
    """Sends requests over one HTTP client, created when first needed.

    Args:
        environ: Holds the keys, read again for each request.
        known: Returns what litellm's table says of a model; may read files.
    """

    def __init__(
        self, environ: Mapping[str, str], known: Callable[[str], Mapping[str, JsonValue]]
    ) -> None:
        self._environ = environ
        self._known = known
        self._opening: asyncio.Future[HttpClient] | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def client(self) -> "HttpClient":
        """The HTTP client; importing it and its certificates takes 0.2 s, in a thread.

        Raises:
            Exception: What the client says about the environment's certificates and proxies.
        """
        opening = self._opening
        if opening is None or (opening.done() and opening.exception()):  # it may work now
            loop = asyncio.get_running_loop()
            opening = loop.run_in_executor(None, _new_client, self._environ)
            self._opening = opening
        return await asyncio.shield(opening)

    async def events(
        self, stream: Stream, way: Way, silence: SilenceLimits
    ) -> AsyncGenerator[ServedEvent, None]:
        """Send a request over the wire of `stream`, and yield the events of its answer.

        Closing the generator closes the connection.
        """
        events: asyncio.Queue[ServedEvent | None] = asyncio.Queue()
        listener = Listener(silence)
        secrets = secret_values(self._environ, (way.request.model.api_key_env,))
        link = Link(self._environ, self._known, partial(self._post, listener))
        chunks = stream(way, link)
        serving = asyncio.create_task(serve(chunks, listener, events.put_nowait, secrets))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        serving.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
        finally:
            serving.cancel()

    async def aclose(self) -> None:
        """Stop the requests in progress and close their connections."""
        for serving in self._serving:
            serving.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        if self._opening is not None:
            with suppress(Exception):  # it was never opened
                await (await self._opening).aclose()
            self._opening = None

    async def _post(
        self, listener: Listener, address: Address, content: bytes
    ) -> AsyncGenerator[JsonObject, None]:
        client = await self.client()
        listener.asking(address.url)
        async with aclosing(client.events(address, content, listener.in_time)) as events:
            async for event in events:
                yield event


def _new_client(environ: Mapping[str, str]) -> "HttpClient":
    from agent_tui.providers.transport.http_client import HttpClient

    return HttpClient(environ)
