"""The interface of all providers: a stream of chunks per request, and one family of errors."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from agent_tui.errors import AgentTuiError
from agent_tui.messages import JsonObject, Message, ThinkingLevel, ToolSpec, Usage
from agent_tui.providers.silence import OnWait, SilenceLimits, ignore_wait

SECOND_NAMES: Final[Mapping[str, str]] = MappingProxyType({"cohere_chat": "cohere"})
"""litellm's second name for a service -> the usual one."""

LOCAL: Final = "local"
"""The provider of models on this machine, which a feature runs."""


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
        """The service: the part before the first slash; empty if there is none."""
        first = self.name.partition("/")[0] if "/" in self.name else ""
        return SECOND_NAMES.get(first, first)

    @property
    def runs_here(self) -> bool:
        """Whether the program runs it itself, at no cost."""
        return self.provider in (LOCAL, "scripted")

    @property
    def is_local(self) -> bool:
        """Whether it is one of `LOCAL`, at no address."""
        return self.provider == LOCAL and not self.base_url

    @property
    def model_id(self) -> str:
        """The part after the provider."""
        return self.name.partition("/")[2] if "/" in self.name else self.name


def model_name(provider: str, model_id: str) -> str:
    """The model name for this provider and model id; the inverse of the `ModelRef` properties."""
    return f"{provider}/{model_id}" if provider else model_id


def reply_limit(window: int) -> int:
    """The default and maximum length of a reply in tokens: a quarter of `window`.

    litellm's table lists replies as long as the window for some models, which services refuse.
    """
    return max(window // 4, 1)


ThinkingEffort: TypeAlias = Literal["off", "low", "medium", "high", "xhigh", "max"]
"""How much thinking a request asks for."""

ToolStyle: TypeAlias = Literal["native", "text"]
"""How tools are offered: in the request, or in the prompt if the model's template has none."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model. Sizes in tokens, prices in US dollars per million tokens.

    `source` says where `window` comes from: a setting, the server, litellm's table, a guess.
    `writes_calls`: it may write tool calls as text, so its replies are searched for them.
    `takes_schema`, `takes_grammar`: its server can constrain a reply to a JSON schema, or to a
    grammar in llama.cpp's GBNF. `is_tiny`: it is too small for real work. `cache_read_price` and
    `cache_write_price` are for input read from the provider's cache or written to it.
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
    """The effort that `level` means for a model: ``auto`` is ``medium`` if it can think."""
    if level == "auto":
        return "medium" if info.thinks else "off"
    return level


@dataclass(frozen=True, slots=True)
class TriggeredGrammar:
    """A grammar in llama.cpp's GBNF that applies once the model writes `trigger`."""

    text: str
    trigger: str


class ServerTool(Protocol):
    """A tool that the provider runs within a request, such as its search of the web.

    Only wires over HTTP use it. What a retry or another reply brings replaces what came before.
    """

    def begin(self) -> None:
        """A reply begins; what an earlier one brought no longer counts."""
        ...

    def add_to(self, body: JsonObject) -> JsonObject:
        """`body` of the request with the tool in it, as the model's protocol describes it."""
        ...

    def read(self, event: JsonObject) -> None:
        """Take what the tool brought from one event of the stream."""
        ...

    def charge(self, usage: Usage) -> Usage:
        """`usage` of the reply with the tool's fees."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `messages` are already settled: every call has its result, in order.

    `purpose` lets a provider distinguish a summary or other compaction work from a turn.
    `reply_schema` and `grammar` are only for models that support them (see `ModelInfo`). `silence`
    is how long the server may be silent, if the provider's default does not apply. `on_wait` is
    called every few seconds while the request runs. `cache_key` is the same for all requests with
    the same beginning: the session. `server_tool` is run by the provider, beside `tools`.
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
    server_tool: ServerTool | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TextChunk:
    """Visible text; a `signature` closes the current block of text.

    An empty one closes it without a signature.
    """

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingChunk:
    """Reasoning text; a `signature` closes the current thinking block.

    Its content depends on the wire: whatever must be sent back with the block. A `redacted` chunk
    is a separate block without text, whose `signature` is its encrypted content. A wire yields an
    empty chunk if the model thinks without showing it: a sign of life, not a block.
    """

    text: str
    signature: str | None = None
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A piece of a tool call. `id` and `name` come with the first piece of each `index`.

    `signature` must be sent back with the call. `problem`, if already known, is why the call is
    answered with an error instead of run.
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


FinishReason: TypeAlias = Literal["stop", "length", "toolUse", "contentFilter"]
"""Why a reply ended, as the provider states it."""


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """The reason the provider gave for stopping. A stream without one was interrupted."""

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class RestartChunk:
    """The reply starts again: everything received for it so far is discarded.

    A gateway whose own server failed mid-stream may send a second reply after the first.
    """


@dataclass(frozen=True, slots=True)
class NoticeChunk:
    """A notice for the user about the request; not part of the reply."""

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
    "rate_limit",  # 429, temporary
    "quota",  # 429 for billing: waiting does not help
    "overloaded",  # 503, 529
    "server",  # 500, 502, 504, 408, or an unreadable response
    "network",  # refused, reset, no route, no such host
    "address",  # no model server: a web page, a redirect, a wrong certificate
    "timeout",  # the server was silent for too long
    "interrupted",  # the stream ended in the middle
    "context_overflow",  # the request is larger than the window
    "content_filter",  # the provider refused the content
    "bad_request",  # 400 for another reason
    "endless",  # the reply did not end and was stopped
    "crashed",  # litellm's process died
]


class ProviderError(AgentTuiError):
    """A request failed.

    Attributes:
        kind: What the failure means.
        status: HTTP status of the response; None if there was none.
        retry_after_s: Seconds the server asked to wait, maybe days; None if it did not.
        detail: The server's own words, as one sentence.
        is_no_stream: The response claims success but is not a reply.
        is_unproven: Nothing shows a model server at the address: the connection failed, or the
            response was empty or broken.
        is_unreadable: The reply arrived, but broke a rule of its protocol.
        stated_window: Tokens of the model's window that the server names; 0 if it names none.
        has_answered: The address has given a reply since the program started.
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
        self.is_unreadable = False
        self.stated_window = 0
        self.has_answered = False

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed a little later.

        If an address gave replies before, a web page or unknown certificate comes from the network
        in between, which may require a login.
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

    def repeats(self, before: "ProviderError | None") -> bool:
        """Whether the reply broke as it did `before`, so that the next one would break, too."""
        return before is not None and self.is_unreadable and self.detail == before.detail


class Provider(Protocol):
    """A source of replies. One instance serves a whole program; requests may overlap."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Send `request` and yield the chunks of the reply, `FinishChunk` last.

        Closing the generator (``aclosing``) or cancelling the task really stops the request.

        Raises:
            ProviderError: The request failed, or the stream was interrupted.
        """
        ...

    async def warm(self, model: ModelRef) -> None:
        """Prepare for the first request to `model`; failures show up with the request."""
        ...

    async def aclose(self) -> None:
        """Stop everything that was started; returns when no process is left."""
        ...


@runtime_checkable
class PrefillingProvider(Protocol):
    """A provider that can read the start of a request in advance."""

    async def prefill(self, request: ModelRequest) -> None:
        """Prepare for `request` and for requests with the same beginning."""
        ...


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that can be chosen now: its key is set or its server answers."""

    ref: ModelRef
    info: ModelInfo
    via: str = ""
    """Where it was found: ``ANTHROPIC_API_KEY``, ``Ollama at 127.0.0.1:11434``."""
    state: str = ""
    """What choosing it means, if known: ``loaded``, ``not loaded``."""
    size_bytes: int | None = None
    """Size of the model's files in bytes, if it is on this machine and known."""
