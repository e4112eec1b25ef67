"""What the catalog knows of ``local/<name>``: the models in this machine's library."""

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
"""Loads the model of this name if need be and tells what its server says of it."""


class LocalCatalog:
    """The models of a library by name.

    Args:
        library: Where they are; None for a program without.
        settings: ``[local]``.
        serve: Asked by `learn`; None where there is no server.
    """

    def __init__(
        self, library: ModelLibrary | None, settings: LocalSettings, serve: Serve | None
    ) -> None:
        self._library = library
        self._settings = settings
        self._serve = serve
        self._served: dict[str, ModelInfo] = {}

    def is_local(self, ref: ModelRef) -> bool:
        """Whether `ref` is run by the built-in server."""
        return ref.provider == LOCAL and not ref.base_url

    def has(self, name: str) -> bool:
        """Whether a model of the library is called `name`, its file there or not."""
        return self._find(name) is not None

    def resolve(self, name: str) -> ModelRef:
        """The model called `name`, with or without ``local/``.

        Raises:
            ConfigError: there is none, or its file is gone.
        """
        name = name.removeprefix(f"{LOCAL}/")
        try:
            model = self._library.find(name) if self._library else None
        except ModelFileError as error:
            raise ConfigError(error.message, error.hint) from error
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
        """``[local] model``, else the model that came last; None where there is none.

        Raises:
            ConfigError: the setting names none that is there.
        """
        if self._settings.model:
            return self.resolve(self._settings.model)
        newest = max(self._present(), key=self._added_at, default=None)
        return ModelRef(f"{LOCAL}/{newest.name}") if newest else None

    def info(self, ref: ModelRef) -> ModelInfo:
        """What is known of `ref`: what its server said, else what its file says."""
        if ref.name in self._served:
            return self._served[ref.name]
        model = self._find(ref.model_id)
        if model is None:
            return _info(ref.name, self._settings.context or DEFAULT_WINDOW, "native", "guess")
        window = model.window(self._settings.context)
        style: ToolStyle = "native" if model.knows_tools else "text"
        return replace(_info(ref.name, window, style, "table"), is_tiny=model.is_tiny)

    async def learn(self, ref: ModelRef) -> ModelInfo:
        """As `info`, after loading the model; what fails there shows with the request itself."""
        if self._serve is not None:
            try:
                served = await self._serve(ref.model_id)
            except AgentTuiError:
                return self.info(ref)
            style: ToolStyle = "native" if served.knows_tools else "text"
            told = _info(ref.name, served.window, style, "server")
            self._served[ref.name] = replace(told, is_tiny=self.info(ref).is_tiny)
        return self.info(ref)

    def found(self) -> tuple[FoundModel, ...]:
        """Every model whose file is there."""
        return tuple(
            FoundModel(ref, self.info(ref), _VIA, "ready", model.size_bytes)
            for model in self._present()
            for ref in (ModelRef(f"{LOCAL}/{model.name}"),)
        )

    def _added_at(self, model: LocalModel) -> tuple[float, str]:
        return self._library.added_at(model.name) if self._library else 0.0, model.name

    def _find(self, name: str) -> LocalModel | None:
        return next((model for model in self._models() if model.name == name), None)

    def _present(self) -> list[LocalModel]:
        return [model for model in self._models() if model.is_there]

    def _models(self) -> tuple[LocalModel, ...]:
        """The library's; none where it cannot be read, which a diagnosis tells."""
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
