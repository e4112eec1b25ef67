"""The providers that answer without litellm: each is one file and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from agent_tui.providers.base import ModelInfo, Provider
from agent_tui.providers.scripted.demo import DEMO_MODEL, DEMO_WINDOW, demo_reply
from agent_tui.providers.scripted.provider import ScriptedProvider


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """One of the program's own providers.

    Attributes:
        build: Creates it, given the environment; nothing is started yet.
        models: Its models, by full names: ``<provider>/<model>``.
        via: Where its models are, as the picker shows it; empty hides them there.
    """

    build: Callable[[Mapping[str, str]], Provider]
    models: tuple[ModelInfo, ...]
    via: str = ""


_TOUR: Final = ModelInfo(DEMO_MODEL.name, DEMO_WINDOW, DEMO_WINDOW // 8, source="table")

OWN_PROVIDERS: Final[Mapping[str, OwnProvider]] = MappingProxyType(
    {
        "scripted": OwnProvider(lambda _environ: ScriptedProvider(demo_reply), (_TOUR,)),
    }
)
"""By the name before the slash in their models."""
