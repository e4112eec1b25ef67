"""Which of many model names a part of one means."""

import re
from collections.abc import Iterable, Sequence


def best_match(query: str, names: Iterable[str], providers: Sequence[str]) -> str | None:
    """The likeliest full name that holds the words of `query` one after the other.

    Args:
        query: What was typed.
        names: As ``provider/model``.
        providers: Those that may be meant, the likeliest first.
    """
    words = _words(query)
    if not words:
        return None
    fitting = [
        name
        for name in names
        if name.partition("/")[0] in providers and _holds(_words(name), words)
    ]
    return min(fitting, key=lambda name: _rank(name, query, providers), default=None)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", name.lower())


def _holds(words: list[str], part: list[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))


def _rank(name: str, query: str, preferred: Sequence[str]) -> tuple[object, ...]:
    """Sorts the likeliest meaning first: exact, a provider with a key, a plain and new name."""
    provider, _, model_id = name.partition("/")
    words = _words(model_id)
    numbers = [int(word) for word in words if word.isdigit()]
    is_dated = any(number > 1_000 for number in numbers)
    letters = sum(len(word) for word in words if word.isalpha())
    return (
        model_id != query,
        preferred.index(provider),
        is_dated,
        letters,
        [*(-number for number in numbers), 1],  # the 1 puts "5" behind "5.5"
        name,
    )
