from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.plain.voice import MOST_HELD_CHARS, SentenceCutter
from tests.support.rows import each_row


def pieces(*texts: str) -> list[str]:
    cutter = SentenceCutter()
    return [*filter(None, map(cutter.add, texts)), cutter.rest()]


def test_a_sentence_comes_when_it_is_whole():
    assert pieces("It wor", "ks. The", "n it", " ends") == ["It works. ", "Then it ends"]


def test_a_line_comes_when_it_is_whole_though_no_sentence_ends():
    assert pieces("- one", "\n- t", "wo\n") == ["- one\n", "- two\n", ""]


@each_row("end", ["?", "!", "…", '."', ".)", ".**"])
def test_what_ends_a_sentence(end):
    assert pieces(f"So{end} And") == [f"So{end} ", "And"]


def test_a_sentence_without_blanks_between_the_words_ends_too():
    assert pieces("これは文です。次") == ["これは文です。", "次"]


def test_a_point_inside_a_name_ends_nothing():
    assert pieces("See greet.py and 3.14 now") == ["See greet.py and 3.14 now"]


def test_lines_of_code_are_not_cut_at_sentences():
    text = ["```python\n", "x = 'A. B. ", "C'\n", "```\n", "Done. It"]
    assert pieces(*text) == ["```python\n", "x = 'A. B. C'\n", "```\n", "Done. ", "It"]


def test_a_fence_that_is_still_being_written_is_not_taken_for_a_sentence():
    assert pieces("```text. a", "b\nA. B", "\n") == ["```text. ab\n", "A. B\n", ""]


def test_of_a_line_without_an_end_no_more_is_held_than_a_paragraph():
    words = "word " * (MOST_HELD_CHARS // 5)
    assert pieces(words, "and mo", "re") == [f"{words}and ", "more"]
    assert pieces("```\n" + "x" * (MOST_HELD_CHARS + 1)) == ["```\n" + "x" * 2_001, ""]


@given(st.lists(st.text(alphabet="ab. \n`!", max_size=8)))
def test_what_comes_out_is_what_went_in(texts):
    assert "".join(pieces(*texts)) == "".join(texts)
