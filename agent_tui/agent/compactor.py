"""Carrying out a compaction: the service decides and summarises, this writes and tells."""

import asyncio
from collections.abc import Callable

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation, add_totals
from agent_tui.agent.services import RuntimeServices
from agent_tui.compaction.policy import should_compact
from agent_tui.compaction.service import CompactionRequest, CompactionResult, child_entries
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import (
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionReason,
    CompactionStarted,
    Notice,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.tokens import ContextUsage


class Compactor:
    """Compacts one conversation, in place or into a new session file.

    Nothing is written before the whole result is there, so a failure or a cancel leaves the
    session file as it was.
    """

    def __init__(self, conversation: Conversation, services: RuntimeServices) -> None:
        self._conversation = conversation
        self._services = services

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

    async def make_room(self, reason: CompactionReason, emit: Emit) -> bool:
        """Compact in place, in the middle of the work; false when it failed (and was said)."""
        conversation = self._conversation
        result = await self._summarise(reason, "", emit)
        if result is None:
            conversation.left_by_compaction = conversation.usage.used
            was_open = conversation.breaker.is_open
            conversation.breaker = conversation.breaker.after_failure()
            if conversation.breaker.is_open and not was_open:
                emit(Notice("warning", conversation.breaker.message))
            return False
        entry = conversation.log.append(result.entry(reason))
        conversation.breaker = conversation.breaker.after_success()
        conversation.left_by_compaction = result.tokens_after
        emit(_finished(entry.id, reason, result))
        emit(conversation.use_window(result.tokens_after))
        if result.usage is not None:
            conversation.totals = add_totals(conversation.totals, result.usage)
            emit(conversation.totals)
        return True

    async def compact_to_child(
        self, focus: str, emit: Emit
    ) -> tuple[SessionLog, CompactionFinished] | None:
        """Write the compacted conversation as a new session; None when it failed."""
        conversation = self._conversation
        result = await self._summarise("manual", focus, emit)
        if result is None:
            return None
        conversation.breaker = conversation.breaker.after_success()
        entries = child_entries(result)
        try:
            log = self._services.store.create_child(
                conversation.log,
                entries,
                result.carryover,
                cwd=conversation.cwd,
            )
        except SessionError as error:
            emit(CompactionFailed(str(error)))
            return None
        return log, _finished(log.entries[0].id, "manual", result)

    async def _summarise(
        self, reason: CompactionReason, focus: str, emit: Emit
    ) -> CompactionResult | None:
        conversation = self._conversation
        for event in await conversation.refresh_usage():
            emit(event)
        emit(CompactionStarted(reason, focus, conversation.usage.used))
        ratio = conversation.ratios.ratio(conversation.model.name)
        request = CompactionRequest(
            path=conversation.log.path_entries(),
            previous=conversation.log.header.compaction,
            model=conversation.model,
            window=round(conversation.model_info.window / ratio),
            cwd=conversation.cwd,
            tokens_before=conversation.usage.used,
            overhead_tokens=await asyncio.to_thread(conversation.overhead_tokens),
            focus=focus,
        )
        try:
            return await self._services.compaction.compact(request, _progress(emit))
        except CompactionError as error:
            emit(CompactionFailed(str(error)))
            return None
        except asyncio.CancelledError:
            emit(CompactionFailed("Compaction cancelled; nothing was changed."))
            raise


def _progress(emit: Emit) -> Callable[[str, int], None]:
    return lambda phase, summary_chars: emit(CompactionProgress(phase, summary_chars))


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
