"""Which sessions are old: those that nobody continued for some time."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from agent_tui.sessions.listing import SessionSummary, lineage_rows


def days_of(text: str) -> int:
    """The days that ``90d`` or ``90`` means.

    Raises:
        ValueError: It is neither, or no day.
    """
    given = re.fullmatch(r"([1-9]\d{0,4})d?", text.strip())
    if given is None:
        raise ValueError(f"{text!r} is not a number of days, such as 90d")
    return int(given[1])


def old_sessions(
    sessions: Sequence[SessionSummary], days: int, now: datetime, running: Collection[Path]
) -> list[SessionSummary]:
    """The sessions that were not written for `days` days, the newest first.

    Sessions that continue one another are old together: as long as one of them is written or open,
    the earlier ones can be looked up.

    Args:
        sessions: All sessions.
        days: The least age.
        now: The present time.
        running: The files of the sessions that programs have open.
    """
    before = now - timedelta(days=days)
    rows, old, chain = lineage_rows(sessions), list[SessionSummary](), list[SessionSummary]()
    for number, row in enumerate(rows):
        chain.append(row.summary)
        if number + 1 == len(rows) or not rows[number + 1].depth:
            is_open = any(found.path in running for found in chain)
            if row.newest < before and not is_open:
                old += chain
            chain = []
    return sorted(old, key=lambda found: found.modified, reverse=True)
