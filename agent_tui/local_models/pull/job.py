"""What a pull is asked to do, and what it reports: the words between two processes."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pydantic import TypeAdapter

from agent_tui.local_models.model import Offer, PullProgress

_REPORT_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class PullJob:
    """What to pull: an offer, or the file at `address` (its `sha256` may be empty).

    `is_name_fixed`: the person chose `name`; else it may be numbered.
    """

    root: Path
    name: str
    is_name_fixed: bool
    offer: Offer | None = None
    address: str = ""
    sha256: str = ""

    @property
    def key(self) -> str:
        """Names the download: the same for every pull of the same bytes."""
        identity = self.offer.wheel_sha256 if self.offer else self.address
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Pulled:
    """The last report of a job that went well: the name of the model in the library."""

    name: str


@dataclass(frozen=True, slots=True)
class PullFailed:
    """The last report of a job that failed."""

    message: str
    hint: str


Report: TypeAlias = PullProgress | Pulled | PullFailed

JOB: Final = TypeAdapter(PullJob)
REPORT: Final[TypeAdapter[Report]] = TypeAdapter(Report)


class ProgressReporter:
    """Tells of progress, at most ten times a second within a phase.

    Args:
        tell: Gets what is to be told.
        now: Clock in seconds.
    """

    def __init__(
        self, tell: Callable[[PullProgress], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._now = now
        self._phase = ""
        self._told_at = 0.0

    def tell(self, phase: str, done_bytes: int = 0, total_bytes: int | None = None) -> None:
        """Tell it now if the phase is new or over, else if the last telling is a while ago."""
        now = self._now()
        is_edge = phase != self._phase or done_bytes == total_bytes
        if is_edge or now - self._told_at >= _REPORT_EVERY_S:
            self._phase, self._told_at = phase, now
            self._tell(PullProgress(phase, done_bytes, total_bytes))
