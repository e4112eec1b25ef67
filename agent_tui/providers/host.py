"""Remote models: each is called over its wire, in this process or in litellm's."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    ModelRequest,
    NoticeChunk,
    ProviderError,
)
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.keys import secret_values
from agent_tui.providers.litellm.process import LiteLlmProcess
from agent_tui.providers.refusals import Refusals
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.table import read_bundled_table
from agent_tui.providers.transport.serving import Listener, ServedEvent, serve
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


_MAX_LESSONS: Final = 6
"""How often one request is resent: by another wire or name, without a field or old thinking."""


class ProviderHost:
    """Calls remote models, and starts litellm's process for those without one of our wires.

    Args:
        log_path: File to which the process's stderr is appended.
        environ: Holds the keys; also the process's environment.
        silence: How long a server may be silent, before its first byte and after, unless the
            request sets it.
        stuck_after_s: Seconds without a sign of life after which the process is killed.
        known: Returns what litellm's table says of a model; None reads the table for it.
    """

    def __init__(
        self,
        *,
        log_path: Path,
        environ: Mapping[str, str],
        silence: SilenceLimits | None = None,
        stuck_after_s: float | None = None,
        known: Callable[[str], Mapping[str, JsonValue]] | None = None,
    ) -> None:
        self.process = LiteLlmProcess(log_path, environ, stuck_after_s)
        table = functools.cache(read_bundled_table)
        self._speaker = Speaker(environ, known or (lambda name: table().entry(name)))
        self._silence = silence or SilenceLimits.without_bytes()
        self._refusals = Refusals()
        self._answered: set[tuple[str, str]] = set()

    async def warm(self, model: ModelRef) -> None:
        """Prepare for `model`; takes seconds if litellm calls it."""
        if self._refusals.wire_to(model).stream is None:
            await self.process.warm()
        else:
            with suppress(Exception):  # the first request reports it
                await self._speaker.client()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`. Once, what the provider refuses to take back is left out.

        Raises:
            ProviderError: The request failed, or the stream was interrupted.
        """
        place = (request.model.provider, request.model.base_url)
        told: list[str] = []
        unknown: ProviderError | None = None
        for tries_left in reversed(range(_MAX_LESSONS + 1)):
            way = self._refusals.way(request)
            has_begun = False
            try:
                async with aclosing(self._attempt(way)) as chunks:
                    async for chunk in chunks:
                        if not has_begun:
                            for text in filter(None, told):
                                yield NoticeChunk(text)
                        has_begun = True
                        self._answered.add(place)
                        yield chunk
                return
            except ProviderError as error:
                error.has_answered = place in self._answered
                may_repeat = tries_left > 0 and not has_begun
                lesson = self._refusals.learn(way, error) if may_repeat else None
                if lesson is None:
                    if unknown is not None and error.kind == "not_found":
                        raise unknown from error  # the other name was only a guess
                    raise
                unknown = unknown or (error if error.kind == "not_found" else None)
                told.append(lesson)

    def forget_keys(self) -> None:
        """Use keys added while the program runs; requests through litellm end as crashed."""
        self.process.retire()

    async def aclose(self) -> None:
        """Stop all requests and the process, and wait until it is gone."""
        await asyncio.gather(self._speaker.aclose(), self.process.aclose())

    async def _attempt(self, way: Way) -> AsyncGenerator[Chunk, None]:
        """Send one request.

        Raises:
            ProviderError: The request failed, or the stream was interrupted.
        """
        model = way.request.model
        is_mid_stream = has_finished = False
        async with aclosing(self._events(way)) as events:
            async for event in events:
                match event:
                    case Wait():
                        way.request.on_wait(event)
                    case Fault():
                        raise provider_error(event, model, is_mid_stream=is_mid_stream)
                    case chunk:
                        is_mid_stream = True
                        has_finished |= isinstance(chunk, FinishChunk)
                        yield chunk
        if not has_finished:
            fault = (
                Fault("Interrupted", "the stream ended without a finish reason")
                if is_mid_stream
                else Fault("EmptyReply", "it sent no reply")
            )
            raise provider_error(fault, model, is_mid_stream=is_mid_stream)

    def _events(self, way: Way) -> AsyncGenerator[ServedEvent, None]:
        silence = way.request.silence or self._silence
        if way.wire.stream is None:
            return self.process.events(way, silence)
        return self._speaker.events(way.wire.stream, way, silence)
