"""Remote models: each is called over the wire that its server accepts."""

import asyncio
import functools
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from pydantic import JsonValue

from agent_tui.feature import load_object, own_features
from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    JsonObject,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelRef,
    ModelRequest,
    NoticeChunk,
    ProviderError,
    UsageChunk,
)
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.keys import secret_values
from agent_tui.providers.rate_limits import LimitsStated, RateLimit, StatedLimits
from agent_tui.providers.silence import SilenceLimits, Wait
from agent_tui.providers.table import read_bundled_table
from agent_tui.providers.transport.serving import Listener, ServedEvent, serve
from agent_tui.providers.wires.base import Address, Attempt, Link, Stream, Wire
from agent_tui.providers.wires.table import wires_to

if TYPE_CHECKING:
    from agent_tui.providers.transport.http_client import HttpClient


_ABOUT_THINKING = re.compile(r"thinking|thought|reasoning|signature|encrypted.content", re.I)
_NO_SUCH_ADDRESS = frozenset({404, 405, 501})
_NO_SUCH_MODEL = re.compile(
    r"^model: |model[^.]{0,80}\b(?:not found|not exist)|no such model|not a valid model", re.I
)
_FAULTY = frozenset({"bad_request", "not_found", "server"})
"""Statuses for a request with something unknown in it: llama.cpp says 500."""


@dataclass(slots=True)
class _Lessons:
    """What was learned about one model on one wire."""

    is_lacking: bool = False
    is_otherwise_named: bool = False
    refused_fields: tuple[str, ...] = ()


class Refusals:
    """Which wires, names and fields servers do not know, and which thinking was refused."""

    def __init__(self) -> None:
        self._lessons: defaultdict[tuple[ModelRef, str], _Lessons] = defaultdict(_Lessons)
        self._refused_thoughts: set[int] = set()
        self._unthinking: set[ModelRef] = set()

    def wire_to(self, model: ModelRef) -> Wire:
        """The wire for calling `model`."""
        wires = wires_to(model)
        there = (wire for wire in wires if not self._lessons[model, wire.name].is_lacking)
        return next(there, wires[-1])

    def way(self, request: ModelRequest) -> Attempt:
        """How to send `request`, given what was learned."""
        wire = self.wire_to(request.model)
        lessons = self._lessons[request.model, wire.name]
        first, other = _names(wire, request.model)
        model_id = other if lessons.is_otherwise_named else first
        return Attempt(
            wire, self._without_refused_thinking(request), model_id, lessons.refused_fields
        )

    def learn(self, way: Attempt, error: ProviderError) -> str | None:
        """Learn why a request was refused; None if it should not be sent again.

        Returns:
            What to tell the user; empty if nothing is lost.
        """
        model, lessons = way.request.model, self._lessons[way.request.model, way.wire.name]
        first, other = _names(way.wire, model)
        if error.kind == "not_found" and first != other and way.model_id in error.detail:
            lessons.is_otherwise_named = not lessons.is_otherwise_named and bool(model.base_url)
            if lessons.is_otherwise_named:
                return ""
        if way.wire is not wires_to(model)[-1] and _is_address_unknown(error):
            lessons.is_lacking = True
            return ""
        if field := _field_to_leave_out(way, error):
            lessons.refused_fields += (field,)
            return f"{model.name} does not accept {field!r}; leaving it out. {error.detail}"
        if error.kind != "bad_request" or not _ABOUT_THINKING.search(error.detail):
            return None
        return self._learn_of_thinking(way.request, error)

    def _learn_of_thinking(self, request: ModelRequest, error: ProviderError) -> str | None:
        name = request.model.name
        replies = (m for m in request.messages if isinstance(m, AssistantMessage))
        if seals := {seal for reply in replies for seal in _seals(reply)}:
            self._refused_thoughts |= seals
            return f"{name} rejected its earlier thinking; leaving it out. {error.detail}"
        if request.thinking != "off":
            self._unthinking.add(request.model)
            return f"Thinking is now off for {name}. {error.detail}"
        return None

    def _without_refused_thinking(self, request: ModelRequest) -> ModelRequest:
        """`request` without thinking that was refused before."""
        if request.model in self._unthinking:
            request = replace(request, thinking="off")
        if not self._refused_thoughts:
            return request
        messages = tuple(
            without_seals(message)
            if isinstance(message, AssistantMessage)
            and any(seal in self._refused_thoughts for seal in _seals(message))
            else message
            for message in request.messages
        )
        return replace(request, messages=messages)


def _names(wire: Wire, model: ModelRef) -> tuple[str, str]:
    """The name to send to a server first, and the other name it may have for `model`."""
    first = wire.id_of(model.name)
    return first, model.model_id if first == model.name else model.name


def _field_to_leave_out(way: Attempt, error: ProviderError) -> str:
    """A field of the request that `error` names and that is not yet left out; else empty.

    OpenAI names the unknown field first and the one it expects instead after it: the first counts.
    """
    if error.kind not in _FAULTY:
        return ""
    places: dict[str, int] = {}
    for field in way.wire.spare_fields:
        name = field.rpartition(".")[2]
        before = r"\b" if "_" in name else r"(?<=[.'\"`\]])"  # otherwise it may be an ordinary word
        named = re.search(rf"{before}{name}\b", error.detail)
        if named and field not in way.without:
            places[field] = named.start()
    return min(places, key=lambda field: places[field], default="")


def without_seals(reply: AssistantMessage) -> AssistantMessage:
    """`reply` without its thinking and signatures."""
    content: list[AssistantContent] = []
    for part in reply.content:
        match part:
            case TextContent() | ToolCall():
                content.append(part.model_copy(update={"signature": None}))
            case ThinkingContent():
                pass
    return reply.model_copy(update={"content": tuple(content)})


def _seals(reply: AssistantMessage) -> Iterator[int]:
    """Hashes that identify the signed parts of `reply`."""
    for part in reply.content:
        if isinstance(part, ThinkingContent):
            yield hash((part.thinking, part.signature))
        elif part.signature:
            yield hash(part.signature)


def _is_address_unknown(error: ProviderError) -> bool:
    """Whether the response means that the server has no such address."""
    is_unknown = error.kind == "not_found" or error.status in _NO_SUCH_ADDRESS
    return (is_unknown and not _NO_SUCH_MODEL.search(error.detail)) or error.is_no_stream


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
        self, stream: Stream, way: Attempt, silence: SilenceLimits
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
        answer = client.events(address, content, listener.in_time, listener.read_headers)
        async with aclosing(answer) as events:
            async for event in events:
                yield event


def _new_client(environ: Mapping[str, str]) -> "HttpClient":
    from agent_tui.providers.transport.http_client import HttpClient

    return HttpClient(environ)


_MAX_LESSONS: Final = 6
"""How often one request is resent: by another wire or name, without a field or old thinking."""


class Caller(Protocol):
    """Calls the models for which we have no wire.

    A feature brings one. It is made from the first two arguments of `ProviderHost` and
    `stuck_after_s`.
    """

    async def warm(self) -> None:
        """Prepare the first call."""
        ...

    def events(self, way: Attempt, silence: SilenceLimits) -> AsyncGenerator[ServedEvent, None]:
        """Send a request and yield the events of its answer.

        Raises:
            ProviderError: It cannot be sent, or the answer broke off.
        """
        ...

    def retire(self) -> None:
        """Use the environment as it is now, from the next request on."""
        ...

    async def aclose(self) -> None:
        """End all calls."""
        ...


class NoCaller:
    """Without one: these models cannot be called."""

    async def warm(self) -> None:
        """Nothing to prepare."""

    async def events(
        self, way: Attempt, silence: SilenceLimits
    ) -> AsyncGenerator[ServedEvent, None]:
        """Say so."""
        del silence
        raise ProviderError(
            "bad_request",
            f"agent-tui cannot call {way.request.model.name}: it has no protocol for it.",
            "Choose another model, or give the address of its server with --base-url.",
        )
        yield  # a generator

    def retire(self) -> None:
        """Nothing to renew."""

    async def aclose(self) -> None:
        """Nothing to end."""


def _make_caller(log_path: Path, environ: Mapping[str, str], stuck_after_s: float | None) -> Caller:
    names = filter(None, (feature.caller for feature in own_features()))
    if (name := next(names, None)) is None:
        return NoCaller()
    make = cast("Callable[[Path, Mapping[str, str], float | None], Caller]", load_object(name))
    return make(log_path, environ, stuck_after_s)


class ProviderHost:
    """Calls remote models: those without one of our wires through what a feature brings.

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
        self.caller = _make_caller(log_path, environ, stuck_after_s)
        table = functools.cache(read_bundled_table)
        self._speaker = Speaker(environ, known or (lambda name: table().entry(name)))
        self._silence = silence or SilenceLimits.without_bytes()
        self._refusals = Refusals()
        self._answered: set[tuple[str, str]] = set()
        self.limits = StatedLimits()

    async def warm(self, model: ModelRef) -> None:
        """Prepare for `model`; takes seconds without a wire of ours."""
        if self._refusals.wire_to(model).stream is None:
            await self.caller.warm()
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
                        while told:
                            yield NoticeChunk(told.pop(0))
                        has_begun = has_begun or not isinstance(chunk, UsageChunk)
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
                told += filter(None, (lesson,))

    def rate_limits(self, model: ModelRef) -> tuple[RateLimit, ...]:
        """See `StatesLimits.rate_limits`."""
        return self.limits.of(model)

    def forget_keys(self, provider: str = "") -> None:
        """Use keys added while the program runs; calls without a wire of ours end as crashed.

        What is known of the limits of `provider` is forgotten: they are another account's.
        """
        self.caller.retire()
        self.limits.forget(provider)

    async def aclose(self) -> None:
        """Stop all requests and the process, and wait until it is gone."""
        await asyncio.gather(self._speaker.aclose(), self.caller.aclose())

    async def _attempt(self, way: Attempt) -> AsyncGenerator[Chunk, None]:
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
                    case LimitsStated(limits):
                        self.limits.note(model, limits)
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

    def _events(self, way: Attempt) -> AsyncGenerator[ServedEvent, None]:
        silence = way.request.silence or self._silence
        if way.wire.stream is None:
            return self.caller.events(way, silence)
        return self._speaker.events(way.wire.stream, way, silence)
