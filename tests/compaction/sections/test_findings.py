"""Sentences that give a reason are kept word for word, those on what is in use first."""

import pytest

from agent_tui.compaction.sections.way import (
    all_findings,
    first_sentence,
    reasons_in,
)
from tests.compaction.sections.scene import called, replied
from tests.support.rows import each_row

WHY = "The cache is dropped because its key held the time."
TRIED = "Sorting the list first did not help with the order."
CHATTER = "Sure, I will gladly look into the parser now!"


@each_row(
    "sentence",
    [
        WHY,
        TRIED,
        "I use a lock instead of a queue here.",
        "It turns out the file is read twice.",
        "The root cause is the missing flush.",
        "The parser doesn't accept an empty line.",
        "We must not close the writer here.",
        "Das Feld bleibt leer, weil der Index fehlt.",
    ],
)
def test_a_sentence_with_a_reason_is_found_as_it_was_written(sentence: str) -> None:
    assert reasons_in(f"Well. {sentence} {CHATTER}") == [sentence]


@each_row(
    "text",
    [
        "| Can't test it without a screen | Unit test the session |",
        'this.showMessage("The model doesn\'t support thinking");',
        "it('returns null because the model does not support it', () => {",
        "Let me use the new file instead of the old one.",
        "The list is sorted because of these:",
        "Sorted instead of shuffled",
        "order**: sorted since the old order was lost.",
        "Good. Now let me see why it doesn't exist:",
        "```\n# because the old one is slow, use the new one\n```",
    ],
)
def test_tables_code_and_what_was_about_to_be_done_are_none(text: str) -> None:
    assert reasons_in(text) == []


@pytest.mark.parametrize("text", [CHATTER, "", "Done.", "All 12 tests pass now, as they should."])
def test_chatter_and_plain_reports_are_no_findings(text: str) -> None:
    assert reasons_in(text) == []


def test_bullets_and_wrapped_blanks_are_taken_off() -> None:
    assert reasons_in(f"- {WHY}\n* {TRIED.replace('list ', 'list  ')}") == [WHY, TRIED]


def test_very_short_and_very_long_sentences_are_left_out() -> None:
    assert reasons_in("Because of it.") == []
    assert reasons_in("It fails because " + "of this and that " * 60) == []


def test_findings_are_told_once_where_they_were_said_last_after_the_earlier_ones() -> None:
    other = "I keep the old name since callers use it."
    assert all_findings(replied(WHY, TRIED, WHY), (other,)) == (other, TRIED, WHY)


def test_only_replies_are_read_for_findings() -> None:
    assert all_findings(called(("read", {"path": "a.md"}, WHY))) == ()


def test_the_first_sentence_is_the_beginning_of_a_text() -> None:
    assert first_sentence("  I looked. Then I wrote.", 100) == "I looked."
    assert first_sentence("A heading\nand more", 100) == "A heading"
    assert first_sentence("v1.2 is out", 100) == "v1.2 is out"
    assert first_sentence("word " * 50, 20) == "word word word word…"


def test_only_the_newest_four_hundred_are_handed_on() -> None:
    earlier = tuple(f"Number {n} is left out since nobody asks for it." for n in range(450))
    assert all_findings(replied(WHY), earlier) == (*earlier[-399:], WHY)


def test_the_reasons_of_a_plan_that_was_handed_over_count() -> None:
    assert all_findings(called(("ExitPlanMode", {"plan": f"1. {WHY}"}, "Approved."))) == (WHY,)


def test_three_dots_end_no_sentence() -> None:
    text = "It waits for the lock... and then stops, because nobody frees it. Next."
    assert reasons_in(text) == [text.removesuffix(" Next.")]
    assert first_sentence(text, 200) == text.removesuffix(" Next.")


def test_many_blank_lines_are_read_in_linear_time() -> None:
    assert reasons_in(f"{chr(10) * 200_000}{WHY}") == [WHY]


def test_indented_code_of_a_list_item_is_no_reason() -> None:
    code = "  ```py\n\n  # because the old one is slow, use the new one\n  ```"
    assert reasons_in(f"- {TRIED}\n\n{code}\n\n{WHY}") == [TRIED, WHY]
