"""What a sentence affirms and denies, and whether it has the form of a rule."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

from agent_tui.text_search import fold


def _folded(words: str) -> frozenset[str]:
    return frozenset(map(fold, words.split()))


_DENIALS: Final = _folded(
    """
    not never no without dont
    nicht nie niemals ohne kein keine keinen keiner keinem keines
    ne n pas jamais sans aucun aucune
    no nunca jamás sin
    não nunca sem
    non mai senza
    не никогда без нет
    ніколи
    nie nigdy bez
    """
)
"""Words that deny what follows them in a clause.

Negation is a closed class of words: these are the negative particles, determiners and adverbs of
time (features ``Polarity=Neg`` and ``PronType=Neg``) in the Universal Dependencies treebanks of
English, German, French, Spanish, Portuguese, Italian, Russian, Ukrainian and Polish.
"""

_TOTALS: Final = _folded(
    """
    always never immer niemals toujours jamais siempre nunca sempre
    всегда никогда завжди ніколи zawsze nigdy 总是 永远
    """
)
"""Adverbs of time that make a sentence hold for every time (``PronType=Tot`` and ``Neg``)."""

_MODALS: Final = _folded(
    """
    must should shall muss müssen soll sollen sollte doit doivent debe deben deve devono
    """
)
"""Verbs of obligation, which make a sentence with a subject a rule."""

_LEADS: Final = _folded(
    """
    please do and but so again bitte also und aber svp et mais por favor y pero e
    пожалуйста и но а будь ласка proszę ale
    """
)
"""Words that may come before the word that makes a clause a prohibition."""

_CONTRASTS: Final = re.compile(
    r"\b(?:instead of|rather than|anstelle von|anstatt|statt|au lieu de|plutôt que|en vez de"
    r"|en lugar de|em vez de|invece di|вместо|замість|zamiast)\b|而不是",
    re.IGNORECASE,
)
"""Prepositions and conjunctions that set what they deny against what they affirm."""

_HAN_DENIAL = re.compile(r"不要|不得|禁止|请勿|請勿|别|別")
_KANA_DENIAL = re.compile(r"ないで|ないこと|禁止")

_CONTRACTION = re.compile(r"\bdon['’]t\b", re.IGNORECASE)
_FRENCH = re.compile(r"\b([ncdjlmst]|qu)['’](?=\w)", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,;:!?()\[\]…—–。，；：！？、]+|\.(?=\s|$)|\s-\s")
_HAN_OR_KANA = r"\u3040-\u30ff\u3400-\u9fff"
_TOKEN = re.compile(
    rf"[{_HAN_OR_KANA}]+|[^\W_{_HAN_OR_KANA}](?:[^\W{_HAN_OR_KANA}]|[./@$%#+:-](?=\w))*[+#]*"
)
_IS_HAN = re.compile(rf"[{_HAN_OR_KANA}]")
_STEM_LETTERS = 6
"""Words are compared by so many first letters: nearly as good as a stemmer, in any language.

Source: McNamee and Mayfield, "Character n-gram tokenization for European language text retrieval",
Information Retrieval 7, 2004.
"""

_COLON = re.compile(r":\s|：")
_MOST_LABEL_WORDS = 3

_LEAST_TERMS = 2
_MOST_WORDS = 30
_MOST_CHARS = 240


@dataclass(frozen=True, slots=True)
class Wording:
    """The terms of a sentence.

    Attributes:
        affirmed: The terms that it affirms.
        denied: The terms that it denies; the same term may be in both.
        is_short: Whether it is a sentence of a few terms that asks nothing.
        is_rule: Whether it also has the form of a prohibition, a contrast or a general rule.
    """

    affirmed: frozenset[str]
    denied: frozenset[str]
    is_short: bool
    is_rule: bool

    @property
    def terms(self) -> frozenset[str]:
        """All terms."""
        return self.affirmed | self.denied


def read_wording(sentence: str) -> Wording:
    """What `sentence` affirms and denies. A question, or a long sentence, is no rule.

    Nor is what a clause and a colon introduce, which is often an error message, word for word.
    """
    affirmed, denied = set[str](), set[str]()
    is_rule = False
    text = _FRENCH.sub(r"\1 ", _CONTRACTION.sub("do not", sentence))
    own, quoted = _without_quoted(text)
    for clause in _CLAUSE_END.split(quoted):
        _read_clause(clause, affirmed, denied)
    for clause in _CLAUSE_END.split(own):
        before, *after = _CONTRASTS.split(clause, maxsplit=1)
        denies = _read_clause(before, affirmed, denied)
        for part in after:
            denied.update(terms_of(part))
        is_rule = is_rule or denies or any(part.strip() for part in after)
    is_said = len(sentence) <= _MOST_CHARS and len(sentence.split()) <= _MOST_WORDS
    is_question = sentence.rstrip("\"'”)] ").endswith(("?", "？"))
    is_short = is_said and not is_question and len(affirmed | denied) >= _LEAST_TERMS
    return Wording(frozenset(affirmed), frozenset(denied), is_short, is_rule and is_short)


def _without_quoted(text: str) -> tuple[str, str]:
    """`text` up to a colon that follows more than a label, and the rest."""
    for colon in _COLON.finditer(text):
        if len(text[: colon.start()].split()) > _MOST_LABEL_WORDS:
            return text[: colon.start()], text[colon.end() :]
    return text, ""


def _read_clause(clause: str, affirmed: set[str], denied: set[str]) -> bool:
    """Add the terms of `clause`; true if it prohibits something, or holds for every time."""
    if _IS_HAN.search(clause):
        return _read_unspaced(clause, affirmed, denied)
    words = [(word, folded) for word in _TOKEN.findall(clause) if (folded := fold(word))]
    begins, is_rule = True, False
    into = affirmed
    for place, (word, folded) in enumerate(words):
        is_last = place == len(words) - 1
        is_total = folded in _TOTALS
        is_placed = begins or (place > 0 and words[place - 1][1] in _MODALS)
        begins = begins and (folded in _LEADS or is_total)
        if (is_total or folded in _DENIALS) and not is_last:
            is_rule = is_rule or is_placed
            if folded in _DENIALS:
                into = denied
        elif not begins and (term := _term(word)):
            into.add(term)
    return is_rule


def _read_unspaced(clause: str, affirmed: set[str], denied: set[str]) -> bool:
    if _KANA_DENIAL.search(clause):
        denied.update(terms_of(_KANA_DENIAL.split(clause)[0]))
        return True
    before, *after = _HAN_DENIAL.split(clause, maxsplit=1)
    for part in (before, *after):
        (denied if after else affirmed).update(terms_of(part))
    return any(part.strip() for part in after) or any(word in clause for word in _TOTALS)


def terms_of(text: str) -> Iterator[str]:
    """The terms of `text`, in order: beginnings of words, whole names, pairs of Han characters."""
    for word in _TOKEN.findall(text):
        if _IS_HAN.match(word):
            yield from (word[at : at + 2] for at in range(max(len(word) - 1, 1)))
        elif term := _term(word):
            yield term


def term_set(text: str) -> Set[str]:
    """The terms of a long `text`; each word is looked at once."""
    return set(terms_of(" ".join(set(_TOKEN.findall(text)))))


def _term(word: str) -> str:
    folded = fold(word)
    if folded.isalpha():
        if len(folded) > 3 and folded.endswith("s") and not folded.endswith("ss"):
            folded = folded[:-1]
        return folded[:_STEM_LETTERS]
    return folded.removesuffix("s") if len(folded) > 3 else folded


@dataclass(frozen=True, slots=True)
class TermWeights:
    """How much a term says, from 0 to 1: the rarer among the user's sentences, the more.

    This is the inverse document frequency, divided by its greatest value.

    Args:
        counts: In how many sentences each term occurs.
        sentences: How many sentences there are.
    """

    counts: Mapping[str, int]
    sentences: int

    def weight(self, term: str) -> float:
        """The weight of one term."""
        most = math.log(self.sentences + 2)
        return max(math.log((self.sentences + 2) / (self.counts.get(term, 0) + 1)) / most, 0.0)

    def total(self, terms: Iterable[str]) -> float:
        """The weight of `terms` together."""
        return sum(map(self.weight, terms))


def shared_terms(one: Wording, other: Wording) -> Set[str]:
    """The terms that both affirm or both deny."""
    return (one.affirmed & other.affirmed) | (one.denied & other.denied)


def opposed_terms(one: Wording, other: Wording) -> Set[str]:
    """The terms that one denies and the other only affirms."""
    return ((one.denied & other.affirmed) | (one.affirmed & other.denied)) - shared_terms(
        one, other
    )


@dataclass(frozen=True, slots=True)
class Likeness:
    """How much of what two sentences say is the same, from 0 to 1.

    Attributes:
        of_all: The weight of the shared terms, less that of the opposed ones, in that of all.
        of_shorter: The weight of the shared terms in that of the sentence that says less.
    """

    of_all: float
    of_shorter: float


def likeness(one: Wording, other: Wording, weights: TermWeights) -> Likeness:
    """Compare two sentences."""
    shared = weights.total(shared_terms(one, other))
    opposed = weights.total(opposed_terms(one, other))
    everything = weights.total(one.terms | other.terms)
    shorter = min(weights.total(one.terms), weights.total(other.terms))
    if not (everything and shorter):
        return Likeness(0.0, 0.0)
    return Likeness(max(shared - opposed, 0.0) / everything, shared / shorter)
