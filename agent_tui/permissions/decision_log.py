"""Keeps what was decided about the calls of this session, for the user to look up."""

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from agent_tui.permissions.rules import Decision

DecidedBy: TypeAlias = Literal["rule", "mode", "protection", "person", "hook"]
"""``protection``: files and commands that ask in every mode."""

_MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """The decision about one call. `what` is its command or its title."""

    decided_at: datetime
    tool: str
    what: str
    decision: Decision
    why: str
    by: DecidedBy


class DecisionLog:
    """The latest decisions, oldest first; kept in memory only.

    Attributes:
        counts: How many decisions of each kind were made, including those no longer kept.
    """

    def __init__(self) -> None:
        self._kept: deque[DecisionRecord] = deque(maxlen=_MAX_KEPT)
        self.counts: Counter[tuple[Decision, DecidedBy]] = Counter()

    def add(self, record: DecisionRecord) -> None:
        """Keep `record`; the oldest record is dropped when the log is full."""
        self._kept.append(record)
        self.counts[record.decision, record.by] += 1

    @property
    def latest(self) -> tuple[DecisionRecord, ...]:
        """All kept records, newest first."""
        return tuple(reversed(self._kept))
