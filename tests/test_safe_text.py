import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.safe_text import (
    MOST_STACKED,
    final_lines,
    safe_json,
    safe_output,
    safe_text,
    strip_control_characters,
    strip_escape_sequences,
)
from tests.support.rows import each_row
from tests.support.terminal_attacks import ATTACKS, MARKUP, hostile_text, what_is_left

LONG = 10_000_000


def joined(text: str) -> str:
    """`text` as JSON keeps it: two surrogates that are a pair are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@each_row("attack", ATTACKS.values(), ids=ATTACKS.keys())
@each_row("clean", [safe_text, safe_output, strip_control_characters])
def test_no_known_attack_gets_through(attack: str, clean):
    cleaned = clean(attack)
    assert what_is_left(cleaned) == set()
    assert cleaned.count("b") >= 1 or "cut" in attack


@each_row("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_json_text_keeps_its_value_and_holds_no_attack(attack: str):
    written = safe_json(json.dumps({attack: attack}, ensure_ascii=False))
    assert json.loads(written) == {joined(attack): joined(attack)}
    assert what_is_left(re.sub("[\u0300-\u036f\u0483-\u0489]+", "", written)) == set()


@given(hostile_text)
def test_every_way_is_safe_and_once_is_enough(text: str):
    for clean in (safe_text, safe_output, strip_control_characters):
        assert what_is_left(clean(text)) == set()
    assert safe_text(safe_text(text)) == safe_text(text)
    assert json.loads(safe_json(json.dumps(text, ensure_ascii=False))) == joined(text)


@given(hostile_text, st.lists(st.integers(0, 200), max_size=4))
def test_an_attack_split_across_pieces_is_none_either(text: str, cuts: list[int]):
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [text[i:j] for i, j in pairwise(places)]
    for clean in (safe_text, strip_control_characters):
        left = what_is_left("".join(map(clean, pieces)))
        assert not [found for found in left if len(found) == 1]  # marks are counted in a piece


@each_row("markup", MARKUP)
def test_markup_is_text_and_stays(markup: str):
    assert safe_text(markup) == strip_control_characters(markup) == markup


@each_row(
    "text",
    ["pаypal", "ﷺ", "👩‍💻 👍🏽 ❤️ 1️⃣", "می‌خواهم", "क्‍ष", "שָׁלוֹם", "ก็ที่", "e\u0301\u0323", "Z̧̛͎"],
)
def test_real_writing_and_look_alikes_are_left_alone(text: str):
    assert safe_text(text) == strip_control_characters(text) == text


def test_a_storm_of_marks_is_bounded_and_shown_to_be_cut():
    assert safe_text("a" + "\u0301" * 50 + "b") == "a" + "\u0301" * MOST_STACKED + "\ufffdb"


def test_a_line_is_shown_as_a_terminal_would_leave_it():
    assert final_lines("10%\r100%\r\nlo\x08ok") == "100%\nlok"
    assert safe_output("rm -rf /\recho hello") == "echo hello"


def test_text_a_person_decides_upon_shows_what_was_hidden():
    assert safe_text("rm -rf /\recho hello") == "rm -rf /␍echo hello"


def test_sequences_go_with_their_contents():
    assert strip_escape_sequences("a\x1b]52;c;cm0g\x07b\x1bPtmux;x\x1b\\c") == "abc"
    assert strip_control_characters("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\") == "alink"


@pytest.mark.thorough
@each_row("unit", ["x", "\x1b", "\x1b[", "\x1b]0;", "\u0301", "\x9d", "\u202e", "é"])
def test_ten_megabytes_on_one_line_are_handled(unit: str):
    text = unit * (LONG // 10 // len(unit))
    for clean in (safe_text, safe_output, strip_control_characters):
        assert what_is_left(clean(text)[:1_000]) == set()
