"""The models a run can ask: one provider for all of them, and what is known of each."""

import secrets
from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import ConfigError, UsageError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.providers.adapting import AdaptingProvider
from agent_tui.providers.base import ModelRef
from agent_tui.providers.budget import Budget
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.local.pool import LocalServers
from agent_tui.providers.local.provider import KEY_VARIABLE, LocalProvider
from agent_tui.providers.registry import OWN_PROVIDERS
from agent_tui.providers.routed import RoutedProvider
from agent_tui.providers.silence import SilenceLimits

NO_MODEL = ModelRef("")
"""Stands in until the person has chosen a model."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """The way to every model.

    Attributes:
        provider: Asks a model, whichever it is; starts its processes when they are needed.
        host: Asks models elsewhere; starts litellm's process for those without a wire of ours.
        catalog: What models there are and what is known of them.
        library: The models on this machine.
    """

    provider: AdaptingProvider
    host: ProviderHost
    catalog: ModelCatalog
    library: ModelLibrary


def open_models(
    settings: Settings, environ: MutableMapping[str, str], budget: Budget | None = None
) -> ModelAccess:
    """The way to every model under `settings`, while `budget` lasts; nothing is started yet.

    A key that is put into `environ` later is seen at once, and by litellm's process once it
    starts again.
    """
    library = ModelLibrary(paths.models_dir())
    local_key = secrets.token_urlsafe(24)
    host = ProviderHost(
        log_path=paths.log_file(),
        silence=SilenceLimits.without_bytes(
            settings.request_idle_timeout_s, settings.loopback_idle_timeout_s
        ),
        environ=ChainMap({KEY_VARIABLE: local_key}, environ),
        known=lambda name: catalog.entry(name),
    )
    servers = LocalServers(library, settings.local, paths.log_file(), local_key, environ=environ)
    local = LocalProvider(host, servers)
    catalog = ModelCatalog(settings, environ, library=library, served=local.served)
    own = {name: provider.build(environ) for name, provider in OWN_PROVIDERS.items()}
    provider = AdaptingProvider(RoutedProvider(host, local, own), catalog.info, budget)
    return ModelAccess(provider, host, catalog, library)


def first_model(
    catalog: ModelCatalog, *, is_named: bool, is_local: bool = False
) -> tuple[ModelRef, str]:
    """The model to begin with, and what is wrong with the one in the settings.

    Args:
        catalog: The models.
        is_named: The command line names the model, so that a wrong name is a wrong use.
        is_local: It is to be one of this machine.

    Raises:
        UsageError: the model named on the command line does not exist.
    """
    try:
        chosen = catalog.local.default() if is_local else catalog.default_model()
        return chosen or NO_MODEL, ""
    except ConfigError as error:
        if is_named:
            raise UsageError(error.message, error.hint) from error
        return NO_MODEL, str(error)
