"""What a wire is: it writes a request in one protocol, and reads its stream."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic import JsonValue

from agent_tui.messages import AssistantMessage, JsonObject, Message, ToolSpec
from agent_tui.providers.base import (
    Chunk,
    ModelRef,
    ModelRequest,
    ThinkingEffort,
    TriggeredGrammar,
)
from agent_tui.text import repair_json

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as wires send it. The key is not in it: `api_key_env` names its variable.

    `messages` are in the wire's form; `tools` have name, description and parameters. `model_id` is
    the server's name for the model; `without` are fields that it refused.
    """

    model: str
    messages: list[JsonObject]
    model_id: str = ""
    without: list[str] = field(default_factory=list[str])
    tools: list[JsonObject] = field(default_factory=list[JsonObject])
    base_url: str = ""
    api_key_env: str = ""
    max_output_tokens: int | None = None
    thinking: ThinkingEffort = "off"
    reply_schema: JsonObject | None = None
    grammar: TriggeredGrammar | None = None
    cache_key: str = ""


class InTime(Protocol):
    """Waits for something as long as a request may be silent."""

    async def __call__(self, awaitable: Awaitable[_T]) -> _T:
        """The result of `awaitable`."""
        ...


class Signer(Protocol):
    """An account that authorizes requests in place of a key."""

    @property
    def is_for_one_address(self) -> bool:
        """Whether its headers are valid for one address only, so that no redirect is followed."""
        ...

    def headers(self, url: str, content: bytes, /) -> Mapping[str, str]:
        """The headers that authorize a POST of the JSON `content`. May block.

        Raises:
            MissingKeyError: The account has no valid credentials.
        """
        ...


class Framing(NamedTuple):
    """How the events of a stream are sent, if not as ``text/event-stream``.

    Attributes:
        content_type: How the response names it.
        read: Yields the events in pieces of the response. Raises `StreamError`.
    """

    content_type: str
    read: Callable[[AsyncIterator[bytes], InTime], AsyncGenerator[JsonObject, None]]


@dataclass(frozen=True, slots=True)
class Address:
    """The address and headers of a request.

    Attributes:
        sign: Opens the account that authorizes the request, from the environment; None if the
            headers do. Equal values share an account. May block and raise `MissingKeyError`.
        framing: How a stream may be sent besides as ``text/event-stream``; None for no other way.
    """

    url: str
    headers: Mapping[str, str]
    sign: Callable[[Mapping[str, str]], Signer] | None = None
    framing: Framing | None = None


STREAM_END: Final[JsonObject] = {}
"""What `Link.events` yields for the ``[DONE]`` with which some servers end a stream."""

DUMMY_KEY: Final = "no-key"
"""The key for servers that require one but do not check it."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a wire needs to send a request.

    Attributes:
        environ: The environment with the keys.
        known: What litellm's table says of a model; empty if it is not listed. May read files.
        events: Posts a JSON body and yields the objects of the event stream that answers. Raises
            `StreamError` if the server answered with an error or its stream was interrupted.
    """

    environ: Mapping[str, str]
    known: Callable[[str], Mapping[str, JsonValue]]
    events: Callable[[Address, bytes], AsyncGenerator[JsonObject, None]]


class StreamError(Exception):
    """A request that failed; the tokens counted until then still count."""


class IdleTimeoutError(StreamError):
    """Nothing arrived within the idle time."""


class LostConnectionError(StreamError):
    """The connection failed; the exception's cause says why."""


class MalformedReplyError(StreamError):
    """The reply cannot be used though the server reports no error; a retry may succeed."""


class BadAddressError(StreamError):
    """There can be no server at the requested address."""


class NotHttpError(StreamError):
    """The server at the address does not speak HTTP."""


class RedirectError(StreamError):
    """The server redirects to an address (the text) that must not get the request unasked."""


class EndlessReplyError(StreamError):
    """The reply is longer than any model's; a retry would be too."""


class RefusedError(StreamError):
    """A server's error response.

    Attributes:
        status_code: Status of the response; None for a mid-stream error without one.
        body: The response as JSON; empty if it is not JSON.
        headers: Headers of the response.
    """

    def __init__(
        self,
        text: str,
        status_code: int | None = None,
        body: Mapping[str, JsonValue] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(text)
        self.message = text
        self.status_code = status_code
        self.body = body
        self.headers: Mapping[str, str] = headers or {}


class MissingKeyError(Exception):
    """No key is set; names the variable that would hold it."""

    status_code = 401

    def __init__(self, variable: str) -> None:
        super().__init__(f"no API key in {variable}")


class NotSignedInError(Exception):
    """The account for a model is not signed in, or no longer."""

    status_code = 401


class NoStreamError(RefusedError):
    """A response that claims success but is no stream; some send it for an unknown address."""


class PageError(NoStreamError):
    """A response that is not JSON either: usually a web page."""


Fit: TypeAlias = Literal["no", "try", "yes"]
"""Whether a wire is for a model; ``try``: if its server has no such address, use the next."""

Write: TypeAlias = Callable[[str, Sequence[Message], ModelRef], list[JsonObject]]
Stream: TypeAlias = Callable[["Attempt", Link], AsyncGenerator[Chunk, None]]


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol.

    Attributes:
        name: Unique among the wires.
        fit: Whether a model is called this way.
        write: Converts system prompt and settled messages (every call followed by its result) to
            the protocol's form; a model's own output goes back to it unchanged and in order.
        stream: Sends the request and yields its chunks; a `FinishChunk` only if the server itself
            ended the reply. None for litellm's wire, which its own process speaks.
        prefixes: Prefixes of model names that select this wire, longest first.
        spare_fields: Body fields, inner ones as ``outer.inner``, that a request leaves out if a
            server refuses them.
    """

    name: str
    fit: Callable[[ModelRef], Fit]
    write: Write
    stream: Stream | None
    prefixes: tuple[str, ...] = ()
    spare_fields: tuple[str, ...] = ()

    def id_of(self, name: str) -> str:
        """The model id to send to a server for the model called `name`."""
        fitting = (prefix for prefix in self.prefixes if name.startswith(prefix))
        return name.removeprefix(next(fitting, ""))


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a request is sent.

    Attributes:
        wire: The protocol.
        request: The request, without what was refused before.
        model_id: The server's name for the model.
        without: Fields of the body to leave out.
    """

    wire: Wire
    request: ModelRequest
    model_id: str
    without: tuple[str, ...] = ()

    def build_request(self) -> WireRequest:
        """The request as the wire sends it; slow for a long conversation."""
        request, model = self.request, self.request.model
        return WireRequest(
            model=model.name,
            model_id=self.model_id,
            without=list(self.without),
            messages=self.wire.write(request.system, request.messages, model),
            tools=[_tool(spec) for spec in request.tools],
            base_url=model.base_url,
            api_key_env=model.api_key_env,
            max_output_tokens=request.max_output_tokens,
            thinking=request.thinking,
            reply_schema=request.reply_schema,
            grammar=request.grammar,
            cache_key=request.cache_key,
        )


def _tool(spec: ToolSpec) -> JsonObject:
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": repair_json(spec.parameters),
    }


def is_own(reply: AssistantMessage, model: ModelRef) -> bool:
    """Whether `reply` is from `model` itself, the only one that accepts its signed reasoning."""
    return (reply.provider, reply.model) == (model.provider, model.model_id)


def key_of(request: WireRequest, environ: Mapping[str, str], *usual: str) -> str:
    """The key for a request: from the variable named for it, else from a `usual` one.

    The usual ones are not used for the user's own address.
    """
    names = (request.api_key_env,) if request.base_url else (request.api_key_env, *usual)
    return next((environ[name] for name in names if environ.get(name)), "")
