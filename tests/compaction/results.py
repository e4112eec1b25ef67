"""Finished compactions for tests that start after the summary was written."""

from collections.abc import Sequence

from agent_tui.compaction.outcome import CompactionResult
from agent_tui.sessions.entries import Carryover, Entry


def result_of(
    kept: Sequence[Entry], *, first_kept: str = "", summary: str = "## Goal\nx"
) -> CompactionResult:
    return CompactionResult(
        summary=summary,
        first_kept_entry_id=first_kept,
        kept_entries=tuple(kept),
        edits=(),
        tokens_before=1_000,
        tokens_after=100,
        estimated_after=100,
        carryover=Carryover(lastSummary=summary),
        summarised_by="scripted/one",
        is_fallback=False,
        usage=None,
        focus="",
    )
