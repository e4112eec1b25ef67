"""Compaction from a session's entries to a finished result; writes nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_tui.compaction.appendix import appendix, index_block, strip_appendix
from agent_tui.compaction.fallback import Record
from agent_tui.compaction.ledger import build_ledger, known_so_far, unrecorded_entries
from agent_tui.compaction.names import names_of
from agent_tui.compaction.plan import CompactionPlan, plan_compaction
from agent_tui.compaction.prose import Prose, finished_prose
from agent_tui.compaction.result import CompactionResult, child_entries
from agent_tui.compaction.subject import Subject, subject_of
from agent_tui.compaction.summariser import (
    NoSummaryError,
    OnProgress,
    Summariser,
    SummaryJob,
    SummaryModel,
    WrittenSummary,
)
from agent_tui.compaction.templates import Template, template_named
from agent_tui.config import CompactionSettings
from agent_tui.errors import AgentTuiError, CompactionError
from agent_tui.messages import AssistantMessage, Message, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef, Provider
from agent_tui.providers.retry import Sleep
from agent_tui.sessions.context import wrap_summary
from agent_tui.sessions.entries import Carryover, Entry, MessageEntry
from agent_tui.tokens import TokenCounter

__all__ = [
    "CompactionRequest",
    "CompactionResult",
    "CompactionService",
    "ModelLookup",
    "child_entries",
]

_NO_INDEX_BELOW = 4_096
"""Tokens. A smaller window has no room for more than the summary and the work itself."""

_LEAST_SUMMARY_TOKENS = 150
"""The form with a line or two in it; where less is to be gained a summary is no use."""


class ModelLookup(Protocol):
    """What the service asks about models; the model catalog answers."""

    def info(self, ref: ModelRef) -> ModelInfo:
        """What is known of a model."""
        ...

    def resolve(self, name: str) -> ModelRef:
        """The model a setting names; raises an `AgentTuiError` for an unknown one."""
        ...

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        """The cheap model of the same provider, if it has one."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A conversation to compact.

    Args:
        path: Entries from the root to the leaf.
        previous: ``compaction`` of the session's header.
        model: The session's model.
        window: Its context window in tokens.
        cwd: The session's working folder; files inside are named relative to it.
        tokens_before: Tokens in use, as measured.
        overhead_tokens: System prompt and tool schemas, as the counter estimates them.
        focus: What the person asked to pay attention to.
        target_tokens: What the result should come down to; 0 for what suits the window.
    """

    path: tuple[Entry, ...]
    previous: Carryover | None
    model: ModelRef
    window: int
    cwd: Path
    tokens_before: int
    overhead_tokens: int = 0
    focus: str = ""
    target_tokens: int = 0

    @property
    def sizing_window(self) -> int:
        """The window to size by what stays and what is written: smaller for a low target."""
        return min(self.window, self.target_tokens * 5 // 2 or self.window)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Everything that is settled before a model is asked. Sizes in tokens.

    `replaced_tokens` is what the summary stands for, the previous summary included.
    """

    plan: CompactionPlan
    record: Record
    subject: Subject
    appendix: str
    messages: tuple[Message, ...]
    replaced_tokens: int
    wanted_tokens: int
    max_tokens: int


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

    async def compact(
        self, request: CompactionRequest, on_progress: OnProgress
    ) -> CompactionResult:
        """Compact `request` without any side effect; cancel the task to give up.

        Raises:
            CompactionError: there is nothing to compact, or the result would not be smaller.
        """
        on_progress("reading the conversation", 0)
        prepared = await asyncio.to_thread(self._prepare, request)
        written, failures = await self._write(request, prepared, on_progress)
        prose = await asyncio.to_thread(
            finished_prose,
            written,
            failures,
            prepared.record,
            template=self._template,
            counter=self._counter,
            max_tokens=prepared.max_tokens,
        )
        return self._finish(request, prepared, prose)

    def _prepare(self, request: CompactionRequest) -> _Prepared:
        window = request.sizing_window
        plan = plan_compaction(
            request.path,
            previous=request.previous,
            counter=self._counter,
            settings=self._settings,
            window=window,
        )
        ledger = build_ledger(
            unrecorded_entries(request.path),
            folders=(str(request.cwd), str(request.cwd.resolve())),
            previous=known_so_far(request.path, request.previous),
        )
        replaced = plan.summarised_tokens
        if plan.previous_summary:
            replaced += self._summary_tokens(plan.previous_summary)
        facts = appendix(ledger, request=plan.request, window=window)
        unused = max(self._settings.keep_recent(window) - plan.kept_tokens, 0)
        spare = min(window, 2 * (window - _NO_INDEX_BELOW))
        written = self._written_tokens(request.path)
        index = index_block(
            ledger.names,
            room_chars=min(spare + 4 * unused, written // 2, 2 * replaced) if spare > 0 else 0,
            known=names_of(item.message for item in plan.kept),
        )
        extra = "\n\n".join(block for block in (facts, index) if block)
        facts_tokens = self._summary_tokens(f"\n\n{facts}")
        room = replaced - self._summary_tokens(f"\n\n{extra}") - 1
        if room < _LEAST_SUMMARY_TOKENS:
            raise CompactionError(
                "Nothing to compact: the conversation is already smaller than a summary of it."
            )
        cap = min(self._settings.max_summary_tokens, max(window // 6, 200))
        cap = max(cap - facts_tokens, cap // 2)
        previous_prose = strip_appendix(plan.previous_summary)
        messages = tuple(item.message for item in plan.summarised)
        return _Prepared(
            plan=plan,
            record=Record(ledger, previous_prose, _last_reply(messages)),
            subject=subject_of(
                messages,
                previous_prose=previous_prose,
                ledger=ledger,
                tokens=plan.summarised_tokens,
            ),
            appendix=extra,
            messages=messages,
            replaced_tokens=replaced,
            wanted_tokens=min(cap, max(room // 2, _LEAST_SUMMARY_TOKENS)),
            max_tokens=min(cap, room),
        )

    async def _write(
        self, request: CompactionRequest, prepared: _Prepared, on_progress: OnProgress
    ) -> tuple[WrittenSummary | None, tuple[str, ...]]:
        """A model's summary, or None, and what went wrong on the way."""
        if self._summariser is None:
            return None, ()
        models, problems = self._candidates(request.model)
        job = SummaryJob(
            messages=prepared.messages,
            previous_prose=prepared.record.previous_prose,
            subject=prepared.subject,
            focus=request.focus,
            template=self._template,
            wanted_tokens=prepared.wanted_tokens,
            max_tokens=prepared.max_tokens,
            splits_turn=prepared.plan.splits_turn,
        )
        try:
            written = await self._summariser.summarise(job, models, on_progress)
        except NoSummaryError as error:
            return None, (*problems, *error.failures)
        return written, (*problems, *written.failures)

    def _candidates(self, model: ModelRef) -> tuple[Sequence[SummaryModel], tuple[str, ...]]:
        """Models to try, in order and without repeats, and what is wrong with the setting."""
        problems: tuple[str, ...] = ()
        refs: list[ModelRef] = []
        if self._settings.model:
            try:
                refs.append(self._models.resolve(self._settings.model))
            except AgentTuiError as error:
                problems = (f"compaction.model = {self._settings.model!r}: {error.message}",)
        cheap = self._models.cheap_model(model)
        refs.extend([cheap, model] if cheap is not None else [model])
        distinct = dict.fromkeys(refs)
        return [SummaryModel(ref, self._models.info(ref)) for ref in distinct], problems

    def _finish(
        self,
        request: CompactionRequest,
        prepared: _Prepared,
        prose: Prose,
    ) -> CompactionResult:
        plan, ledger, written = prepared.plan, prepared.record.ledger, prose.written
        summary = "\n\n".join(text for text in (prose.text, prepared.appendix) if text)
        kept = request.overhead_tokens + plan.kept_tokens
        estimated_before = kept + prepared.replaced_tokens
        estimated_after = kept + self._summary_tokens(summary)
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
            usage=written.usage if written else None,
            note=prose.note,
            focus=request.focus,
        )

    def _written_tokens(self, path: Sequence[Entry]) -> int:
        """All messages on `path` as they were written, in the context or not."""
        return self._counter.count_messages(e.message for e in path if isinstance(e, MessageEntry))

    def _summary_tokens(self, summary: str) -> int:
        return self._counter.count_message(UserMessage(content=wrap_summary(summary)))


def _last_reply(messages: Sequence[Message]) -> str:
    texts = (m.text for m in reversed(messages) if isinstance(m, AssistantMessage))
    return next((text for text in texts if text.strip()), "")
