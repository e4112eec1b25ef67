"""Asking models for a summary of a conversation of any length, until one manages it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_tui.compaction.model_client import ModelClient, RequestTracker, failure_of
from agent_tui.compaction.summary.validate import AcceptedSummary
from agent_tui.compaction.summary.writer import (
    SummaryJob,
    SummaryModel,
    SummaryWriter,
    UnusableReplyError,
)
from agent_tui.errors import CompactionError
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A document in the form asked for, and who wrote it.

    Args:
        text: The document.
        model: Who wrote it.
        usage: What all requests for it used; None where no model said so.
        failures: Which models failed before, one line each.
        problem: Why it must be completed from what the log says; empty if it need not.
        left_out: Messages that the model was not shown, because its window is too small.
    """

    text: str
    model: ModelRef
    usage: Usage | None
    failures: tuple[str, ...] = ()
    problem: str = ""
    left_out: int = 0


class NoSummaryError(CompactionError):
    """No model gave a usable summary; `failures` says why, one line a model."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("No model gave a usable summary: " + "; ".join(failures))
        self.failures = tuple(failures)


class Summariser:
    """Writes summaries with the first of several models that manages it."""

    def __init__(self, client: ModelClient, counter: TokenCounter) -> None:
        self._client = client
        self._counter = counter

    async def summarise(
        self, job: SummaryJob, models: Sequence[SummaryModel], tracker: RequestTracker
    ) -> WrittenSummary:
        """Try `models` in order; the first thin document is the answer where no other comes.

        Raises:
            NoSummaryError: none of them gave a usable document.
        """
        failures: list[str] = []
        draft: WrittenSummary | None = None
        for model in models:
            writer = SummaryWriter(self._client, self._counter, job, model, tracker)
            try:
                outcome = await writer.run()
            except (ProviderError, UnusableReplyError) as error:
                failures.append(failure_of(model.ref, error))
                continue
            if isinstance(outcome, AcceptedSummary):
                return WrittenSummary(
                    outcome.text,
                    model.ref,
                    tracker.total,
                    tuple(failures),
                    left_out=writer.left_out,
                )
            draft = draft or WrittenSummary(
                outcome.text,
                model.ref,
                tracker.total,
                problem=outcome.problem,
                left_out=writer.left_out,
            )
            failures.append(f"{model.ref.name}: {outcome.problem}")
        if draft is not None:
            return replace(draft, usage=tracker.total, failures=tuple(failures))
        raise NoSummaryError(failures)
