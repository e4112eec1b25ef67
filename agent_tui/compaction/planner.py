"""Compaction as the rest of the program uses it: what it would come to, and what it comes to."""

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import ModelClient, OnProgress, OnUsage, uncounted
from agent_tui.compaction.outcome import Outcome, decide
from agent_tui.compaction.preview import CompactionPreview, make_preview
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.strategies.base import OnDecisions, StrategyServices
from agent_tui.compaction.strategies.registry import build_strategies
from agent_tui.compaction.summary.candidates import ModelLookup
from agent_tui.config import CompactionStrategy
from agent_tui.tokens import TokenCounter


class CompactionPlanner:
    """Plans compactions; whoever asks writes, prints or shows the outcome.

    Args:
        client: Asks models; None has everything done by code.
        counter: Counts tokens.
        models: Answers what is known of models.
        on_decisions: Told what strategies did to which message, for a log; None for no log.

    Attributes:
        service: Writes summaries, those of branches and ahead of time among them.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        *,
        on_decisions: OnDecisions | None = None,
    ) -> None:
        self.service = CompactionService(client, counter, models)
        self._strategies = build_strategies(StrategyServices(client, counter, models, on_decisions))
        self._without_model = build_strategies(StrategyServices(None, counter, models))
        self._counter = counter

    async def outcome(
        self,
        request: CompactionRequest,
        strategy: CompactionStrategy,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
    ) -> Outcome:
        """What comes of compacting `request`; no side effect. Cancel the task to give up.

        Raises:
            CompactionError: There is nothing to gain, or it went wrong.
        """
        return await decide(
            request, strategy, self._strategies, on_progress=on_progress, on_usage=on_usage
        )

    async def preview(
        self, request: CompactionRequest, strategy: CompactionStrategy
    ) -> CompactionPreview:
        """What that would be, as far as it can be known without asking a model."""
        return await make_preview(
            request,
            strategy,
            service=self.service,
            without_model=self._without_model,
            counter=self._counter,
        )
