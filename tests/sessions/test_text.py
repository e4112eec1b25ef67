import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_tui.sessions.text import repair_json, repair_text, strip_control_characters

ANY_TEXT = st.text(st.characters(categories=None), max_size=20)


@given(ANY_TEXT)
def test_repaired_text_can_be_encoded_and_sound_text_is_the_same_object(text: str) -> None:
    repaired = repair_text(text)
    repaired.encode("utf-8")
    assert repair_text(repaired) is repaired


def test_a_pair_of_surrogates_becomes_its_character() -> None:
    assert repair_text("\ud83d\ude00!") == "😀!"
    assert repair_text("\ude00\ud83d") == "\ufffd\ufffd"


def test_every_text_in_a_value_is_repaired_and_sound_values_are_the_same_object() -> None:
    assert repair_json({"\ud800": ["\ud800", 1, None]}) == {"\ufffd": ["\ufffd", 1, None]}
    sound: JsonValue = {"a": ["b", {"c": 1.5}]}
    assert repair_json(sound) is sound


@pytest.mark.parametrize(
    ("hostile", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\x00\x08\x7f\x9bb", "ab"),
        ("a\u202eb\u2066c", "abc"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("over\rwrite", "overwrite"),
    ],
)
def test_control_characters_are_stripped(hostile: str, clean: str) -> None:
    assert strip_control_characters(hostile) == clean
