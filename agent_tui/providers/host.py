"""Remote models: each is called over its wire, in this process or in litellm's."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

from pydantic import JsonValue

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
from agent_tui.providers.litellm.process import LiteLlmProcess
from agent_tui.providers.refusals import Refusals
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.table import bundled_table
from agent_tui.providers.transport.serving import ServedEvent
from agent_tui.providers.transport.speaker import Speaker
from agent_tui.providers.wires.base import Way

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
        table = functools.cache(bundled_table)
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
