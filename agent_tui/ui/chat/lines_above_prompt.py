"""Lines between chat and prompt: activity, plan, queue, a cold cache, a demo, features."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from agent_tui.agent.compaction.cache_clock import ColdPrice
from agent_tui.commands.core.demo import Demo
from agent_tui.commands.core.short_words import short_count
from agent_tui.durations import format_duration, format_remaining
from agent_tui.events import AgentEvent, FeatureEvent, Standing, standing_of
from agent_tui.key_actions import keys_in_force
from agent_tui.messages import Todo
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import keys_line
from agent_tui.ui.prompt.prompt import Prompt

SHOWN_AFTER_S = 0.3
"""What ends sooner is not worth a line that flickers."""

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAMES_PER_S = 10
_FRAME_CELLS = 2
_LONG_COMMAND_S = 5.0
"""From then on the line says how to move a command to the background."""
_CHARS_PER_TOKEN = 4
"""Rough, for the running count only; the status bar shows the provider's count."""


@dataclass(frozen=True, slots=True)
class ActivityState:
    """What runs. Times are readings of one monotonic clock, in seconds.

    `until` is when a waiting time ends (a retry), 0 if nothing is waited for; `detail` comes
    last, and may take a second row. `can_stop`: Esc ends it. `round` says where in a loop it is.
    While waiting for the user, since `paused_at` (else 0), time stops and the line says so.
    `awaited_since` is when the last words of the model came, where they are long in coming; else 0.
    `ends_at_s` is when a wait for a limit ends, in seconds since 1970; else 0. `command_since` is
    when a command of the model began, 0 if none runs.
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
    command_since: float = 0.0

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
    if state.paused_at:
        spent = format_duration(state.paused_at - state.started_at)
        parts = ["Waiting for your answer…", spent]
    elif state.until > now:
        parts = [f"{state.label} in {format_remaining(state.until - now)}…"]
    elif state.ends_at_s:
        parts = [f"{state.label} in {format_remaining(state.ends_at_s - wall_s)}…"]
    elif state.awaited_since:
        parts = [f"{state.label} {format_duration(now - state.awaited_since)}…"]
    else:
        parts = [f"{state.label}…", format_duration(now - state.started_at)]
    if state.round:
        parts.insert(1, state.round)
    if state.output_chars >= _CHARS_PER_TOKEN and not state.paused_at:
        parts.append(f"↓{short_count(state.output_chars // _CHARS_PER_TOKEN)} tokens")
    if state.can_stop:
        parts.append(keys_in_force().hint("interrupt", "stops"))
    if state.command_since and not state.paused_at and now - state.command_since >= _LONG_COMMAND_S:
        parts.append(keys_in_force().hint("background", "moves it to the background"))
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


MAX_SHOWN = 5

_SIGNS = {
    "completed": ("✓", "$text-success", "$foreground-muted"),
    "in_progress": ("▸", "$text-primary", "bold"),
    "pending": ("·", "$foreground-disabled", "$foreground-muted"),
}


PlanRoom: TypeAlias = Literal["none", "line", "steps"]
"""How much of the plan to show: nothing, the present step, or the steps around it."""
MAX_QUEUED = 4
_LOOKS_EVERY_S = 10.0


class StepsView(Static):
    """Says what to do next, and has the prompt suggest it.

    Args:
        prompt: Suggests what a step sends.
        demo: The demo with the steps; None hides this.
    """

    def __init__(self, prompt: Prompt, demo: Demo | None) -> None:
        super().__init__(id="steps", markup=False)
        self._prompt = prompt
        self._demo = demo
        self._step = 0
        self.display = False

    def on_mount(self) -> None:
        """Show the first step, if this is a demo."""
        self.turn(self._demo is not None)

    def turn(self, is_shown: bool | None = None) -> bool:
        """Show or hide the steps (None: toggle); false if there are none."""
        if self._demo is not None:
            self.display = not self.display if is_shown is None else is_shown
            self.show_step()
        return self._demo is not None

    def follow(self, event: AgentEvent) -> None:
        """Advance when the present step is done."""
        step = self._demo.step_after(self._step, event) if self._demo is not None else 0
        if step != self._step:
            self._step = step
            self.show_step()

    def show_step(self) -> None:
        """Show the present step with the present keys; nothing after the last."""
        demo = self._demo
        count = len(demo.steps) if demo is not None else 0
        if self._step >= count:
            self.display = False
        if demo is None or not self.display:
            self._prompt.suggest("")
            return
        step = demo.steps[self._step]
        self._prompt.suggest(step.draft)
        self.update(
            Content.assemble(
                (f"{demo.name} {self._step + 1}/{count}", "$text-accent"),
                (f"  {step.title}", "bold"),
                (f"  {demo.command} hides this", "$foreground-muted"),
                "\n",
                (step.shown, "$foreground"),
            )
        )


class ColdLine(Static):
    """Shown while the next message is expensive; updated every few seconds.

    Args:
        price: Its price now; None if no line is needed.
    """

    def __init__(self, price: Callable[[], ColdPrice | None]) -> None:
        super().__init__(id="cold", markup=False)
        self._price = price
        self.display = False

    def on_mount(self) -> None:
        """Start the updates."""
        self.set_interval(_LOOKS_EVERY_S, self.look)

    def look(self) -> None:
        """Update the line."""
        price = self._price()
        self.display = price is not None
        if price is not None:
            self.update(price.sentence)


class FeatureLines(Static):
    """What features show above the prompt, a line each; hidden while there is none."""

    def __init__(self) -> None:
        super().__init__(id="standing", markup=False)
        self._lines: dict[type[FeatureEvent], Standing] = {}
        self._is_paused = True
        self.display = False

    def show(self, event: FeatureEvent) -> bool:
        """Show what `event` puts here, in place of that before it; false if it is nothing."""
        standing = standing_of(event)
        self._lines[type(event)] = standing
        self._redraw_lines()
        return bool(standing.progress or standing.about)

    def clear(self) -> None:
        """Remove all lines."""
        self._lines.clear()
        self._redraw_lines()

    def pause(self, *, is_paused: bool) -> None:
        """Note whether nothing runs."""
        self._is_paused = is_paused
        self._redraw_lines()

    def _redraw_lines(self) -> None:
        lines = [*filter(None, map(self._line, self._lines.values()))]
        self.display = bool(lines)
        self.update(Content("\n").join(lines))

    def _line(self, standing: Standing) -> Content | None:
        if standing.is_for_pauses and not self._is_paused:
            return None
        hint = standing.hint if self._is_paused else ""
        parts = (
            (standing.progress, "$text-accent"),
            (hint, ""),
            (standing.about, "$foreground-muted"),
        )
        shown = [
            Content.styled(safe_text(text, keep_newlines=False), style)
            for text, style in parts
            if text
        ]
        return Content("  ").join(shown) if standing.progress or standing.about else None


class QueueView(Static):
    """One line a message; hidden while there is none."""

    def __init__(self) -> None:
        super().__init__(id="queue", markup=False)
        self.display = False

    def show(self, texts: tuple[str, ...], notes: tuple[str, ...] = ()) -> None:
        """Show the waiting messages, oldest first, below the notes to the model."""
        self.display = bool(texts or notes)
        self.update(queue_lines(texts, notes))


def queue_lines(texts: tuple[str, ...], notes: tuple[str, ...] = ()) -> Content:
    """The waiting notes and messages as lines, and how to take the messages back."""
    lines = [
        Content.styled(f"  {safe_text(note, keep_newlines=False)}", "$foreground-muted")
        for note in notes[-MAX_QUEUED:]
    ]
    if not texts:
        return Content("\n").join(lines)
    lines += [
        Content.assemble(
            ("↳ ", "$text-warning"), (safe_text(text, keep_newlines=False), "$foreground-muted")
        )
        for text in texts[:MAX_QUEUED]
    ]
    more = len(texts) - MAX_QUEUED
    count = f"and {more} more" if more > 0 else ""
    hint = " · ".join(
        filter(None, (count, keys_in_force().hint("take_back_queue", "takes them back")))
    )
    lines.append(Content.assemble((f"  {hint}", "$foreground-disabled")))
    return Content("\n").join(lines)


class PlanView(Widget):
    """One line per step, or only the present step if space is short.

    Hidden without a plan, when it is finished, and after a turn that left it unchanged.
    """

    def __init__(self) -> None:
        super().__init__(id="plan")
        self._todos: tuple[Todo, ...] = ()
        self._room: PlanRoom = "none"
        self._is_changed = False
        self._is_followed = False
        self.display = False

    def show(self, todos: tuple[Todo, ...]) -> None:
        """Show the present plan; the same one again does not bring it back."""
        if todos != self._todos:
            self._is_changed = self._is_followed = True
        self._todos = todos
        self._redraw_plan()

    def take_up(self, todos: tuple[Todo, ...], *, is_followed: bool) -> None:
        """Take the plan of the branch that is opened; `is_followed`: its last turn changed it."""
        self._todos, self._is_followed, self._is_changed = todos, is_followed, False
        self._redraw_plan()

    def end_turn(self) -> None:
        """A turn ended: the next one shows the plan if this one changed it."""
        self._is_followed, self._is_changed = self._is_changed, False

    def make_room(self, room: PlanRoom) -> None:
        """Set the space for the plan: none while nothing runs, a line beside a question."""
        self._room = room
        self._redraw_plan()

    def render(self) -> Content:
        """The plan; a screen of few rows has room for a line."""
        if not self.display:
            return Content()
        is_line = self._room == "line" or self.screen.has_class("-short")
        return plan_line(self._todos) if is_line else plan_lines(self._todos)

    def _redraw_plan(self) -> None:
        is_open = any(todo.status != "completed" for todo in self._todos)
        self.display = is_open and self._is_followed and self._room != "none"
        self.refresh(layout=True)


def plan_line(todos: tuple[Todo, ...]) -> Content:
    """How far the plan is, and its present step."""
    present = todos[_present(todos)]
    done = sum(todo.status == "completed" for todo in todos)
    text = safe_text(present.text, keep_newlines=False)
    return Content.assemble(
        (f"Plan {done}/{len(todos)} ", "$foreground-muted"), _step(present.status, text)
    )


def _present(todos: tuple[Todo, ...]) -> int:
    """The index of the step in progress, else of the first open one."""
    doing = (i for i, todo in enumerate(todos) if todo.status == "in_progress")
    still_open = (i for i, todo in enumerate(todos) if todo.status != "completed")
    return next(doing, next(still_open, 0))


def plan_lines(todos: tuple[Todo, ...]) -> Content:
    """The steps around the present one, and the number of others."""
    first = max(min(_present(todos) - 1, len(todos) - MAX_SHOWN), 0)
    shown = todos[first : first + MAX_SHOWN]
    done = sum(todo.status == "completed" for todo in todos)
    more = f" · +{len(todos) - len(shown)} more" if len(shown) < len(todos) else ""
    lines = [Content.assemble((f"Plan {done}/{len(todos)}{more}", "$foreground-muted"))]
    lines += [_step(todo.status, safe_text(todo.text, keep_newlines=False)) for todo in shown]
    return Content("\n").join(lines)


def _step(status: str, text: str) -> Content:
    sign, sign_style, text_style = _SIGNS[status]
    return Content.assemble((f"{sign} ", sign_style), (text, text_style))
