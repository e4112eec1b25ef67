"""The rules in instruction files, and what the user said later that contradicts them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.features.rules.offers import Offer, ProjectCorrections, Quote, agree
from agent_tui.features.rules.wording import (
    TermWeights,
    Wording,
    opposed_terms,
    read_wording,
    shared_terms,
)
from agent_tui.omissions import SENTENCE_END
from agent_tui.sessions.entries import milliseconds
from agent_tui.text import blank_fences

_HEADING = re.compile(r"^\s*#")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")

_LEAST_ABOUT = 0.6
"""How much of the shorter of two sentences the other must also name, to be about the same thing."""

_LEAST_OPPOSED_WEIGHT = 0.6
"""The least weight of a term that one of them denies and the other affirms."""


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """One sentence of an instruction file.

    Attributes:
        path: The file.
        line: The number of its line, from 1.
        text: The sentence.
    """

    path: Path
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A rule in a file, and what the user said against it."""

    rule: WrittenRule
    quote: Quote


def written_rules(path: Path, text: str) -> Iterator[WrittenRule]:
    """The sentences of the instruction file at `path`; headings and fenced code are left out."""
    for number, line in enumerate(blank_fences(text).split("\n"), start=1):
        if _HEADING.match(line):
            continue
        for sentence in SENTENCE_END.split(_ITEM.sub("", line).strip()):
            if sentence.strip():
                yield WrittenRule(path, number, sentence.strip())


def unwritten(
    offers: Iterable[Offer], rules: Sequence[WrittenRule], weights: TermWeights
) -> list[Offer]:
    """Those of `offers` that no rule in a file says already."""
    known = [read_wording(rule.text) for rule in rules]

    def is_written(offer: Offer) -> bool:
        said = [read_wording(quote.sentence) for quote in offer.quotes]
        return any(agree(rule, one, weights) for rule in known for one in said)

    return [offer for offer in offers if not is_written(offer)]


def contradictions(
    rules: Iterable[WrittenRule], said: ProjectCorrections
) -> Iterator[Contradiction]:
    """For each of `rules` the newest correction that contradicts it.

    A rule that the user repeated after that is not contradicted. When a rule was written is not
    known here: see `said_later`.
    """
    weights = said.weights
    newest_first = sorted(said.quotes, key=lambda quote: quote.correction.at, reverse=True)
    read = [(quote, read_wording(quote.sentence)) for quote in newest_first]
    for rule in rules:
        wording = read_wording(rule.text)
        for quote, words in read:
            if contradict(wording, words, weights):
                yield Contradiction(rule, quote)
                break
            if agree(wording, words, weights):
                break


def contradict(rule: Wording, said: Wording, weights: TermWeights) -> bool:
    """Whether `said`, which has the form of a rule, wants the opposite of `rule`.

    They are about the same thing, one denies what the other affirms, and both deny nothing alike.
    """
    if not said.is_rule:
        return False
    opposed, shared = opposed_terms(rule, said), shared_terms(rule, said)
    shorter = min(weights.total(rule.terms), weights.total(said.terms))
    return (
        max(map(weights.weight, opposed), default=0) >= _LEAST_OPPOSED_WEIGHT
        and max(map(weights.weight, rule.denied & said.denied), default=0) < _LEAST_OPPOSED_WEIGHT
        and weights.total(opposed | shared) >= _LEAST_ABOUT * shorter
    )


def said_later(contradiction: Contradiction, written_at: str) -> bool:
    """Whether the words are newer than the rule; false if it is unknown when it was written."""
    written_ms = milliseconds(written_at)
    return 0 < written_ms < milliseconds(contradiction.quote.correction.at)
