"""The providers that features and plugins bring."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias, cast, get_args

from agent_tui.feature import own_objects
from agent_tui.outside_code import is_fault
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
)
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.silence import SilenceLimits
from agent_tui.providers.transport.serving import Listener, WaitSigns, is_part_of_reply
from agent_tui.providers.wires.base import IdleTimeoutError


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """One of them.

    Attributes:
        build: Creates it, given the environment; nothing is started yet.
        models: Its models, by full names: ``<provider>/<model>``.
        via: Where its models are, as the picker shows it; empty hides them there.
    """

    build: Callable[[Mapping[str, str]], Provider]
    models: tuple[ModelInfo, ...]
    via: str = ""


StreamReply: TypeAlias = Callable[[ModelRequest], AsyncGenerator[Chunk, None]]


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider: ``NAME/...`` are its models.

    Attributes:
        name: The part of its models' names before the slash.
        models: What it offers; sizes in tokens, prices in US dollars per million tokens.
        stream: Answers a request in chunks, a `FinishChunk` last; an async generator, which is
            closed if the user stops it. What it raises should be a `ProviderError`.
        via: Where its models are, in a few words, as the list of models shows it.

    Raises:
        ValueError: A model's name does not begin with that of the provider, or has no window.
    """

    name: str
    models: tuple[ModelInfo, ...]
    stream: StreamReply
    via: str

    def __post_init__(self) -> None:
        """Check the models, which are found by their names."""
        for model in self.models:
            if not model.name.removeprefix(f"{self.name}/").strip() or not (
                model.name.startswith(f"{self.name}/")
            ):
                raise ValueError(f"the model {model.name!r} is not named {self.name}/...")
            if model.window <= 0 or model.max_output <= 0:
                raise ValueError(f"the model {model.name!r} needs a window and a max_output")


def providers_with(
    brought: Sequence[ModelProvider] = (), silence: SilenceLimits | None = None
) -> Mapping[str, OwnProvider]:
    """The providers of the program's features and of plugins, by name.

    Args:
        brought: Those of plugins.
        silence: How long one of them may send nothing, unless the request sets it.
    """
    limits = silence or SilenceLimits.without_bytes()
    of_features = cast("Iterator[ModelProvider]", own_objects("agent_tui.providers"))
    return {
        one.name: OwnProvider(
            lambda _environ, known=one: _Guarded(known, limits), one.models, one.via
        )
        for one in (*of_features, *brought)
    }


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A plugin's provider: whatever it does wrong is a `ProviderError`."""

    known: ModelProvider
    silence: SilenceLimits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`.

        Raises:
            ProviderError: It failed, was silent for too long, or ended without a `FinishChunk`.
        """
        has_finished = False
        listener = Listener(request.silence or self.silence)
        signs = WaitSigns(listener, request.on_wait)
        try:
            async with aclosing(self.known.stream(request)) as chunks:
                while (chunk := await listener.in_time(anext(chunks, None))) is not None:
                    if not isinstance(cast(object, chunk), get_args(Chunk)):
                        raise TypeError(f"{chunk!r} is no chunk")
                    if is_part_of_reply(chunk):
                        listener.understand()
                    has_finished |= isinstance(chunk, FinishChunk)
                    yield chunk
        except ProviderError:
            raise
        except IdleTimeoutError as error:
            raise provider_error(Fault("IdleTimeout", str(error)), request.model) from error
        except BaseException as error:
            if not is_fault(error):
                raise
            raise self._fault(f"{type(error).__name__}: {error}") from error
        finally:
            signs.stop()
        if not has_finished:
            raise self._fault("its reply has no FinishChunk")

    async def warm(self, model: ModelRef) -> None:
        """It prepares with its first request."""

    async def aclose(self) -> None:
        """Its requests are closed one by one."""

    def _fault(self, what: str) -> ProviderError:
        return ProviderError(
            "bad_request",
            f"The provider {self.known.name} failed: {what}.",
            "It comes from a plugin; tell its author, or choose another model.",
        )
