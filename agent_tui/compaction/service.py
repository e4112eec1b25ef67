"""Compaction from a session's entries to a finished result; writes nothing."""

import asyncio

from agent_tui.compaction.branch import BranchRequest, BranchSummary, draft_branch
from agent_tui.compaction.draft import (
    CompactionRequest,
    Draft,
    make_draft,
    summary_tokens,
)
from agent_tui.compaction.model_client import OnProgress, OnUsage, Spending
from agent_tui.compaction.result import CompactionResult
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.compaction.summary.prose import Prose, finished_prose
from agent_tui.compaction.summary.summariser import NoSummaryError, Summariser, WrittenSummary
from agent_tui.compaction.summary.templates import Template, template_named
from agent_tui.compaction.summary.writer import SummaryJob
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef, Provider
from agent_tui.providers.retry import Sleep
from agent_tui.sessions.entries import Carryover
from agent_tui.tokens import TokenCounter


def _uncounted(usage: Usage) -> None:
    """For callers that keep no account."""


class CompactionService:
    """Plans, summarises (with a model or without) and puts the result together.

    Args:
        provider: Where summaries come from; None has them written by code.
        counter: Counts tokens.
        models: Answers what is known of models.
        settings: How much stays, who summarises, and in what form.
        sleep: Waits before a request is tried again.
    """

    def __init__(
        self,
        provider: Provider | None,
        counter: TokenCounter,
        models: ModelLookup,
        settings: CompactionSettings,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._summariser = Summariser(provider, counter, sleep) if provider is not None else None
        self._counter = counter
        self._models = models
        self._settings = settings
        self._template: Template = template_named(settings.template)

    def use_settings(self, settings: CompactionSettings) -> None:
        """Go by `settings` from the next compaction on."""
        self._settings = settings
        self._template = template_named(settings.template)

    async def compact(
        self,
        request: CompactionRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = _uncounted,
    ) -> CompactionResult:
        """Compact `request` without any side effect; cancel the task to give up.

        Args:
            request: The conversation.
            on_progress: Told of each step.
            on_usage: Told of every request that was paid for, whatever comes of it.

        Raises:
            CompactionError: there is nothing to compact, or the result would not be smaller.
        """
        on_progress("reading the conversation", 0)
        draft = await asyncio.to_thread(self.draft, request)
        return await self.finish(request, draft, on_progress, on_usage)

    def draft(self, request: CompactionRequest, earlier: Draft | None = None) -> Draft:
        """All of a compaction but the prose; takes a moment, but asks no model.

        Args:
            request: The conversation.
            earlier: An older draft of it, whose cut is taken again if it still will do.

        Raises:
            NothingToCompactError: A summary would gain nothing.
        """
        return make_draft(request, counter=self._counter, settings=self._settings, earlier=earlier)

    def expected_tokens(self, request: CompactionRequest, draft: Draft) -> int:
        """Size of the next request after `draft`, with prose as long as it should be."""
        kept = request.overhead_tokens + draft.plan.kept_tokens
        return kept + summary_tokens(draft.fact_blocks, self._counter) + draft.wanted_tokens

    async def write_ahead(
        self, request: CompactionRequest, draft: Draft, on_usage: OnUsage
    ) -> WrittenSummary | None:
        """The prose that `draft` lacks, for `finish` later on; None where no model gave one."""
        spending = Spending(on_usage)
        job = self._job(request, draft)
        written, _ = await self._write(job, request.model, lambda _phase, _chars: None, spending)
        return written

    async def finish(
        self,
        request: CompactionRequest,
        draft: Draft,
        on_progress: OnProgress,
        on_usage: OnUsage = _uncounted,
        written: WrittenSummary | None = None,
    ) -> CompactionResult:
        """`draft` with its prose: `written` if there is one, else what is written now.

        Raises:
            CompactionError: The result would not be smaller.
        """
        if written is not None:
            failures, usage = written.failures, written.usage
        else:
            spending = Spending(on_usage)
            job = self._job(request, draft)
            written, failures = await self._write(job, request.model, on_progress, spending)
            usage = spending.total
        prose = await asyncio.to_thread(
            finished_prose,
            written,
            failures,
            draft.log_facts,
            template=self._template,
            counter=self._counter,
            max_tokens=draft.max_tokens,
        )
        return self._result(request, draft, prose, usage)

    async def summarise_branch(
        self,
        request: BranchRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = _uncounted,
    ) -> BranchSummary:
        """Sum up a branch that is being left; without any side effect, like `compact`.

        Raises:
            NothingToCompactError: No reply is left behind.
        """
        on_progress("reading what is left", 0)
        draft = await asyncio.to_thread(
            draft_branch,
            request,
            counter=self._counter,
            settings=self._settings,
            template=self._template,
        )
        spending = Spending(on_usage)
        written, failures = await self._write(draft.job, request.model, on_progress, spending)
        prose = await asyncio.to_thread(
            finished_prose,
            written,
            failures,
            draft.log_facts,
            template=self._template,
            counter=self._counter,
            max_tokens=draft.job.max_tokens,
        )
        text = "\n\n".join(part for part in (prose.text, draft.fact_blocks) if part)
        return BranchSummary(text, prose.note, spending.total)

    def _job(self, request: CompactionRequest, draft: Draft) -> SummaryJob:
        return SummaryJob(
            messages=draft.messages,
            previous_prose=draft.log_facts.previous_prose,
            source=draft.source,
            focus=request.focus,
            template=self._template,
            wanted_tokens=draft.wanted_tokens,
            max_tokens=draft.max_tokens,
            splits_turn=draft.plan.splits_turn,
        )

    async def _write(
        self,
        job: SummaryJob,
        model: ModelRef,
        on_progress: OnProgress,
        spending: Spending,
    ) -> tuple[WrittenSummary | None, tuple[str, ...]]:
        """A model's summary, or None, and what went wrong on the way."""
        if self._summariser is None:
            return None, ()
        found = candidates(self._models, self._settings, model)
        problems = found.problems
        try:
            written = await self._summariser.summarise(job, found.models, on_progress, spending)
        except NoSummaryError as error:
            return None, (*problems, *error.failures)
        return written, (*problems, *written.failures)

    def _result(
        self, request: CompactionRequest, draft: Draft, prose: Prose, usage: Usage | None
    ) -> CompactionResult:
        plan, ledger, written = draft.plan, draft.log_facts.ledger, prose.written
        summary = "\n\n".join(text for text in (prose.text, draft.fact_blocks) if text)
        kept = request.overhead_tokens + plan.kept_tokens
        estimated_before = kept + draft.replaced_tokens
        estimated_after = kept + summary_tokens(summary, self._counter)
        if estimated_after >= estimated_before:
            raise CompactionError("Nothing to compact: the summary would not be smaller.")
        return CompactionResult(
            summary=summary,
            first_kept_entry_id=plan.first_kept_entry_id,
            kept_entries=plan.kept_entries,
            tokens_before=request.tokens_before,
            tokens_after=request.tokens_before * estimated_after // estimated_before,
            carryover=Carryover(
                lastSummary=summary,
                read_files=tuple(sorted(ledger.read_files)),
                modified_files=tuple(sorted(ledger.modified_files)),
                ledger=ledger,
            ),
            summarised_by=written.model.name if written else "",
            is_fallback=written is None,
            usage=usage,
            note=prose.note,
            focus=request.focus,
        )
