"""A wire over HTTP: posts a body, and reads the stream that answers; addresses at Azure."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from itertools import chain
from typing import ClassVar, Final, TypeAlias

from pydantic import JsonValue

from agent_tui.messages import JsonObject, Usage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    FinishReason,
    ModelRef,
    RestartChunk,
    ServerTool,
    UsageChunk,
)
from agent_tui.providers.wires.base import (
    Address,
    Attempt,
    Fit,
    Link,
    MissingKeyError,
    RefusedError,
    StreamError,
    Wire,
    WireRequest,
    Write,
    key_of,
)
from agent_tui.providers.wires.parts import TokenCounts, text_at

_AZURE_KEYS = ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY")
_AZURE_AI_KEYS = ("AZURE_AI_API_KEY", "AZURE_API_KEY")


def azure_openai_address(request: WireRequest, environ: Mapping[str, str], path: str) -> Address:
    """The address `path` of the v1 API, which needs no version; deployments are its models.

    Raises:
        MissingKeyError: The resource or its key is not set.
    """
    home = re.sub(r"/(?:openai(?:/v1)?/?)?$", "", _azure_home(request, environ, "AZURE_API_BASE"))
    headers: dict[str, str] = {}
    if key := key_of(request, environ, *_AZURE_KEYS):
        headers["api-key"] = key
    elif (token := environ.get("AZURE_AD_TOKEN")) and not request.base_url:
        headers["authorization"] = f"Bearer {token}"
    elif not request.base_url:
        raise MissingKeyError(_AZURE_KEYS[0])
    return Address(f"{home}/openai/v1/{path}", headers)


def azure_claude_address(request: WireRequest, environ: Mapping[str, str]) -> Address:
    """The address at which the resource speaks Anthropic's protocol.

    Raises:
        MissingKeyError: The resource or its key is not set.
    """
    home = _azure_home(request, environ, "AZURE_AI_API_BASE", "AZURE_API_BASE")
    home = re.sub(r"(?:/anthropic)?(?:/v1)?(?:/messages)?/?$", "", home)
    key = key_of(request, environ, *_AZURE_AI_KEYS)
    if not key and not request.base_url:
        raise MissingKeyError(_AZURE_AI_KEYS[0])
    return Address(f"{home}/anthropic/v1/messages", {"x-api-key": key} if key else {})


def _azure_home(request: WireRequest, environ: Mapping[str, str], *names: str) -> str:
    home = request.base_url or next(filter(None, map(environ.get, names)), "")
    if not home:
        raise MissingKeyError(names[0])
    return home


Known: TypeAlias = Mapping[str, JsonValue]
"""What litellm's table says of a model; empty if it is not listed."""

BuildRequest: TypeAlias = Callable[
    [WireRequest, Mapping[str, str], Known], tuple[Address, JsonObject]
]
"""Returns the address and body of a request, given the environment with the keys."""


def ask_with(
    address: Callable[[WireRequest, Mapping[str, str]], Address],
    body: Callable[[WireRequest, Known], JsonObject],
) -> BuildRequest:
    """Builds the address and the body independently of each other."""
    return lambda request, environ, known: (address(request, environ), body(request, known))


class Reading(ABC):
    """Reads one stream.

    Attributes:
        is_over: Whether the stream is complete; some hosts keep the connection open.
        stop_reason: The server's word for why it ended the reply; empty before.
        finishes: What these words mean; any other is a plain end.
    """

    is_over = False
    stop_reason = ""
    finishes: ClassVar[Mapping[str, FinishReason]] = {}

    @abstractmethod
    def begins_anew(self, event: JsonObject) -> bool:
        """Whether `event` begins another reply, which replaces this one."""

    @abstractmethod
    def chunks(self, event: JsonObject) -> Iterator[Chunk]:
        """The chunks of one event; an error in its ``error`` field is read elsewhere.

        Raises:
            StreamError: It is an error, or the reply cannot be used.
        """

    def rest(self) -> Iterator[Chunk]:
        """The chunks that were held back until the end."""
        return iter(())

    @abstractmethod
    def counts(self) -> TokenCounts | None:
        """The tokens counted so far; None if there are no counts."""

    def finish(self) -> FinishChunk | None:
        """Why the server ended the reply; None if it did not."""
        reason = self.stop_reason
        return FinishChunk(self.finishes.get(reason, "stop")) if reason else None


class _NoTool:
    """The `ServerTool` of a request without one."""

    def begin(self) -> None: ...

    def add_to(self, body: JsonObject) -> JsonObject:
        return body

    def read(self, event: JsonObject) -> None: ...

    def charge(self, usage: Usage) -> Usage:
        return usage


_NO_TOOL: Final = _NoTool()


def http_wire(
    name: str,
    fit: Callable[[ModelRef], Fit],
    write: Write,
    ask: BuildRequest,
    reading: Callable[[], Reading],
    *,
    prefixes: tuple[str, ...],
    spare_fields: tuple[str, ...] = (),
) -> Wire:
    """A wire that sends the requests `ask` builds and reads streams with a `reading`.

    See `Wire` for the other arguments.
    """

    def prepare(way: Attempt, link: Link) -> tuple[WireRequest, Known, Address, bytes]:
        """What to send; slow for a long conversation, and may read files."""
        request = way.build_request()
        known = link.known(request.model)
        address, body = ask(request, link.environ, known)
        body = (way.request.server_tool or _NO_TOOL).add_to(body)
        return request, known, address, encode_body(without(body, request.without))

    async def stream(way: Attempt, link: Link) -> AsyncGenerator[Chunk, None]:
        request, known, address, content = await asyncio.to_thread(prepare, way, link)
        tool = way.request.server_tool or _NO_TOOL
        tool.begin()
        under_way, bill = reading(), _Bill(request, known, tool)
        try:
            async with aclosing(link.events(address, content)) as events:
                async for event in events:
                    if under_way.begins_anew(event):
                        under_way, bill = reading(), _Bill(request, known, tool)
                        tool.begin()
                        yield RestartChunk()
                    tool.read(event)
                    for chunk in chain(_chunks_of(event, under_way), bill.stated(under_way)):
                        yield chunk
                    if under_way.is_over:
                        break
        except StreamError:
            for chunk in bill.whole(under_way):
                yield chunk
            raise
        for chunk in _last_chunks(under_way, bill):
            yield chunk

    return Wire(name, fit, write, stream, prefixes, spare_fields)


def _chunks_of(event: JsonObject, reply: Reading) -> Iterator[Chunk]:
    yield from reply.chunks(event)
    if (error := error_in(event)) is not None:
        raise error


def _last_chunks(reply: Reading, bill: "_Bill") -> Iterator[Chunk]:
    """The chunks after the server has sent all of `reply`."""
    yield from reply.rest()
    yield from bill.whole(reply)
    if (finish := reply.finish()) is not None:
        yield finish


class _Bill:
    """Tells the usage of a reply as soon as the server states it: whoever cancels pays for it, too.

    Args:
        request: The request.
        known: What litellm's table says of its model.
        tool: Adds its fees.
    """

    def __init__(self, request: WireRequest, known: Known, tool: ServerTool) -> None:
        self._request = request
        self._known = known
        self._tool = tool
        self._counts: TokenCounts | None = None
        self._told: Usage | None = None

    def stated(self, reply: Reading) -> Iterator[UsageChunk]:
        """The usage of `reply` so far, if the server stated other counts than before."""
        counts = reply.counts()
        if counts is not None and counts != self._counts and not counts.is_estimate:
            self._counts = counts
            yield from self.whole(reply)

    def whole(self, reply: Reading) -> Iterator[UsageChunk]:
        """The usage of `reply`, which has ended, unless it was told."""
        counts = reply.counts()
        usage = counts and self._tool.charge(counts.with_cost(self._request, self._known))
        if usage is not None and usage != self._told:
            self._told = usage
            yield UsageChunk(usage)


def error_in(holder: JsonObject) -> RefusedError | None:
    """The error that an event, or a part of one, holds or is; None if there is none."""
    error = holder.get("error")
    if not error and holder.get("object") == "error":
        error = holder
    if not error:
        return None
    said = text_at(error, "message") if isinstance(error, dict) else str(error)
    return RefusedError(said or json.dumps(error), body={"error": error})


def encode_body(body: JsonObject) -> bytes:
    """`body` as JSON.

    List items are encoded one by one: encoding a long conversation at once would block the
    interpreter for 80 ms, in any thread.
    """
    fields: list[bytes] = []
    for name, value in body.items():
        if isinstance(value, list):
            text = b"[" + b",".join(map(_encode, value)) + b"]"
        else:
            text = _encode(value)
        fields.append(_encode(name) + b":" + text)
    return b"{" + b",".join(fields) + b"}"


def _encode(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class ReplyIds:
    """Detects by the ids of events whether another reply has begun.

    Some servers give every event its own id: only an id that came twice identifies a reply.
    """

    def __init__(self) -> None:
        self._id = ""
        self._times = 0

    def is_another(self, event_id: str) -> bool:
        """Whether an event with `event_id` belongs to another reply than those before it."""
        return event_id not in ("", self._id) and self._times > 1

    def note(self, event_id: str) -> None:
        """Note that an event with `event_id` arrived; empty if it has none."""
        if event_id:
            self._times = self._times + 1 if event_id == self._id else 1
            self._id = event_id


def without(body: JsonObject, paths: Iterable[str]) -> JsonObject:
    """`body` without the fields at `paths`; a list in a path means each of its items."""
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
