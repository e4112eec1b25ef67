"""The line above the prompt that shows what runs, for how long, and how to stop it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from agent_tui.commands.core.short_words import short_count
from agent_tui.durations import format_duration, format_remaining
from agent_tui.key_actions import keys_in_force
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import keys_line

SHOWN_AFTER_S = 0.3
"""What ends sooner is not worth a line that flickers."""

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 10
_FRAME_CELLS = 2
_CHARS_PER_TOKEN = 4
"""Rough, for the running count only; the status bar shows the provider's count."""


@dataclass(frozen=True, slots=True)
class ActivityState:
    """What runs. Times are readings of one monotonic clock, in seconds.

    `until` is when a waiting time ends (a retry), 0 if nothing is waited for; `detail` comes
    last, and may take a second row. `can_stop`: Esc ends it. `round` says where in a loop it is.
    Time stops while waiting for the user, since `paused_at` (0 while something runs).
    `awaited_since` is when the last words of the model came, where they are long in coming; else 0.
    `ends_at_s` is when a wait for a limit ends, in seconds since 1970; else 0.
    """

    label: str
    started_at: float
    output_chars: int = 0
    until: float = 0.0
    detail: str = ""
    can_stop: bool = True
    round: str = ""
    paused_at: float = 0.0
    awaited_since: float = 0.0
    ends_at_s: float = 0.0

    def with_pause(self, now: float) -> "ActivityState":
        """The state while waiting for the user."""
        return replace(self, paused_at=self.paused_at or now)

    def without_pause(self, now: float) -> "ActivityState":
        """The state after the user answered, without the time spent waiting."""
        waited = now - self.paused_at if self.paused_at else 0.0
        return replace(self, started_at=self.started_at + waited, paused_at=0.0)


def activity_text(state: ActivityState, now: float, wall_s: float = 0.0) -> str:
    """``Writing… · 12s · ↓340 tokens · esc to interrupt``, or a count down.

    Args:
        state: What runs.
        now: The monotonic clock, in seconds.
        wall_s: The present time, in seconds since 1970.
    """
    if state.until > now:
        parts = [f"{state.label} in {format_remaining(state.until - now)}…"]
    elif state.ends_at_s:
        parts = [f"{state.label} in {format_remaining(state.ends_at_s - wall_s)}…"]
    elif state.awaited_since:
        parts = [f"{state.label} {format_duration(now - state.awaited_since)}…"]
    else:
        parts = [f"{state.label}…", format_duration((state.paused_at or now) - state.started_at)]
    if state.round:
        parts.insert(1, state.round)
    if state.output_chars >= _CHARS_PER_TOKEN:
        parts.append(f"↓{short_count(state.output_chars // _CHARS_PER_TOKEN)} tokens")
    if state.can_stop:
        parts.append(keys_in_force().hint("interrupt", "stops"))
    if state.detail:
        parts.append(state.detail)
    return " · ".join(parts)


class ActivityLine(Widget):
    """A spinner and words while something runs, else empty; at the right, news from below.

    Args:
        clock: Monotonic seconds.
        wall_clock: Seconds since 1970.
    """

    def __init__(
        self, clock: Callable[[], float], wall_clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(id="activity")
        self._clock = clock
        self._wall_clock = wall_clock
        self._state: ActivityState | None = None
        self._below = ""
        self._hint = ""
        self._drawn_second = 0
        self._ticks: Timer | None = None

    def on_mount(self) -> None:
        """Prepare the ticking, which pauses while nothing runs."""
        self._ticks = self.set_interval(1 / _FRAMES_PER_S, self._tick, pause=True)

    def _tick(self) -> None:
        """Draw the next frame; only every second during a wait of hours."""
        is_long = self._state is not None and self._state.ends_at_s > 0
        second = int(self._clock())
        if not is_long or second != self._drawn_second:
            self._drawn_second = second
            self.refresh()

    @property
    def state(self) -> ActivityState | None:
        """The work that is shown as running."""
        return self._state

    def show(self, state: ActivityState | None) -> None:
        """Show other work, or none."""
        was_running = self._state is not None
        self._state = state
        self._fit()
        if self._ticks is not None and was_running != (state is not None):
            if state is None:
                self._ticks.pause()
            else:
                self._ticks.resume()
        if state is None or not was_running:
            self.refresh()

    def show_below(self, text: str) -> None:
        """Show at the right what is below the visible chat; empty for nothing."""
        if text != self._below:
            self._below = text
            self.refresh()

    def show_hint(self, text: str) -> None:
        """Show the keys that are useful now, after the work; empty for none."""
        if text != self._hint:
            self._hint = text
            self.refresh()

    def render(self) -> Content:
        """The line, fitted to the width; a long detail wraps into a second row."""
        width = self.content_size.width
        right = Content.assemble((self._below, "$text-accent @click=app.chat_end"))
        room = max(width - right.cell_length - 1, 0)
        left = self._work_text()
        if self.content_size.height > 1 and left.cell_length > width:
            return left
        left = left.truncate(room, ellipsis=True)
        gap = " " * max(width - left.cell_length - right.cell_length, 0)
        return Content.assemble(left, gap, right)

    def on_resize(self) -> None:
        """Fit the rows to another width."""
        self._fit()

    def _fit(self) -> None:
        """Take a second row for a detail that is too long for the first."""
        state = self._state
        needed = _FRAME_CELLS + cell_len(self._text(state)) if state else 0
        is_long = bool(state and state.detail) and needed > self.content_size.width
        self.styles.height = 2 if is_long else 1

    def _text(self, state: ActivityState) -> str:
        return activity_text(state, self._clock(), self._wall_clock())

    def _work_text(self) -> Content:
        now = self._clock()
        if self._state is None or now - self._state.started_at < SHOWN_AFTER_S:
            return keys_line(self._hint) if self._hint else Content()
        frame = _FRAMES[int(now * _FRAMES_PER_S) % len(_FRAMES)]
        text = safe_text(self._text(self._state), keep_newlines=False)
        label, separator, rest = text.partition(" · ")
        shown = Content.assemble(
            (f"{frame} ", "$primary"),
            (label, "$foreground"),
            (separator + rest, "$foreground-muted"),
        )
        if not self._hint:
            return shown
        return Content.assemble(shown, (" · ", "$foreground-muted"), keys_line(self._hint))
