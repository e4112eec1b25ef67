import json
import os

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_tui.safe_text import strip_control_characters
from agent_tui.text import decode_path, encode_path, repair_json, repair_text
from tests.support.rows import each_row

ANY_TEXT = st.text(st.characters(categories=None), max_size=20)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)


@given(ANY_TEXT)
def test_repaired_text_can_be_encoded_and_sound_text_is_the_same_object(text: str) -> None:
    repaired = repair_text(text)
    repaired.encode("utf-8")
    assert repair_text(repaired) is repaired


def test_a_pair_of_surrogates_becomes_its_character() -> None:
    assert repair_text("\ud83d\ude00!") == "😀!"
    assert repair_text("\ude00\ud83d") == "\ufffd\ufffd"


@given(st.binary().filter(lambda name: b"\0" not in name))
def test_an_encoded_path_is_text_and_decodes_to_the_same_bytes(name: bytes) -> None:
    encoded = encode_path(os.fsdecode(name))
    assert encoded.encode("utf-8") == name or b"\0" in encoded.encode("utf-8")
    assert os.fsencode(decode_path(encoded)) == name


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_path_of_text_is_its_own_encoded_form(path: str) -> None:
    assert encode_path(path) == path == decode_path(path)


def test_every_text_in_a_value_is_repaired_and_sound_values_are_the_same_object() -> None:
    assert repair_json({"\ud800": ["\ud800", 1, None]}) == {"\ufffd": ["\ufffd", 1, None]}
    sound: JsonValue = {"a": ["b", {"c": 1.5}]}
    assert repair_json(sound) is sound


@given(ANY_JSON)
def test_a_repaired_value_can_be_sent_and_needs_no_second_repair(value: JsonValue) -> None:
    repaired = repair_json(value)
    assert repair_json(repaired) is repaired
    json.dumps(repaired, ensure_ascii=False, allow_nan=False).encode("utf-8")


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert repair_json([float("nan"), float("-inf"), 1.5]) == [None, None, 1.5]


@each_row(
    ("hostile", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\x00\x08\x7f\x85b", "ab"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1bPq#0;2\x1b\\x", "x"),
        ("a\u202eb\u2066c", "abc"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("over\rwrite", "overwrite"),
    ],
)
def test_control_characters_are_stripped(hostile: str, clean: str) -> None:
    assert strip_control_characters(hostile) == clean
