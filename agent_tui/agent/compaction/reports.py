"""What the user and the model are told about a compaction."""

import re

from agent_tui.agent.activity import Emit
from agent_tui.compaction.outcome import TIERED, Outcome
from agent_tui.compaction.summary.fact_blocks import without_fact_blocks
from agent_tui.events import (
    CompactionFinished,
    CompactionProgress,
    CompactionReason,
    CompactionStarted,
)
from agent_tui.omissions import shorten_middle
from agent_tui.providers.client import OnProgress
from agent_tui.sessions.entries import MessageEntry
from agent_tui.sessions.replay.changes import describe_statistics

_PROSE_CHARS = 2_000


def outcome_event(
    entry_id: str, reason: CompactionReason, outcome: Outcome, used_tokens: int
) -> CompactionFinished:
    """The event that reports `outcome`; `used_tokens` were measured before the compaction."""
    summary = outcome.summary
    name = "" if outcome.strategy == TIERED else outcome.strategy
    done = describe_statistics(name, outcome.statistics)
    return CompactionFinished(
        entry_id=entry_id,
        reason=reason,
        summary=summary.summary if summary else "",
        tokens_before=used_tokens,
        tokens_after=outcome.scale_tokens_after(used_tokens),
        summarised_by=summary.summarised_by if summary else "",
        is_fallback=summary.is_fallback if summary else False,
        note=" ".join(filter(None, (done, outcome.note))),
        freed=outcome.freed,
        messages={} if summary else outcome.messages,
        strategy=name,
        statistics=outcome.statistics,
    )


class StartTeller:
    """Reports the start of a compaction at its first slow step, and every step after that.

    One that the user asked for is reported at once.
    """

    def __init__(self, reason: CompactionReason, focus: str, used: int, emit: Emit) -> None:
        self._started = CompactionStarted(reason, focus, used)
        self._emit = emit
        self.is_told = False
        if reason == "manual":
            self.tell()

    def progress(self, phase: str, summary_chars: int) -> None:
        """Report one step; has the signature of `OnProgress`."""
        self.tell()
        self._emit(CompactionProgress(phase, summary_chars))

    def tell(self) -> None:
        """Report the start, once."""
        if not self.is_told:
            self.is_told = True
            self._emit(self._started)


def progress_to(emit: Emit) -> OnProgress:
    """Returns a callback that emits each step as a `CompactionProgress`."""
    return lambda phase, summary_chars: emit(CompactionProgress(phase, summary_chars))


def describe_kept(outcome: Outcome) -> str:
    """Describes in a few lines what a compaction kept, for the model that asked for it."""
    if outcome.summary is None:
        changed = ", ".join(
            f"{count} by tier {tier}" for tier, count in sorted(outcome.messages.items())
        )
        return f"No messages were removed; older ones were shortened: {changed}."
    text = outcome.summary.summary
    sections = ", ".join(re.findall(r"^<([\w-]+)>$", text, re.MULTILINE))
    kept = sum(isinstance(entry, MessageEntry) for entry in outcome.summary.kept_entries)
    prose = shorten_middle(without_fact_blocks(text), _PROSE_CHARS)
    return (
        f"The newest {kept} messages are unchanged. Everything before them is in the summary at "
        f"the beginning: {sections}.{f'{chr(10)}{prose}' if prose else ''}"
    )
