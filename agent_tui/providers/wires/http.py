"""A wire over HTTP: a body is posted, and the stream that answers is read event by event."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.providers.base import Chunk, FinishChunk, ModelRef, UsageChunk
from agent_tui.providers.litellm.protocol import Start
from agent_tui.providers.wires.base import Address, Fit, Link, StreamError, Wire, Write
from agent_tui.providers.wires.usage import TokenCounts

Known: TypeAlias = Mapping[str, JsonValue]
"""What litellm's table says of a model; empty where it does not know it."""

Ask: TypeAlias = Callable[[Start, Mapping[str, str], Known], tuple[Address, JsonObject]]
"""Where a request goes and its body, given the environment with the keys."""


class Reading(Protocol):
    """One stream as it comes."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be waited for; some hosts keep the connection open."""
        ...

    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """The chunks of one event.

        Raises:
            StreamError: it is an error, or the reply cannot be used.
        """
        ...

    def rest(self) -> Iterator[Chunk]:
        """What was held back until the end."""
        ...

    def counts(self) -> TokenCounts | None:
        """The tokens counted so far; None where nothing was."""
        ...

    def finish(self) -> FinishChunk | None:
        """Why the server ended the reply; None where it did not."""
        ...


def http_wire(
    name: str,
    fit: Callable[[ModelRef], Fit],
    write: Write,
    ask: Ask,
    reading: Callable[[], Reading],
    *,
    prefixes: tuple[str, ...],
    spare_fields: tuple[str, ...] = (),
) -> Wire:
    """The wire whose requests are what `ask` says and whose streams a `reading` reads.

    See `Wire` for the other arguments.
    """

    async def stream(start: Start, link: Link) -> AsyncGenerator[Chunk, None]:
        known = await link.known(start.model)
        address, body = ask(start, link.environ, known)
        under_way = reading()
        try:
            async with aclosing(link.events(address, without(body, start.without))) as events:
                async for event in events:
                    for chunk in under_way.chunks(event):
                        yield chunk
                    if under_way.is_over:
                        break
        except StreamError:
            if (counts := under_way.counts()) is not None:
                yield UsageChunk(counts.priced(start, known))
            raise
        for chunk in under_way.rest():
            yield chunk
        if (counts := under_way.counts()) is not None:
            yield UsageChunk(counts.priced(start, known))
        if (finish := under_way.finish()) is not None:
            yield finish

    return Wire(name, fit, write, _warm, stream, prefixes, spare_fields)


def without(body: JsonObject, paths: Iterable[str]) -> JsonObject:
    """`body` without the fields at `paths`; a list on the way stands for each of its items."""
    for path in paths:
        body = _without(body, path)
    return body


def _without(holder: JsonObject, path: str) -> JsonObject:
    name, dot, inner = path.partition(".")
    if name not in holder:
        return holder
    if not dot:
        return {other: value for other, value in holder.items() if other != name}
    value = holder[name]
    if isinstance(value, dict):
        return {**holder, name: _without(value, inner)}
    if isinstance(value, list):
        items = [_without(item, inner) if isinstance(item, dict) else item for item in value]
        return {**holder, name: items}
    return holder


async def _warm(link: Link) -> None:
    await link.open_http()
