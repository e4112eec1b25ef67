"""How far a download is, as a person says it: how much, pace, time left, a bar."""

from collections import deque

from textual.content import Content

from agent_tui.durations import elapsed
from agent_tui.local_models.model import PullProgress, size_text

PACE_OVER_S = 5.0
"""The pace is the mean of this long: shorter jumps about, longer lags behind."""

_PACE_AFTER_S = 1.0
"""Before this time a pace would be a guess."""

_PERCENT_CELLS = 5


class Pace:
    """Bytes per second, from how far a download was at which time."""

    def __init__(self) -> None:
        self._phase = ""
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, progress: PullProgress, now_s: float) -> None:
        """Take what was done by `now_s`; another phase begins anew."""
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
        """The present pace; None while it cannot be told, or nothing comes."""
        if not self._seen:
            return None
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        if last_s - first_s < _PACE_AFTER_S or last == first:
            return None
        return (last - first) / (last_s - first_s)


def transfer_text(progress: PullProgress, bytes_per_s: float | None) -> str:
    """``downloading · 42.3 MB of 92.9 MB · 3.1 MB/s · 16s left``, as far as it is known."""
    parts = [progress.phase]
    done, total = progress.done_bytes, progress.total_bytes
    if total:
        parts.append(f"{size_text(done)} of {size_text(total)}")
    elif done:
        parts.append(size_text(done))
    if bytes_per_s is not None:
        parts.append(f"{size_text(round(bytes_per_s))}/s")
        if total and done < total:
            parts.append(f"{elapsed((total - done) / bytes_per_s)} left")
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
