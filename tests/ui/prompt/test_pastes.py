from hypothesis import given
from hypothesis import strategies as st

from agent_tui.ui.prompt.pastes import Draft, is_large, mark_before, paste_mark


def test_a_paste_of_ten_thousand_lines_is_one_short_mark_and_is_sent_whole():
    pasted = "\n".join(f"line {n}" for n in range(10_000))
    mark = paste_mark(1, pasted)
    assert mark == "[paste #1 +9,999 lines]"
    assert Draft(f"look at {mark} please", {1: pasted}).full_text == f"look at {pasted} please"


def test_ten_lines_or_a_thousand_characters_stay_as_they_are():
    assert not is_large("\n".join("x" * 10))
    assert is_large("\n".join("x" * 11))
    assert not is_large("x" * 1_000)
    assert is_large("x" * 1_001)


def test_a_long_single_line_says_its_length():
    assert paste_mark(2, "x" * 4_210) == "[paste #2 4,210 chars]"


def test_a_mark_the_person_typed_without_a_paste_is_text():
    assert Draft("[paste #7 +3 lines]").full_text == "[paste #7 +3 lines]"


def test_trimming_forgets_pastes_whose_mark_was_deleted():
    draft = Draft("  [paste #1 +2 lines] ", {1: "a", 2: "b"}).trimmed()
    assert draft == Draft("[paste #1 +2 lines]", {1: "a"})


def test_the_mark_before_the_cursor_is_measured_whole():
    assert mark_before("see [paste #1 +9,999 lines]") == len("[paste #1 +9,999 lines]")
    assert mark_before("see [paste #1 +9,999 lines] ") == 0
    assert mark_before("no mark]") == 0


@given(st.text(), st.text())
def test_pasted_text_is_never_searched_for_marks(before: str, pasted: str):
    mark = paste_mark(1, "x" * 2_000)
    pasted += mark
    full = Draft(before.replace("[", "") + mark, {1: pasted}).full_text
    assert full == before.replace("[", "") + pasted
