"""What must never run in silence, class by class, and how much of what only reads is asked about.

Nothing here is ever run.
"""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.safety.corpus import MODES, judge
from tests.safety.hostile_corpus import (
    HOLDERS,
    HostileClass,
    held_table,
    hostile_classes,
    known_by_text,
    let_through,
    make_hostile_workspace,
)
from tests.support.recorded_commands import only_reads_the_workspace, recorded_commands

_CLASSES = tuple(hostile_classes())
_EVERYDAY = tuple(Path(__file__).with_name("everyday.txt").read_text("utf-8").strip().splitlines())
_ASKING = tuple(
    hostile
    for hostile in _CLASSES
    if hostile.kind == "execute" and hostile.must == "ask" and hostile.file != "spellings"
)
_PAGE = Path(__file__).parents[2] / "docs/pages/permissions.md"
_MAX_ASKED = 0.1
_AROUND_TEXT = (
    "bash -c {quoted}",
    "bash -eo pipefail -c {quoted}",
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "for i in 1; do {}; done",
    "ls && {}",
    "ls; {}",
    "{} || true",
    'echo "$({})"',
    "eval {quoted}",
    "script -qc {quoted} /dev/null",
    "flock l -c {quoted}",
)
_AROUND_PROGRAM = (
    "timeout -k 1 5 {}",
    "env A=1 {}",
    "env -i {}",
    "nohup {} &",
    "nice -n 5 {}",
    "time {}",
    "! {}",
    "A=1 {}",
    "LC_ALL=C {}",
    "stdbuf -oL {}",
    "setsid -w {}",
    "ionice -c3 {}",
    "command {}",
    "exec {}",
    "unbuffer {}",
    "xvfb-run -a {}",
    "strace -f {}",
    "flock l {}",
    "/usr/bin/{}",
    "\\{}",
    "{} 2>&1 | tee log.txt",
    "{} > /dev/null 2>&1",
)
_PROGRAM_FIRST = re.compile(r"[a-z][\w.-]*(?= |$)")
_SETS_FIRST = re.compile(r"\b[a-z]=\S+; (?:cat|find|git)\b")
_BUILTIN_FIRST = re.compile(
    r"(?:for|while|if|case|until|select|function|coproc|set|shopt|read|printf -v|mapfile|readarray"
    r"|declare|typeset|export|readonly|local|eval|alias|source|trap|cd|pushd|shift|time|exec"
    r"|command|builtin)\b"
)


def _named(hostile: HostileClass) -> str:
    return f"{hostile.file}: {hostile.name}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A plain project without keys."""
    workspace = tmp_path / "project"
    for name in ("src", ".git", "tests", "packages"):
        (workspace / name).mkdir(parents=True)
    for name in ("README.md", "a.txt", "b.txt", "log.txt", "src/app.py", "package.json"):
        (workspace / name).write_text("x\n")
    return workspace


@pytest.mark.parametrize("hostile", _CLASSES, ids=_named)
def test_no_line_of_the_class_gets_through(
    hostile: HostileClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    workspace = make_hostile_workspace(tmp_path, hostile)
    passed = let_through(hostile, workspace)
    assert not passed, "\n".join(passed)
    known = known_by_text(hostile, workspace)
    assert not known, "these belong to a class that is held by text:\n" + "\n".join(known)


@pytest.mark.parametrize("hostile", _ASKING, ids=_named)
def test_nothing_around_a_line_hides_it(
    hostile: HostileClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each line within one of the ways; the thorough test has all."""
    ways = [(line, _ways_around(line)) for line in hostile.lines]
    _assert_held_within(
        [around[at % len(around)] for at, (_, around) in enumerate(ways)],
        hostile,
        tmp_path,
        monkeypatch,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("hostile", _ASKING, ids=_named)
def test_nothing_at_all_around_a_line_hides_it(
    hostile: HostileClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines = [around for line in hostile.lines for around in _ways_around(line)]
    _assert_held_within(lines, hostile, tmp_path, monkeypatch)


def test_the_classes_hold_what_they_should():
    assert sum(len(hostile.lines) for hostile in _CLASSES) >= 3_500
    assert len({hostile.name for hostile in _CLASSES}) == len(_CLASSES)


def test_something_holds_every_line_in_every_mode_and_the_docs_say_what():
    for hostile in _CLASSES:
        assert (hostile.held_by in HOLDERS) == (set(hostile.modes) < set(MODES)), hostile.name
    is_told = held_table() in _PAGE.read_text("utf-8")
    assert is_told, "put there what python -m tests.safety.hostile_corpus prints"


def test_everyday_commands_that_only_read_are_hardly_asked_about(workspace: Path):
    _assert_few_asked(workspace, _EVERYDAY)


def test_what_recorded_agents_read_is_hardly_asked_about(workspace: Path):
    reading = [command for command in recorded_commands() if only_reads_the_workspace(command)]
    if not reading:
        pytest.skip("there are no recorded runs here")
    assert len(reading) >= 200
    _assert_few_asked(workspace, reading)


def _ways_around(line: str) -> list[str]:
    """The line within everything that runs it all the same."""
    if "\n" in line or len(line) > 1_000:
        return [line]
    is_program = _PROGRAM_FIRST.match(line) and not _BUILTIN_FIRST.match(line)
    ways = (*_AROUND_TEXT, *(_AROUND_PROGRAM if is_program else ()))
    return [way.format(line, quoted=shlex.quote(line)) for way in ways]


def _assert_held_within(
    lines: list[str], hostile: HostileClass, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the most permissive mode; within a branch, no text tells whether a variable is set."""
    monkeypatch.setenv("HOME", str(folder / "home"))
    workspace = make_hostile_workspace(folder, hostile)
    setting = tuple(line for line in lines if _SETS_FIRST.search(line))
    others = tuple(line for line in lines if line not in setting)
    for within in (
        replace(hostile, lines=others, modes=hostile.modes[-1:]),
        replace(hostile, lines=setting, modes=tuple(m for m in hostile.modes if m != "full")),
    ):
        passed = let_through(within, workspace)
        assert not passed, "\n".join(passed)


def _assert_few_asked(workspace: Path, commands: tuple[str, ...] | list[str]) -> None:
    asked = [
        command for command in commands if judge(workspace, command, "ask").decision != "allow"
    ]
    assert len(asked) < _MAX_ASKED * len(commands), "\n".join(asked)
