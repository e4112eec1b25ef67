import pytest

from agent_tui.ui.prompt.attachments import clean_paste, report_length


@pytest.mark.parametrize("report", ["[<35;67;12M", "[<0;1;1m", "\x1b[<64;200;60M"])
def test_a_split_mouse_report_is_found_where_it_ends(report: str):
    assert report_length("fix the bug" + report) == len(report)


@pytest.mark.parametrize("typed", ["list[<T>]", "a[<1;2M", "x <35;67;12M y", "[35;67;12M"])
def test_what_only_looks_like_a_report_stays(typed: str):
    assert report_length(typed) == 0


def test_a_paste_loses_escape_sequences_and_keeps_its_lines():
    pasted = "a\r\nb\rc\x1b[31mred\x1b[0m\x1b]52;c;aGk=\x07!\x00\ttab[<35;67;12M"
    assert clean_paste(pasted) == "a\nb\ncred!\ttab"
