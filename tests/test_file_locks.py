"""Locks where the kernel has none (NFS without a lock service, Lustre), and where it has."""

import errno
import fcntl
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_tui.atomic_files import remove_leftovers, replace_private_file, scratch_beside
from agent_tui.drafts.draft import Draft
from agent_tui.drafts.history import PromptHistory
from agent_tui.errors import ConfigError, SessionError
from agent_tui.file_locks import FileLock, LockHeldError, LockOwner, hold_lock, lock_for_change
from agent_tui.sessions.entries import Header
from agent_tui.sessions.file.writer import session_status
from agent_tui.sessions.log import SessionInUseError, SessionLog
from tests.support.patience import PATIENCE_S
from tests.support.session_values import entry, reply, user

UNKNOWN = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]

_HOLDER = """
import errno, fcntl, sys
from pathlib import Path

def no_locks(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")

fcntl.flock = no_locks
from agent_tui.sessions.log import SessionLog
from tests.support.session_values import entry, user
log = SessionLog.open(Path(sys.argv[1]))
log.append(entry(user("from the other program")))
print("open", flush=True)
sys.stdin.read()
log.close()
"""


@pytest.fixture(params=UNKNOWN, ids=lambda number: errno.errorcode[number])
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s" / "a_1.jsonl"
    with SessionLog.create(path, Header(cwd=str(tmp_path), id="1")) as log:
        log.append_many([entry(user("hello")), entry(reply("hi"))])
    return path


@contextmanager
def other_program(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A program without locks that has the session open, until its standard input ends."""
    argv = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"
        yield program
        program.kill()


def marker_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock.owner")


@pytest.mark.usefixtures("no_locks")
def test_a_session_is_written_without_the_kernel_s_locks(path: Path) -> None:
    with SessionLog.open(path) as log:
        log.append(entry(user("more")))
        with pytest.raises(SessionInUseError) as refused:
            SessionLog.open(path)
        assert refused.value.owner == LockOwner(os.getpid())
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]
    assert len(SessionLog.open(path, read_only=True).entries) == 3


@pytest.mark.usefixtures("no_locks")
@pytest.mark.thorough
def test_two_programs_do_not_write_one_session(path: Path) -> None:
    with other_program(path) as program:
        with pytest.raises(SessionInUseError) as refused:
            SessionLog.open(path)
        assert refused.value.owner == LockOwner(program.pid)
        assert f"another agent-tui (pid {program.pid})" in str(refused.value)
        assert program.stdin is not None
        program.stdin.close()
        assert program.wait(timeout=PATIENCE_S) == 0
    with SessionLog.open(path) as log:
        assert len(log.entries) == 3


@pytest.mark.usefixtures("no_locks")
@pytest.mark.thorough
def test_the_lock_of_a_killed_program_is_taken_over(path: Path) -> None:
    with other_program(path) as program:
        program.send_signal(signal.SIGKILL)
        program.wait()
        assert marker_of(path).exists(), "left behind"
        with SessionLog.open(path) as log:
            log.append(entry(user("mine now")))
    assert not marker_of(path).exists()


@pytest.mark.usefixtures("no_locks")
def test_the_lock_of_a_reused_process_number_is_taken_over(path: Path) -> None:
    marker_of(path).write_text(f"{os.getppid()}\n{socket.gethostname()}\n1\n")
    SessionLog.open(path).close()


@pytest.mark.usefixtures("no_locks")
def test_another_host_s_lock_holds_and_says_how_to_go_on(path: Path) -> None:
    marker_of(path).write_text("4242\nnode17\n99\n")
    with pytest.raises(SessionInUseError) as refused:
        SessionLog.open(path)
    assert str(refused.value) == (
        f"{path} is open in another agent-tui (pid 4242 on node17). "
        f"If it is no longer running there, delete {marker_of(path)}."
    )
    assert session_status(path).owner == LockOwner(4242, "node17", marker_of(path))
    marker_of(path).unlink()
    SessionLog.open(path).close()


@pytest.mark.usefixtures("no_locks")
def test_a_lock_that_names_nobody_is_somebody_s(path: Path) -> None:
    marker_of(path).touch()
    with pytest.raises(SessionInUseError, match="open in another agent-tui"):
        SessionLog.open(path)


@pytest.mark.usefixtures("no_locks")
def test_settings_history_and_leftovers_go_without_the_kernel_s_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "trust.json"
    with lock_for_change(file, "hint"):
        replace_private_file(file, "{}")
        marker = tmp_path / "trust.json.lock.owner"
        assert marker.read_text().startswith(f"{os.getpid()}\n")
    history = PromptHistory(tmp_path / "history.jsonl")
    history.add(Draft("one"))
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 1
    with scratch_beside(file) as scratch:
        scratch.touch()
        remove_leftovers()
        assert scratch.exists(), "somebody may still write it"
        (note,) = (tmp_path / "cache").rglob("unfinished/*")
        os.utime(note, (1, 1))
        remove_leftovers()
        assert not scratch.exists()
    assert not marker.exists()


@pytest.mark.usefixtures("no_locks")
def test_a_file_that_another_host_writes_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("agent_tui.file_locks._LOCK_WITHIN_S", 0.0)
    (tmp_path / "f.lock.owner").write_text("7\nnode3\n")
    said = r"in use by another agent-tui \(pid 7 on node3\)\. If it is no longer"
    with pytest.raises(ConfigError, match=said), lock_for_change(tmp_path / "f", "hint"):
        pass


def test_a_fault_of_the_disk_is_no_missing_lock(path: Path, monkeypatch) -> None:
    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(SessionError, match="Input/output error"):
        SessionLog.open(path)


def test_who_waits_gets_the_lock_when_it_is_given_back(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "l")
    with pytest.raises(LockHeldError), hold_lock(tmp_path / "l", within_s=0):
        pass
    lock.release()
    with hold_lock(tmp_path / "l", within_s=0):
        assert (tmp_path / "l").exists()
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_what_cannot_be_synced_is_saved_all_the_same(path: Path, monkeypatch, number: int) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with SessionLog.open(path) as log:
        log.append(entry(user("more")))
        log.sync()
    assert len(SessionLog.open(path, read_only=True).entries) == 3


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_to_sync_is_told(path: Path, monkeypatch, number: int) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with SessionLog.open(path) as log, pytest.raises(SessionError, match=os.strerror(number)):
        log.append(entry(user("more")))


def test_what_is_dropped_keeps_neither_its_lock_nor_its_files_open(tmp_path: Path):
    def open_files() -> set[str]:
        return {str(link.readlink()) for link in Path("/dev/fd").iterdir() if link.is_symlink()}

    path = tmp_path / "s" / "a_1.jsonl"
    log = SessionLog.create(path, Header(cwd=str(tmp_path), id="1"))
    log.append(entry(user("hello")))
    assert {file for file in open_files() if file.startswith(str(path))}
    del log
    gc.collect()

    assert not {file for file in open_files() if file.startswith(str(path))}
    SessionLog.open(path).close()
