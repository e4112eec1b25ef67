import asyncio
import os
from asyncio import StreamReader
from pathlib import Path

import pytest

from agent_tui.providers.log_file import (
    MAX_ENTRY_BYTES,
    MAX_LOG_BYTES,
    ProcessLog,
    append_to_log,
    fault_reporter,
)
from tests.support.patience import PATIENCE_S

KEY = "canary-0123456789"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log" / "agent-tui.log"


def test_an_entry_is_private_and_holds_no_key_and_no_control_character(log: Path):
    before = os.umask(0)
    try:
        append_to_log(log, f"a {KEY}\x1b[2J\nb sk-0123456789abcdef", [KEY])
    finally:
        os.umask(before)
    assert log.read_text() == "a [key removed]\nb [key removed]\n"
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_two_files_are_the_most_there_is_of_a_log(log: Path):
    for number in range(40):
        append_to_log(log, f"{number} " + "x" * 100_000)
    files = sorted(log.parent.iterdir())
    assert [file.name for file in files] == ["agent-tui.log", "agent-tui.log.1"]
    assert all(file.stat().st_size <= MAX_LOG_BYTES for file in files)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


async def taken(log: Path, *pieces: bytes) -> ProcessLog:
    stderr = StreamReader()
    process_log = ProcessLog(stderr, log, [KEY])
    for piece in pieces:
        stderr.feed_data(piece)
        await asyncio.sleep(0)
    stderr.feed_eof()
    await process_log.finish()
    return process_log


async def test_a_key_that_comes_in_pieces_is_masked(log: Path):
    process_log = await taken(log, b"one\ntwo cana", b"ry-0123456789\nthr", b"ee")
    assert log.read_text() == "one\ntwo [key removed]\nthree\n"
    assert process_log.text == f"one\ntwo {KEY}\nthree"


async def test_a_flood_without_a_newline_is_bounded(log: Path):
    process_log = await taken(log, *(b"x" * MAX_ENTRY_BYTES for _ in range(40)))
    assert len(process_log.text) <= MAX_ENTRY_BYTES
    assert sum(file.stat().st_size for file in log.parent.iterdir()) <= 2 * MAX_LOG_BYTES


async def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path):
    (tmp_path / "log").write_text("no folder")
    assert (await taken(tmp_path / "log" / "x.log", b"said\n")).text == "said\n"


async def test_a_stderr_that_stays_open_is_not_waited_for(
    log: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_tui.providers.log_file._FINISH_S", 0.0)
    stderr = StreamReader()
    process_log = ProcessLog(stderr, log, ())
    await asyncio.wait_for(process_log.finish(), PATIENCE_S)


def test_a_fault_is_logged_by_its_place_and_kind_without_what_it_says(log: Path):
    report = fault_reporter(log)
    try:
        raise ValueError("words of a model")
    except ValueError as fault:
        report(fault)
    written = log.read_text()
    assert "test_log_file.py" in written
    assert written.endswith("ValueError\n")
    assert "Error: words" not in written


def test_a_log_that_cannot_be_written_stops_no_report(tmp_path: Path):
    (tmp_path / "file").write_text("")
    fault_reporter(tmp_path / "file" / "agent-tui.log")(ValueError())
    assert (tmp_path / "file").read_text() == ""
