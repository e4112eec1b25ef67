"""What the requests of a conversation cost: by model, and since its last compaction."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from agent_tui.agent.conversation import Conversation
from agent_tui.compaction.outcome import CompactionResult
from agent_tui.messages import AssistantMessage, Cost, Usage, UserMessage
from agent_tui.providers.base import model_name
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    Carryover,
    CompactionEntry,
    Entry,
    MessageEntry,
    Requests,
)
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.changes import report_of
from agent_tui.sessions.replay.notes import run_in, was_copied


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of some requests.

    Attributes:
        model: The model that answered; empty for several.
        requests: Number of requests.
        input_tokens: All tokens sent, including `cached_tokens`.
        cached_tokens: Tokens read from the provider's cache.
        output_tokens: Tokens received.
        cost_usd: US dollars, as far as prices are known.
        has_estimates: Whether a provider sent no counts, so that these are estimates.
        purpose: What the requests were for, if not replies, in a word or two.
    """

    model: str = ""
    requests: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    has_estimates: bool = False
    purpose: str = ""

    def plus(self, usage: Usage, requests: int = 1) -> "Spent":
        """A copy with `usage` of the given number of requests added."""
        return replace(
            self,
            requests=self.requests + requests,
            input_tokens=self.input_tokens + usage.input + usage.cache_read + usage.cache_write,
            cached_tokens=self.cached_tokens + usage.cache_read,
            output_tokens=self.output_tokens + usage.output,
            cost_usd=self.cost_usd + usage.cost.total,
            has_estimates=self.has_estimates or usage.is_estimate,
        )

    def to_stored(self) -> Requests:
        """As stored in the conversation's next session; `plus` reads it back."""
        usage = Usage(
            input=self.input_tokens - self.cached_tokens,
            output=self.output_tokens,
            cache_read=self.cached_tokens,
            cost=Cost(total=self.cost_usd),
            is_estimate=self.has_estimates,
        )
        return Requests(model=self.model, requests=self.requests, usage=usage, purpose=self.purpose)


@dataclass(frozen=True, slots=True)
class Spending:
    """A conversation's usage: by model and purpose (most expensive first), summaries, newest part.

    `since_compaction` is None if it was never compacted; `last_turn` is the usage after the user's
    newest message.
    """

    replies: tuple[Spent, ...]
    summaries: Spent
    since_compaction: Spent | None
    last_turn: Spent = field(default_factory=Spent)


def spending_of(log: SessionLog) -> Spending:
    """The usage of `log` and the sessions it was compacted from, abandoned branches included.

    Messages that were copied or pulled into `log` are not counted: they were paid elsewhere.
    """
    own = [e for e in log.entries if not (e.pulled_from or was_copied(log.header, e))]
    by_kind: dict[tuple[str, str], Spent] = {}
    for message in _replies(own):
        name = model_name(message.provider, message.model)
        by_kind[name, ""] = by_kind.get((name, ""), Spent(name)).plus(message.usage)
    carried = log.header.compaction
    before = carried.spent if carried else ()
    for run in (*before, *filter(None, map(run_in, own))):
        kind = (run.model, run.purpose)
        spent = by_kind.get(kind, Spent(run.model, purpose=run.purpose))
        by_kind[kind] = spent.plus(run.usage, run.requests)
    summaries = by_kind.pop(("", ""), Spent())
    for entry in own:
        match entry:
            case CompactionEntry(usage=Usage() as usage) if entry.parent_id:
                summaries = summaries.plus(usage)
            case BranchSummaryEntry(usage=Usage() as usage):
                summaries = summaries.plus(usage)
            case _:
                pass
    replies = sorted(by_kind.values(), key=lambda spent: (-spent.cost_usd, -spent.input_tokens))
    return Spending(tuple(replies), summaries, _since_compaction(log), _last_turn(log))


def known_cost_usd(conversation: Conversation) -> float | None:
    """US dollars that `conversation` has cost, as far as prices are known; None if none is."""
    cost_usd = conversation.totals.cost_usd
    has_price = conversation.model_info.input_price is not None or conversation.model.runs_here
    return cost_usd if cost_usd or has_price else None


def with_spending(
    carried: Carryover | None, log: SessionLog, summary: CompactionResult | None
) -> Carryover:
    """`carried` with the spending so far, for the session that `summary` of `log` begins."""
    spending = spending_of(log)
    summaries = spending.summaries
    if summary is not None and summary.usage is not None:
        summaries = summaries.plus(summary.usage)
    spent = tuple(one.to_stored() for one in (*spending.replies, summaries) if one.requests)
    return (carried or Carryover()).model_copy(update={"spent": spent})


def _since_compaction(log: SessionLog) -> Spent | None:
    path = log.path_entries()
    places = [
        place
        for place, entry in enumerate(path)
        if isinstance(entry, CompactionEntry) or report_of(entry) is not None
    ]
    return _spending_from(log, places[-1]) if places else None


def _last_turn(log: SessionLog) -> Spent:
    path = log.path_entries()
    said = (
        place
        for place in range(len(path) - 1, -1, -1)
        if isinstance(entry := path[place], MessageEntry) and isinstance(entry.message, UserMessage)
    )
    return _spending_from(log, next(said, 0))


def _spending_from(log: SessionLog, place: int) -> Spent:
    """The usage of the replies from index `place` of the path on."""
    spent = Spent()
    own = (entry for entry in log.path_entries()[place:] if not was_copied(log.header, entry))
    for message in _replies(own):
        spent = spent.plus(message.usage)
    return spent


def _replies(entries: Iterable[Entry]) -> Iterator[AssistantMessage]:
    for entry in entries:
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            yield entry.message
