"""Carrying out a compaction: the tiers and the service decide, this writes and tells."""

import asyncio
from collections import Counter
from dataclasses import replace

from agent_tui.agent.activity import Emit
from agent_tui.agent.compaction.background_summary import BackgroundSummary
from agent_tui.agent.compaction.strategy_attempt import (
    StrategyAttempt,
    attempt_strategy,
    finished_event,
    progress_to,
    report_on,
)
from agent_tui.agent.conversation import Conversation, add_totals
from agent_tui.agent.services import RuntimeServices
from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnUsage
from agent_tui.compaction.policy import should_compact
from agent_tui.compaction.preview import CompactionPreview, make_preview
from agent_tui.compaction.result import CompactionResult, child_entries
from agent_tui.compaction.strategies.base import StrategyPlan, target_when_asked
from agent_tui.compaction.summary.summariser import WrittenSummary
from agent_tui.compaction.tiers.model import TierPlan
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.compaction.usage import largest_sources
from agent_tui.config import CompactionStrategy
from agent_tui.errors import CompactionError, NothingToCompactError, SessionError
from agent_tui.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionReason,
    CompactionStarted,
    Notice,
)
from agent_tui.messages import ToolDetails, Usage
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import EditReport, report_entry
from agent_tui.tokens import ContextUsage
from agent_tui.tools.base import ToolOutput

_LEAST_USED_TOKENS = 10_000
"""Below, the model's own wish to compact is not followed: there is too little to gain."""

_LOOK_AGAIN_PARTS = 50
"""A context that has grown by less than this part of the window needs no second look."""


class Compactor:
    """Compacts one conversation, in place or into a new session file.

    Nothing is written before the whole result is there, so a failure or a cancel leaves the
    session file as it was.
    """

    def __init__(
        self, conversation: Conversation, services: RuntimeServices, background: BackgroundSummary
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._background = background

    def is_due(self, usage: ContextUsage) -> bool:
        """Whether an automatic compaction should run before the next request."""
        conversation = self._conversation
        return should_compact(
            usage,
            conversation.settings,
            conversation.output_reserve,
            conversation.breaker,
            conversation.left_by_compaction,
        )

    async def make_room(
        self,
        reason: CompactionReason,
        emit: Emit,
        focus: str = "",
        strategy: CompactionStrategy | None = None,
    ) -> bool:
        """Compact in place, in the middle of the work; false when that was not possible.

        The strategy that the settings name comes first, or `strategy`. Where it fails, or does
        not come down to the target, the tiers take over: messages are made shorter; where that
        is not enough, a summary takes the place of the older ones; where there can be none,
        shorter is better than nothing. Failures are said through `emit`.
        """
        conversation = self._conversation
        for event in await conversation.refresh_usage():
            emit(event)
        full = conversation.context()
        chosen = strategy or conversation.settings.strategy
        attempt = await self._by_strategy(chosen, reason, focus, emit)
        if attempt is not None and attempt.plan is not None and not attempt.problem:
            self._follow(attempt, attempt.plan, reason, emit)
        elif not await self._compact_in_place(reason, focus, emit, attempt):
            return False
        if reason == "threshold" and conversation.refill.is_in_vain:
            filling = await asyncio.to_thread(largest_sources, full, conversation.services.counter)
            emit(Notice("warning", conversation.refill.message(filling)))
        return True

    async def compact_here(self, strategy: CompactionStrategy, focus: str, emit: Emit) -> None:
        """Compact in place by `strategy` because the person asks for it."""
        await self.make_room("manual", emit, focus, strategy)

    async def _by_strategy(
        self, name: CompactionStrategy, reason: CompactionReason, focus: str, emit: Emit
    ) -> StrategyAttempt | None:
        """What comes of asking the strategy `name`; None for the tiers."""
        strategy = self._services.strategies.get(name)
        if strategy is None:
            return None
        conversation = self._conversation
        request, used = await self._request(focus), conversation.usage.used
        target = self._estimated(conversation.target_tokens)
        wanted = target
        if reason == "manual":
            wanted = target_when_asked(name, self._estimated(used), conversation.settings, target)
        emit(CompactionStarted(reason, focus, used))
        return await attempt_strategy(
            name,
            strategy,
            replace(request, target_tokens=wanted),
            enough_tokens=target,
            least_gain_tokens=self._least_gain(reason),
            emit=emit,
            on_usage=self._spending(emit),
        )

    async def _compact_in_place(
        self,
        reason: CompactionReason,
        focus: str,
        emit: Emit,
        attempt: StrategyAttempt | None,
    ) -> bool:
        """By the tiers; `attempt` is the strategy that came before them and was not enough."""
        conversation = self._conversation
        if attempt is not None:
            emit(Notice("info", f"{attempt.strategy}: {attempt.problem} The tiers take over."))
        tiers = await asyncio.to_thread(self._plan_tiers)
        is_worthwhile = sum(tiers.freed.values()) >= self._least_gain(reason)
        if is_worthwhile and tiers.tokens_after <= self._estimated(conversation.target_tokens):
            self._shorten(tiers, reason, emit)
            return True
        problem = ""
        try:
            await self._summarise_in_place(reason, focus, emit)
            return True
        except NothingToCompactError:
            pass
        except CompactionError as error:
            problem = str(error)
        if is_worthwhile:
            self._shorten(tiers, reason, emit, problem)
            return True
        if attempt is not None and attempt.plan is not None:
            self._follow(attempt, attempt.plan, reason, emit)
            return True
        conversation.left_by_compaction = conversation.usage.used
        if problem:
            emit(CompactionFailed(problem))
            self._count_failure(emit)
        elif attempt is not None or reason == "manual":
            emit(CompactionFailed("Nothing to compact: there is nothing to gain now."))
        return False

    def _follow(
        self, attempt: StrategyAttempt, plan: StrategyPlan, reason: CompactionReason, emit: Emit
    ) -> None:
        """Write the edits of `plan` in one go."""
        conversation = self._conversation
        report = report_on(attempt, plan, reason, conversation.usage.used)
        placed = conversation.log.append_many((*plan.edits, report_entry(report)))
        self._made_room(finished_event(placed[-1].id, report, reason), emit)

    async def answer_call(self, focus: str, emit: Emit) -> ToolOutput:
        """Compact because the model asks for it, and tell it what came of that."""
        conversation = self._conversation
        for event in await conversation.refresh_usage():
            emit(event)
        used, window = conversation.usage.used, conversation.model_info.window
        if used < _LEAST_USED_TOKENS or used <= conversation.target_tokens:
            return ToolOutput(
                f"No compaction needed: {used:,} of {window:,} tokens are in use. Go on."
            )
        if not await self.make_room("tool", emit, focus):
            return ToolOutput("Not compacted: there is nothing to gain now. Go on.", is_error=True)
        left = conversation.usage.used
        summary = f"{used:,} -> {left:,} tokens"
        return ToolOutput(
            f"Compacted from {used:,} to about {left:,} tokens. Your instructions, the newest "
            "messages and the lists of files are kept; older outputs are shortened or summarised. "
            "Nothing is lost: recall brings any of it back. Go on with the task.",
            ToolDetails(summary=summary),
        )

    async def compact_to_child(
        self, focus: str, emit: Emit
    ) -> tuple[SessionLog, CompactionFinished] | None:
        """Write the compacted conversation as a new session; None when it failed."""
        conversation = self._conversation
        for event in await conversation.refresh_usage():
            emit(event)
        emit(CompactionStarted("manual", focus, conversation.usage.used))
        try:
            request = await self._request(focus)
            result = await self._services.compaction.compact(
                request, progress_to(emit), self._spending(emit)
            )
            log = self._services.store.create_child(
                conversation.log, child_entries(result), result.carryover, cwd=conversation.cwd
            )
        except (CompactionError, SessionError) as error:
            emit(CompactionFailed(str(error)))
            return None
        except asyncio.CancelledError:
            emit(CompactionFailed("Compaction cancelled; nothing was changed."))
            raise
        conversation.breaker = conversation.breaker.after_success()
        return log, _finished(log.entries[0].id, "manual", result)

    async def preview(self) -> CompactionPreview:
        """What a compaction would do now; writes nothing and asks no model."""
        conversation = self._conversation
        found = await asyncio.to_thread(
            make_preview,
            await self._request(""),
            service=self._services.compaction,
            counter=conversation.services.counter,
            target_tokens=self._estimated(conversation.target_tokens),
        )
        window = conversation.model_info.window
        return replace(found, window=window, target_tokens=conversation.target_tokens)

    async def write_ahead(self) -> None:
        """Begin the next summary in the background, if one will be needed before long.

        Not where the summary would come from a server of the person's own: it would take its
        time from the work.
        """
        conversation, background = self._conversation, self._background
        settings, usage = conversation.settings, conversation.usage
        grown = usage.used - background.begun_at_tokens
        if (
            settings.background
            and settings.strategy == "tiered"
            and settings.auto
            and conversation.level != "normal"
            and not conversation.breaker.is_open
            and not background.is_there
            and grown >= usage.window // _LOOK_AGAIN_PARTS
            and conversation.model_info.source != "server"
        ):
            plan, target = self._plan_tiers, self._estimated(conversation.target_tokens)
            request = await self._request("")
            background.begin(request, lambda: plan().tokens_after > target, self._count_usage)

    def _least_gain(self, reason: CompactionReason) -> int:
        """What shortening must free; where the window overflows or the model asks, anything."""
        if reason != "threshold" or self._conversation.is_overfull:
            return 1
        settings = self._conversation.settings
        share = settings.min_gain * settings.used_window(self._conversation.model_info.window)
        return max(self._estimated(round(share)), 1)

    def _estimated(self, tokens: int) -> int:
        """`tokens` of the model's counting in those of ours."""
        conversation = self._conversation
        return round(tokens / conversation.services.ratios.ratio(conversation.model.name))

    def _plan_tiers(self) -> TierPlan:
        conversation = self._conversation
        return plan_tiers(
            conversation.log.path_entries(),
            carryover=conversation.log.header.compaction,
            counter=conversation.services.counter,
            settings=conversation.settings,
            window=self._estimated(conversation.model_info.window),
            overhead_tokens=conversation.overhead_tokens(),
            target_tokens=self._estimated(conversation.target_tokens),
        )

    async def _request(self, focus: str) -> CompactionRequest:
        conversation = self._conversation
        return CompactionRequest(
            path=conversation.log.path_entries(),
            previous=conversation.log.header.compaction,
            model=conversation.model,
            window=self._estimated(conversation.model_info.window),
            cwd=conversation.cwd,
            settings=conversation.settings,
            tokens_before=conversation.usage.used,
            overhead_tokens=await asyncio.to_thread(conversation.overhead_tokens),
            focus=focus,
        )

    def _shorten(
        self, plan: TierPlan, reason: CompactionReason, emit: Emit, problem: str = ""
    ) -> None:
        """Write the edits of `plan` in one go; `problem` is why there is no summary."""
        conversation = self._conversation
        before = conversation.usage.used
        after = before * plan.tokens_after // max(plan.tokens_before, 1)
        report = EditReport(
            batch=plan.edits[0].batch,
            reason=reason,
            tokens_before=before,
            tokens_after=after,
            freed=plan.freed,
            messages=Counter(edit.tier for edit in plan.edits),
        )
        placed = conversation.log.append_many((*plan.edits, report_entry(report)))
        event = CompactionFinished(
            entry_id=placed[-1].id,
            reason=reason,
            summary="",
            tokens_before=before,
            tokens_after=after,
            summarised_by="",
            is_fallback=False,
            note=problem and f"Shortened, but not summarised. {problem}",
            freed=report.freed,
            messages=report.messages,
        )
        self._made_room(event, emit)

    async def _summarise_in_place(self, reason: CompactionReason, focus: str, emit: Emit) -> None:
        conversation, service = self._conversation, self._services.compaction
        request = await self._request(focus)
        earlier = None if focus else await self._background.draft()
        try:
            draft = await asyncio.to_thread(service.draft, request, earlier)
            emit(CompactionStarted(reason, focus, conversation.usage.used))
            written: WrittenSummary | None = None
            if earlier is not None and earlier.lacks_the_same(draft):
                emit(CompactionProgress("finishing the summary begun earlier", 0))
                written = await self._background.written()
            result = await service.finish(
                request, draft, progress_to(emit), self._spending(emit), written
            )
        except asyncio.CancelledError:
            emit(CompactionFailed("Compaction cancelled; nothing was changed."))
            raise
        entry = conversation.log.append(result.entry(reason))
        self._made_room(_finished(entry.id, reason, result), emit)

    def _made_room(self, event: CompactionFinished, emit: Emit) -> None:
        """Take note of what was written, and tell."""
        conversation = self._conversation
        conversation.breaker = conversation.breaker.after_success()
        conversation.refill = conversation.refill.after_compaction()
        conversation.left_by_compaction = event.tokens_after
        self._background.drop()
        emit(event)
        emit(conversation.use_window(event.tokens_after))

    def _spending(self, emit: Emit) -> OnUsage:
        """Counts what summaries use, also those that come to nothing, and tells."""

        def count(usage: Usage) -> None:
            self._count_usage(usage)
            emit(self._conversation.totals)

        return count

    def _count_usage(self, usage: Usage) -> None:
        self._conversation.totals = add_totals(self._conversation.totals, usage)

    def _count_failure(self, emit: Emit) -> None:
        conversation = self._conversation
        was_open = conversation.breaker.is_open
        conversation.breaker = conversation.breaker.after_failure()
        if conversation.breaker.is_open and not was_open:
            emit(Notice("warning", conversation.breaker.message))


def _finished(
    entry_id: str, reason: CompactionReason, result: CompactionResult
) -> CompactionFinished:
    return CompactionFinished(
        entry_id=entry_id,
        reason=reason,
        summary=result.summary,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        summarised_by=result.summarised_by,
        is_fallback=result.is_fallback,
        note=result.note,
    )
