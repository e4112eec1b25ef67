"""Rules in files: which are offered no more, and which later words contradict."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.agent.prompt.context_files import with_line
from agent_tui.features.rules.offers import find_offers
from agent_tui.features.rules.written_rules import (
    contradictions,
    said_later,
    unwritten,
    written_rules,
)
from tests.features.rules.said import project, session
from tests.support.rows import each_row

FILE = Path("/p/AGENTS.md")


def rules(*lines):
    return list(written_rules(FILE, "\n".join(lines)))


def test_sentences_are_read_with_their_lines_without_headings_and_code():
    text = "# Use pip\n\n- Use uv. Not pip.\n\n```\nuse pip\n```\n1. Ask first.\n"
    found = [(rule.line, rule.text) for rule in written_rules(FILE, text)]
    assert found == [(3, "Use uv."), (3, "Not pip."), (8, "Ask first.")]


@pytest.mark.parametrize(
    "code",
    [
        "```\nuse pip\n- x",
        "~~~~ sh\nuse pip\n~~~",
        "1. Run:\n   ```sh\n   use pip",
        "````\n```\nuse pip\n```",
        "```\nuse pip\n    ```",
    ],
)
def test_a_line_that_was_added_is_read_as_a_rule_even_after_open_code(code):
    text = with_line(f"- Use uv.\n\n{code}\n", "Ask first.")
    found = [rule.text for rule in rules(text)]
    assert (found[0], found[-1], "use pip" in found) == ("Use uv.", "Ask first.", False)


def test_what_a_file_says_already_is_not_offered():
    said = project([session("use uv, not pip", day=1), session("uv, not pip please", day=2)])
    offers = find_offers(said)
    assert unwritten(offers, rules("- Use uv, not pip."), said.weights) == []
    assert unwritten(offers, rules("- Use tabs, not spaces."), said.weights) == offers


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("Use uv, not pip.", "use pip, not uv"),
        ("Use unittest, not pytest.", "we use pytest, not unittest"),
        ("Write the docs in German.", "docs in English, not German"),
        ("Use npm.", "don't use npm, use pnpm"),
        ("Keine Tests mit Netzwerk.", "Tests mit Netzwerk, nicht ohne"),
    ],
)
def test_later_words_that_want_the_opposite_are_shown_beside_the_rule(rule, said):
    (found,) = contradictions(rules(f"- {rule}"), project([session(said)]))
    assert (found.rule.text, found.quote.sentence) == (rule, said)


@each_row(
    ("rule", "said"),
    [
        ("Use uv, not pip.", "uv, not pip please"),
        ("Use tabs, not spaces.", "no tabs in the YAML files of the release workflow"),
        ("Write tests for every change.", "no tests needed here"),
        ("Don't add comments to the code.", "don't remove my comments"),
        ("Never push to main.", "push to main now"),
        ("Use uv, not pip.", "don't touch the changelog"),
        ("No emojis in the README.", "No emojis, please: the README must be plain."),
    ],
)
def test_agreement_exceptions_and_requests_contradict_nothing(rule, said):
    assert list(contradictions(rules(f"- {rule}"), project([session(said)]))) == []


def test_a_rule_that_was_repeated_since_is_not_contradicted():
    once = [session("use pip, not uv", day=1)]
    assert list(contradictions(rules("Use uv, not pip."), project(once)))
    again = [session("use pip, not uv", day=1), session("use uv, not pip", day=2)]
    assert not list(contradictions(rules("Use uv, not pip."), project(again)))
    changed = [session("use uv, not pip", day=1), session("use pip, not uv", day=2)]
    assert list(contradictions(rules("Use uv, not pip."), project(changed)))


def test_only_words_that_are_newer_than_the_rule_count():
    (found,) = contradictions(rules("Use uv, not pip."), project([session("use pip, not uv")]))
    assert said_later(found, "2025-12-31T00:00:00Z")
    assert not said_later(found, "2026-01-02T00:00:00Z")
    assert not said_later(found, "")
    undated = replace(
        found, quote=replace(found.quote, correction=replace(found.quote.correction, at=""))
    )
    assert not said_later(undated, "2025-12-31T00:00:00Z")
