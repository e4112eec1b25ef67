"""What the catalog knows about ``local/<name>``: the models in this machine's library."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from agent_tui.config import LocalSettings
from agent_tui.errors import AgentTuiError, ConfigError, ModelFileError
from agent_tui.local_models.library import ModelLibrary
from agent_tui.local_models.model import DEFAULT_WINDOW, LocalModel
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef, ToolStyle, reply_limit
from agent_tui.providers.local.server_messages import ServedLocal

LOCAL: Final = "local"
_VIA: Final = "this machine"


Serve: TypeAlias = Callable[[str], Awaitable[ServedLocal]]
"""Loads the model of this name if necessary and returns what its server reports."""


class LocalCatalog:
    """The models of a library by name.

    Args:
        library: Holds the models; None without local models.
        settings: The ``[local]`` section.
        serve: Used by `learn`; None if there is no server.
    """

    def __init__(
        self, library: ModelLibrary | None, settings: LocalSettings, serve: Serve | None
    ) -> None:
        self._library = library
        self._settings = settings
        self._serve = serve
        self._served: dict[str, ModelInfo] = {}

    def is_local(self, ref: ModelRef) -> bool:
        """Whether the built-in server runs `ref`."""
        return ref.provider == LOCAL and not ref.base_url

    def has(self, name: str) -> bool:
        """Whether the library has a model called `name`, even if its file is missing."""
        return self._find(name) is not None

    def resolve(self, name: str) -> ModelRef:
        """The model called `name`, with or without ``local/``.

        Raises:
            ConfigError: There is none, or its file is missing.
        """
        name = name.removeprefix(f"{LOCAL}/")
        try:
            model = self._library.find(name) if self._library else None
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
        if self._serve is not None:
            try:
                served = await self._serve(ref.model_id)
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

    def _time_added(self, model: LocalModel) -> tuple[float, str]:
        return self._library.time_added(model.name) if self._library else 0.0, model.name

    def _find(self, name: str) -> LocalModel | None:
        return next((model for model in self._models() if model.name == name), None)

    def _present(self) -> list[LocalModel]:
        return [model for model in self._models() if model.is_there]

    def _models(self) -> tuple[LocalModel, ...]:
        """The library's models; none if it cannot be read, which ``doctor`` reports."""
        try:
            return self._library.models() if self._library else ()
        except AgentTuiError:
            return ()


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
