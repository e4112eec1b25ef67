"""Sessions that continue one another, as an indented list. Pure."""

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from agent_tui.sessions.format.parse import id_in_name
from agent_tui.sessions.listing import SessionSummary

MOST_GUIDES = 6
"""Deeper sessions are shown at this depth, as the width is limited."""


@dataclass(frozen=True, slots=True)
class LineageRow:
    """One line of the list.

    `depth` counts the sessions before it in its chain. `is_last`: no row further down continues the
    same session. `guides` are lines drawn from a session to those that continue it, three
    characters for each of at most six levels. `newest` is when the chain was last written.
    """

    summary: SessionSummary
    depth: int
    is_last: bool
    guides: str
    newest: datetime


def lineage_rows(sessions: Sequence[SessionSummary]) -> list[LineageRow]:
    """Each of `sessions` once, below the one it continues, the newest chain first.

    Chains are sorted by the last write in all of them, and so are branches. A session whose parent
    is not among `sessions` begins a chain. If files name each other in a circle, the oldest begins
    the chain.
    """
    numbers = range(len(sessions))
    newest_first = sorted(
        numbers, key=lambda one: (sessions[one].modified, sessions[one].id, one), reverse=True
    )
    parents = _parents(sessions, newest_first)
    children: dict[int, list[int]] = {}
    for number in numbers:
        if number in parents:
            children.setdefault(parents[number], []).append(number)
    newest = _newest_below(sessions, parents, newest_first)

    def by_activity(number: int) -> tuple[datetime, str]:
        return newest[number], sessions[number].id

    roots = [number for number in numbers if number not in parents]
    rows: list[LineageRow] = []
    for root in sorted(roots, key=by_activity, reverse=True):
        waiting = [(root, 0, True, "")]
        while waiting:
            number, depth, is_last, stem = waiting.pop()
            guides = stem + ("└─ " if is_last else "├─ ") if depth else ""
            rows.append(LineageRow(sessions[number], depth, is_last, guides, newest[root]))
            below = stem + ("   " if is_last else "│  ") if depth else ""
            below = below[-3 * (MOST_GUIDES - 1) :]
            oldest_first = sorted(children.get(number, ()), key=by_activity)
            waiting += [(child, depth + 1, at == 0, below) for at, child in enumerate(oldest_first)]
    return rows


def _parents(sessions: Sequence[SessionSummary], newest_first: Sequence[int]) -> dict[int, int]:
    """The number of each session's parent; none for those that begin a chain."""
    known = _Known(sessions)
    parents: dict[int, int] = {}
    towards_first = list(range(len(sessions)))

    def first_of_chain(number: int) -> int:
        while (above := towards_first[number]) != number:
            towards_first[number] = towards_first[above]  # shortens the path for later lookups
            number = above
        return number

    for number in newest_first:
        parent = known.parent_of(number)
        if parent is not None and first_of_chain(parent) != number:
            parents[number] = towards_first[number] = parent
    return parents


class _Known:
    """Finds a session by the path or id that its child names."""

    def __init__(self, sessions: Sequence[SessionSummary]) -> None:
        self._sessions = sessions
        self._by_path = {str(found.path): number for number, found in enumerate(sessions)}
        self._by_id: dict[str, list[int]] = {}
        for number, found in enumerate(sessions):
            self._by_id.setdefault(found.id, []).append(number)

    def parent_of(self, number: int) -> int | None:
        child = self._sessions[number]
        named = child.parent_session
        if not named:
            return None
        folder = child.path.parent
        path = PurePath(named)
        for place in (folder / path, folder / path.name):
            found = self._by_path.get(os.path.normpath(place))
            if found is not None:
                return found if found != number else None
        same_id = self._by_id.get(id_in_name(path)) or self._by_id.get(named, [])
        others = [found for found in same_id if found != number]
        # Of several copies of a session, the one beside its child is meant.
        others.sort(key=lambda found: self._sessions[found].path.parent != folder)
        return others[0] if others else None


def _newest_below(
    sessions: Sequence[SessionSummary], parents: Mapping[int, int], newest_first: Sequence[int]
) -> dict[int, datetime]:
    """When each session, or one that continues it, was last written."""
    newest: dict[int, datetime] = {}
    for number in newest_first:
        above: int | None = number
        while above is not None and above not in newest:  # a newer one has updated all above it
            newest[above] = sessions[number].modified
            above = parents.get(above)
    return newest
