"""What every provider offers: a stream of chunks for a request, and one family of errors."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from agent_tui.errors import AgentTuiError
from agent_tui.messages import JsonObject, Message, ThinkingLevel, ToolSpec, Usage
from agent_tui.providers.silence import OnWait, SilenceLimits, ignore_wait


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model and how to reach it. `name` is a litellm name, ``scripted/...`` or ``local/...``.

    `api_key_env` names the environment variable with the key; the key itself is never held here.
    """

    name: str
    base_url: str = ""
    api_key_env: str = ""

    @property
    def provider(self) -> str:
        """The part before the first slash; empty where there is none."""
        return self.name.partition("/")[0] if "/" in self.name else ""

    @property
    def runs_here(self) -> bool:
        """Whether the program itself runs it, which costs nothing."""
        return self.provider in ("local", "scripted")

    @property
    def model_id(self) -> str:
        """The part after the provider."""
        return self.name.partition("/")[2] if "/" in self.name else self.name


def model_name(provider: str, model_id: str) -> str:
    """The name whose `ModelRef.provider` and `ModelRef.model_id` these are."""
    return f"{provider}/{model_id}" if provider else model_id


def reply_limit(window: int) -> int:
    """Tokens a reply may have where nobody says, and at most: a quarter of `window`.

    litellm's table allows some models a reply as long as the window; asked for that, the services
    refuse.
    """
    return max(window // 4, 1)


ThinkingEffort: TypeAlias = Literal["off", "low", "medium", "high", "xhigh", "max"]
"""How much a request asks a model to think."""

ToolStyle: TypeAlias = Literal["native", "text"]
"""How a model is offered tools: in the request, or (its template knows none) in the prompt."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model. Sizes in tokens, prices in US dollars per million tokens.

    `source` says where `window` comes from: a setting, the server, litellm's table, a guess.
    `writes_calls`: it may write a tool call as text, so that its replies are looked through for
    one. `takes_schema`, `takes_grammar`: its server holds a reply to a JSON schema, to a grammar
    in llama.cpp's GBNF. `is_tiny`: it is too small for real work. `cache_read_price` and
    `cache_write_price` are those of input that the provider has in its cache, or puts there.
    """

    name: str
    window: int
    max_output: int
    input_price: float | None = None
    output_price: float | None = None
    sees_images: bool = False
    thinks: bool = False
    source: Literal["setting", "server", "table", "guess"] = "guess"
    tool_style: ToolStyle = "native"
    writes_calls: bool = False
    takes_schema: bool = False
    takes_grammar: bool = False
    is_tiny: bool = False
    cache_read_price: float | None = None
    cache_write_price: float | None = None


def thinking_effort(level: ThinkingLevel, info: ModelInfo) -> ThinkingEffort:
    """What `level` means for a model: ``auto`` is ``medium`` where it is known to think."""
    if level == "auto":
        return "medium" if info.thinks else "off"
    return level


@dataclass(frozen=True, slots=True)
class TriggeredGrammar:
    """A grammar in llama.cpp's GBNF that holds from where the model writes `trigger`."""

    text: str
    trigger: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `messages` are already settled: every call has its result, in order.

    `purpose` lets a provider tell a summary, or other work of a compaction, from a turn.
    `reply_schema` and `grammar` are only for models that take them (see `ModelInfo`).
    `silence` is how long the server may be silent, where that is not for the provider to say.
    `on_wait` is called every few seconds while the request is under way.
    `cache_key` is the same for all requests that begin alike: the session.
    """

    model: ModelRef
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    thinking: ThinkingEffort = "off"
    purpose: Literal["turn", "summary"] = "turn"
    reply_schema: JsonObject | None = None
    grammar: TriggeredGrammar | None = None
    silence: SilenceLimits | None = None
    cache_key: str = ""
    on_wait: OnWait = field(default=ignore_wait, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Visible text; `signature`, when it comes, closes the present block of text.

    An empty one closes it without a signature.
    """

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingChunk:
    """Reasoning text; `signature`, when it comes, closes the present thinking block.

    What it says is the wire's affair: whatever must go back with the block. A `redacted` one is
    a block of its own: no text, and `signature` is its encrypted content. A wire yields an empty
    one where the model thinks and its words are not shown: that is a sign of life, and no block.
    """

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a tool call. `id` and `name` come with the first piece of each `index`.

    `signature` is what must go back with the call. `problem`, where it is known already, is why
    the call is answered with an error instead of run.
    """

    index: int
    id: str
    name: str
    arguments_json: str
    problem: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """The provider's token counts (or an estimate, marked so in `usage`)."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """The provider said why it stopped. A stream that ends without one was interrupted."""

    reason: Literal["stop", "length", "toolUse", "contentFilter"]


@dataclass(frozen=True, slots=True)
class RestartChunk:
    """The reply begins anew: nothing that came of it so far counts.

    A gateway whose own server failed in mid-stream may send a second reply behind the first.
    """


@dataclass(frozen=True, slots=True)
class NoticeChunk:
    """Something about the request that the person is told; no part of the reply."""

    text: str


Chunk: TypeAlias = (
    TextChunk
    | ThinkingChunk
    | ToolCallChunk
    | UsageChunk
    | FinishChunk
    | RestartChunk
    | NoticeChunk
)

FaultKind: TypeAlias = Literal[
    "auth",  # 401, 403: key missing or refused
    "not_found",  # 404: no such model or address
    "rate_limit",  # 429 that passes
    "quota",  # 429 for billing: waiting does not help
    "overloaded",  # 503, 529
    "server",  # 500, 502, 504, 408, garbage instead of an answer
    "network",  # refused, reset, no route, no such host
    "address",  # what is there is no model server: a web page, a redirect, a wrong certificate
    "timeout",  # the server was silent for too long
    "interrupted",  # the stream ended in the middle
    "context_overflow",  # the request is larger than the window
    "content_filter",  # the provider refused the content
    "bad_request",  # 400 for another reason
    "endless",  # the reply had no end, and was given up
    "crashed",  # litellm's process died
]


class ProviderError(AgentTuiError):
    """A request failed.

    Attributes:
        kind: What it means.
        status: Of the answer, where there was one.
        retry_after_s: What the server asked for, if it did.
        detail: The server's own words, as one sentence.
        is_no_stream: It answered as if all were well, but with something else than a reply.
        is_unproven: Nothing shows a model server at the address: the connection failed, or the
            answer was empty or broken.
        stated_window: Tokens of the model's window that the server names; 0 if it names none.
        has_answered: The address gave a reply before, since the program started.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        hint: str = "",
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        detail: str = "",
        is_no_stream: bool = False,
        is_unproven: bool = False,
    ) -> None:
        super().__init__(message, hint)
        self.kind: FaultKind = kind
        self.status = status
        self.retry_after_s = retry_after_s
        self.detail = detail or message
        self.is_no_stream = is_no_stream
        self.is_unproven = is_unproven
        self.stated_window = 0
        self.has_answered = False

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may work a little later.

        Where an address gave replies before, a web page or a strange certificate is that of the
        network in between, which may ask for a login.
        """
        return (self.kind == "address" and self.has_answered) or self.kind in (
            "rate_limit",
            "overloaded",
            "server",
            "network",
            "timeout",
            "interrupted",
            "crashed",
        )


class Provider(Protocol):
    """A source of replies. One instance serves a whole program; requests may overlap."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Send `request` and yield what comes back, `FinishChunk` last.

        Closing the generator (``aclosing``) or cancelling the task stops the request for real.

        Raises:
            ProviderError: the request failed, or the stream broke off.
        """
        ...

    async def warm(self, model: ModelRef) -> None:
        """Get ready ahead of the first request to `model`; failures show up with the request."""
        ...

    async def aclose(self) -> None:
        """Stop everything that was started; returns when no process is left."""
        ...


@runtime_checkable
class PrefillingProvider(Protocol):
    """A provider that can read the beginning of a request ahead of it."""

    async def prefill(self, request: ModelRequest) -> None:
        """Get ready for `request` and those that begin like it."""
        ...


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that can be chosen now: its key is set or its server answers."""

    ref: ModelRef
    info: ModelInfo
    via: str = ""
    """Where it was found: ``ANTHROPIC_API_KEY``, ``Ollama at 127.0.0.1:11434``."""
    state: str = ""
    """What choosing it means, where that is known: ``loaded``, ``not loaded``."""
    size_bytes: int | None = None
    """Of the model's files, for one on this machine that says."""
