from hypothesis import given
from hypothesis import strategies as st

from agent_tui.tools.shorten import cut_line, keep_ends, keep_head, size_bytes

_TEXTS = st.text(alphabet=st.sampled_from("ab€😀\n\n\n"), max_size=2_000)


@given(_TEXTS, st.integers(3, 40), st.integers(160, 1_200))
def test_both_ends_never_exceed_the_caps_nor_the_text(text: str, max_lines: int, max_bytes: int):
    kept = keep_ends(text, max_lines=max_lines, max_bytes=max_bytes)
    assert size_bytes(kept.text) <= max(max_bytes, 0)
    assert kept.text.count("\n") + 1 <= max_lines
    if not kept.is_cut:
        assert kept.text == text
    else:
        assert kept.omitted_bytes <= size_bytes(text)
    if size_bytes(text) > max_bytes:
        assert size_bytes(kept.text) < size_bytes(text)


@given(_TEXTS, st.integers(1, 40), st.integers(8, 500))
def test_the_head_is_a_prefix_within_the_caps(text: str, max_lines: int, max_bytes: int):
    kept = keep_head(text, max_lines=max_lines, max_bytes=max_bytes)
    assert text.startswith(kept.text)
    assert size_bytes(kept.text) <= max_bytes
    assert kept.text.count("\n") + 1 <= max_lines
    assert kept.is_cut == (kept.text != text)


def test_the_end_gets_the_larger_share():
    text = "\n".join(f"line {number}" for number in range(1, 1_001))
    kept = keep_ends(text, max_lines=101, max_bytes=50_000)
    lines = kept.text.split("\n")
    assert lines[:20] == [f"line {number}" for number in range(1, 21)]
    assert lines[20] == "[... lines 21-920 of 1000 left out ...]"
    assert kept.left_out == (21, 920)
    assert lines[21:] == [f"line {number}" for number in range(921, 1_001)]


def test_one_giant_line_keeps_its_beginning_and_its_end():
    kept = keep_ends("A" + "x" * 100_000 + "Z", max_lines=2_000, max_bytes=1_000)
    assert kept.text.startswith("A")
    assert kept.text.endswith("Z")
    assert size_bytes(kept.text) <= 1_000


def test_lone_surrogates_in_one_giant_line_are_no_fault():
    kept = keep_ends("A" + "\ud800" * 100_000 + "Z", max_lines=2_000, max_bytes=1_000)
    assert (kept.text[0], kept.text[-1]) == ("A", "Z")
    assert size_bytes(kept.text) <= 1_000


def test_lines_that_just_fit_are_kept():
    assert keep_head("ab\ncd\nef", max_lines=9, max_bytes=5).text == "ab\ncd"


def test_a_cut_line_says_how_much_is_missing():
    assert cut_line("x" * 12, 10) == "x" * 10 + "… [+2 characters]"
    assert cut_line("x" * 10, 10) == "x" * 10
