from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.recall.terms import TermSet
from agent_tui.text_search import (
    SmartCaseText,
    fold,
    lower_in_place,
    place_before_folding,
    split_query,
)
from tests.support.rows import each_row


@each_row(
    ("query", "parts"),
    [
        ("two words", [("two", False), ("words", True)]),
        ("finished ", [("finished", False)]),
        ('"a phrase" word', [("a phrase", False), ("word", True)]),
        ('"an open phrase', [("an open phrase", True)]),
        ('glued"together"', [("glued", False), ("together", False)]),
        ("", []),
    ],
)
def test_a_query_is_words_and_phrases_of_which_the_last_may_be_unfinished(
    query: str, parts: list[tuple[str, bool]]
) -> None:
    assert list(split_query(query)) == parts


def test_case_counts_only_where_a_capital_was_written() -> None:
    assert SmartCaseText.of("error").count("Error, ERROR") == 2
    assert SmartCaseText.of("Error").count("Error, ERROR") == 1
    assert SmartCaseText.of("straße").places("Eine STRASSE, eine Straße") == [19]
    assert SmartCaseText.of("x").places("İ x") == [2]
    assert SmartCaseText.of("aa").places("aaaaa") == [0, 2]


@each_row(
    ("term", "text"),
    [
        ("resume", "the RÉSUMÉ"),
        ("résumé", "the resume"),
        ("strasse", "die Straße"),
        ("ab", "fullwidth ＡＢ"),
        ("plain", "a — dash, then Plain"),
        ("αβγ", "ΑΒΓ"),
    ],
)
def test_a_set_of_terms_finds_them_whatever_their_case_and_accents(term: str, text: str) -> None:
    terms = TermSet([term, "absent"])
    found = terms.find_in(terms.fold_text(text))
    assert terms.without(found) == ("absent",)


def test_a_term_is_counted_a_few_times_at_most() -> None:
    terms = TermSet(["a", "b"])
    assert terms.count_in(terms.fold_text("a" * 100 + "b" * 3)) == 5 + 3


def test_the_first_place_is_one_of_the_text_itself() -> None:
    terms = TermSet(["ecole", "never"])
    text = "ﬁﬁﬁ " * 5 + "ÉCOLE"
    assert text[terms.first_place(text) :] == "ÉCOLE"
    assert terms.first_place("nothing of it") == 0


@given(st.text(max_size=40))
def test_lowering_in_place_keeps_every_place(text: str) -> None:
    assert len(lower_in_place(text)) == len(text)


@given(st.text(max_size=20), st.text(min_size=1, max_size=5))
def test_a_place_of_the_folded_text_leads_back_into_the_text(before: str, rest: str) -> None:
    text = before + rest
    for place in range(len(fold(text))):
        assert 0 <= place_before_folding(text, place) < len(text)
