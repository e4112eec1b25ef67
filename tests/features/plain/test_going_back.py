"""Going back by lines through sessions that were compacted one into the next."""

import shutil
from pathlib import Path

import pytest

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.sessions.log import SessionLog
from tests.features.plain.talking import talk
from tests.support.runtime import Stage
from tests.support.session_chain import writing

LONG = "And? " + "Please look closely. " * 200
AGAIN = "/compact --force"  # so soon after a compaction it frees next to nothing
SAID = ("Write 1.", LONG, LONG, "/compact", "Write 2.", LONG, LONG, AGAIN, "Write 3.")


def file_of(stage: Stage) -> str:
    path = stage.workspace / "a.txt"
    return path.read_text() if path.exists() else ""


def at_work(stage: Stage) -> AgentRuntime:
    return stage.runtime(writing("1", "2", "3"), window=60_000, mode="full")


@pytest.fixture
def chain(stage: Stage) -> list[Path]:
    """Three sessions, the oldest first; each wrote the file."""
    talk(stage, at_work(stage), *SAID)
    files = sorted(stage.sessions.rglob("*.jsonl"))
    assert len(files) == 3
    return files


def went_on(stage: Stage, newest: Path, *typed: str) -> str:
    return talk(stage, at_work(stage), *typed, resume=str(newest))


def test_each_undo_goes_one_message_back_with_the_files(stage: Stage):
    seen: list[tuple[str, str]] = []
    for back in (1, 2, 4, 7):
        shutil.rmtree(stage.sessions, ignore_errors=True)
        (stage.workspace / "a.txt").unlink(missing_ok=True)
        text = talk(stage, at_work(stage), *SAID, *["/undo both"] * back)
        seen.append((text.rpartition("Undone: ")[2][:8], file_of(stage)))
    assert seen == [("Write 3.", "2"), ("And? Ple", "2"), ("Write 2.", "1"), ("Write 1.", "")]


def test_a_session_that_was_resumed_goes_back_as_far(stage: Stage, chain: list[Path]):
    text = went_on(stage, chain[-1], *["/undo both"] * 7)
    assert text.count("This is the session before the compaction.") == 2
    assert file_of(stage) == ""


def test_the_place_that_was_gone_back_to_is_kept(stage: Stage, chain: list[Path]):
    went_on(stage, chain[-1], *["/undo both"] * 3)
    told = "You went back to this message. /tree shows what came after it."
    text = went_on(stage, chain[1], "/undo both", "/tree", "")
    assert told in text
    assert "Undone: Write 2." in text
    assert file_of(stage) == "1"
    assert told not in went_on(stage, chain[2]), "the session that was left opens at its end"
    went_on(stage, chain[1], "Otherwise.")
    assert told not in went_on(stage, chain[1])


def test_an_earlier_session_that_is_open_elsewhere_keeps_the_files_too(
    stage: Stage, chain: list[Path]
):
    with SessionLog.open(chain[1]):
        text = went_on(stage, chain[2], "/tree", "4", "b", "b")
    assert "4. Write 2." in text
    assert "is open in another part of this program" in text
    assert "put back" not in text
    assert file_of(stage) == "3"
