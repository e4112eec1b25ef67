"""What must never run in silence, class by class, and how much of what only reads is asked about.

Nothing here is ever run.
"""

from pathlib import Path

import pytest

from tests.safety.corpus import judge
from tests.safety.hostile_corpus import (
    HostileClass,
    hostile_classes,
    let_through,
    make_hostile_workspace,
)
from tests.support.recorded_commands import only_reads_the_workspace, recorded_commands

_CLASSES = tuple(hostile_classes())
_EVERYDAY = tuple(Path(__file__).with_name("everyday.txt").read_text("utf-8").strip().splitlines())
_MAX_ASKED = 0.03


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A plain project without keys."""
    workspace = tmp_path / "project"
    for name in ("src", ".git", "tests", "packages"):
        (workspace / name).mkdir(parents=True)
    for name in ("README.md", "a.txt", "b.txt", "log.txt", "src/app.py", "package.json"):
        (workspace / name).write_text("x\n")
    return workspace


@pytest.mark.parametrize("hostile", _CLASSES, ids=lambda hostile: f"{hostile.file}: {hostile.name}")
def test_no_line_of_the_class_gets_through(
    hostile: HostileClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    passed = let_through(hostile, make_hostile_workspace(tmp_path, hostile))
    assert not passed, "\n".join(passed)


def test_the_classes_hold_what_they_should():
    assert sum(len(hostile.lines) for hostile in _CLASSES) >= 3_500
    assert len({hostile.name for hostile in _CLASSES}) == len(_CLASSES)


def test_everyday_commands_that_only_read_are_hardly_asked_about(workspace: Path):
    _assert_few_asked(workspace, _EVERYDAY)


def test_what_recorded_agents_read_is_hardly_asked_about(workspace: Path):
    reading = [command for command in recorded_commands() if only_reads_the_workspace(command)]
    if not reading:
        pytest.skip("there are no recorded runs here")
    assert len(reading) >= 200
    _assert_few_asked(workspace, reading)


def _assert_few_asked(workspace: Path, commands: tuple[str, ...] | list[str]) -> None:
    asked = [
        command for command in commands if judge(workspace, command, "ask").decision != "allow"
    ]
    assert len(asked) < _MAX_ASKED * len(commands), "\n".join(asked)
