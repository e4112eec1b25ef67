"""Signs of degenerate text: repetition, noise, empty phrases, the prompt said back."""

import re
from collections.abc import Mapping, Sequence

from agent_tui.compaction.summary.templates import NOTHING

_LEAST_UNIT_WORDS = 3
"""Shorter lines ("(none)", "x = 1", "}") repeat in good texts too."""

_GRAM_WORDS = 4
_LEAST_GRAMS = 24

_LOOP_SHARE = 0.5
"""Share of sentences, and of runs of four words, that are new. Summaries by large models,
recorded in real sessions, have at least 0.9 of both; what loops has less than a third."""

_LEAST_LETTER_SHARE = 0.1
_LEAST_COPIED_WORDS = 5
_COPY_SHARE = 0.6
"""Of the words in either. A small model held to a schema fills section after section with the
same sentence; no two of a recorded summary share two fifths of their words."""

_LEAST_LINES_LEFT = 3
"""Fewer different lines are the loop itself, not a text that ends in one."""

_ECHO_SHARE = 0.6
"""Share of a line's runs of four words that stand in the prompt; in real summaries none do."""

_UNIT = re.compile(r"\n|(?<=[.!?])\s+")
_WORD = re.compile(r"[\w./@~-]*\w")
"""A path is one word: a list of files in one folder would look like a loop."""

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
    """Whether hardly any of `body` is letters: brackets, numbers, dates."""
    signs = [sign for sign in body if not sign.isspace()]
    return sum(sign.isalpha() for sign in signs) < _LEAST_LETTER_SHARE * len(signs)


def is_repetitive(text: str) -> bool:
    """Whether at most half of the sentences, or of the runs of four words, are new.

    Counting upwards is a loop too: text that is mostly numbers.
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


def copied_sections(bodies: Mapping[str, str]) -> int:
    """How many bodies say what one before them says, in nearly the same words."""
    earlier: list[frozenset[str]] = []
    copies = 0
    for body in bodies.values():
        words = frozenset(_words(body))
        if len(words) < _LEAST_COPIED_WORDS:
            continue
        copies += any(len(words & other) >= _COPY_SHARE * len(words | other) for other in earlier)
        earlier.append(words)
    return copies


def without_repetition(bodies: Mapping[str, str]) -> dict[str, str]:
    """`bodies` with noise left empty, and every line of a looping one once.

    One that still goes in circles is left empty too.
    """
    return {heading: _without_repetition(body) for heading, body in bodies.items()}


def _without_repetition(body: str) -> str:
    if is_noise(body):
        return ""
    return _once(body) if is_repetitive(body) else body


def _once(body: str) -> str:
    lines: dict[str, str] = {}
    for line in body.split("\n"):
        lines.setdefault(" ".join(_words(_LIST_MARK.sub("", line))), line)
    text = "\n".join(lines.values()).strip()
    return text if len(lines) >= _LEAST_LINES_LEFT and not is_repetitive(text) else ""


class PromptEcho:
    """Recognises the sentences of a prompt in what came back.

    Args:
        prompt: Everything in the prompt that is no part of the conversation.
    """

    def __init__(self, prompt: str) -> None:
        self._lines = frozenset(_units(prompt, least_words=2))
        self._grams = frozenset(_grams(_words(prompt)))

    def removed_from(self, body: str) -> str:
        """`body` without the lines that are the prompt's own, and without placeholders."""
        return "\n".join(line for line in body.split("\n") if not self._is_echo(line)).strip()

    def _is_echo(self, line: str) -> bool:
        if _PLACEHOLDER.fullmatch(line):
            return True
        units = _units(line, least_words=2)
        if units and all(unit in self._lines for unit in units):
            return True
        grams = _grams(_words(line))
        return len(grams) > 1 and _share(grams, self._grams) >= _ECHO_SHARE


def _share(grams: Sequence[tuple[str, ...]], known: frozenset[tuple[str, ...]]) -> float:
    return sum(gram in known for gram in grams) / len(grams)


def _units(text: str, *, least_words: int = _LEAST_UNIT_WORDS) -> list[str]:
    """Sentences and lines in small letters, without list marks, numbers and punctuation."""
    found = (_words(_LIST_MARK.sub("", unit)) for unit in _UNIT.split(text))
    return [" ".join(words) for words in found if len(words) >= least_words]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + _GRAM_WORDS]) for at in range(len(words) - _GRAM_WORDS + 1)]
