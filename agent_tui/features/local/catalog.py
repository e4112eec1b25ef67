"""What the catalog knows about ``local/<name>``: the models in this machine's library."""

import os
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from agent_tui import paths
from agent_tui.config import Settings
from agent_tui.errors import AgentTuiError, ConfigError, ModelFileError
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import DEFAULT_WINDOW, LocalModel
from agent_tui.features.local.server_messages import ServedLocal
from agent_tui.features.local.settings import LocalSection, LocalSettings
from agent_tui.providers.base import (
    LOCAL,
    FoundModel,
    ModelInfo,
    ModelRef,
    Provider,
    ToolStyle,
    reply_limit,
)

_VIA: Final = "this machine"


Load: TypeAlias = Callable[[str], Awaitable[ServedLocal]]
"""Loads the model of this name if necessary and returns what its server reports."""


class LocalCatalog:
    """The models of a library by name.

    Args:
        library: Holds the models.
        settings: The ``[local]`` section.
        environ: The environment of the servers, which get no key of it.
        load: Used by `learn`; None until `serve` is called.
    """

    def __init__(
        self,
        library: ModelLibrary,
        settings: LocalSettings,
        environ: Mapping[str, str] = os.environ,
        load: Load | None = None,
    ) -> None:
        self._library = library
        self._settings = settings
        self._environ = environ
        self._load = load
        self._served: dict[str, ModelInfo] = {}

    def names(self) -> Collection[str]:
        """All names, those of models with a missing file among them; none if unreadable."""
        return [model.name for model in self._models()]

    def resolve(self, name: str) -> ModelRef:
        """The model called `name`, with or without ``local/``.

        Raises:
            ConfigError: There is none, or its file is missing.
        """
        name = name.removeprefix(f"{LOCAL}/")
        try:
            model = self._library.find(name)
        except ModelFileError as error:
            raise ConfigError(error.message, error.advice) from error
        if model is None:
            names = ", ".join(f"{LOCAL}/{m.name}" for m in self._models())
            there = f"Available: {names}. " if names else ""
            raise ConfigError(
                f"No local model named {name!r}.",
                f"{there}agent-tui models list lists all, agent-tui models pull downloads one.",
            )
        if not model.is_there:
            raise ConfigError(
                f"The file of {LOCAL}/{name} is missing: {model.path}.",
                model.recovery_hint,
            )
        return ModelRef(f"{LOCAL}/{name}")

    def default(self) -> ModelRef | None:
        """The model of ``[local] model``, else the newest one; None if there is none.

        Raises:
            ConfigError: The setting names a model that does not exist.
        """
        if self._settings.model:
            return self.resolve(self._settings.model)
        newest = max(self._present(), key=self._time_added, default=None)
        return ModelRef(f"{LOCAL}/{newest.name}") if newest else None

    def info(self, ref: ModelRef) -> ModelInfo:
        """What is known of `ref`: from its server, else from its file."""
        if ref.name in self._served:
            return self._served[ref.name]
        model = self._find(ref.model_id)
        if model is None:
            return _info(ref.name, self._settings.context or DEFAULT_WINDOW, "native", "guess")
        window = model.window(self._settings.context)
        style: ToolStyle = "native" if model.knows_tools else "text"
        return replace(_info(ref.name, window, style, "table"), is_tiny=model.is_tiny)

    async def learn(self, ref: ModelRef) -> ModelInfo:
        """As `info`, after loading the model; the request itself will show a failure."""
        if self._load is not None:
            try:
                served = await self._load(ref.model_id)
            except AgentTuiError:
                return self.info(ref)
            style: ToolStyle = "native" if served.knows_tools else "text"
            told = _info(ref.name, served.window, style, "server")
            self._served[ref.name] = replace(told, is_tiny=self.info(ref).is_tiny)
        return self.info(ref)

    def list_models(self) -> tuple[FoundModel, ...]:
        """Every model whose file exists."""
        return tuple(
            FoundModel(ref, self.info(ref), _VIA, "ready", model.size_bytes)
            for model in self._present()
            for ref in (ModelRef(f"{LOCAL}/{model.name}"),)
        )

    def serve(self, host: Provider, keys: MutableMapping[str, str]) -> Provider:
        """The provider that runs them; from now on, `learn` loads a model.

        Args:
            host: Sends the requests to the servers.
            keys: Takes the servers' key, by its variable.
        """
        from agent_tui.features.local.pool import LocalServers  # processes: only where needed
        from agent_tui.features.local.provider import KEY_VARIABLE, LocalProvider

        keys[KEY_VARIABLE] = key = secrets.token_urlsafe(24)
        servers = LocalServers(
            self._library, self._settings, paths.log_file(), key, environ=self._environ
        )
        provider = LocalProvider(host, servers)
        self._load = provider.start_server
        return provider

    def _time_added(self, model: LocalModel) -> tuple[float, str]:
        return self._library.time_added(model.name), model.name

    def _find(self, name: str) -> LocalModel | None:
        return next((model for model in self._models() if model.name == name), None)

    def _present(self) -> list[LocalModel]:
        return [model for model in self._models() if model.is_there]

    def _models(self) -> tuple[LocalModel, ...]:
        """The library's models; none if it cannot be read, which ``doctor`` reports."""
        try:
            return self._library.models()
        except AgentTuiError:
            return ()


def make_local_models(settings: Settings, environ: Mapping[str, str]) -> LocalCatalog:
    """Make the `LocalModels` of the library in the data folder."""
    return LocalCatalog(ModelLibrary(paths.models_dir()), settings.of(LocalSection).local, environ)


def _info(
    name: str, window: int, style: ToolStyle, source: Literal["server", "table", "guess"]
) -> ModelInfo:
    return ModelInfo(
        name=name,
        window=window,
        max_output=reply_limit(window),
        source=source,
        tool_style=style,
        writes_calls=True,
        takes_schema=True,
        takes_grammar=True,
    )
