"""The rules of gitleaks, as translated: each finds what it should, in bounded time."""

import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from agent_tui.secret_text import (
    OWN_RULES,
    REMOVED,
    RULES_FILE,
    SecretRule,
    find_secrets,
    load_rules,
    mask_secrets,
    secret_span,
)
from tests.support.regex_text import draw_match
from tests.support.rows import each_row
from tests.support.secret_rules import EXAMPLES_FILE, LEFT_OUT, OURS

RULES = load_rules()
EXAMPLES: dict[str, dict[str, list[str]]] = json.loads(EXAMPLES_FILE.read_text())
FOUND = [(name, text[::-1]) for name, each in EXAMPLES.items() for text in each["found"]]
NOT_FOUND = [(name, text[::-1]) for name, each in EXAMPLES.items() for text in each["not_found"]]

_parser: Any = importlib.import_module("re._parser")


def test_the_rules_are_gitleaks_less_the_few_that_are_left_out():
    names = {rule.name for rule in RULES}
    assert len(names) >= 210
    assert not names & {*LEFT_OUT, *OURS}
    assert "generic-api-key" not in names
    data = json.loads(RULES_FILE.read_text())
    assert re.search(r"gitleaks/gitleaks v8\.\S+ \([0-9a-f]{40}\), MIT licence", data["source"])
    assert "Zachary Rice" in RULES_FILE.with_name(data["licence"]).read_text()


@each_row("rule", [*OWN_RULES, *RULES], ids=lambda rule: rule.name)
def test_each_pattern_compiles(rule: SecretRule):
    re.compile(rule.pattern, re.ASCII)
    re.compile(rule.allowed, re.ASCII)


def test_gitleaks_own_examples_are_masked():
    assert len(FOUND) > 200
    missed = [(name, text) for name, text in FOUND if mask_secrets(text) == text]
    assert [name for name, _ in missed] == ["sourcegraph-access-token"]  # a hash, as a commit's


def test_what_a_rule_of_gitleaks_passes_over_is_passed_over():
    assert len(NOT_FOUND) > 200
    public_examples = {"aws-access-token", "gcp-api-key"}
    wrong = [
        (name, text)
        for name, text in NOT_FOUND
        for *_, rule in find_secrets(text)
        if rule.name == name and name not in {*public_examples, "private-key"}
    ]
    assert not wrong


def spans_without_marks(rule: SecretRule, text: str) -> set[tuple[int, int]]:
    found = re.finditer(rule.pattern, text, re.ASCII)
    return {span for each in found if (span := secret_span(rule, each)) is not None}


@each_row("rule", RULES, ids=lambda rule: rule.name)
def test_a_secret_drawn_from_each_pattern_is_masked_and_the_text_around_it_stays(rule: SecretRule):
    chance = Random(rule.name)
    secrets = 0
    for _ in range(20):
        example = draw_match(rule.pattern, chance)
        text = f"{' '.join(rule.keywords)}\n see {example}\n and more"
        spans = {(start, end) for start, end, by in find_secrets(text) if by is rule}
        assert spans == spans_without_marks(rule, text)
        if spans:
            secrets += 1
            masked = mask_secrets(text)
            assert masked.endswith("\n and more")
            assert masked.startswith(f"{' '.join(rule.keywords)}\n see ")
            assert REMOVED in masked
    assert secrets >= 10


def repeats_of(nodes: Any) -> Iterator[tuple[int, bool]]:
    """How often each part of a pattern may be repeated, and whether it is given back."""
    for kind, value in nodes:
        name = str(kind)
        if name.endswith("_REPEAT"):
            yield int(value[1]), name != "POSSESSIVE_REPEAT"
            yield from repeats_of(value[2])
        elif name == "BRANCH":
            for part in value[1]:
                yield from repeats_of(part)
        elif name == "SUBPATTERN":
            yield from repeats_of(value[3])
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from repeats_of(value[1])


@each_row("rule", RULES, ids=lambda rule: rule.name)
def test_what_a_pattern_reads_from_a_mark_is_bounded(rule: SecretRule):
    assert all(most <= 2_000 for most, _ in repeats_of(_parser.parse(rule.pattern)))
    assert rule.marks or rule.keywords
    assert all(len(mark) >= 3 and mark == mark.lower() for mark in rule.marks)
    assert rule.lead <= 40


def is_quick(text: str) -> bool:
    """Whether eight times the text takes about eight times as long, in one of three attempts."""
    return any(seconds_of(text * 8) < 30 * seconds_of(text) + 0.002 for _ in range(3))


def seconds_of(text: str) -> float:
    """The processor time that masking takes."""
    before = time.thread_time()
    mask_secrets(text)
    return time.thread_time() - before


HOSTILE = (
    "{}",
    "{} ",
    "{}=",
    "{}\n",
    "{}a",
    "{}-",
    "{}: ",
    "{}{{",
    '{}"',
    "{} -H ",
    "{}=a:",
    "{}.",
)


@pytest.mark.thorough
@each_row("rule", [*OWN_RULES, *RULES], ids=lambda rule: rule.name)
def test_eight_times_the_text_takes_about_eight_times_as_long(rule: SecretRule):
    chance = Random(rule.name)
    cut = draw_match(rule.pattern, chance)[:-2]
    for begin in [*rule.marks[:2], cut, cut[: len(cut) // 2]]:
        for shape in HOSTILE if len(begin) < 40 else HOSTILE[:3]:
            piece = shape.format(begin)
            assert is_quick(piece * (2_000 // len(piece) + 1)), piece


def test_nothing_is_read_before_something_is_masked():
    code = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "import agent_tui.secret_text as secret_text\n"
        "from agent_tui.__main__ import main\n"
        "sys.argv = ['agent-tui', '--version']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "name = secret_text.RULES_FILE.name\n"
        "assert not any(name in each for each in opened)\n"
        "secret_text.mask_secrets('some text')\n"
        "assert any(name in each for each in opened)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
