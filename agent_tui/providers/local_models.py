"""Models on this machine, ``local/NAME``: a feature finds and runs them; without it, none exist."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, MutableMapping
from typing import Final, Protocol, cast

from agent_tui.config import Settings
from agent_tui.errors import ConfigError
from agent_tui.feature import load_object, own_features
from agent_tui.providers.base import (
    LOCAL,
    Chunk,
    FoundModel,
    ModelInfo,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    reply_limit,
)

_UNKNOWN: Final = f"The provider {LOCAL!r} is unknown."
_WINDOW: Final = 16_384


class LocalModels(Protocol):
    """The models on this machine. Their names have no provider, references do."""

    def names(self) -> Collection[str]:
        """All names, those of models with a missing file among them; none if unreadable."""
        ...

    def resolve(self, name: str) -> ModelRef:
        """The model called `name`, with or without its provider.

        Raises:
            ConfigError: There is none, or its file is missing.
        """
        ...

    def default(self) -> ModelRef | None:
        """The model to use unless one is named; None if there is none.

        Raises:
            ConfigError: The settings name a model that does not exist.
        """
        ...

    def info(self, ref: ModelRef) -> ModelInfo:
        """What is known of `ref`."""
        ...

    async def learn(self, ref: ModelRef) -> ModelInfo:
        """As `info`, after loading the model if it can be loaded."""
        ...

    def list_models(self) -> tuple[FoundModel, ...]:
        """Every model whose file exists."""
        ...

    def serve(self, host: Provider, keys: MutableMapping[str, str]) -> Provider:
        """The provider that answers for them; nothing is started yet.

        Args:
            host: Sends requests to addresses on this machine.
            keys: Takes the keys for these addresses, by the variables that references name.
        """
        ...


class NoLocalModels:
    """Without a feature that brings them: the provider is unknown."""

    def names(self) -> Collection[str]:
        """None."""
        return ()

    def resolve(self, name: str) -> ModelRef:
        """Refuse `name`.

        Raises:
            ConfigError: Always.
        """
        del name
        raise ConfigError(_UNKNOWN, "List all models with agent-tui models.")

    def default(self) -> ModelRef | None:
        """None."""

    def info(self, ref: ModelRef) -> ModelInfo:
        """A guess."""
        return ModelInfo(ref.name, _WINDOW, reply_limit(_WINDOW))

    async def learn(self, ref: ModelRef) -> ModelInfo:
        """A guess."""
        return self.info(ref)

    def list_models(self) -> tuple[FoundModel, ...]:
        """None."""
        return ()

    def serve(self, host: Provider, keys: MutableMapping[str, str]) -> Provider:
        """A provider that refuses each request."""
        del host, keys
        return _NoProvider()


class _NoProvider:
    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Refuse it."""
        del request
        raise ProviderError("not_found", _UNKNOWN, "Switch models with {model}.")
        yield  # a generator

    async def warm(self, model: ModelRef) -> None:
        """Nothing to prepare."""

    async def aclose(self) -> None:
        """Nothing to end."""


def own_local_models(settings: Settings, environ: Mapping[str, str]) -> LocalModels:
    """Those that a feature of the program brings."""
    brought = filter(None, (feature.local_models for feature in own_features()))
    if (name := next(brought, None)) is None:
        return NoLocalModels()
    make = cast("Callable[[Settings, Mapping[str, str]], LocalModels]", load_object(name))
    return make(settings, environ)
