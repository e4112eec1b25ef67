"""When to compact: thresholds of the usable window, and a breaker for repeated failures."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.config import CompactionSettings
from agent_tui.providers.base import ModelInfo
from agent_tui.tokens import ContextUsage

ContextLevel: TypeAlias = Literal["normal", "warn", "trigger"]

MAX_FAILURES_IN_A_ROW = 3

_LARGEST_RESERVE = 20_000
"""Replies beyond this are rare; a model's whole output limit would waste a third of a window."""

_SMALL_WINDOW = 32_768

_REFILL_REPLIES = 3
_REFILLS_IN_A_ROW = 3


def output_reserve_tokens(window: int, max_output: int) -> int:
    """Tokens kept free for the reply: the model's limit, at most a quarter of the window."""
    return max(0, min(max_output, window // 4, _LARGEST_RESERVE))


def reply_cap_tokens(info: ModelInfo, used: int = 0) -> int | None:
    """The limit to send along, so that a reply keeps to its reserve; None leaves it to the service.

    Small windows have no room for more, and models on a server of one's own are often small
    ones that, once they babble, do not stop by themselves. Some servers refuse a request whose
    limit goes beyond the window: with more than the rest of it `used` (tokens, as far as known)
    the reply gets less, though not next to nothing on the strength of an estimate. A window that
    is a guess limits no reply.
    """
    if info.source == "guess" or (info.window > _SMALL_WINDOW and info.source != "server"):
        return None
    reserve = output_reserve_tokens(info.window, info.max_output)
    return max(min(reserve, info.window - used), reserve // 4) or None


def usable_window(window: int, output_reserve: int) -> int:
    """The window less the reserve; never less than half the window, whatever the reserve."""
    return max(window - max(output_reserve, 0), window // 2)


def target_tokens(window: int, output_reserve: int, settings: CompactionSettings) -> int:
    """What a compaction brings the next request down to, in tokens."""
    usable = usable_window(settings.used_window(window), output_reserve)
    return int(usable * settings.target_share(usable))


def context_level(
    usage: ContextUsage, settings: CompactionSettings, output_reserve: int
) -> ContextLevel:
    """Where `usage` stands against ``warn_at`` and ``trigger_at`` of the usable window.

    The percentage shown is of the whole window; the thresholds are of what a conversation may
    fill of it: no more than ``max_window``, and room for the reply stays free. An unknown window
    (0) is always ``normal``.
    """
    usable = usable_window(settings.used_window(usage.window), output_reserve)
    if usable <= 0:
        return "normal"
    filled = usage.used / usable
    if filled >= settings.trigger_at:
        return "trigger"
    return "warn" if filled >= settings.warn_at else "normal"


@dataclass(frozen=True, slots=True)
class RefillWatch:
    """Notices that compactions are in vain: the context is full again a few replies later.

    A value: each method returns the watch as it is afterwards.

    Args:
        replies: Since the last automatic compaction; None before the first.
        refills: How often in a row the context filled up within three replies.
    """

    replies: int | None = None
    refills: int = 0

    @property
    def is_in_vain(self) -> bool:
        """Whether the person should be told now: at the third refill in a row, and each third."""
        return self.refills > 0 and self.refills % _REFILLS_IN_A_ROW == 0

    def message(self, filling: str) -> str:
        """What to tell the person; `filling` names what fills the context."""
        return (
            f"The context was full again within {_REFILL_REPLIES} replies, "
            f"{self.refills} times in a row. It is mostly: {filling}. Smaller pieces of it, or a "
            "model with a larger window (/model), would help."
        )

    def after_reply(self) -> "RefillWatch":
        """One more reply came."""
        return self if self.replies is None else RefillWatch(self.replies + 1, self.refills)

    def after_compaction(self) -> "RefillWatch":
        """An automatic compaction made room."""
        is_refill = self.replies is not None and self.replies <= _REFILL_REPLIES
        return RefillWatch(0, self.refills + 1 if is_refill else 0)


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stops automatic compaction after failures in a row, so that it cannot fail forever.

    A value: each method returns the breaker as it is afterwards.
    """

    failures: int = 0

    @property
    def is_open(self) -> bool:
        """Whether automatic compaction has stopped."""
        return self.failures >= MAX_FAILURES_IN_A_ROW

    @property
    def message(self) -> str:
        """What to tell the person while it is open; empty otherwise."""
        if not self.is_open:
            return ""
        return (
            f"Automatic compaction stopped after {self.failures} failures in a row. "
            "Use /compact, or choose another model with /model, to start it again."
        )

    def after_failure(self) -> "Breaker":
        """One more automatic compaction failed (a cancel by the person is no failure)."""
        return Breaker(self.failures + 1)

    def after_success(self) -> "Breaker":
        """A compaction succeeded, the person compacted by hand, or the model changed."""
        return Breaker()


def should_compact(
    usage: ContextUsage,
    settings: CompactionSettings,
    output_reserve: int,
    breaker: Breaker,
    left_tokens: int = 0,
) -> bool:
    """Whether automatic compaction is due before the next request.

    Args:
        usage: How full the window is.
        settings: ``auto`` and the thresholds.
        output_reserve: Tokens kept free for the reply.
        breaker: Of the conversation.
        left_tokens: What the last compaction left, or what its undoing brought back. Where that
            was much (a small window, a giant turn) the next one waits until ``min_gain`` is to
            be gained or the reserve is reached.
    """
    if not settings.auto or breaker.is_open:
        return False
    if context_level(usage, settings, output_reserve) != "trigger":
        return False
    is_worthwhile = usage.used - left_tokens >= settings.min_gain * settings.used_window(
        usage.window
    )
    return is_worthwhile or usage.used > usable_window(usage.window, output_reserve)
