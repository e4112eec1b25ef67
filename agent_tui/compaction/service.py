"""Compaction from a session's entries to a finished result; writes nothing."""

import asyncio
from dataclasses import replace
from functools import partial

from agent_tui.compaction.branch import BranchRequest, BranchSummary, draft_branch
from agent_tui.compaction.curation.curator import Choice, Curator, NoChoice
from agent_tui.compaction.curation.proof import Proof
from agent_tui.compaction.draft import (
    CompactionRequest,
    Draft,
    ModelsPart,
    make_ask,
    make_draft,
    prove_choice,
    summary_tokens,
)
from agent_tui.compaction.model_client import (
    ModelClient,
    OnProgress,
    OnUsage,
    RequestTracker,
    uncounted,
)
from agent_tui.compaction.proposal import Proposal
from agent_tui.compaction.result import CompactionResult
from agent_tui.compaction.strategies.in_place import shorten_in_place, shortening_does
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.compaction.summary.fallback import fallback_summary
from agent_tui.compaction.summary.prose import Prose, earlier_prose, finished_prose
from agent_tui.compaction.summary.summariser import NoSummaryError, Summariser, WrittenSummary
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.summary.validate import SummaryJudge
from agent_tui.compaction.summary.writer import SummaryJob
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelInfo, ModelRef, ModelRequest
from agent_tui.sessions.entries import Carryover
from agent_tui.tokens import TokenCounter

_LEAST_WINDOW = 32_000
"""Tokens. In a smaller one, the question what to keep takes too much of what there is."""


_NOT_ASKED = "the question would not fit in the context window of a model"


class CompactionService:
    """Plans, summarises (with a model or without) and puts the result together.

    Args:
        client: Asks the models that write summaries; None has them written by code.
        counter: Counts tokens.
        models: Answers what is known of models.
    """

    def __init__(
        self, client: ModelClient | None, counter: TokenCounter, models: ModelLookup
    ) -> None:
        self._summariser = Summariser(client, counter) if client is not None else None
        self._curator = Curator(client, counter) if client is not None else None
        self._counter = counter
        self._models = models

    @property
    def has_model(self) -> bool:
        """Whether a model writes the summaries."""
        return self._summariser is not None

    def reader(self, settings: CompactionSettings, model: ModelRef) -> ModelInfo | None:
        """Who is asked first what to keep where nothing of a conversation with `model` is cached.

        None if no model is.
        """
        if self._curator is None:
            return None
        return next((one.info for one in candidates(self._models, settings, model).models), None)

    def summary_tokens(self, summary: str) -> int:
        """What `summary` takes in the context."""
        return summary_tokens(summary, self._counter)

    async def compact(
        self,
        request: CompactionRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
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

    def draft(self, request: CompactionRequest) -> Draft:
        """All of a compaction but the prose; takes a moment, but asks no model.

        Raises:
            NothingToCompactError: A summary would gain nothing.
        """
        is_without = self._summariser is None
        return make_draft(replace(request, is_without_model=is_without), counter=self._counter)

    def needs_summary(self, request: CompactionRequest) -> bool:
        """Whether shorter messages alone would not do."""
        return not shortening_does(shorten_in_place(request, self._counter), request.target_tokens)

    def expected_tokens(self, request: CompactionRequest, draft: Draft) -> int:
        """Size of the next request after `draft`, with prose as long as it should be."""
        prose = draft.wanted_tokens if self.has_model else 0
        kept = request.overhead_tokens + draft.plan.kept_tokens
        return kept + summary_tokens(draft.summary(""), self._counter) + prose

    async def write_ahead(
        self, request: CompactionRequest, draft: Draft, on_usage: OnUsage
    ) -> ModelsPart | None:
        """What a model adds to `draft`, for `finish` later on; None where none did."""
        tracker = RequestTracker(lambda _phase, _chars: None, on_usage)
        found = await self._choose(request, draft, tracker)
        if found is not None:
            return found if isinstance(found, Choice) else None
        written, _ = await self._write(self._job(request, draft), request, tracker)
        return written

    async def propose(
        self,
        request: CompactionRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
        *,
        asks_model: bool = True,
    ) -> Proposal:
        """What compacting `request` would keep, for the person to decide about.

        Args:
            request: The conversation.
            on_progress: Told of each step.
            on_usage: Told of every request that was paid for.
            asks_model: Whether a model says what it needs.

        Raises:
            NothingToCompactError: A summary would gain nothing.
        """
        draft = await asyncio.to_thread(self.draft, request)
        template = template_named(request.settings.template)
        ask = await asyncio.to_thread(make_ask, request, template=template, counter=self._counter)
        proposal = Proposal(draft, ask)
        if not asks_model:
            return proposal
        found = await self._choose(request, draft, RequestTracker(on_progress, on_usage))
        match found:
            case Choice():
                return replace(proposal, choice=found)
            case NoChoice(problems=problems):
                return replace(proposal, problem="; ".join(problems))
            case None:
                return replace(proposal, problem=_NOT_ASKED)

    async def finish(
        self,
        request: CompactionRequest,
        draft: Draft,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
        written: ModelsPart | None = None,
    ) -> CompactionResult:
        """`draft` with what a model adds to it: `written` if there is that, else what it says now.

        Raises:
            CompactionError: The result would not be smaller.
        """
        tracker = RequestTracker(on_progress, on_usage)
        proof = Proof()
        found = written or await self._choose(request, draft, tracker)
        match found:
            case Choice():
                draft, proof = await asyncio.to_thread(self._chosen, request, found)
                problems = found.failures
                written = WrittenSummary(
                    found.notes, found.model, found.usage, problems, found.problem
                )
            case WrittenSummary():
                written, problems = found, found.failures
            case NoChoice(problems=problems):
                written = None
            case None:
                job = self._job(request, draft)
                written, problems = await self._write(job, request, tracker)
        prose = await asyncio.to_thread(
            finished_prose,
            written,
            problems,
            template=template_named(request.settings.template),
            without_model=partial(
                earlier_prose,
                draft.previous_prose,
                template=template_named(request.settings.template),
                counter=self._counter,
                max_tokens=draft.max_tokens,
            ),
        )
        usage = tracker.total or (written.usage if written is not None else None)
        result = await asyncio.to_thread(self._result, request, draft, prose, usage)
        if sentence := proof.sentence:
            note = f"{sentence[0].upper()}{sentence[1:]}. {result.note}".strip()
            result = replace(result, note=note)
        return result

    def _chosen(self, request: CompactionRequest, choice: Choice) -> tuple[Draft, Proof]:
        """The draft with what `choice` keeps, and with what steps since then would have missed."""
        draft = self.draft(replace(request, choice=choice))
        proof = prove_choice(request, choice, draft)
        if proof.brought_back:
            choice = replace(choice, picks=(*proof.brought_back, *choice.picks))
            draft = self.draft(replace(request, choice=choice))
        return draft, proof

    async def _choose(
        self, request: CompactionRequest, draft: Draft, tracker: RequestTracker
    ) -> Choice | NoChoice | None:
        """What a model wants kept; None where none is asked, as it does not fit.

        That is the model of the conversation, unless the settings name another; where one cannot
        be reached, the next.
        """
        if self._curator is None or request.window < _LEAST_WINDOW:
            return None
        template = template_named(request.settings.template)
        ask = await asyncio.to_thread(make_ask, request, template=template, counter=self._counter)
        judge = SummaryJudge(template, draft.source, self._counter, ask.budget.notes)
        found = candidates(self._models, request.settings, request.model)
        ways: list[tuple[ModelRequest | None, ModelRef, int]] = [
            (None, model.ref, model.info.window) for model in found.models
        ]
        if request.live is not None:
            ways.insert(0, (request.live, request.model, request.window))
        problems, is_asked, out_of_reach = found.problems, False, set[ModelRef]()
        for live, model, window in ways:
            if model in out_of_reach:
                continue
            choice = await self._curator.choose(live, model, window, ask, judge, tracker)
            match choice:
                case Choice():
                    return replace(choice, failures=(*problems, *choice.failures))
                case NoChoice():
                    problems, is_asked = (*problems, *choice.problems), True
                    out_of_reach.add(model)
                    if live is not None and choice.has_answered:
                        break  # code knows more than a model that was not there
                case None:
                    pass
        return NoChoice(problems, has_answered=False) if is_asked else None

    async def summarise_branch(
        self,
        request: BranchRequest,
        on_progress: OnProgress,
        on_usage: OnUsage = uncounted,
    ) -> BranchSummary:
        """Sum up a branch that is being left; without any side effect, like `compact`.

        Raises:
            NothingToCompactError: No reply is left behind.
        """
        on_progress("reading the branch", 0)
        draft = await asyncio.to_thread(draft_branch, request, counter=self._counter)
        tracker = RequestTracker(on_progress, on_usage)
        written, failures = await self._write(draft.job, request, tracker)
        prose = await asyncio.to_thread(
            finished_prose,
            written,
            failures,
            template=draft.job.template,
            without_model=partial(
                fallback_summary,
                draft.log_facts,
                counter=self._counter,
                max_tokens=draft.job.max_tokens,
            ),
        )
        text = "\n\n".join(part for part in (prose.text, draft.fact_blocks) if part)
        return BranchSummary(text, prose.note, tracker.total)

    def _job(self, request: CompactionRequest, draft: Draft) -> SummaryJob:
        return SummaryJob(
            messages=draft.messages,
            previous_prose=draft.previous_prose,
            source=draft.source,
            focus=request.focus,
            template=template_named(request.settings.template),
            wanted_tokens=draft.wanted_tokens,
            max_tokens=draft.max_tokens,
            splits_turn=draft.plan.splits_turn,
        )

    async def _write(
        self,
        job: SummaryJob,
        request: CompactionRequest | BranchRequest,
        tracker: RequestTracker,
    ) -> tuple[WrittenSummary | None, tuple[str, ...]]:
        """A model's summary, or None, and what went wrong on the way."""
        if self._summariser is None:
            return None, ()
        found = candidates(self._models, request.settings, request.model)
        problems = found.problems
        try:
            written = await self._summariser.summarise(job, found.models, tracker)
        except NoSummaryError as error:
            return None, (*problems, *error.failures)
        return written, (*problems, *written.failures)

    def _result(
        self, request: CompactionRequest, draft: Draft, prose: Prose, usage: Usage | None
    ) -> CompactionResult:
        plan, ledger, written = draft.plan, draft.ledger, prose.written
        summary = draft.summary(prose.text)
        kept = request.overhead_tokens + plan.kept_tokens
        estimated_before = draft.tokens_before(request)
        estimated_after = kept + summary_tokens(summary, self._counter)
        if estimated_after >= estimated_before:
            raise CompactionError("Nothing to compact: the summary would not be smaller.")
        return CompactionResult(
            summary=summary,
            first_kept_entry_id=plan.first_kept_entry_id,
            kept_entries=plan.kept_entries,
            edits=plan.edits,
            tokens_before=request.tokens_before,
            tokens_after=request.tokens_before * estimated_after // estimated_before,
            estimated_after=estimated_after,
            carryover=Carryover(
                lastSummary=summary,
                read_files=tuple(sorted(ledger.read_files)),
                modified_files=tuple(sorted(ledger.modified_files)),
                ledger=ledger,
                handover=draft.handover,
            ),
            summarised_by=written.model.name if written else "",
            is_fallback=written is None,
            usage=usage,
            note=" ".join(filter(None, (prose.note, _left_out(draft.left_out)))),
            focus=request.focus,
        )


def _left_out(messages: int) -> str:
    if not messages:
        return ""
    if messages == 1:
        return "One of your messages is no longer in the context; the recall tool finds it."
    return (
        f"{messages:,} of your messages are no longer in the context; the recall tool finds them."
    )
