"""The corpus of commands against the permission engine. Nothing here is ever run."""

from collections import Counter
from pathlib import Path

import pytest

from tests.safety.corpus import MODES, Judged, judge, make_workspace, read_corpus
from tests.support.rows import each_row

_CORPUS = tuple(read_corpus())
_SECTIONS = tuple(dict.fromkeys(judged.section for judged in _CORPUS))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("safety"))


def _section(name: str) -> list[Judged]:
    return [judged for judged in _CORPUS if judged.section == name]


@each_row("section", _SECTIONS)
def test_every_command_is_decided_as_written(section: str, workspace: Path):
    wrong: list[str] = []
    for judged in _section(section):
        for mode in MODES:
            verdict = judge(workspace, judged.command, mode, judged.allow, judged.deny)
            if verdict.decision != judged.expected[mode]:
                wrong.append(f"{mode}: {judged.command!r}: {verdict.decision}, {verdict.why}")
            if verdict.decision != "allow" and not verdict.why:
                wrong.append(f"{mode}: {judged.command!r}: no reason")
    assert not wrong, "\n".join(wrong)


def test_the_corpus_is_as_large_as_it_should_be_and_lets_nothing_hostile_pass():
    kinds = Counter(judged.kind for judged in _CORPUS)
    assert kinds["hostile"] >= 320
    assert kinds["harmless"] >= 170
    for judged in _CORPUS:
        if judged.kind == "hostile":
            assert judged.expected["plan"] == "deny"
            assert judged.expected["ask"] != "allow"


def test_no_hostile_command_passes_without_a_rule_for_it(workspace: Path):
    passed = [
        judged.command
        for judged in _CORPUS
        if judged.kind == "hostile" and judge(workspace, judged.command, "ask").decision == "allow"
    ]
    # Only a rule of its section forbids to read that folder.
    assert all("private" in command.casefold() for command in passed), passed


def test_commands_that_only_look_need_no_rule(workspace: Path):
    free = [j for j in _CORPUS if j.kind == "harmless" and not j.allow]
    asked = [j.command for j in free if judge(workspace, j.command, "ask").decision != "allow"]
    assert len(asked) < 0.15 * len(free), asked
