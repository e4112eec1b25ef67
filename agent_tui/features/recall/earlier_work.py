"""Earlier sessions of the folder that began with something like a message."""

import re
from collections.abc import Iterable, Sequence

from agent_tui.safe_text import printable_line
from agent_tui.sessions.listing import SessionSummary
from agent_tui.text_search import fold

_MOST_SESSIONS = 2
_TITLE_CHARS = 80
_LEAST_SHARE = 0.5
"""Least share of the weight of the typed words that the other session's beginning must have."""

_LEAST_WEIGHT = 3
_NAME_WEIGHT = 2
_LEAST_LETTERS = 5
_WORD = re.compile(r"[^\W_][\w./-]*\w")
_IS_NAME = re.compile(r"[\d_./-]")
_COMMON_WORDS = """
about above after again against agent another before below between build change changes
check cleanup could create delete doing error every explain feature files first fixed
folder following function implement improve inside instead issue leave lines looks maybe
module needs other please problem project really remove rename repository right should
simple small start still tests their there these thing things think those through under
update using wants where which while without working works would write wrong
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that any two tasks may share."""


def resembling(text: str, sessions: Iterable[SessionSummary]) -> Sequence[SessionSummary]:
    """The few of `sessions` whose name and first message share most of the words of `text`.

    A name (something with a digit, dot, slash, dash or underscore) weighs as much as two words.
    Words that any two tasks share do not count.
    """
    wanted = _weights(text)
    least = max(_LEAST_WEIGHT, _LEAST_SHARE * sum(wanted.values()))
    rated = [
        (sum(wanted[word] for word in wanted.keys() & _weights(_beginning(session))), session)
        for session in sessions
    ]
    best = sorted(
        ((weight, session) for weight, session in rated if weight >= least),
        key=lambda found: (found[0], found[1].modified),
        reverse=True,
    )
    return [session for _, session in best[:_MOST_SESSIONS]]


def hint_line(session: SessionSummary) -> str:
    """One line for the model: when the session was, how it began, and how to search it."""
    words = sorted(_weights(_beginning(session)).items(), key=lambda item: -item[1])[:2]
    query = " ".join(word for word, _ in words)
    return (
        f"{session.modified:%Y-%m-%d}: a similar session in this folder: "
        f'"{_title(session)}". recall(query="{query}") searches it.'
    )


def notice(sessions: Sequence[SessionSummary]) -> str:
    """The notice that names `sessions` to the user."""
    named = (f'"{_title(session)}" ({session.modified:%Y-%m-%d})' for session in sessions)
    return f"Similar to {' and '.join(named)}: the model can search it, /resume opens it."


def _title(session: SessionSummary) -> str:
    return printable_line(session.name or session.first_prompt, _TITLE_CHARS)


def _beginning(session: SessionSummary) -> str:
    return f"{session.name}\n{session.first_prompt}"


def _weights(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in _WORD.findall(fold(text)):
        if _IS_NAME.search(word):
            found[word] = _NAME_WEIGHT
        elif len(word) >= _LEAST_LETTERS and word not in _COMMON:
            found[word] = 1
    return found
