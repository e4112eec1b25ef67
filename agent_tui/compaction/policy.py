"""When to compact: thresholds in the window, and a breaker for repeated failures."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from agent_tui.config import CompactionSettings
from agent_tui.messages import ContextNote
from agent_tui.providers.base import ModelInfo
from agent_tui.tokens import percent_of

ContextLevel: TypeAlias = Literal["normal", "warn", "trigger"]

MAX_FAILURES_IN_A_ROW = 3

_LARGEST_RESERVE = 20_000
"""Replies beyond this are rare; a model's whole output limit would waste a third of a window."""

_SMALL_WINDOW = 32_768

_FIRST_TOLD_TENTH, _ALL_TENTHS = 6, 10

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


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """Where in a window of `window` tokens the person is told, room is made, and how deep.

    All in tokens, and 0 where the window is not known; beyond `most` the reply's room begins.
    """

    window: int
    warn: int
    trigger: int
    target: int
    most: int
    least_gain: int

    @property
    def trigger_percent(self) -> int:
        """Where room is made, on the scale of `ContextUsage.percent`."""
        return percent_of(self.trigger, self.window)

    def level(self, used: int) -> ContextLevel:
        """Where `used` tokens stand; ``normal`` in an unknown window."""
        if self.window <= 0:
            return "normal"
        if used >= self.trigger:
            return "trigger"
        return "warn" if used >= self.warn else "normal"


def context_limits(window: int, output_reserve: int, settings: CompactionSettings) -> ContextLimits:
    """The limits of a window: fractions of it, while room for the reply stays free.

    However large the window, room is made at ``trigger_tokens``; the warning and the target keep
    their proportion to that.
    """
    used = settings.used_window(window)
    most = usable_window(window, output_reserve)
    trigger = min(round(used * settings.trigger_at), most)
    return ContextLimits(
        window,
        warn=round(trigger * min(settings.warn_at / settings.trigger_at, 1)),
        trigger=trigger,
        target=int(used * settings.target_share(used)),
        most=most,
        least_gain=round(used * settings.min_gain),
    )


def note_due(note: ContextNote, told: ContextNote | None) -> bool:
    """Whether the model should be told `note` of its context, after what it was `told` last.

    From six tenths of the limit on, once for each further tenth; at the limit room is made.
    """
    last_told = told.tenth if told is not None else 0
    return max(_FIRST_TOLD_TENTH, last_told + 1) <= note.tenth < _ALL_TENTHS


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
            f"The context filled up again within {_REFILL_REPLIES} replies, "
            f"{self.refills} times in a row. Mostly: {filling}. Ask for smaller pieces, or choose "
            "a model with a larger window with /model."
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
            "Restart it with /compact, or choose another model with /model."
        )

    def after_failure(self) -> "Breaker":
        """One more automatic compaction failed (a cancel by the person is no failure)."""
        return Breaker(self.failures + 1)

    def after_success(self) -> "Breaker":
        """A compaction succeeded, the person compacted by hand, or the model changed."""
        return Breaker()


def should_compact(
    used: int, limits: ContextLimits, breaker: Breaker, left_tokens: int = 0
) -> bool:
    """Whether automatic compaction, where it is on, is due before the next request.

    Args:
        used: Tokens of the context.
        limits: Of its window.
        breaker: Of the conversation.
        left_tokens: What the last compaction left, or what its undoing brought back. Where that
            was much (a small window, a giant turn) the next one waits until the least gain is to
            be had or the reply's room is reached.
    """
    if breaker.is_open or limits.level(used) != "trigger":
        return False
    return used - left_tokens >= limits.least_gain or used > limits.most
