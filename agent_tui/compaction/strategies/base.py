"""The interface of strategies: edits of earlier messages, and their effect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agent_tui.compaction.candidates import ModelLookup
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.request import CompactionRequest
from agent_tui.config import CompactionSettings
from agent_tui.providers.client import ModelClient, OnProgress, OnUsage
from agent_tui.tokens import TokenCounter

OnDecisions: TypeAlias = Callable[[Sequence[str]], None]
"""Called with one line per message: its new form, and why."""


SHORTEN_ALL = 1
"""As a target: shorten everything that a strategy may shorten."""


class Strategy(Protocol):
    """Turns a conversation into edits of it; writes nothing."""

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> Outcome:
        """Make the edits that reduce `request` to its target, or as near as possible.

        Cancel the task to stop; there is no side effect.

        Args:
            request: The conversation; ``target_tokens`` 0 means the strategy's own target.
            on_progress: Called for each step.
            on_usage: Called with the usage of every paid request.

        Raises:
            CompactionError: This strategy can do nothing; the tiers take over.
        """
        ...


@dataclass(frozen=True, slots=True)
class StrategyServices:
    """The services that a strategy is built from.

    Args:
        client: Asks models; None for none.
        counter: Estimates tokens.
        models: Looks up models.
        on_decisions: Takes each message's new form, and why; None for no log.
    """

    client: ModelClient | None
    counter: TokenCounter
    models: ModelLookup
    on_decisions: OnDecisions | None = None


@dataclass(frozen=True, slots=True)
class BuiltInStrategy:
    """A strategy that agent-tui ships; it is called as the variable that holds it.

    Attributes:
        description: A few words for the user, shown beside the name.
        build: Returns the strategy, ready to plan.
    """

    description: str
    build: Callable[[StrategyServices], Strategy]


def target_when_asked(strategy: str, used: int, settings: CompactionSettings, target: int) -> int:
    """The target, in tokens, of a compaction that the user requests by strategy name.

    It is `target`, as for automatic compaction. If the context is already below that, the user
    still wants less: ``hybrid`` then shortens everything it may, and the others apply the target's
    share to the tokens in use.
    """
    if used > target:
        return target
    return SHORTEN_ALL if strategy == "hybrid" else max(int(used * settings.target_share(used)), 1)
