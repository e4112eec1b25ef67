"""Signs of degenerate text: repetition, noise, empty phrases, an echo of the prompt."""

import re
from collections.abc import Sequence

NOTHING = "(none)"
"""The text of an empty section."""

_LEAST_UNIT_WORDS = 3
"""Shorter lines ("(none)", "x = 1", "}") are also repeated in good texts."""

_GRAM_WORDS = 4
_LEAST_GRAMS = 24

_LOOP_SHARE = 0.5
"""Share of distinct sentences, and of distinct runs of four words. Summaries by large models,
recorded in real sessions, reach at least 0.9 for both; looping texts stay below a third."""

_LEAST_LETTER_SHARE = 0.1
_UNIT = re.compile(r"\n|(?<=[.!?])\s+")
_WORD = re.compile(r"[\w./@~-]*\w")
"""A path is one word; otherwise a list of files in one folder would look like a loop."""

_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_PLACEHOLDER = re.compile(
    r"\W*(?:\[[^\]\n]*\w [^\]\n]*\]|<[^>\n]*\w [^>\n]*>|\.\.\.|…|todo|tbd|placeholder)\W*", re.I
)
_EMPTY_WORDS = frozenset(
    {NOTHING, "none", "n/a", "na", "nothing", "null", "empty", "unknown", "x", ""}
)


def says_nothing(body: str) -> bool:
    """Whether `body` is empty or only says so."""
    return body.strip("-*.[]0123456789 \n").casefold() in _EMPTY_WORDS or not _WORD.search(body)


def is_noise(body: str) -> bool:
    """Whether hardly any characters of `body` are letters: brackets, numbers, dates."""
    signs = [sign for sign in body if not sign.isspace()]
    return sum(sign.isalpha() for sign in signs) < _LEAST_LETTER_SHARE * len(signs)


def is_repetitive(text: str) -> bool:
    """Whether at most half of the sentences, or of the runs of four words, are distinct.

    Text that is mostly numbers, such as counting upwards, is a loop too.
    """
    units = _units(text)
    if len(units) > 1 and len(set(units)) <= _LOOP_SHARE * len(units):
        return True
    words = _words(text)
    grams = _grams(words)
    if len(grams) < _LEAST_GRAMS:
        return False
    numbers = sum(word.isdecimal() for word in words)
    return len(set(grams)) < _LOOP_SHARE * len(grams) or numbers > _LOOP_SHARE * len(words)


def is_echo(body: str, prompt: str) -> bool:
    """Whether at least half of the lines of `body` are lines of `prompt` or placeholders."""
    lines = [line for line in body.split("\n") if not says_nothing(line)]
    known = set(_units(prompt, least_words=1))
    echoed = [
        line
        for line in lines
        if _PLACEHOLDER.fullmatch(line) or known.issuperset(_units(line, least_words=1))
    ]
    return bool(lines) and 2 * len(echoed) >= len(lines)


def _units(text: str, *, least_words: int = _LEAST_UNIT_WORDS) -> list[str]:
    """Sentences and lines in lower case, without list marks, numbers and punctuation."""
    found = (_words(_LIST_MARK.sub("", unit)) for unit in _UNIT.split(text))
    return [" ".join(words) for words in found if len(words) >= least_words]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + _GRAM_WORDS]) for at in range(len(words) - _GRAM_WORDS + 1)]
