"""The models a run can call: one provider for all of them, and what is known of each."""

import asyncio
import secrets
from collections import ChainMap
from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import IN_CHAT, ConfigError, UsageError, Ways
from agent_tui.local_models.library import ModelLibrary
from agent_tui.providers.adapting import AdaptingProvider
from agent_tui.providers.base import Chunk, ModelRef, ModelRequest, Provider
from agent_tui.providers.brought import ModelProvider, providers_with
from agent_tui.providers.budget import Budget
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.local.pool import LocalServers
from agent_tui.providers.local.provider import KEY_VARIABLE, LocalProvider
from agent_tui.providers.silence import SilenceLimits

NO_MODEL = ModelRef("")
"""Used until the user has chosen a model."""


class RoutedProvider:
    """Routes ``local/...`` and the models of `own` providers to them, all others to the host.

    A name with a ``base_url`` belongs to that server, whatever its prefix.
    """

    def __init__(
        self, host: ProviderHost, local: LocalProvider, own: Mapping[str, Provider]
    ) -> None:
        self._host = host
        self._local = local
        self._by_name: dict[str, Provider] = {**own, "local": local}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Provider.stream`."""
        async with aclosing(self._provider_of(request.model).stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def prefill(self, request: ModelRequest) -> None:
        """See `LocalProvider.prefill`; does nothing for other models."""
        if self._provider_of(request.model) is self._local:
            await self._local.prefill(request)

    async def warm(self, model: ModelRef) -> None:
        """See `ProviderHost.warm`; others need no process, or load on the first request."""
        if self._provider_of(model) is self._host:
            await self._host.warm(model)

    async def aclose(self) -> None:
        """See `Provider.aclose`."""
        providers = (self._host, *self._by_name.values())
        await asyncio.gather(*(provider.aclose() for provider in providers))

    def _provider_of(self, model: ModelRef) -> Provider:
        if model.base_url:
            return self._host
        return self._by_name.get(model.provider, self._host)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Access to every model.

    Attributes:
        provider: Calls any model; starts its processes when they are needed.
        host: Calls remote models; starts litellm's process for those without one of our wires.
        catalog: The known models and their properties.
        library: The models on this machine.
        settings: Those it was opened under.
        environ: The environment with the keys.
        ways: Those of whoever reads the errors.
    """

    provider: AdaptingProvider
    host: ProviderHost
    catalog: ModelCatalog
    library: ModelLibrary
    settings: Settings
    environ: Mapping[str, str]
    ways: Ways


def open_models(
    settings: Settings,
    environ: MutableMapping[str, str],
    budget: Budget | None = None,
    ways: Ways = IN_CHAT,
    brought: Sequence[ModelProvider] = (),
) -> ModelAccess:
    """Open access to every model under `settings`, within `budget`; nothing is started yet.

    A key added to `environ` later takes effect at once, and in litellm's process when it restarts.
    The errors of requests advise in `ways`; `brought` are the providers of plugins.
    """
    library = ModelLibrary(paths.models_dir())
    local_key = secrets.token_urlsafe(24)
    silence = SilenceLimits.without_bytes(
        settings.request_idle_timeout_s, settings.loopback_idle_timeout_s
    )
    host = ProviderHost(
        log_path=paths.log_file(),
        silence=silence,
        environ=ChainMap({KEY_VARIABLE: local_key}, environ),
        known=lambda name: catalog.entry(name),
    )
    servers = LocalServers(library, settings.local, paths.log_file(), local_key, environ=environ)
    local = LocalProvider(host, servers)
    own = providers_with(brought, silence)
    catalog = ModelCatalog(settings, environ, library=library, served=local.served, own=own)
    built = {name: provider.build(environ) for name, provider in own.items()}
    provider = AdaptingProvider(RoutedProvider(host, local, built), catalog.info, budget, ways)
    return ModelAccess(provider, host, catalog, library, settings, environ, ways)


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
