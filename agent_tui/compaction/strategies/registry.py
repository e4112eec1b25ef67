"""The compaction strategies by name: each is the module of that name in this folder.

To add one, write such a module (see `base.StrategyModule`) and add its name to
`config.CompactionStrategy`. The settings, ``/compact --strategy``, its completion and the shell's
``compact --strategy`` follow.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from agent_tui.compaction.strategies.base import Strategy, StrategyModule, StrategyServices
from agent_tui.config import STRATEGY_NAMES, CompactionStrategy


def build_strategies(services: StrategyServices) -> Mapping[CompactionStrategy, Strategy]:
    """Every strategy, ready to plan."""
    return MappingProxyType({name: _module(name).build(services) for name in STRATEGY_NAMES})


def strategy_description(name: CompactionStrategy) -> str:
    """What a strategy does, in a few words for the user."""
    return _module(name).DESCRIPTION


def _module(name: CompactionStrategy) -> StrategyModule:
    return cast(StrategyModule, import_module(f"agent_tui.compaction.strategies.{name}"))
