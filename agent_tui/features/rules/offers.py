"""Which rules to offer: corrections that say the same on different occasions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_tui.features.rules.reading import Correction, SaidSentences
from agent_tui.features.rules.wording import (
    TermWeights,
    Wording,
    likeness,
    read_wording,
    shared_terms,
)

_LEAST_OF_ALL = 0.3
_LEAST_OF_SHORTER = 0.5
"""How alike two sentences are that say one rule; see `Likeness`. Both come from pairs of sentences
that were written before (``tests/features/rules/pairs.yaml``): no other pair reaches them."""

_LEAST_WEIGHT = 1.0
"""The least weight of the shared terms: as much as one term that occurs nowhere else."""

_LEAST_NAMED_WEIGHT = 0.7
"""The least weight of a term that names what was replaced, or by what."""

_TURNS_APART = 3
"""Corrections of one session are different occasions if they are so many messages apart."""


@dataclass(frozen=True, slots=True)
class SessionSource:
    """Where a correction was said.

    Attributes:
        id: The session's id.
        name: Its name or first message; may be empty.
        imported_from: The agent whose session it was; empty for one made here.
    """

    id: str
    name: str = ""
    imported_from: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """A correction with its place."""

    correction: Correction
    source: SessionSource

    @property
    def sentence(self) -> str:
        """The user's words."""
        return self.correction.sentence


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule that the user may want.

    Attributes:
        text: The proposed line: one of the quotes, word for word.
        quotes: What the user said, oldest first; at least two.
    """

    text: str
    quotes: tuple[Quote, ...]


@dataclass(slots=True)
class ProjectCorrections:
    """The corrections of a project's sessions; what several sessions copied counts once."""

    quotes: list[Quote] = field(default_factory=list[Quote])
    counts: Counter[str] = field(default_factory=Counter[str])
    sentences: int = 0

    def add(self, source: SessionSource, said: SaidSentences) -> None:
        """Add what was said in one session."""
        known = {(quote.correction.at, quote.sentence) for quote in self.quotes}
        self.quotes += [
            Quote(correction, source)
            for correction in said.corrections
            if (correction.at, correction.sentence) not in known
        ]
        self.counts.update(said.counts)
        self.sentences += said.sentences

    @property
    def weights(self) -> TermWeights:
        """How much each term says in this project."""
        return TermWeights(self.counts, self.sentences)


@dataclass(frozen=True, slots=True)
class _Candidate:
    quote: Quote
    wording: Wording


def find_offers(said: ProjectCorrections) -> list[Offer]:
    """The rules that follow from `said`, the newest first."""
    weights = said.weights
    candidates = [_Candidate(quote, read_wording(quote.sentence)) for quote in said.quotes]
    groups: list[list[_Candidate]] = []
    for candidate in sorted(candidates, key=lambda one: one.quote.correction.at):
        alike = [group for group in groups if any(_agree(candidate, o, weights) for o in group)]
        groups = [group for group in groups if group not in alike]
        groups.append([*(one for group in alike for one in group), candidate])
    offers = [_offer(group, weights) for group in groups if len(group) > 1]
    return sorted(offers, key=lambda offer: offer.quotes[-1].correction.at, reverse=True)


def _offer(group: Sequence[_Candidate], weights: TermWeights) -> Offer:
    """The offer of one group; its text is the sentence that is most like all others."""
    quotes = sorted((one.quote for one in group), key=lambda quote: quote.correction.at)
    rules = [one for one in group if one.wording.is_rule] or list(group)

    def likeness_to_all(one: _Candidate) -> float:
        whole = sum(likeness(one.wording, other.wording, weights).of_all for other in group)
        return round(whole, 6)

    best = max(rules, key=lambda one: (likeness_to_all(one), -len(one.quote.sentence)))
    return Offer(best.quote.sentence, tuple(quotes))


def _agree(one: _Candidate, other: _Candidate, weights: TermWeights) -> bool:
    """Whether two corrections of different occasions say the same rule."""
    if not _are_apart(one.quote, other.quote):
        return False
    if not agree(one.wording, other.wording, weights):
        return False
    if one.wording.is_rule and other.wording.is_rule:
        return True
    return _replaced_alike(one.quote.correction, other.quote.correction, weights)


def agree(one: Wording, other: Wording, weights: TermWeights) -> bool:
    """Whether two sentences say the same; they need not be rules."""
    alike = likeness(one, other, weights)
    return (
        alike.of_all >= _LEAST_OF_ALL
        and alike.of_shorter >= _LEAST_OF_SHORTER
        and weights.total(shared_terms(one, other)) >= _LEAST_WEIGHT
    )


def _are_apart(one: Quote, other: Quote) -> bool:
    """Whether two quotes are of different occasions.

    Messages that share another sentence word for word come from one text that was sent again, as a
    command or a loop does: that is one occasion.
    """
    if one.correction.beside & other.correction.beside:
        return False
    if one.source.id != other.source.id:
        return True
    return abs(one.correction.turn - other.correction.turn) >= _TURNS_APART


def _replaced_alike(one: Correction, other: Correction, weights: TermWeights) -> bool:
    """Whether the model replaced the same thing by the same thing, both times when told to."""
    both = (one.dropped & other.dropped, one.taken_up & other.taken_up)
    return all(max(map(weights.weight, terms), default=0) >= _LEAST_NAMED_WEIGHT for terms in both)
