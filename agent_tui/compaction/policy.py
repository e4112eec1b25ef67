"""When to compact: the counted context, thresholds in the window, a breaker for failures."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.config import CompactionSettings
from agent_tui.messages import ContextNote
from agent_tui.providers.base import ModelInfo
from agent_tui.tokens import percent_of

ContextLevel: TypeAlias = Literal["normal", "warn", "trigger"]

MAX_FAILURES_IN_A_ROW = 3

_LARGEST_RESERVE = 20_000
"""Longer replies are rare; reserving a model's full limit would waste a third of a window."""

_SMALL_WINDOW = 32_768

_FIRST_TOLD_TENTH, _ALL_TENTHS = 6, 10

MOST_FRUITLESS = 3
_REFILL_REPLIES = 3
_REFILLS_IN_A_ROW = 3


def output_reserve_tokens(window: int, max_output: int) -> int:
    """Tokens kept free for the reply: the model's limit, at most a quarter of the window."""
    return max(0, min(max_output, window // 4, _LARGEST_RESERVE))


def reply_cap_tokens(info: ModelInfo, used: int = 0) -> int | None:
    """The reply limit to send with a request, so that it keeps to its reserve; None to send none.

    Small windows have no space for more, and models on local servers are often small ones that do
    not stop once they ramble. Some servers refuse a limit that exceeds the window: if `used` (known
    tokens) leaves less, the limit shrinks, though an estimate never shrinks it to next to nothing.
    A guessed window sets no limit.
    """
    if info.source == "guess" or (info.window > _SMALL_WINDOW and info.source != "server"):
        return None
    reserve = output_reserve_tokens(info.window, info.max_output)
    return max(min(reserve, info.window - used), reserve // 4) or None


def usable_window(window: int, output_reserve: int) -> int:
    """The window less the reserve, but at least half the window."""
    return max(window - max(output_reserve, 0), window // 2)


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """At which size of the context the user is warned and compaction starts, and its target.

    All in tokens, and 0 if the window is unknown; above `most` is the reply's reserve.
    """

    window: int
    warn: int
    trigger: int
    target: int
    most: int
    least_gain: int

    @property
    def trigger_percent(self) -> int:
        """The percentage at which compaction starts, on the scale of `ContextUsage.percent`."""
        return percent_of(self.trigger, self.window)

    def level(self, used: int) -> ContextLevel:
        """The level of `used` tokens; ``normal`` in an unknown window."""
        if self.window <= 0:
            return "normal"
        if used >= self.trigger:
            return "trigger"
        return "warn" if used >= self.warn else "normal"


def context_limits(window: int, output_reserve: int, settings: CompactionSettings) -> ContextLimits:
    """The limits of a window: fractions of it that keep the reply's reserve free.

    Compaction starts at ``trigger_tokens`` at the latest, however large the window; the warning and
    the target scale with it.
    """
    used = settings.effective_window(window)
    most = usable_window(window, output_reserve)
    trigger = min(round(used * settings.trigger_at), most)
    return ContextLimits(
        window,
        warn=round(trigger * min(settings.warn_at / settings.trigger_at, 1)),
        trigger=trigger,
        target=settings.target_tokens(used),
        most=most,
        least_gain=round(used * settings.min_gain),
    )


def note_due(note: ContextNote, told: ContextNote | None) -> bool:
    """Whether the model should get `note` about its context, after the last one it was `told`.

    That is once for each tenth of the limit, from six tenths on; at the limit agent-tui compacts.
    """
    last_told = told.tenth if told is not None else 0
    return max(_FIRST_TOLD_TENTH, last_told + 1) <= note.tenth < _ALL_TENTHS


@dataclass(frozen=True, slots=True)
class RefillWatch:
    """Notices that compactions do not help: the context is full again a few replies later.

    An immutable value: each method returns a new watch.

    Args:
        replies: Number since the last automatic compaction; None before the first.
        refills: How often in a row the context filled up within three replies.
        fruitless: How many automatic compactions there were since the last progress.
    """

    replies: int | None = None
    refills: int = 0
    fruitless: int = 0

    @property
    def is_in_vain(self) -> bool:
        """Whether to tell the user now: after every third refill in a row."""
        return self.refills > 0 and self.refills % _REFILLS_IN_A_ROW == 0

    @property
    def is_loop(self) -> bool:
        """Whether nothing but compactions happens, so that the turn must end."""
        return self.fruitless >= MOST_FRUITLESS

    def loop_message(self, filling: str) -> str:
        """Why the turn ends, with names of `Ways`; `filling` names what fills the context."""
        return (
            f"Stopped: the context was compacted {self.fruitless} times, and nothing new was "
            "read, run or changed in between. "
            f"Mostly in the context: {filling}. Choose a model with a larger window ({{model}}), "
            "compact with a focus ({compact}), or ask for fewer files at a time."
        )

    def message(self, filling: str) -> str:
        """The message, with names of `Ways`; `filling` names what fills the context."""
        return (
            f"The context filled up again within {_REFILL_REPLIES} replies, "
            f"{self.refills} times in a row. Mostly: {filling}. Ask for smaller pieces, or choose "
            "a model with a larger window with {model}."
        )

    def after_reply(self) -> "RefillWatch":
        """The watch after one more reply."""
        return self if self.replies is None else replace(self, replies=self.replies + 1)

    def after_progress(self) -> "RefillWatch":
        """The watch after progress (see `Repetition`) or a message of the user."""
        return replace(self, fruitless=0)

    def after_compaction(self) -> "RefillWatch":
        """The watch after an automatic compaction."""
        is_refill = self.replies is not None and self.replies <= _REFILL_REPLIES
        return RefillWatch(0, self.refills + 1 if is_refill else 0, self.fruitless + 1)


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stops automatic compaction after failures in a row, so that it cannot fail forever.

    An immutable value: each method returns a new breaker.
    """

    failures: int = 0

    @property
    def is_open(self) -> bool:
        """Whether automatic compaction has stopped."""
        return self.failures >= MAX_FAILURES_IN_A_ROW

    @property
    def message(self) -> str:
        """The message while it is open, with names of `Ways`; empty otherwise."""
        if not self.is_open:
            return ""
        return (
            f"Automatic compaction stopped after {self.failures} failures in a row. "
            "Restart it with {compact}, or choose another model with {model}."
        )

    def after_failure(self) -> "Breaker":
        """The breaker after a failed automatic compaction (cancelling does not count)."""
        return Breaker(self.failures + 1)

    def after_success(self) -> "Breaker":
        """The breaker after a compaction, a manual one included, or a change of model."""
        return Breaker()


def should_compact(
    used: int, limits: ContextLimits, breaker: Breaker, left_tokens: int = 0
) -> bool:
    """Whether automatic compaction, if switched on, is due before the next request.

    Args:
        used: Tokens of the context.
        limits: The limits of its window.
        breaker: The conversation's breaker.
        left_tokens: Size after the last compaction or its undo. If that was large (a small window,
            a giant turn), the next one waits until it can free the least gain or the context
            reaches the reply's reserve.
    """
    if breaker.is_open or limits.level(used) != "trigger":
        return False
    return used - left_tokens >= limits.least_gain or used > limits.most
