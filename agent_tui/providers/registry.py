"""The providers that answer by themselves, without litellm: each one file and one line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from agent_tui.providers.base import ModelInfo, Provider
from agent_tui.providers.scripted.demo import DEMO_MODEL, DEMO_WINDOW, demo_reply
from agent_tui.providers.scripted.provider import ScriptedProvider


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """A provider of the program's own.

    Attributes:
        build: Makes it, given the environment; nothing is started yet.
        models: What it has, by full names: ``<provider>/<model>``.
        via: What the picker says of where they are; empty leaves them out of it.
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
"""By the name before the slash of their models."""
