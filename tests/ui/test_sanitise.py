import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.safe_text import safe_output, safe_text
from tests.support.rows import each_row

any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
hostile_pieces = st.sampled_from(
    "\x1b\x07\x9b\r\n\t\u202e\u200d\u200b\ufe0f\u2028\ud800[m]52;c1aé👩日\u0301"
)
hostile_text = st.lists(hostile_pieces, max_size=12).map("".join)


@given(any_text | hostile_text)
def test_only_newlines_are_left_of_all_control_characters(text: str):
    left = {
        character
        for character in safe_text(text)
        if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
    }
    assert left <= {"\n"}


@given(any_text | hostile_text)
def test_sanitising_twice_is_sanitising_once(text: str):
    once = safe_text(text)
    assert safe_text(once) == once
    one_line = safe_text(text, keep_newlines=False)
    assert safe_text(one_line, keep_newlines=False) == one_line


@given(any_text | hostile_text)
def test_a_single_line_holds_no_newline(text: str):
    assert "\n" not in safe_text(text, keep_newlines=False)


@given(any_text | hostile_text)
def test_program_output_is_as_safe_as_any_text(text: str):
    output = safe_output(text)
    assert safe_text(output) == output


@given(st.text(st.characters(categories=("L", "N", "P", "Sm", "Sc")), max_size=60))
def test_printable_text_comes_back_unchanged(text: str):
    invisible = {"\u115f", "\u1160", "\u3164", "\uffa0"}
    if not invisible & set(text):
        assert safe_text(text) == text


@each_row(
    "text",
    ["👩‍💻 codes", "1️⃣", "❤️", "می‌خواهم", "क्‍ष", "naïve e\u0301", "日本語", "👍🏽", "d[key] [/foo]"],
)
def test_joiners_and_selectors_stay_where_they_belong_to_the_writing(text: str):
    assert safe_text(text) == text


@each_row(
    ("text", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b]8;;http://x\x1b\\y", "␛]8;;http://x␛\\y"),
        ("\x9b31mred", "�31mred"),
        ("pay\u202egpj.exe", "pay�gpj.exe"),
        ("pass\u200bword", "pass�word"),
        ("a\u200db", "a�b"),
        ("a\ufe0f\ufe0f", "a��"),
        ("a\u2028b", "a\nb"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\ud83d", "�"),
        ("x\ty", "x   y"),
        ("\x7f\x00", "␡␀"),
    ],
)
def test_what_could_deceive_is_shown_as_a_mark(text: str, shown: str):
    assert safe_text(text) == shown


def test_newlines_are_visible_in_a_single_line():
    assert safe_text("echo hi\nrm x", keep_newlines=False) == "echo hi⏎rm x"


def test_colours_and_overwritten_progress_are_left_out_of_program_output():
    raw = "\x1b[1;32mok\x1b[0m\r\n 10%\r 50%\r100%\ndone\r\n\x1b]0;title\x07end\r"
    assert safe_output(raw) == "ok\n100%\ndone\nend"


def test_a_broken_escape_sequence_in_program_output_is_still_shown():
    assert "\x1b" not in safe_output("\x1b[31")
    assert safe_output("a\x1b]52;c;never ended").startswith("a")


def test_ten_megabytes_on_one_line_are_handled():
    text = "x" * 10_000_000
    assert safe_text(text) == text
