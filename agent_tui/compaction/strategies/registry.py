"""The compaction strategies by name: each is the module of that name in this folder, or a plugin's.

To add one, write such a module (see `base.StrategyModule`) and add its name to
`BuiltInStrategy` in ``config/schema.py``. The settings, ``/compact --strategy``, its completion and
the shell's ``compact --strategy`` follow.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import cast

from agent_tui.compaction.strategies.base import Strategy, StrategyModule, StrategyServices
from agent_tui.compaction.strategies.brought import CompactionStrategy
from agent_tui.config import STRATEGY_NAMES
from agent_tui.errors import CompactionError


def build_strategies(
    services: StrategyServices, brought: Sequence[CompactionStrategy] = ()
) -> Mapping[str, Strategy]:
    """Every strategy, ready to plan; `brought` are those of plugins."""
    own = {name: _module(name).build(services) for name in STRATEGY_NAMES}
    return MappingProxyType({**own, **{one.name: one.build(services) for one in brought}})


def strategy_descriptions(brought: Sequence[CompactionStrategy] = ()) -> Mapping[str, str]:
    """What each strategy does, in a few words for the user, by name."""
    own = {name: _module(name).DESCRIPTION for name in STRATEGY_NAMES}
    return {**own, **{one.name: one.description for one in brought}}


def unknown_strategy(name: str, known: Collection[str]) -> str:
    """What is wrong with `name`, in whole sentences; empty if it is in `known`."""
    if name in known:
        return ""
    near = difflib.get_close_matches(name, known, n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    return f"There is no compaction strategy {name!r}.{meant} Available: {', '.join(known)}."


def strategy_named(name: str, strategies: Mapping[str, Strategy]) -> Strategy:
    """The one of `strategies` that is called `name`.

    Raises:
        CompactionError: There is none; names those that there are.
    """
    if problem := unknown_strategy(name, strategies):
        raise CompactionError(problem)
    return strategies[name]


def _module(name: str) -> StrategyModule:
    return cast(StrategyModule, import_module(f"agent_tui.compaction.strategies.{name}"))
