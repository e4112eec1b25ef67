"""How large the next request is: the provider's figure, and an estimate of what came after it."""

from collections.abc import Sequence
from datetime import datetime

from agent_tui.messages import AssistantMessage
from agent_tui.sessions.context import Context, ContextMessage
from agent_tui.sessions.entries import CompactionEntry
from agent_tui.tokens import ContextUsage, TokenCounter, TokenRatios

_COMPLETED = ("stop", "length", "toolUse")

_JUDGED_FROM_TOKENS = 2_000
_LEAST_PART = 4
_MOST_TIMES = 10

_LEAST_UNCOUNTED_PART = 10
"""If more than this fraction of the window is only estimated, it may be off by a percent."""


def measure_context(
    context: Context,
    *,
    counter: TokenCounter,
    ratios: TokenRatios,
    model: str,
    window: int,
    overhead_tokens: int,
) -> ContextUsage:
    """The tokens of the next request to `model`.

    The newest usable figure of the provider (see `newest_figure`) plus an estimate of every
    message after it; without one, everything is estimated and `overhead_tokens` added. A figure
    also gives the ratio for all estimates that follow, such as that of a compaction's result.

    Args:
        context: The context that the model sees.
        counter: Estimates tokens; caches its counts.
        ratios: The ratio of `model`'s counts to ours; learns from the figure.
        model: Name of the model, ``provider/name`` or the bare name.
        window: Context window of `model` in tokens.
        overhead_tokens: System prompt and tool schemas, as `counter` estimates them.
    """
    if found := _find_counted_part(context, counter, model, window, overhead_tokens):
        index, counted, estimated = found
        ratios.observe(model, estimated=estimated, counted=counted)
        newer = _estimate(context.messages[index + 1 :], counter)
        uncounted = round(newer * ratios.ratio(model))
        is_estimate = uncounted * _LEAST_UNCOUNTED_PART > window
        return ContextUsage(counted + uncounted, window, is_estimate)
    estimated = overhead_tokens + _estimate(context.messages, counter)
    return ContextUsage(round(estimated * ratios.ratio(model)), window, is_estimate=True)


def _find_counted_part(
    context: Context, counter: TokenCounter, model: str, window: int, overhead_tokens: int
) -> tuple[int, int, int] | None:
    """Index and tokens of the newest figure, and our estimate; None if it is not credible."""
    if (found := newest_figure(context, model)) is None:
        return None
    index, counted = found
    estimated = overhead_tokens + _estimate(context.messages[: index + 1], counter)
    return (index, counted, estimated) if is_credible(counted, estimated, window) else None


def newest_figure(context: Context, model: str) -> tuple[int, int] | None:
    """Index and tokens of the newest reply whose usage still states the context's size.

    It must be a completed reply of `model` with a usage that the provider itself sent. Replies
    kept through a compaction still carry the usage of the larger context before it, and so do
    the replies copied into the session that ``/compact`` starts. A message keeps its own time
    wherever it is copied to, and `compaction_entry` dates a compaction later than every message
    it keeps: so a figure counts only when its message is not older than the compaction. The same
    applies to replies before an edit or an undo (`Context.fresh_from`).
    """
    earliest_ms = _time_written_ms(context.compaction)
    for index in range(len(context.messages) - 1, context.fresh_from - 1, -1):
        message = context.messages[index].message
        if not isinstance(message, AssistantMessage) or not is_reply_of(message, model):
            continue
        if message.timestamp < earliest_ms:
            return None
        if message.stop_reason in _COMPLETED and not message.usage.is_estimate:
            counted = message.usage.context_tokens
            if counted > 0:
                return index, counted
    return None


def is_credible(counted: int, estimated: int, window: int) -> bool:
    """Whether a service's figure `counted` is plausible for our estimate of `estimated` tokens.

    Some services count only uncached tokens, or what was left after cutting the request. No
    vocabulary gives a quarter of our tokens for the same text; ten times as many is implausible too
    if it exceeds the model's window.
    """
    is_too_low = counted * _LEAST_PART < estimated and estimated >= _JUDGED_FROM_TOKENS
    most = _MOST_TIMES * max(estimated, _JUDGED_FROM_TOKENS)
    is_too_high = counted > most and 0 < window < counted
    return not (is_too_low or is_too_high)


def is_reply_of(message: AssistantMessage, model: str) -> bool:
    """Whether `model` (``provider/name`` or a bare name) wrote `message`."""
    return bool(message.model) and model in (message.model, f"{message.provider}/{message.model}")


def _estimate(messages: Sequence[ContextMessage], counter: TokenCounter) -> int:
    return counter.count_messages(item.message for item in messages)


def _time_written_ms(compaction: CompactionEntry | None) -> float:
    """The time of the compaction in ms since 1970; minus infinity if unknown."""
    if compaction is None:
        return float("-inf")
    try:
        return datetime.fromisoformat(compaction.timestamp).timestamp() * 1000
    except ValueError:
        return float("-inf")
