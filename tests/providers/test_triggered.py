"""Grammars that wait for their trigger, read as the automata they are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.litellm.protocol import Start, command_line, parse_command
from agent_tui.providers.base import TriggeredGrammar
from agent_tui.providers.silence import SilenceLimits
from agent_tui.providers.wires.base import WireRequest
from agent_tui.providers.wires.chat import waiting_grammar

TRIGGERS = ("<tool_call>", "aab", "abab", "[[", "^-]")


def free_text_ends(trigger: str, text: str) -> bool:
    """Whether the free part of the grammar takes all of `text`."""
    grammar = waiting_grammar(TriggeredGrammar('root ::= "x"', trigger))
    rules = dict(re.findall(r"^(free-\d+) ::= (.*)$", grammar, re.M))
    state = "free-0"
    for letter in text:
        steps = re.findall(r"\[(\^?)([^\]]*)\] (free-\d+)", rules[state])
        taken = {target for negated, body, target in steps if bool(negated) != _is_in(letter, body)}
        if not taken:
            return False
        (state,) = taken
    return True


def _is_in(letter: str, body: str) -> bool:
    return letter in re.sub(r"\\U([0-9A-F]{8})", lambda found: chr(int(found[1], 16)), body)


@given(st.sampled_from(TRIGGERS), st.text(alphabet="<tool_ca>b[^-]\n x", max_size=40))
def test_free_text_is_any_that_does_not_hold_the_trigger(trigger: str, text: str) -> None:
    assert free_text_ends(trigger, text) == (trigger not in text)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_the_trigger_is_left_to_the_grammar_behind_it(trigger: str) -> None:
    assert free_text_ends(trigger, f"text {trigger[:-1]}")
    assert not free_text_ends(trigger, f"text {trigger}")


def test_the_root_becomes_what_the_trigger_leads_to() -> None:
    text = 'root ::= "<a>" root-rest\nroot-rest ::= "b"'
    lines = waiting_grammar(TriggeredGrammar(text, "<a>")).split("\n")
    assert lines[0] == "root ::= free-0"
    assert lines[-2:] == ['triggered ::= "<a>" root-rest', 'root-rest ::= "b"']
    assert [line for line in lines if line.endswith("| triggered")] == [lines[1]]


def test_a_grammar_reaches_litellms_process_as_it_is() -> None:
    grammar = TriggeredGrammar('root ::= "a"', "a")
    start = Start(1, WireRequest("m", [], grammar=grammar), SilenceLimits.without_bytes())
    assert parse_command(command_line(start)) == start
