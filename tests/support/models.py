"""The models of a machine: what a catalogue finds by its keys and servers, without either."""

from collections.abc import Mapping

from agent_tui.commands.core.front import CommandServices
from agent_tui.commands.core.known_models import KnownModels
from agent_tui.errors import SessionError
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef

MODEL = ModelRef("anthropic/claude-sonnet")
INFO = ModelInfo(MODEL.name, 200_000, 64_000, 3.0, 15.0, sees_images=True, source="table")
OTHER = ModelRef("openai/gpt-large", api_key_env="OPENAI_API_KEY")
OTHER_INFO = ModelInfo(OTHER.name, 400_000, 128_000, 1.25, 10.0, source="table")
LOCAL = ModelRef("ollama/small-coder", base_url="http://127.0.0.1:11434")
LOCAL_INFO = ModelInfo(LOCAL.name, 32_768, 8_192, source="server")


class ListedModels:
    """Three models: two with keys, one on a local server.

    Args:
        nothing: Neither a key is set nor a server answers.
        infos: What is known of models, where it is not what is known of these three.
    """

    def __init__(
        self, *, nothing: bool = False, infos: Mapping[str, ModelInfo] | None = None
    ) -> None:
        self._nothing = nothing
        self._infos = {MODEL.name: INFO, OTHER.name: OTHER_INFO, **(infos or {})}

    def resolve(self, name: str) -> ModelRef:
        for ref in (MODEL, OTHER, LOCAL):
            if name in ref.name:
                return ref
        raise SessionError(f"No model is called {name}.", "Did you mean openai/gpt-large?")

    def info(self, ref: ModelRef) -> ModelInfo:
        return self._infos.get(ref.name, LOCAL_INFO)

    async def learn(self, ref: ModelRef) -> ModelInfo:
        return self.info(ref)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return None

    async def list_models(self) -> tuple[FoundModel, ...]:
        if self._nothing:
            return ()
        return (
            FoundModel(OTHER, OTHER_INFO, "OPENAI_API_KEY"),
            FoundModel(MODEL, self.info(MODEL), "ANTHROPIC_API_KEY"),
            FoundModel(LOCAL, LOCAL_INFO, "Ollama at 127.0.0.1:11434"),
        )


def listed_services() -> CommandServices:
    """What commands work on, with `ListedModels` and nothing else."""
    return CommandServices(ListedModels(), KnownModels())
