"""What a sentence affirms and denies, and which sentences say the same."""

from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.rules.offers import agree
from agent_tui.features.rules.wording import (
    TermWeights,
    likeness,
    opposed_terms,
    read_wording,
    term_set,
    terms_of,
)
from tests.support.rows import each_row

PAIRS = yaml.safe_load(Path(__file__).with_name("pairs.yaml").read_text("utf-8"))
NOT_FOUND = 5
"""Pairs of ``same`` that are not found: finding too little is better than offering noise."""

ALIKE = TermWeights({}, 100)


def weights() -> TermWeights:
    """How often each term occurs among all sentences of the pairs."""
    sentences = [sentence for pairs in PAIRS.values() for pair in pairs for sentence in pair]
    counts = Counter(term for one in sentences for term in read_wording(one).terms)
    return TermWeights(counts, len(sentences))


def is_one_rule(first: str, second: str) -> bool:
    one, other = read_wording(first), read_wording(second)
    return one.is_rule and other.is_rule and agree(one, other, weights())


def test_nearly_all_pairs_that_say_one_rule_are_found():
    missed = [pair for pair in PAIRS["same"] if not is_one_rule(*pair)]
    assert len(missed) == NOT_FOUND, missed


@each_row("pair", PAIRS["other"], ids=lambda pair: pair[1])
def test_no_other_pair_is_taken_for_a_rule(pair):
    assert not is_one_rule(*pair)


@each_row(
    ("sentence", "affirmed", "denied"),
    [
        ("use uv, not pip", {"use", "uv"}, {"pip"}),
        ("Use uv instead of pip.", {"use", "uv"}, {"pip"}),
        ("no f-strings in logging", set(), {"f-string", "in", "loggin"}),
        ("Don't edit `setup.cfg`", set(), {"edit", "setup.cfg"}),
        ("benutze uv, nicht pip", {"benutz", "uv"}, {"pip"}),
        ("N'ajoute pas de tests", set(), {"ajoute", "de", "test"}),
        ("不要加注释", set(), {"加注", "注释"}),
        ("コメントを書かないで", set(), {"コメ", "メン", "ント", "トを", "を書", "書か"}),
    ],
)
def test_what_is_denied_follows_the_negation_in_its_clause(sentence, affirmed, denied):
    wording = read_wording(sentence)
    assert (wording.affirmed, wording.denied) == (affirmed, denied)
    assert wording.is_rule


@each_row(
    "sentence",
    [
        "it does not work",
        "the tests are not green",
        "I never saw that error",
        "why not use uv?",
        "Don't you want to use uv?",
        "I still get this error: no function clause matching in Group.handle/3",
        "Use uv for this project.",
        "no",
        "",
        "never " + "and on " * 40,
    ],
)
def test_reports_questions_and_plain_requests_are_no_rules(sentence):
    assert not read_wording(sentence).is_rule


def test_an_obligation_with_a_subject_is_a_rule():
    assert read_wording("Tests must never touch the network.").is_rule
    assert read_wording("Always run the linter first.").is_rule
    assert read_wording("In tests: no network.").is_rule


def test_opposites_are_not_alike():
    one, other = read_wording("don't use pip"), read_wording("use pip")
    assert opposed_terms(one, other) == {"use", "pip"}
    assert likeness(one, other, ALIKE).of_all == 0


def test_a_term_that_everybody_uses_weighs_nothing_and_a_rare_one_most():
    counted = TermWeights({"the": 100, "uv": 1}, 100)
    assert counted.weight("the") < 0.01
    assert counted.weight("uv") < counted.weight("new") == 1


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_within_its_bounds(first, second):
    one, other = read_wording(first), read_wording(second)
    alike, back = likeness(one, other, ALIKE), likeness(other, one, ALIKE)
    assert alike.of_all == pytest.approx(back.of_all)
    assert alike.of_shorter == pytest.approx(back.of_shorter)
    assert 0 <= alike.of_all <= alike.of_shorter <= 1 + 1e-9
    if one.terms and one.affirmed.isdisjoint(one.denied):
        assert likeness(one, one, ALIKE).of_all == pytest.approx(1)


@given(st.text())
def test_the_terms_of_a_text_do_not_depend_on_their_order(text):
    assert term_set(text) == set(terms_of(text)) == term_set(f"{text}\n{text}")
