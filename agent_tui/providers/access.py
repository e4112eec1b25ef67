"""The models a run can call: one provider that adapts each request to its model, in the budget."""

import asyncio
import hashlib
import re
from collections import ChainMap
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Final, Protocol, cast

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import IN_CHAT, ConfigError, UsageError, Ways
from agent_tui.feature import load_object, own_features
from agent_tui.messages import ImageContent, Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.account_switch import AccountSwitch
from agent_tui.providers.base import (
    LOCAL,
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    PrefillingProvider,
    Provider,
    ProviderError,
    UsageChunk,
)
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.local_models import own_local_models
from agent_tui.providers.rate_limits import RateLimit, rate_limits
from agent_tui.providers.registry import ModelProvider, providers_with
from agent_tui.providers.silence import SilenceLimits
from agent_tui.providers.spend_limits import (
    UNSTATED,
    Budget,
    SpendLimit,
    check_limits,
    estimate_input,
)

_NAMES_IMAGES = re.compile(r"\b(?:image|picture|vision|multi-?modal|media.type)", re.IGNORECASE)
_UNSEEN: Final = "[Image omitted: this model is not known to accept images.]"
_REFUSED: Final = "[Image omitted: the provider rejected it.]"


class Pictures:
    """Replaces images that cannot be sent with a line of text.

    If a request is refused because of its images, they are left out from then on; later ones are
    sent.

    Args:
        info: Returns what is known of a model.
    """

    def __init__(self, info: Callable[[ModelRef], ModelInfo]) -> None:
        self._info = info
        self._refused: set[str] = set()

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """`request` without the images that its model or its provider does not accept."""
        if not any(_images(message) for message in request.messages):
            return request
        sees = self._info(request.model).sees_images
        return replace(
            request, messages=tuple(self._without(message, sees) for message in request.messages)
        )

    def learn(self, sent: ModelRequest, error: ProviderError) -> bool:
        """Whether `sent` was refused because of its images."""
        images = [image for message in sent.messages for image in _images(message)]
        if not images or not refuses_images(error):
            return False
        self._refused.update(map(_digest, images))
        return True

    def read(
        self, request: ModelRequest, chunks: AsyncGenerator[Chunk, None]
    ) -> AsyncGenerator[Chunk, None]:
        """The reply as it is."""
        del request
        return chunks

    def _without(self, message: Message, sees_images: bool) -> Message:
        """`message` with a note for each image that is not sent; the same object if all are."""
        if not _images(message) or not isinstance(message, UserMessage | ToolResultMessage):
            return message
        parts = (part for part in message.content if not isinstance(part, str))
        return message.model_copy(
            update={"content": tuple(self._part(p, sees_images) for p in parts)}
        )

    def _part(
        self, part: TextContent | ImageContent, sees_images: bool
    ) -> TextContent | ImageContent:
        if isinstance(part, TextContent):
            return part
        if not sees_images:
            return TextContent(text=_UNSEEN)
        return TextContent(text=_REFUSED) if _digest(part) in self._refused else part


def refuses_images(error: ProviderError) -> bool:
    """Whether a server refused a request because of an image in it."""
    return error.kind == "bad_request" and _NAMES_IMAGES.search(error.detail) is not None


def _images(message: Message) -> tuple[ImageContent, ...]:
    if not isinstance(message, UserMessage | ToolResultMessage) or isinstance(message.content, str):
        return ()
    return tuple(part for part in message.content if isinstance(part, ImageContent))


def _digest(image: ImageContent) -> str:
    return hashlib.sha256(image.data.encode()).hexdigest()


class Adapter(Protocol):
    """Rewrites requests for models that do not accept everything, and reads their replies."""

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """`request` in a form its model accepts; the same object if nothing needs to change."""
        ...

    def learn(self, sent: ModelRequest, error: ProviderError) -> bool:
        """Learn from `error`, the response to `sent`; true if `adapt` will now change more."""
        ...

    def read(
        self, request: ModelRequest, chunks: AsyncGenerator[Chunk, None]
    ) -> AsyncGenerator[Chunk, None]:
        """What `chunks`, the reply to the original `request`, mean; the same if nothing else."""
        ...


def _brought_adapters(info: Callable[[ModelRef], ModelInfo]) -> Iterator[Adapter]:
    """Those of features."""
    for name in (name for feature in own_features() for name in feature.adapters):
        yield cast("Callable[[Callable[[ModelRef], ModelInfo]], Adapter]", load_object(name))(info)


def _brought_limits(settings: Settings) -> Iterator[SpendLimit]:
    """Those of features."""
    for name in (name for feature in own_features() for name in feature.spend_limits):
        yield cast("Callable[[Settings], SpendLimit]", load_object(name))(settings)


class AdaptingProvider:
    """Adapts requests and replies, and counts their cost.

    If an adapter learns from a refusal, the rewritten request is sent again. A limit never stops
    a request in progress: the last one may exceed the limit.

    Args:
        inner: The provider that sends the requests.
        info: Returns what is known of a model.
        spend_limits: What may be spent.
        ways: Those of whoever reads the errors.
        accounts: Decides which account requests use.
    """

    def __init__(
        self,
        inner: Provider,
        info: Callable[[ModelRef], ModelInfo],
        *spend_limits: SpendLimit,
        ways: Ways = IN_CHAT,
        accounts: AccountSwitch | None = None,
    ) -> None:
        self._inner = inner
        self._info = info
        self.spend_limits = spend_limits
        self.accounts = accounts
        self._ways = ways
        self._adapters: tuple[Adapter, ...] = (*_brought_adapters(info), Pictures(info))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            BudgetSpent: The budget allows no more requests.
            ProviderError: The request failed, or the stream was interrupted.
        """
        while True:
            sent = self._adapt(request)
            has_begun = False
            try:
                async with AsyncExitStack() as opened:
                    read = await opened.enter_async_context(aclosing(self._stream_and_pay(sent)))
                    for adapter in self._adapters:
                        changed = adapter.read(request, read)
                        read = await opened.enter_async_context(aclosing(changed))
                    async for chunk in read:
                        has_begun = has_begun or not isinstance(chunk, UsageChunk)
                        yield chunk
                return
            except ProviderError as error:
                error.ways = self._ways
                if has_begun or not any(one.learn(sent, error) for one in self._adapters):
                    raise

    async def prefill(self, request: ModelRequest) -> None:
        """Let a provider that supports it prepare for `request`; does nothing for others."""
        if isinstance(self._inner, PrefillingProvider):
            await self._inner.prefill(self._adapt(request))

    def rate_limits(self, model: ModelRef) -> Sequence[RateLimit]:
        """See `StatesLimits.rate_limits`."""
        return rate_limits(self._inner, model)

    async def warm(self, model: ModelRef) -> None:
        """See `Provider.warm`."""
        await self._inner.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        await self._inner.aclose()

    def _adapt(self, request: ModelRequest) -> ModelRequest:
        for adapter in self._adapters:
            request = adapter.adapt(request)
        return request

    async def _stream_and_pay(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        limits = [limit for limit in self.spend_limits if limit.is_set]
        info = self._info(request.model)
        if limits:
            await asyncio.to_thread(check_limits, limits, request.model, info)
        usage = None
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, UsageChunk):
                        usage = chunk.usage  # paid, too, if this is cancelled here
                        if usage.is_estimate:
                            usage = await asyncio.to_thread(estimate_input, usage, request, info)
                        yield UsageChunk(usage)
                        continue
                    if isinstance(chunk, FinishChunk) and usage is None:
                        usage = await asyncio.to_thread(estimate_input, UNSTATED, request, info)
                        if usage.input:
                            yield UsageChunk(usage)
                    yield chunk
        finally:
            for limit in self.spend_limits:
                limit.pay(usage.cost.total if usage else 0.0)


NO_MODEL = ModelRef("")
"""Used until the user has chosen a model."""


class RoutedProvider:
    """Routes the models of `own` providers to them, all others to the host.

    A name with a ``base_url`` belongs to that server, whatever its prefix.
    """

    def __init__(self, host: ProviderHost, own: Mapping[str, Provider]) -> None:
        self._host = host
        self._own = own

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`."""
        async with aclosing(self._provider_of(request.model).stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def prefill(self, request: ModelRequest) -> None:
        """See `PrefillingProvider`; does nothing for models of other providers."""
        provider = self._provider_of(request.model)
        if isinstance(provider, PrefillingProvider):
            await provider.prefill(request)

    def rate_limits(self, model: ModelRef) -> Sequence[RateLimit]:
        """See `StatesLimits.rate_limits`."""
        return rate_limits(self._provider_of(model), model)

    async def warm(self, model: ModelRef) -> None:
        """See `ProviderHost.warm`; others need no process, or load on the first request."""
        if self._provider_of(model) is self._host:
            await self._host.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        providers = (self._host, *self._own.values())
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _provider_of(self, model: ModelRef) -> Provider:
        if model.base_url:
            return self._host
        return self._own.get(model.provider, self._host)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Access to every model.

    Attributes:
        provider: Calls any model; starts its processes when they are needed.
        host: Calls remote models; starts litellm's process for those without one of our wires.
        catalog: The known models and their properties.
        settings: Those it was opened under.
        environ: The environment with the keys.
        ways: Those of whoever reads the errors.
    """

    provider: AdaptingProvider
    host: ProviderHost
    catalog: ModelCatalog
    settings: Settings
    environ: Mapping[str, str]
    ways: Ways


def open_models(
    settings: Settings,
    environ: MutableMapping[str, str],
    budget: Budget | None = None,
    ways: Ways = IN_CHAT,
    brought: Sequence[ModelProvider] = (),
    accounts: AccountSwitch | None = None,
) -> ModelAccess:
    """Open access to every model under `settings`, within `budget`; nothing is started yet.

    A key added to `environ` later takes effect at once, and in litellm's process when it restarts.
    The errors of requests advise in `ways`; `brought` are the providers of plugins. `accounts`
    decides which account requests use.
    """
    keys: dict[str, str] = {}
    chosen: MutableMapping[str, str] = accounts.environ if accounts is not None else {}
    accounts_environ = ChainMap(chosen, environ)
    silence = SilenceLimits.without_bytes(
        settings.request_idle_timeout_s, settings.loopback_idle_timeout_s
    )
    host = ProviderHost(
        log_path=paths.log_file(),
        silence=silence,
        environ=ChainMap(keys, accounts_environ),
        known=lambda name: catalog.entry(name),
    )
    local = own_local_models(settings, environ)
    own = providers_with(brought, silence)
    catalog = ModelCatalog(settings, accounts_environ, local=local, own=own)
    built = {name: provider.build(environ) for name, provider in own.items()}
    built[LOCAL] = local.serve(host, keys)
    limits = (budget or Budget(), *_brought_limits(settings))
    provider = AdaptingProvider(
        RoutedProvider(host, built), catalog.info, *limits, ways=ways, accounts=accounts
    )
    if accounts is not None:
        accounts.on_switch = host.forget_keys
    return ModelAccess(provider, host, catalog, settings, accounts_environ, ways)


def own_account_switch(settings: Settings, environ: Mapping[str, str]) -> AccountSwitch | None:
    """What decides on accounts, as a feature brings it; None without one.

    Raises:
        AgentTuiError: The user wants an account that does not exist.
    """
    names = (name for feature in own_features() if (name := feature.account_switch))
    make = (load_object(name) for name in names)
    found = cast("Iterator[Callable[[Settings, Mapping[str, str]], AccountSwitch]]", make)
    return next((one(settings, environ) for one in found), None)


def first_model(
    catalog: ModelCatalog, *, is_named: bool, is_local: bool = False
) -> tuple[ModelRef, str]:
    """The model to begin with, and what is wrong with the one in the settings.

    Args:
        catalog: The models.
        is_named: Whether the command line names the model; a wrong name is then a usage error.
        is_local: Whether it must be a model on this machine.

    Raises:
        UsageError: The model named on the command line does not exist.
    """
    try:
        chosen = catalog.local.default() if is_local else catalog.default_model()
        return chosen or NO_MODEL, ""
    except ConfigError as error:
        if is_named:
            raise UsageError(error.message, error.advice) from error
        return NO_MODEL, str(error)
