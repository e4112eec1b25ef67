"""``/cost``: the tokens and dollars of the session, and what broke the provider's cache."""

from collections.abc import Callable, Iterator, Sequence

from agent_tui.agent.session.spending import Spending, Spent, spending_of
from agent_tui.agent.turn.request_watch import CacheBreak
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Front
from agent_tui.commands.core.short_words import count_text
from agent_tui.durations import clock_time
from agent_tui.events import TotalsChanged
from agent_tui.providers.base import ModelRef
from agent_tui.providers.rate_limits import RateLimit, rate_limits
from agent_tui.providers.spend_limits import has_price

_CACHE = "cache"


@command(
    f"[{_CACHE}]",
    aliases=("usage",),
    completions=lambda _front: (Completion(_CACHE, "show what broke the prompt cache"),),
)
async def cost(front: Front, argument: str) -> None:
    """Show the tokens and cost of this session."""
    runtime = front.runtime
    if argument.strip() == _CACHE:
        requests = runtime.conversation.requests
        front.say("\n".join(break_lines(requests.breaks, requests.count)))
        return

    def is_priced(name: str) -> bool:
        ref = ModelRef(name)
        return has_price(ref, front.services.models.info(ref))

    conversation = runtime.conversation
    spending, model = spending_of(conversation.log), conversation.model
    lines = cost_lines(spending, conversation.totals, model.name, is_priced)
    lines += limit_lines(
        rate_limits(runtime.services.provider, model), runtime.services.wall_clock()
    )
    front.say("\n".join(lines))


def cost_lines(
    spending: Spending, totals: TotalsChanged, model: str, is_priced: Callable[[str], bool]
) -> list[str]:
    """The lines for the whole session, then by model, for summaries, and for its newest part.

    Args:
        spending: The usage in the session file.
        totals: Tokens and dollars as in the status bar.
        model: The model of the next request.
        is_priced: Whether the price of a model is known.
    """
    replies = spending.replies
    requests = sum(spent.requests for spent in replies) + spending.summaries.requests
    whole = Spent(
        requests=requests,
        input_tokens=totals.input_tokens,
        cached_tokens=sum(one.cached_tokens for one in replies) + spending.summaries.cached_tokens,
        output_tokens=totals.output_tokens,
        cost_usd=totals.cost_usd,
        has_estimates=any(one.has_estimates for one in replies),
    )
    used = list(dict.fromkeys(spent.model for spent in replies)) or [model]
    unpriced = [name for name in used if name and not is_priced(name)]
    knows_all, knows_some = not unpriced, len(unpriced) < len(used) or bool(totals.cost_usd)
    lines = [f"This session: {_amounts(whole, with_cost=knows_all or knows_some)}."]
    parts = [(_name(spent), spent) for spent in replies] if len(replies) > 1 else []
    if spending.summaries.requests:
        parts.append(("summaries", spending.summaries))
    lines += [
        f"  {name}: {_amounts(one, with_cost=knows_all or one.cost_usd > 0)}" for name, one in parts
    ]
    if whole.cached_tokens:
        rates = f"{_rate(whole)} of the input this session"
        if spending.last_turn.requests:
            rates += f", {_rate(spending.last_turn)} in the last turn"
        lines.append(f"From the cache: {rates}. /cost {_CACHE} shows what broke it.")
    if spending.since_compaction is not None:
        since = _amounts(spending.since_compaction, with_cost=knows_all)
        lines.append(f"Since the last compaction: {since}.")
    if unpriced:
        names = " and ".join(unpriced)
        verb = "is" if len(unpriced) == 1 else "are"
        what = "price" if len(unpriced) == 1 else "prices"
        lines.append(f"The {what} of {names} {verb} unknown and not counted.")
    elif totals.cost_usd:
        lines.append("At list prices; your bill may differ.")
    if whole.has_estimates:
        lines.append("Some token counts are estimates: the provider sent none.")
    return lines


def limit_lines(limits: Sequence[RateLimit], now_s: float) -> Iterator[str]:
    """Yield what is left of each limit that the provider stated, and when it resets.

    Args:
        limits: The limits.
        now_s: The present time, in seconds since 1970.
    """
    if limits:
        yield "Left of the provider's limits, as of its last response:"
    for limit in limits:
        reset = f", resets at {clock_time(limit.resets_at, now_s)}" if limit.resets_at else ""
        yield f"  {limit.name}: {limit.left_percent}%{reset}"


def break_lines(breaks: Sequence[CacheBreak], requests: int) -> list[str]:
    """What made the provider read requests from the beginning again, newest last.

    Args:
        breaks: The newest breaks.
        requests: Number of requests compared with the one before.
    """
    if not breaks:
        return [f"Nothing broke the cache in {count_text(requests, 'request')} since the start."]
    lines = [f"What broke the cache, in {count_text(requests, 'request')} since the start:"]
    return lines + [
        f"  request {one.number}: {one.cause} ({one.cached_tokens:,} of {one.input_tokens:,} "
        "tokens came from the cache)"
        for one in breaks
    ]


def _name(spent: Spent) -> str:
    return f"{spent.purpose} ({spent.model})" if spent.purpose else spent.model


def _rate(spent: Spent) -> str:
    return f"{spent.cached_tokens * 100 // max(spent.input_tokens, 1)}%"


def _amounts(spent: Spent, *, with_cost: bool) -> str:
    cached = f" ({spent.cached_tokens:,} from the cache)" if spent.cached_tokens else ""
    requests = count_text(spent.requests, "request")
    amounts = [f"{spent.input_tokens:,} tokens in{cached}", f"{spent.output_tokens:,} out"]
    if with_cost:
        amounts.append(f"${spent.cost_usd:.4f}")
    return ", ".join((*amounts, requests))
