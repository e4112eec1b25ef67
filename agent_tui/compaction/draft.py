"""Everything of a compaction that is settled before a model is asked: pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.compaction.ledger.build import build_ledger, known_so_far, unrecorded_entries
from agent_tui.compaction.ledger.names import names_of
from agent_tui.compaction.plan import CompactionPlan, PreparedCut, plan_compaction
from agent_tui.compaction.summary.fact_blocks import fact_blocks, index_block, without_fact_blocks
from agent_tui.compaction.summary.fallback import LogFacts
from agent_tui.compaction.summary.source import SummarySource, summary_source
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, Message, UserMessage
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.context import wrap_summary
from agent_tui.sessions.entries import Carryover, Entry, Ledger, MessageEntry
from agent_tui.tokens import TokenCounter

_NO_INDEX_BELOW = 4_096
"""Tokens. A smaller window has no room for more than the summary and the work itself."""

_LEAST_SUMMARY_TOKENS = 150
"""The form with a line or two in it; where less is to be gained a summary is no use."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A conversation to compact.

    Args:
        path: Entries from the root to the leaf.
        previous: ``compaction`` of the session's header.
        model: The session's model.
        window: Its context window in tokens.
        cwd: The session's working folder; files inside are named relative to it.
        settings: How much stays, who summarises, in what form; those in force for this request.
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
    settings: CompactionSettings
    tokens_before: int
    overhead_tokens: int = 0
    focus: str = ""
    target_tokens: int = 0

    @property
    def sizing_window(self) -> int:
        """The window to size by what stays and what is written: smaller for a low target."""
        return min(self.window, self.target_tokens * 5 // 2 or self.window)


@dataclass(frozen=True, slots=True)
class Draft:
    """A compaction that lacks nothing but the prose of its summary. Sizes in tokens.

    Args:
        plan: The cut.
        log_facts: What the summary can be made from without a model.
        source: What it is about, for judging a model's summary.
        fact_blocks: The blocks that code puts after the prose.
        messages: What the summary stands for.
        replaced_tokens: Their size, the previous summary included.
        wanted_tokens: How long the prose should be.
        max_tokens: How long it may be.
    """

    plan: CompactionPlan
    log_facts: LogFacts
    source: SummarySource
    fact_blocks: str
    messages: tuple[Message, ...]
    replaced_tokens: int
    wanted_tokens: int
    max_tokens: int

    def lacks_the_same(self, other: "Draft") -> bool:
        """Whether the prose that this one lacks is the one that `other` does."""
        return (
            self.plan.first_kept_entry_id == other.plan.first_kept_entry_id
            and self.log_facts.previous_prose == other.log_facts.previous_prose
            and self.messages == other.messages
        )


def make_draft(
    request: CompactionRequest,
    *,
    counter: TokenCounter,
    earlier: Draft | None = None,
) -> Draft:
    """Settle what `request` comes to.

    The cut of `earlier`, an older draft of the same conversation, is taken again while that
    makes room enough all the same: prose for it may be there already.

    Raises:
        NothingToCompactError: A summary would gain nothing.
    """
    window, settings = request.sizing_window, request.settings
    plan = plan_compaction(
        request.path,
        previous=request.previous,
        counter=counter,
        settings=settings,
        window=window,
        prepared=_cut_of(earlier, request, counter),
    )
    ledger = ledger_of(request)
    replaced = plan.summarised_tokens
    if plan.previous_summary:
        replaced += summary_tokens(plan.previous_summary, counter)
    facts = fact_blocks(ledger, request=plan.request, window=window)
    facts_tokens = summary_tokens(f"\n\n{facts}", counter)
    cap = min(settings.max_summary_tokens, max(window // 6, 200))
    cap = max(cap - facts_tokens, cap // 2)
    target = request.target_tokens or int(window * settings.target_share(window))
    fixed_tokens = request.overhead_tokens + plan.kept_tokens + facts_tokens + cap // 2
    index = _index(
        request,
        plan,
        ledger,
        replaced,
        max(target - fixed_tokens, 0),
        counter=counter,
    )
    extra = "\n\n".join(block for block in (facts, index) if block)
    room = replaced - summary_tokens(f"\n\n{extra}", counter) - 1
    if room < _LEAST_SUMMARY_TOKENS:
        raise NothingToCompactError(
            "Nothing to compact: the conversation is already smaller than a summary of it."
        )
    previous_prose = without_fact_blocks(plan.previous_summary)
    messages = tuple(item.message for item in plan.summarised)
    return Draft(
        plan=plan,
        log_facts=LogFacts(ledger, previous_prose, _last_reply(messages)),
        source=summary_source(
            messages,
            previous_prose=previous_prose,
            ledger=ledger,
            tokens=plan.summarised_tokens,
        ),
        fact_blocks=extra,
        messages=messages,
        replaced_tokens=replaced,
        wanted_tokens=min(cap, max(room // 2, _LEAST_SUMMARY_TOKENS)),
        max_tokens=min(cap, room),
    )


def ledger_of(request: CompactionRequest) -> Ledger:
    """The facts as of the end of the conversation, earlier sessions included."""
    return build_ledger(
        unrecorded_entries(request.path),
        folders=(str(request.cwd), str(request.cwd.resolve())),
        previous=known_so_far(request.path, request.previous),
    )


def summary_tokens(summary: str, counter: TokenCounter) -> int:
    """What `summary` takes as the model sees it."""
    return counter.count_message(UserMessage(content=wrap_summary(summary)))


def _cut_of(
    earlier: Draft | None, request: CompactionRequest, counter: TokenCounter
) -> PreparedCut | None:
    """The cut of `earlier`, while the result is well below where the next one would be begun."""
    if earlier is None:
        return None
    settings = request.settings
    goal = int(request.window * (settings.target_share(request.window) + settings.warn_at) / 2)
    summary = summary_tokens(earlier.fact_blocks, counter) + earlier.max_tokens
    room = goal - request.overhead_tokens - summary
    return PreparedCut(earlier.plan.first_kept_entry_id, max_kept_tokens=room)


def _index(
    request: CompactionRequest,
    plan: CompactionPlan,
    ledger: Ledger,
    replaced_tokens: int,
    room_tokens: int,
    *,
    counter: TokenCounter,
) -> str:
    """The index of names, as large as what is left of the window and of the target allows."""
    window = request.sizing_window
    spare = min(window, 2 * (request.window - _NO_INDEX_BELOW))
    if spare <= 0:
        return ""
    unused = max(request.settings.keep_recent(window) - plan.kept_tokens, 0)
    most_chars = min(spare + 4 * unused, 2 * replaced_tokens)
    room_chars = min(most_chars, _written_tokens(request.path, counter, 2 * most_chars) // 2)
    known = names_of(item.message for item in plan.kept)
    index = index_block(ledger.names, room_chars=room_chars, known=known)
    tokens = counter.count_text(index)
    if tokens <= room_tokens:
        return index
    return index_block(ledger.names, room_chars=len(index) * room_tokens // tokens, known=known)


def _written_tokens(path: Sequence[Entry], counter: TokenCounter, enough: int) -> int:
    """What was written on `path`, in the context or not; counted until it is `enough`."""
    written = 0
    for entry in reversed(path):
        if written >= enough:
            break
        if isinstance(entry, MessageEntry):
            written += counter.count_message(entry.message)
    return written


def _last_reply(messages: Sequence[Message]) -> str:
    texts = (m.text for m in reversed(messages) if isinstance(m, AssistantMessage))
    return next((text for text in texts if text.strip()), "")
