"""Summing up a branch of the conversation that is being left."""

from dataclasses import dataclass
from pathlib import Path

from agent_tui.compaction.ledger.build import build_ledger, known_so_far, unrecorded_entries
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.summary.fallback import LogFacts
from agent_tui.compaction.summary.source import summary_source
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.summary.writer import SummaryJob
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, Usage
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter

_LEAST_SUMMARY_TOKENS = 150
"""The form with a line or two in it."""


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """A branch to sum up.

    Args:
        entries: Those of the branch alone, from where it began to its end.
        model: The session's model.
        window: Its context window in tokens, as the counter estimates them.
        cwd: The session's working folder.
        settings: Who summarises, how long and in what form.
    """

    entries: tuple[Entry, ...]
    model: ModelRef
    window: int
    cwd: Path
    settings: CompactionSettings


@dataclass(frozen=True, slots=True)
class BranchDraft:
    """A branch's summary that lacks nothing but its prose.

    Args:
        job: What a model is asked for.
        log_facts: What the prose can be made from without one.
        fact_blocks: The facts that code puts after it.
    """

    job: SummaryJob
    log_facts: LogFacts
    fact_blocks: str


@dataclass(frozen=True, slots=True)
class BranchSummary:
    """A finished summary that nobody has written yet; `note` as in `CompactionResult`."""

    text: str
    note: str
    usage: Usage | None


def draft_branch(request: BranchRequest, *, counter: TokenCounter) -> BranchDraft:
    """All of a branch's summary but the prose; asks no model.

    Raises:
        NothingToCompactError: No reply was left behind, so there is nothing to tell.
    """
    messages = tuple(item.message for item in build_context(request.entries).messages)
    replies = [message.text for message in messages if isinstance(message, AssistantMessage)]
    if not replies:
        raise NothingToCompactError("Nothing to summarise: no reply is left behind.")
    ledger = build_ledger(
        unrecorded_entries(request.entries),
        folders=(str(request.cwd), str(request.cwd.resolve())),
        previous=known_so_far(request.entries, None),
    )
    tokens = counter.count_messages(messages)
    cap = min(request.settings.max_summary_tokens, max(request.window // 6, 200))
    most = max(min(cap, tokens), _LEAST_SUMMARY_TOKENS)
    job = SummaryJob(
        messages=messages,
        previous_prose="",
        source=summary_source(messages, previous_prose="", ledger=ledger, tokens=tokens),
        focus="",
        template=template_named(request.settings.template),
        wanted_tokens=max(most // 2, _LEAST_SUMMARY_TOKENS),
        max_tokens=most,
        splits_turn=False,
    )
    last_reply = next((text for text in reversed(replies) if text.strip()), "")
    facts = fact_blocks(ledger, request="", window=request.window)
    return BranchDraft(job, LogFacts(ledger, last_reply), facts)
