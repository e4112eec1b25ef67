"""What a wire is: writing a request in one protocol, and reading its stream."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

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

    `messages` are in the form of the wire; `tools` have name, description and parameters.
    `model_id` is what the server calls the model; `without` are fields that it refused.
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


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes and what it says of itself.

    Attributes:
        aws_region: Where one to Amazon is signed for; empty for one that is not to be signed.
        as_google: With a token of the person's or the machine's account at Google.
    """

    url: str
    headers: Mapping[str, str]
    aws_region: str = ""
    as_google: bool = False


class InTime(Protocol):
    """Waits for something as long as a request may be silent."""

    async def __call__(self, awaitable: Awaitable[_T]) -> _T:
        """What `awaitable` gives."""
        ...


STREAM_END: Final[JsonObject] = {}
"""What `Link.events` yields for the ``[DONE]`` with which some servers end a stream."""

DUMMY_KEY: Final = "no-key"
"""What servers get that want a key to be there and do not look at it."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a wire needs to send a request.

    Attributes:
        environ: The environment, where the keys are.
        known: What litellm's table says of a model; empty if it is not in it. May read files.
        events: Posts a body of JSON and yields the objects of the event stream that answers.
            Raises `StreamError` if the server answered with an error or its stream broke off.
    """

    environ: Mapping[str, str]
    known: Callable[[str], Mapping[str, JsonValue]]
    events: Callable[[Address, bytes], AsyncGenerator[JsonObject, None]]


class StreamError(Exception):
    """A request that came to no good end; what was counted until then still holds."""


class IdleTimeoutError(StreamError):
    """Nothing came within the idle time."""


class LostConnectionError(StreamError):
    """The connection failed; why is in the exception behind it."""


class MalformedReplyError(StreamError):
    """The reply cannot be used though the server sees nothing wrong: another try may be well."""


class BadAddressError(StreamError):
    """There can be no server at the address that is asked."""


class NotHttpError(StreamError):
    """What listens at the address does not speak HTTP."""


class RedirectError(StreamError):
    """The server redirects to an address (the text) that must not get the request unasked."""


class EndlessReplyError(StreamError):
    """The reply is longer than any model's; another try would be so, too."""


class RefusedError(StreamError):
    """A server's answer that is an error.

    Attributes:
        status_code: Of the answer; None for an error in mid-stream that names none.
        body: The answer as JSON; empty where it is none.
        headers: Of the answer.
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
    """No key is set; names the variable that is looked for."""

    status_code = 401

    def __init__(self, variable: str) -> None:
        super().__init__(f"no API key in {variable}")


class NotSignedInError(Exception):
    """Nobody is signed in to the account that a model is asked with, or not any more."""

    status_code = 401


class NoStreamError(RefusedError):
    """An answer that says it is fine and is no stream: what some give for an unknown address."""


class PageError(NoStreamError):
    """One that is no JSON either: a web page, mostly."""


Fit: TypeAlias = Literal["no", "try", "yes"]
"""Whether a wire is for a model; ``try``: where its server has no such address, the next one is."""

Write: TypeAlias = Callable[[str, Sequence[Message], ModelRef], list[JsonObject]]
Stream: TypeAlias = Callable[["Way", Link], AsyncGenerator[Chunk, None]]


@dataclass(frozen=True, slots=True)
class Wire:
    """One protocol.

    Attributes:
        name: Unique among the wires.
        fit: Whether a model is spoken to this way.
        write: System prompt and settled messages (every call followed by its result) in the
            form of the protocol; what a model gave goes back to it as it was, in order.
        stream: Sends the request and yields its chunks; a `FinishChunk` only where the server
            itself ended the reply. None for litellm's wire, which its own process speaks.
        prefixes: What stands before a model's own name where this wire is meant, longest first.
        spare_fields: Fields of the body, inner ones as ``outer.inner``, that a request is made
            without where a server refuses them.
    """

    name: str
    fit: Callable[[ModelRef], Fit]
    write: Write
    stream: Stream | None
    prefixes: tuple[str, ...] = ()
    spare_fields: tuple[str, ...] = ()

    def id_of(self, name: str) -> str:
        """What a server is to be asked for, if it means the model called `name`."""
        fitting = (prefix for prefix in self.prefixes if name.startswith(prefix))
        return name.removeprefix(next(fitting, ""))


@dataclass(frozen=True, slots=True)
class Way:
    """How a request is put.

    Attributes:
        wire: The protocol.
        request: Without what was refused before.
        model_id: What the server is asked for.
        without: Fields of the body to leave out.
    """

    wire: Wire
    request: ModelRequest
    model_id: str
    without: tuple[str, ...] = ()

    def written(self) -> WireRequest:
        """The request as the wire sends it; takes long for a long conversation."""
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
    """Whether `reply` is of `model` itself, which alone takes its sealed reasoning back."""
    return (reply.provider, reply.model) == (model.provider, model.model_id)


def key_of(request: WireRequest, environ: Mapping[str, str], *usual: str) -> str:
    """The key for a request: of the variable that was named for it, else of a `usual` one.

    The usual ones are not for an address of the person's own.
    """
    names = (request.api_key_env,) if request.base_url else (request.api_key_env, *usual)
    return next((environ[name] for name in names if environ.get(name)), "")
