"""Two processes, forks, forgotten locks, links and clocks that go back."""

import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import Header
from agent_tui.sessions.log import SessionInUseError, SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.killed_program import old_file
from tests.support.session_values import conversation, entry, header, session_bytes, user

WRITER = """
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from agent_tui.sessions.log import SessionLog
from tests.support.session_values import entry, user
log = SessionLog.open(Path(sys.argv[1]))
print("open", flush=True)
for number, _ in enumerate(sys.stdin):
    log.append(entry(user(f"from the other {number}")))
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s_1.jsonl"
    path.write_bytes(session_bytes(conversation()))
    return path


def test_while_one_process_writes_another_reads_and_writes_after_it_was_killed(path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        for number in range(3):
            writer.stdin.write(b"\n")
            assert writer.stdout.readline() == f"{number}\n".encode()
            with pytest.raises(SessionInUseError) as caught:
                SessionLog.open(path)
            assert (caught.value.path, caught.value.owner.pid) == (path, writer.pid)
            read = SessionLog.open(path, read_only=True)
            assert len(read.entries) == len(conversation()) + number + 1
            assert read.warnings == ()
            with pytest.raises(SessionError, match="read-only"):
                read.append(entry(user("x")))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert path.with_name(path.name + ".lock").exists(), "left behind: no lock"
    with SessionLog.open(path) as log:
        log.append(entry(user("mine now")))
    again = SessionLog.open(path, read_only=True)
    assert again.warnings == ()
    assert again.path_entries() == log.path_entries()
    assert len(again.entries) == len(conversation()) + 4


@pytest.mark.parametrize("content", [b"", b"99999999", b"not a number", b"\xff" * 5_000])
def test_a_lock_file_left_behind_is_no_lock(path: Path, content: bytes) -> None:
    lock = path.with_name(path.name + ".lock")
    lock.write_bytes(content)
    with SessionLog.open(path):
        assert lock.read_text() == str(os.getpid())
    assert not lock.exists()


@pytest.mark.parametrize("is_taken_anew", [False, True])
def test_a_lock_file_that_went_away_while_it_was_opened_is_not_taken_for_the_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_taken_anew: bool
) -> None:
    lock = path.with_name(path.name + ".lock")
    flock = fcntl.flock
    kept: list[int] = []  # descriptors of the removed file: its inode must not be given out again

    def remove_then_lock(descriptor: int, operation: int) -> None:
        if not kept:
            kept.append(os.dup(descriptor))
            lock.unlink()
            if is_taken_anew:
                lock.touch()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_then_lock)
    with SessionLog.open(path):
        assert lock.read_text() == str(os.getpid())
        with pytest.raises(SessionInUseError):
            SessionLog.open(path)
    assert not lock.exists()
    os.close(kept[0])


def _in_a_fork(log: SessionLog, told: Connection) -> None:
    try:
        log.append(entry(user("from the fork")))
    except SessionError as error:
        told.send(str(error))
    log.close()
    told.send("closed")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_of_the_writer_neither_writes_nor_frees_the_session(path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with SessionLog.open(path) as log:
        log.append(entry(user("a")))
        fork = context.Process(target=_in_a_fork, args=(log, theirs))
        fork.start()
        assert "parent of this process is writing" in ours.recv()
        assert ours.recv() == "closed"
        fork.join()
        with pytest.raises(SessionInUseError):
            SessionLog.open(path)
        log.append(entry(user("b")))
    assert SessionLog.open(path, read_only=True).entries == log.entries
    assert not path.with_name(path.name + ".lock").exists()


SPAWNER = """
import subprocess, sys
from pathlib import Path
from agent_tui.sessions.log import SessionLog
log = SessionLog.open(Path(sys.argv[1]))
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=0, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
child.wait()
"""


def test_a_program_started_by_the_writer_does_not_keep_its_session(path: Path) -> None:
    command = [sys.executable, "-c", SPAWNER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        started = int(writer.stdout.readline())
        writer.kill()
        writer.wait()
        os.kill(started, 0)  # it lives on
        SessionLog.open(path).close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_session_behind_symbolic_links_is_one_session(tmp_path: Path, version: int) -> None:
    real = tmp_path / "real" / "s_1.jsonl"
    real.parent.mkdir()
    real.write_bytes(old_file(2, 3) if version == 2 else session_bytes(conversation()))
    (tmp_path / "folder").symlink_to(real.parent)
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "folder" / real.name)
    with SessionLog.open(link) as log:
        log.append(entry(user("a")))
        for other in (real, tmp_path / "folder" / real.name, link):
            with pytest.raises(SessionInUseError):
                SessionLog.open(other)
        log.append(entry(user("b")))
    assert link.is_symlink()
    for other in (real, link):
        assert SessionLog.open(other, read_only=True).entries == log.entries
    originals = list(real.parent.glob("*.bak"))
    assert [item.read_bytes() for item in originals] == [old_file(2, 3)] * (version == 2)
    assert not any(item.is_symlink() for item in originals)


def test_a_new_session_below_a_linked_folder_is_made_in_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with SessionLog.create(tmp_path / "folder" / "a" / "s_1.jsonl", header()) as log:
        log.append(entry(user("a")))
    found = SessionLog.open(tmp_path / "real" / "a" / "s_1.jsonl", read_only=True)
    assert found.entries == log.entries


def test_a_folder_that_is_a_circle_of_links_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    path = tmp_path / "a" / "s_1.jsonl"
    with pytest.raises(SessionError, match=r"s_1\.jsonl"):
        SessionLog.open(path)
    with pytest.raises(SessionError, match=r"s_1\.jsonl"):
        SessionLog.create(path, header()).append(entry(user("x")))


def test_a_clock_that_goes_back_changes_neither_order_nor_leaf(tmp_path: Path) -> None:
    stamps = (
        "2026-03-02T09:00:00.000Z",
        "1970-01-01T00:00:00.000Z",
        "2100-01-01",
        "",
        "1999-01-01",
    )
    store = SessionStore(tmp_path, "none")
    with store.create(Header(cwd="/w", timestamp=stamps[0])) as log:
        for number, stamp in enumerate(stamps):
            late = entry(user(f"prompt {number}")).model_copy(update={"timestamp": stamp})
            log.append(late)
    assert log.path is not None
    again = SessionLog.open(log.path, read_only=True)
    assert again.warnings == ()
    assert again.path_entries() == log.entries
    assert len({item.id for item in again.entries}) == len(stamps)
    (found,) = store.list()
    assert found.first_prompt == "prompt 0"


def test_two_sessions_made_in_one_moment_are_two_files(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, "none")
    for _ in range(2):
        with store.create(Header(cwd="/w", timestamp="2026-03-02T09:00:00.000Z")) as log:
            log.append(entry(user("x")))
    assert len(store.list()) == 2
