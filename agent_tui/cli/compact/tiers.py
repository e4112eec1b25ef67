"""One compaction of a session file: the tiers, the summary, and the session that goes on."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnProgress
from agent_tui.compaction.result import child_entries
from agent_tui.compaction.service import CompactionService
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.config import CompactionSettings, CompactionStrategy
from agent_tui.errors import CompactionError
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import build_context, wrap_summary
from agent_tui.sessions.entries import Carryover, Entry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from agent_tui.tokens import TokenCounter

_TIERS_WITHOUT_MODEL = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The result of a compaction. Sizes in estimated tokens, without system prompt and tools.

    Args:
        path: The new session; None where none was written.
        freed: What each tier freed, the summary being tier 3; their sum is `tokens_before`
            less `tokens_after`.
        target_tokens: What was aimed at.
        carryover: What is known beside the messages: summary, file lists, ledger.
        is_fallback: The summary was written by code.
        note: One line for the person when something did not go as planned; else empty.
        strategy: What made it.
        statistics: What it did to how many messages; empty for the tiers.
        seconds: Of the whole command, from the opened file to the end.
    """

    path: Path | None
    tokens_before: int
    tokens_after: int
    freed: tuple[int, ...]
    target_tokens: int
    carryover: Carryover
    is_fallback: bool
    note: str
    strategy: CompactionStrategy = "tiered"
    statistics: Mapping[str, int] = field(default_factory=dict[str, int])
    seconds: float = 0.0

    def to_json(self) -> JsonObject:
        """What ``--json`` prints."""
        ledger = self.carryover.ledger
        return {
            "path": str(self.path) if self.path else None,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "tiers": {str(tier): tokens for tier, tokens in enumerate(self.freed)},
            "summary": self.carryover.summary,
            "read_files": list(self.carryover.read_files),
            "modified_files": list(self.carryover.modified_files),
            "pinned": list(ledger.pinned) if ledger else [],
            "fallback": self.is_fallback,
            "seconds": self.seconds,
            "strategy": self.strategy,
            "statistics": dict(self.statistics),
        }


class FileCompaction:
    """Compacts one session that lies on the disk, and never changes its file.

    Args:
        service: Writes the summary.
        counter: Estimates.
        settings: ``[compaction]``.
        window: Context window in tokens that the session is to go on in.
        target_tokens: What to come down to.
    """

    def __init__(
        self,
        service: CompactionService,
        counter: TokenCounter,
        settings: CompactionSettings,
        *,
        window: int,
        target_tokens: int,
    ) -> None:
        self._service = service
        self._counter = counter
        self._settings = settings
        self._window = window
        self._target_tokens = target_tokens

    async def run(
        self,
        log: SessionLog,
        *,
        model: ModelRef,
        focus: str,
        cwd: Path,
        store: SessionStore | None,
        on_progress: OnProgress,
    ) -> CompactionReport:
        """Compact `log` and write what comes of it as a new session, its child.

        The tiers come first, as they do when the program compacts by itself, then the summary
        of what lies before the messages that stay.

        Args:
            log: The session.
            model: Who summarises, when no setting names another.
            focus: What to pay attention to.
            cwd: The session's working folder.
            store: Where the child goes; None writes nothing.
            on_progress: Told of each step.

        Raises:
            CompactionError: There is nothing to compact; nothing was written.
            SessionError: The child cannot be written.
        """
        path, carryover = log.path_entries(), log.header.compaction
        on_progress("reading the conversation", 0)
        before = await asyncio.to_thread(self._size, path, carryover)
        edited = _Edited(path, before, before, {})
        request = CompactionRequest(
            path=edited.path,
            previous=carryover,
            model=model,
            window=self._window,
            cwd=cwd,
            settings=self._settings,
            tokens_before=edited.tokens_before,
            target_tokens=self._target_tokens,
            focus=focus,
        )
        try:
            result = await self._service.compact(request, on_progress)
        except CompactionError:
            if edited.path == path:
                raise
            # What the tiers left is no larger than a summary of it; one of all of it may be.
            edited = _Edited(path, edited.tokens_before, edited.tokens_before, {})
            result = await self._service.compact(replace(request, path=path), on_progress)
        size = await asyncio.to_thread(self._size, child_entries(result), result.carryover)
        result = replace(result, tokens_after=size)
        child: SessionLog | None = None
        if store is not None:
            child = store.create_child(log, child_entries(result), result.carryover, cwd=cwd)
            child.close()
        return CompactionReport(
            path=child.path if child else None,
            tokens_before=edited.tokens_before,
            tokens_after=size,
            freed=(
                *(edited.freed.get(tier, 0) for tier in _TIERS_WITHOUT_MODEL),
                edited.tokens_left - size,
            ),
            target_tokens=self._target_tokens,
            carryover=result.carryover,
            is_fallback=result.is_fallback,
            note=result.note,
        )

    def _edited(self, path: tuple[Entry, ...], carryover: Carryover | None) -> "_Edited":
        plan = plan_tiers(
            path,
            carryover=carryover,
            counter=self._counter,
            settings=self._settings,
            window=self._window,
            overhead_tokens=0,
            target_tokens=self._target_tokens,
        )
        after = (*path, *plan.edits)
        before, left = self._size(path, carryover), self._size(after, carryover)
        return _Edited(after, before, left, plan.freed)

    def _size(self, path: Sequence[Entry], carryover: Carryover | None) -> int:
        return context_tokens(path, carryover, self._counter, self._settings)


@dataclass(frozen=True, slots=True)
class _Edited:
    """A conversation after tiers 0 to 2, and what each of them freed."""

    path: tuple[Entry, ...]
    tokens_before: int
    tokens_left: int
    freed: Mapping[int, int]


def context_tokens(
    path: Sequence[Entry],
    carryover: Carryover | None,
    counter: TokenCounter,
    settings: CompactionSettings,
) -> int:
    """Tokens of the next request on `path`, as ``agent-tui context`` shows them."""
    role = settings.summary_role
    context = build_context(path, summary_role=role, carryover=carryover)
    tokens = counter.count_messages(item.message for item in context.messages)
    if role == "system" and context.summary:
        tokens += counter.count_text(wrap_summary(context.summary))
    return tokens
