"""Asks whether the built-in model shall be pulled, and shows how the pull goes."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal, Protocol, TypeAlias

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.types import CSSPathType
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from agent_tui.commands.core.short_words import short_path, size_text
from agent_tui.durations import format_duration
from agent_tui.errors import AgentTuiError
from agent_tui.features.local.model import Offer, PullProgress
from agent_tui.providers.base import ModelRef
from agent_tui.safe_text import safe_text
from agent_tui.ui.parts import KeysLine
from agent_tui.ui.questions import QUIET_S, SCROLL_KEYS, AnswerLine, AnswerList, AnswerRow
from agent_tui.ui.screens.modal import Modal, PageRow

_FRAMES_PER_S = 5
_FACT_CELLS = 9

_Stage: TypeAlias = Literal["asks", "pulls", "stops", "stopped", "failed", "cannot"]
_YES: dict[_Stage, str] = {"asks": "download", "stopped": "download again", "failed": "try again"}
"""The answer that begins, in each stage that asks."""

_ANSWER_KEYS = "↑↓ move · enter answers · esc back"
_KEYS: dict[_Stage, str] = {"pulls": "esc stop", "stops": "", "cannot": "esc back"}
_STOPPED = "Stopped. Nothing was kept of the download."
PACE_OVER_S = 5.0
"""The pace is the mean over this time: a shorter one jumps, a longer one lags."""

_PACE_AFTER_S = 1.0
"""Before this time a pace would be a guess."""

_PERCENT_CELLS = 5


class Pace:
    """Bytes per second, from how far a download was at which time."""

    def __init__(self) -> None:
        self._phase = ""
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, progress: PullProgress, now_s: float) -> None:
        """Record the progress at `now_s`; another phase starts again."""
        if progress.phase != self._phase or (
            self._seen and progress.done_bytes < self._seen[-1][1]
        ):
            self._phase = progress.phase
            self._seen.clear()
        self._seen.append((now_s, progress.done_bytes))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= PACE_OVER_S:
            self._seen.popleft()

    @property
    def bytes_per_s(self) -> float | None:
        """The present pace; None while it is unknown or nothing arrives."""
        if not self._seen:
            return None
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        if last_s - first_s < _PACE_AFTER_S or last == first:
            return None
        return (last - first) / (last_s - first_s)


def transfer_text(progress: PullProgress, bytes_per_s: float | None) -> str:
    """``downloading · 42.3 MB of 92.9 MB · 3.1 MB/s · 16s left``, as far as known."""
    parts = [progress.phase]
    done, total = progress.done_bytes, progress.total_bytes
    if total:
        parts.append(f"{size_text(done)} of {size_text(total)}")
    elif done:
        parts.append(size_text(done))
    if bytes_per_s is not None:
        parts.append(f"{size_text(round(bytes_per_s))}/s")
        if total and done < total:
            parts.append(f"{format_duration((total - done) / bytes_per_s)} left")
    return " · ".join(parts)


def transfer_bar(progress: PullProgress, width: int) -> Content:
    """A bar of `width` cells with the percentage at its end, told apart without colour too."""
    room = max(width - _PERCENT_CELLS, 0)
    if not progress.total_bytes:
        return Content.assemble(("╌" * room, "$foreground-disabled"))
    share = min(max(progress.done_bytes / progress.total_bytes, 0.0), 1.0)
    done = int(share * room)
    return Content.assemble(
        ("━" * done, "$primary"),
        ("╌" * (room - done), "$foreground-disabled"),
        (f"{int(share * 100):>{_PERCENT_CELLS - 1}}%", "$foreground"),
    )


class Pullable(Protocol):
    """The built-in model of this machine, and how to get it."""

    @property
    def offer(self) -> Offer:
        """What can be pulled."""
        ...

    @property
    def problem(self) -> str:
        """Why no model can run on this machine yet, empty if one can.

        Says what is missing and, on a separate line, the command that fixes it.
        """
        ...

    @property
    def folder(self) -> Path:
        """Where the model's file is put."""
        ...

    async def pull(self, on_progress: Callable[[PullProgress], None]) -> ModelRef:
        """Fetch the model and return its reference; on cancellation, the part fetched is kept.

        `on_progress` may be called in any thread, any number of times.

        Raises:
            AgentTuiError: It could not be fetched; the message says what to do.
        """
        ...


class PullBar(Widget):
    """How far the pull is; empty before it begins."""

    def __init__(self) -> None:
        super().__init__(id="pull-bar")
        self._progress: PullProgress | None = None

    def show(self, progress: PullProgress) -> None:
        """Show another state."""
        if progress != self._progress:
            self._progress = progress
            self.refresh()

    def render(self) -> Content:
        """The bar at the present width."""
        if self._progress is None:
            return Content("")
        return transfer_bar(self._progress, self.content_size.width)


class PullScreen(Modal[ModelRef]):
    """Returns how the pulled model is used; None if the user left without it.

    Args:
        local: What is pulled, and how.
        clock: Monotonic seconds, for the pace.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/page.tcss",
        "pull_screen.tcss",
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Stop, or back"),
        Binding("up", "mark(-1)", "The answer above", show=False),
        Binding("down", "mark(1)", "The answer below", show=False),
        Binding("k", "scroll(-1)", "Scroll up", show=False),
        Binding("j", "scroll(1)", "Scroll down", show=False),
    ]

    def __init__(self, local: Pullable, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.local = local
        self._clock = clock
        self._stage: _Stage = "cannot" if local.problem else "asks"
        self._progress: PullProgress | None = None
        self._pace = Pace()
        self._quiet_since_s = clock()
        self._pulling: Worker[None] | None = None
        self._frames: Timer | None = None

    def compose(self) -> ComposeResult:
        """The model, its requirements, the progress, the answers, and a line of keys."""
        offer = self.local.offer
        with VerticalScroll(id="page", classes="frame", can_focus=False):
            yield Static("A model on this machine: no key, no server", id="page-title")
            yield Static(_headline(offer), id="pull-headline", markup=False)
            with Vertical(id="pull-facts"):
                for name, fact in _facts(offer, self.local.folder):
                    yield PageRow(name, safe_text(fact, keep_newlines=False), _FACT_CELLS)
            bar = PullBar()
            bar.display = self._stage != "cannot"
            yield bar
            yield Static(id="pull-status", markup=False)
            yield AnswerList()
            yield KeysLine(id="page-keys")

    def on_mount(self) -> None:
        """Prepare drawing the progress, which pauses while nothing is pulled."""
        self._frames = self.set_interval(1 / _FRAMES_PER_S, self._draw_progress, pause=True)
        self._enter(self._stage, self.local.problem)

    def on_resize(self) -> None:
        """Keep the question or the progress visible."""
        self.when_drawn(self._keep_end_in_sight)

    def on_key(self, event: events.Key) -> None:
        """Answer by key; keys meant for the prompt start no download."""
        if self._is_quiet and (number := self._list.number_for(event.key)) is not None:
            event.stop()
            self._answer(number)
        elif event.is_printable and event.key not in SCROLL_KEYS:
            self._quiet_since_s = self._clock()

    @on(AnswerLine.Clicked)
    def _take_click(self, event: AnswerLine.Clicked) -> None:
        event.stop()
        if self._is_quiet:
            self._answer(event.number)

    @property
    def _is_quiet(self) -> bool:
        """Whether nothing was typed for a moment, which the first question alone waits for."""
        return self._stage != "asks" or self._clock() - self._quiet_since_s >= QUIET_S

    @property
    def _list(self) -> AnswerList:
        return self.query_one(AnswerList)

    def _answer(self, number: int) -> None:
        if self._stage not in _YES:
            return
        if number != 0:
            self.dismiss(None)
            return
        self._pace = Pace()
        self._progress = None
        self._enter("pulls", "starting")
        self._pulling = self.run_worker(self._pull(), exclusive=True)

    def action_mark(self, step: int) -> None:
        """Mark the answer above or below, or scroll if there is no question."""
        if self._stage in _YES:
            self._list.move(step)
        else:
            self.action_scroll(step)

    def action_back(self) -> None:
        """Stop the pull, or leave."""
        if self._stage == "pulls":
            assert self._pulling is not None
            self._enter("stops", "Stopping…")
            self._pulling.cancel()
        elif self._stage != "stops":
            self.dismiss(None)

    def action_scroll(self, step: int) -> None:
        """Scroll the page."""
        self.query_one("#page").scroll_relative(y=step, animate=False)

    async def _pull(self) -> None:
        try:
            model = await self.local.pull(self._note)
        except AgentTuiError as error:
            self._draw_progress()
            self._enter("failed", f"✗ {error.message}\n{error.hint}".strip())
        except asyncio.CancelledError:
            if self._stage == "stops" and self.is_attached:  # else the program ends
                self._draw_progress()
                self._enter("stopped", _STOPPED)
            raise
        else:
            self.dismiss(model)

    def _note(self, progress: PullProgress) -> None:
        """Store the progress for the next frame; called in any thread."""
        self._progress = progress

    def _draw_progress(self) -> None:
        if (progress := self._progress) is None:
            return
        self._pace.note(progress, self._clock())
        self.query_one(PullBar).show(progress)
        if self._stage == "pulls":
            self._say(transfer_text(progress, self._pace.bytes_per_s))

    def _enter(self, stage: _Stage, text: str) -> None:
        self._stage = stage
        if self._frames is not None:
            if stage == "pulls":
                self._frames.resume()
            else:
                self._frames.pause()
        self.query_one("#pull-status").set_class(stage in ("failed", "cannot"), "-bad")
        self.query_one("#page-keys", KeysLine).update(_KEYS.get(stage, _ANSWER_KEYS))
        self._list.display = stage in _YES
        if stage in _YES:
            self._list.show((AnswerRow("y", _YES[stage]), AnswerRow("n", "not now")))
        self._say(text)
        self.when_drawn(self._keep_end_in_sight)

    def _keep_end_in_sight(self) -> None:
        self.query_one("#page").scroll_end(animate=False)

    def _say(self, text: str) -> None:
        self.query_one("#pull-status", Static).update(safe_text(text))


def _headline(offer: Offer) -> Content:
    return Content.assemble(
        (safe_text(offer.title, keep_newlines=False), "bold"),
        "\n",
        (safe_text(offer.summary, keep_newlines=False), "$foreground-muted"),
    )


def _facts(offer: Offer, folder: Path) -> tuple[tuple[str, str], ...]:
    return (
        ("download", size_text(offer.download_bytes)),
        ("on disk", size_text(offer.size_bytes)),
        ("context", f"{offer.trained_window:,} tokens"),
        ("licence", offer.licence),
        ("source", f"{offer.requirement.replace('==', ' ')} from PyPI, verified by SHA-256"),
        ("stored in", short_path(folder, Path.home())),
    )
