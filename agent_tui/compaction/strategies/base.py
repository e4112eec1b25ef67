"""What every strategy is and gives: edits of earlier messages, and what they come to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import ModelClient, OnProgress, OnUsage
from agent_tui.compaction.result import CompactionResult
from agent_tui.compaction.summary.candidates import ModelLookup
from agent_tui.config import CompactionSettings, CompactionStrategy
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.tokens import TokenCounter

OnDecisions: TypeAlias = Callable[[Sequence[str]], None]
"""Called with one line for each message: what became of it, and why."""


@dataclass(frozen=True)
class StrategyPlan:
    """What frees part of a context. Sizes in estimated tokens of the next request.

    Args:
        edits: At most one for a message, in the order of the messages; all of one batch.
        tokens_before: Size of the next request as it is.
        tokens_after: Its size with `edits`.
        statistics: What was done to how many messages, by words a person understands.
        note: What the person should know besides; may be empty.
        summary: What stands for the messages before those that stay; None where there is none.
        summarised: How many messages it stands for.
        freed: What each tier freed, where tiers made the edits.
    """

    edits: tuple[ContextEditEntry, ...]
    tokens_before: int
    tokens_after: int
    statistics: Mapping[str, int]
    note: str = ""
    summary: CompactionResult | None = None
    summarised: int = 0
    freed: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def freed_tokens(self) -> int:
        """What goes, in all."""
        return self.tokens_before - self.tokens_after


SHORTEN_ALL = 1
"""As a target: everything that a strategy may make shorter."""


class Strategy(Protocol):
    """Turns a conversation into edits of it; writes nothing."""

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """The edits that bring `request` down to its target, or as near as they can.

        Cancel the task to give up; there is no side effect.

        Args:
            request: The conversation; ``target_tokens`` 0 is the strategy's own target.
            on_progress: Told of each step.
            on_usage: Told of every request to a model that was paid for.

        Raises:
            CompactionError: There is nothing that this strategy can do; the tiers take over.
        """
        ...


@dataclass(frozen=True, slots=True)
class StrategyServices:
    """What a strategy is built with.

    Args:
        client: Asks models; None for none.
        counter: Estimates tokens.
        models: Answers what is known of models.
        on_decisions: Told what became of which message, and why; None for no log.
    """

    client: ModelClient | None
    counter: TokenCounter
    models: ModelLookup
    on_decisions: OnDecisions | None = None


class StrategyModule(Protocol):
    """What the module (or package) of a strategy offers; it is called like the strategy."""

    DESCRIPTION: str
    """A few words for the person, beside the name."""

    def build(self, services: StrategyServices) -> Strategy:
        """The strategy, ready to plan."""
        ...


def target_when_asked(
    strategy: CompactionStrategy, used: int, settings: CompactionSettings, target: int
) -> int:
    """What a compaction that a person asks for by name comes down to, in tokens.

    That is `target`, as when it runs by itself. A context that is below it already is not what
    the person is content with: ``hybrid`` then shortens all that it may, and the others come down
    to the same part of what is used.
    """
    if used > target:
        return target
    return SHORTEN_ALL if strategy == "hybrid" else max(int(used * settings.target_share(used)), 1)
