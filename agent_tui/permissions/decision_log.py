"""What was decided about the calls of this session, for the person to look up."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from agent_tui.permissions.rules import Decision

DecidedBy: TypeAlias = Literal["rule", "mode", "protection", "person"]
"""``protection``: files and commands that ask in every mode."""

_MAX_KEPT = 200


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision. `what` is the command, or the title of the call."""

    decided_at: datetime
    tool: str
    what: str
    decision: Decision
    why: str
    by: DecidedBy


class DecisionLog:
    """The last decisions, oldest first; kept in memory only."""

    def __init__(self) -> None:
        self._kept: deque[Decided] = deque(maxlen=_MAX_KEPT)

    def add(self, decided: Decided) -> None:
        """Keep `decided`; the oldest one goes when there are very many."""
        self._kept.append(decided)

    @property
    def latest(self) -> tuple[Decided, ...]:
        """All that are kept, newest first."""
        return tuple(reversed(self._kept))
