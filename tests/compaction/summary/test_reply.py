import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.summary.reply import section_bodies
from agent_tui.compaction.summary.templates import SEVEN_SECTION, STRUCTURED

WHOLE = {
    "Goal": "Ship the parser.",
    "Constraints & Preferences": 'say "please"',
    "Done": "- [x] lexer\n- [x] grammar",
    "In Progress": "(none)",
    "Blocked": "C:\\new\\dir is missing",
    "Key Decisions": "",
    "Next Steps": "1. run the tests\n2. push",
    "Critical Context": "{ \"json\": true }, 'and more'",
}
HEADINGS = {section.title: section.heading for section in STRUCTURED.writable}
BODIES = {HEADINGS[title]: text for title, text in WHOLE.items()}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "wrapping",
    [
        "{}",
        "```json\n{}\n```",
        "Here are the notes:\n```\n{}\n```\nAnything else?",
        "<think>{{hm}}</think>\n{}",
    ],
)
def test_an_object_is_read_whatever_is_round_it(wrapping: str, indent: int | None):
    text = wrapping.format(json.dumps(WHOLE, indent=indent))
    assert section_bodies(text, STRUCTURED) == BODIES


def test_raw_line_breaks_and_loose_spacing_are_read():
    text = '{\n "goal" \n\n:\n"Ship\nit.", "## Next Steps":"1. run\n2. push"}'
    assert section_bodies(text, STRUCTURED) == {
        "## Goal": "Ship\nit.",
        "## Next Steps": "1. run\n2. push",
    }


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ('["run the tests", "push"]', "- run the tests\n- push"),
        ('["1. run", "2. push"]', "1. run\n2. push"),
        ('{"first": "run", "then": "push"}', "- first: run\n- then: push"),
        ("null", ""),
        ("3", "3"),
        ('"say \\"please\\" to it"', 'say "please" to it'),
        ('"say "please" to it"', 'say "please" to it'),
        ("not in quotes", "not in quotes"),
    ],
)
def test_values_of_other_kinds_and_broken_ones_are_text(value: str, body: str):
    text = f'{{"Next Steps": {value}, "Goal": "Ship."}}'
    assert section_bodies(text, STRUCTURED) == {"## Next Steps": body, "## Goal": "Ship."}


def test_a_key_named_inside_a_value_is_no_key():
    text = '{"Goal": "write \\"Done\\": \\"x\\" into it", "Done": "nothing yet"}'
    assert section_bodies(text, STRUCTURED) == {
        "## Goal": 'write "Done": "x" into it',
        "### Done": "nothing yet",
    }


def test_the_first_of_two_equal_keys_counts():
    assert section_bodies('{"Goal": "a", "Goal": "b"}', STRUCTURED) == {"## Goal": "a"}


def test_an_object_for_another_form_has_no_sections():
    assert section_bodies('{"answer": "42"}', STRUCTURED) == {}
    assert section_bodies('{"TASK STATE": "half done"}', SEVEN_SECTION) == {
        "## TASK STATE": "half done"
    }


@given(st.integers(0, len(json.dumps(WHOLE))))
def test_wherever_it_is_cut_what_came_is_a_beginning_of_the_whole(length: int):
    bodies = section_bodies(json.dumps(WHOLE)[:length], STRUCTURED)
    for heading, body in bodies.items():
        assert BODIES[heading].startswith(body)
    assert list(bodies) == list(BODIES)[: len(bodies)]


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str):
    section_bodies(text, STRUCTURED)
    section_bodies('{"Goal": ' + text, STRUCTURED)


@given(st.fixed_dictionaries({title: st.text(max_size=80) for title in WHOLE}))
def test_what_was_written_comes_back(values: dict[str, str]):
    text = json.dumps(values)
    expected = {HEADINGS[title]: value.strip() for title, value in values.items()}
    bodies = section_bodies(text, STRUCTURED)
    if "<" not in text:
        assert bodies == expected


def test_a_schema_asks_for_every_section_once_and_bounds_it():
    schema = STRUCTURED.schema(700)
    assert schema["required"] == list(WHOLE)
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {title: {"type": "string", "maxLength": 700} for title in WHOLE}
