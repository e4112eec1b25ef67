"""A model whose words are long in coming."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from agent_tui.features.tour.scripted import Script, ScriptedProvider
from agent_tui.providers.base import Chunk, ModelRequest
from agent_tui.providers.silence import Wait


class WaitingProvider(ScriptedProvider):
    """Plays a script, and tells of `waits` before each reply."""

    def __init__(self, script: Script, waits: Sequence[Wait]) -> None:
        super().__init__(script)
        self._waits = waits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`."""
        for wait in self._waits:
            request.on_wait(wait)
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk
