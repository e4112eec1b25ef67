"""Shows the progress of a pull: one redrawn line on a terminal, elsewhere a few lines."""

import shutil
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from agent_tui.local_models.model import DOWNLOADING, PullProgress, size_text

_BAR_CHARS: Final = 24
_LOG_CHARS: Final = 100
_RATE_SPAN_S: Final = 5.0
_PERCENT_PER_LINE: Final = 10
_CLEAR_LINE: Final = "\r\x1b[K"


class ProgressLine:
    """Writes the progress of a pull.

    Args:
        stream: Where to write.
        is_terminal: Whether lines on `stream` can be redrawn.
        now: Clock in seconds.
    """

    def __init__(
        self, stream: TextIO, *, is_terminal: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self._now = now
        self._phase = ""
        self._tenth = -1
        self._samples: deque[tuple[float, int]] = deque()

    def show(self, progress: PullProgress) -> None:
        """Write the current progress."""
        if progress.phase != self._phase:
            self._phase, self._tenth = progress.phase, -1
            self._samples.clear()
        self._samples.append((self._now(), progress.done_bytes))
        while self._samples[-1][0] - self._samples[0][0] > _RATE_SPAN_S:
            self._samples.popleft()
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(_CLEAR_LINE + self._line(progress, width)[:width])
            self._stream.flush()
            return
        tenth = _percent(progress) // _PERCENT_PER_LINE if self._is_long(progress) else 0
        if tenth > self._tenth:
            self._tenth = tenth
            print(self._line(progress, _LOG_CHARS), file=self._stream, flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self._is_terminal and self._phase:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()

    @staticmethod
    def _is_long(progress: PullProgress) -> bool:
        """Whether the phase needs more than one line; other phases take seconds."""
        return progress.phase == DOWNLOADING

    def _line(self, progress: PullProgress, width: int) -> str:
        phase, done, total = progress.phase, progress.done_bytes, progress.total_bytes
        if (not done and total is None) or not (self._is_terminal or self._is_long(progress)):
            return f"{phase} ..."
        if total is None:
            return f"{phase}  {size_text(done)}{self._rate_text(progress)}"
        percent = _percent(progress)
        sizes = f"{size_text(done)} of {size_text(total)}"
        facts = f"{percent:>3} %  {sizes}{self._rate_text(progress)}"
        bar_chars = min(_BAR_CHARS, width - len(f"{phase:<11} [] {facts}"))
        filled = bar_chars * percent // 100
        bar = f"[{'#' * filled}{'.' * (bar_chars - filled)}] " if bar_chars > 0 else ""
        return f"{phase:<11} {bar}{facts}"

    def _rate_text(self, progress: PullProgress) -> str:
        """Rate and time left over the last seconds; empty if not yet known."""
        (first_at, first_bytes), (last_at, last_bytes) = self._samples[0], self._samples[-1]
        if last_at <= first_at or last_bytes <= first_bytes:
            return ""
        rate = (last_bytes - first_bytes) / (last_at - first_at)
        speed = f"  {size_text(round(rate))}/s"
        if progress.total_bytes is None or progress.done_bytes >= progress.total_bytes:
            return speed
        return f"{speed}  {_span((progress.total_bytes - progress.done_bytes) / rate)} left"


def _percent(progress: PullProgress) -> int:
    return 100 * progress.done_bytes // progress.total_bytes if progress.total_bytes else 0


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
