"""Which models to ask in a compaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_tui.config import CompactionSettings
from agent_tui.errors import AgentTuiError
from agent_tui.providers.base import ModelInfo, ModelRef


class ModelLookup(Protocol):
    """Looks up models; the model catalog implements it."""

    def info(self, ref: ModelRef) -> ModelInfo:
        """The facts about a model."""
        ...

    def resolve(self, name: str) -> ModelRef:
        """The model that a setting names; raises `AgentTuiError` if it is unknown."""
        ...

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        """The cheap model of the same provider, if it has one."""
        ...


@dataclass(frozen=True, slots=True)
class SummaryModel:
    """A model that may be asked."""

    ref: ModelRef
    info: ModelInfo


@dataclass(frozen=True, slots=True)
class Candidates:
    """Models to try, in order and without duplicates, and what is wrong with the setting."""

    models: Sequence[SummaryModel]
    problems: tuple[str, ...] = ()


def candidates(lookup: ModelLookup, settings: CompactionSettings, model: ModelRef) -> Candidates:
    """The model in the settings, the cheap one of the same provider, and `model` itself."""
    problems: tuple[str, ...] = ()
    refs: list[ModelRef] = []
    if settings.model:
        try:
            refs.append(lookup.resolve(settings.model))
        except AgentTuiError as error:
            problems = (
                f"compaction.model = {settings.model!r}: {error.message.removesuffix('.')}",
            )
    cheap = lookup.cheap_model(model)
    refs.extend([cheap, model] if cheap is not None else [model])
    found = [SummaryModel(ref, lookup.info(ref)) for ref in dict.fromkeys(refs)]
    return Candidates(found, problems)
