"""A disk that fails while a session is written: nothing committed lost, told, gone on with."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry, SessionInfoEntry
from agent_tui.sessions.file.disk import DiskFile
from agent_tui.sessions.log import SessionInUseError, SessionLog
from tests.support.killed_program import old_file
from tests.support.session_values import conversation, entry, header, reply, session_bytes, user

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ERRORS = (*FULL, errno.EIO, errno.EROFS)


class FailingDisk:
    """The first of each `period` operations of the kind `failing` fails, each time otherwise.

    A write that fails has put a part of its bytes into the file, each time another one.
    """

    def __init__(self, failing: str, period: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._failing = failing
        self._period = period
        self._count = 0
        self._errors = cycle(ERRORS)
        self.part = cycle((0.0, 0.3, 0.99))
        self.failed = 0
        real_replace = Path.replace

        def replace(path: Path, target: Path) -> Path:
            self.operate("rename")
            return real_replace(path, target)

        monkeypatch.setattr(Path, "replace", replace)

    def open(self, path: Path, create: bool) -> "FailingFile":
        self.operate("open")
        return FailingFile(DiskFile(path, create), self)

    def operate(self, kind: str) -> None:
        if kind != self._failing:
            return
        self._count += 1
        if self._count % self._period == 1:
            self.failed += 1
            error = next(self._errors)
            raise OSError(error, os.strerror(error))


class FailingFile:
    def __init__(self, inner: DiskFile, disk: FailingDisk) -> None:
        self._inner = inner
        self._disk = disk

    def write(self, data: bytes) -> None:
        try:
            self._disk.operate("write")
        except OSError:
            self._inner.write(data[: int(len(data) * next(self._disk.part))])
            raise
        self._inner.write(data)

    def sync(self) -> None:
        self._disk.operate("sync")
        self._inner.sync()

    def is_deleted(self) -> bool:
        return self._inner.is_deleted()

    def close(self) -> None:
        self._inner.close()
        self._disk.operate("close")


def script() -> list[tuple[Entry, ...]]:
    """Thirty entries in 22 steps."""
    steps: list[tuple[Entry, ...]] = [(entry(user(f"prompt {n}")),) for n in range(18)]
    steps += [tuple(entry(reply(f"reply {n} {m}")) for m in range(3)) for n in range(4)]
    return steps


def insist(log: SessionLog, step: tuple[Entry, ...], path: Path) -> None:
    """Append `step`, again until it is written; each failure is told and changes nothing."""
    for _ in range(4):
        before = log.entries
        try:
            log.append_many(step)
            return
        except SessionError as error:
            told = error
        causes = [number for number in ERRORS if f"{os.strerror(number)}." in told.message]
        assert causes
        assert str(path) in told.message
        assert ("Free some space" in told.hint) == (causes[0] in FULL)
        assert log.entries == before
    raise AssertionError("writing never resumes")


@pytest.mark.parametrize("kind", ["open", "write", "sync", "close", "rename"])
def test_whichever_operation_fails_again_and_again_every_committed_entry_is_kept(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 0
    for start in ("new", "old version", "child"):
        for period in (2, 3, 7):
            path = tmp_path / f"{start}-{period}.jsonl"
            with monkeypatch.context() as patch:
                disk = FailingDisk(kind, period, patch)
                log = _begun(start, path, disk)
                for step in script():
                    insist(log, step, path)
                _close(log)
            failures += disk.failed
            again = SessionLog.open(path, read_only=True)
            assert again.path_entries() == log.path_entries()
            assert again.header == log.header
            assert len(again.path_entries()) >= 30
            SessionLog.open(path).close()
            assert not list(tmp_path.glob(".*"))
    assert failures


def _begun(start: str, path: Path, disk: FailingDisk) -> SessionLog:
    match start:
        case "new":
            return SessionLog.create(path, header(), open_file=disk.open)
        case "old version":
            path.write_bytes(old_file(2, 5))
            return SessionLog.open(path, open_file=disk.open)
        case _:
            first = CompactionEntry(summary="S", first_kept_entry_id="")
            for _ in range(4):
                try:
                    return SessionLog.write(path, header(), [first], open_file=disk.open)
                except SessionError:
                    assert not path.exists()
            raise AssertionError("writing never resumes")


def _close(log: SessionLog) -> None:
    try:
        log.close()
    except SessionError:
        log.close()


LIMITED = """
import json, resource, sys
from pathlib import Path
from agent_tui.errors import SessionError
from agent_tui.sessions.log import SessionLog
from tests.support.session_values import entry, header, user
path = Path(sys.argv[1])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
log = SessionLog.create(path, header())
committed = []
try:
    for number in range(100):
        log.append(entry(user(f"prompt {number} " + "x" * 90)))
except SessionError as error:
    told = str(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
written = len(log.entries)
log.append(entry(user("there is room again")))
log.close()
print(json.dumps([told, written]))
"""


def test_a_disk_that_is_full_is_told_and_written_to_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "s_1.jsonl"
    command = [sys.executable, "-c", LIMITED, str(path)]
    told, count = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert "Free some space" in told
    assert 10 < count < 100
    again = SessionLog.open(path, read_only=True)
    texts = [item.message.text for item in again.entries if isinstance(item, MessageEntry)]
    assert [text.split(" x")[0] for text in texts] == [
        *(f"prompt {number}" for number in range(count)),
        "there is room again",
    ]
    (first, *_) = again.warnings
    assert first == f"recovered {count + 2} of {count + 3} lines"


@pytest.mark.skipif(os.geteuid() == 0, reason="no folder is read-only for root")
def test_a_read_only_folder_is_named_and_its_session_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "s_1.jsonl"
    path.write_bytes(session_bytes(conversation()))
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(SessionError, match="--session-dir"):
            SessionLog.open(path)
        with pytest.raises(SessionError, match="--session-dir"):
            SessionLog.create(tmp_path / "new.jsonl", header()).append(entry(user("x")))
        assert SessionLog.open(path, read_only=True).entries == conversation()
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_of_the_kernel_takes_no_session_and_is_named() -> None:
    path = Path("/proc/self/s_1.jsonl")
    if not path.parent.is_dir():
        pytest.skip("no /proc here")
    with pytest.raises(SessionError, match=str(path.parent)):
        SessionLog.create(path, header()).append(entry(user("x")))


def _two_entries(path: Path) -> SessionLog:
    log = SessionLog.create(path, header())
    log.append(entry(user("a")))
    log.append(entry(user("b")))
    return log


def _delete_the_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def _replace_by_an_older_one(path: Path) -> None:
    older = path.with_name("older")
    older.write_bytes(path.read_bytes()[:-60])
    older.replace(path)


def _move_and_put_another_there(path: Path) -> None:
    path.rename(path.with_name("away"))
    path.write_bytes(session_bytes(conversation()))


def _empty_the_file(path: Path) -> None:
    path.write_bytes(b"")


BEFALL = {
    _delete_the_folder: "deleted",
    Path.unlink: "deleted",
    _replace_by_an_older_one: "replaced",
    _move_and_put_another_there: "replaced",
    _empty_the_file: "cut short",
}


@pytest.mark.parametrize("moment", ["before an append", "before the end of a turn"])
@pytest.mark.parametrize("befall", BEFALL, ids=lambda befall: befall.__name__.strip("_"))
def test_a_session_file_taken_away_in_use_is_written_anew_and_told_once(
    tmp_path: Path, befall: Callable[[Path], None], moment: str
) -> None:
    path = tmp_path / "slug" / "s_1.jsonl"
    with _two_entries(path) as log:
        befall(path)
        stranger = path.read_bytes() if path.exists() else None
        if moment == "before an append":
            log.append(entry(user("c")))
        log.sync()
        (mend,) = log.take_mends()
        assert str(path) in mend
        assert BEFALL[befall] in mend
        log.append(entry(user("d")))
        log.sync()
        assert not log.take_mends()
        with pytest.raises(SessionInUseError):
            SessionLog.open(path)
    assert SessionLog.open(path, read_only=True).entries == log.entries
    kept = path.with_name(f"{path.name}.found.bak")
    assert (kept.read_bytes() if kept.exists() else None) == stranger
    assert (kept.name in mend) == kept.exists()


def test_a_session_opened_before_its_file_was_replaced_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "s_1.jsonl"
    path.write_bytes(old_file(2, 5))
    with SessionLog.open(path) as log:
        _move_and_put_another_there(path)
        log.append(entry(user("c")))
        assert log.take_mends()
    assert SessionLog.open(path, read_only=True).entries == log.entries


def test_a_copy_brought_back_in_place_of_the_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "slug" / "s_1.jsonl"
    with _two_entries(path) as log:
        shutil.copytree(path.parent, tmp_path / "elsewhere")
        shutil.rmtree(path.parent)
        (tmp_path / "elsewhere").rename(path.parent)
        log.append(entry(user("c")))
        assert not log.take_mends()
    assert SessionLog.open(path, read_only=True).entries == log.entries


def test_a_file_that_cannot_be_written_anew_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "slug" / "s_1.jsonl"
    with _two_entries(path) as log:
        shutil.rmtree(path.parent)
        path.parent.write_bytes(b"in the way")
        for _ in range(2):
            with pytest.raises(SessionError, match="slug"):
                log.append(entry(user("c")))
        path.parent.unlink()
        log.append(entry(user("c")))
    assert SessionLog.open(path, read_only=True).entries == log.entries


def test_a_folder_that_is_renamed_takes_what_is_still_written_with_it(tmp_path: Path) -> None:
    with SessionLog.create(tmp_path / "slug" / "s_1.jsonl", header()) as log:
        log.append(entry(user("a")))
        (tmp_path / "slug").rename(tmp_path / "moved")
        log.append(entry(user("b")))
    again = SessionLog.open(tmp_path / "moved" / "s_1.jsonl", read_only=True)
    assert again.entries == log.entries


def test_a_first_write_that_fails_and_cannot_be_taken_back_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s_1.jsonl"
    real_unlink = Path.unlink

    def unlink(target: Path, missing_ok: bool = False) -> None:
        if target == path:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        real_unlink(target, missing_ok)

    for part in (0.0, 0.3, 0.99):
        with monkeypatch.context() as patch:
            disk = FailingDisk("write", 100, patch)
            disk.part = cycle((part,))
            patch.setattr(Path, "unlink", unlink)
            log = SessionLog.create(path, header(), open_file=disk.open)
            with pytest.raises(SessionError):
                log.append(entry(user("a")))
            log.append(entry(user("a")))
            log.append(SessionInfoEntry(name="n"))
            log.close()
        again = SessionLog.open(path)
        assert again.entries == log.entries
        assert again.header == log.header
        again.close()
        path.unlink()


class Interrupted(BaseException):
    pass


def test_a_write_that_is_interrupted_half_way_spoils_no_later_one(tmp_path: Path) -> None:
    interrupting = [True]

    class InterruptedFile(DiskFile):
        def write(self, data: bytes) -> None:
            if data.find(b"half") > 0 and interrupting.pop():
                super().write(data[:40])
                raise Interrupted
            super().write(data)

    path = tmp_path / "s_1.jsonl"
    with SessionLog.create(path, header(), open_file=InterruptedFile) as log:
        log.append(entry(user("a")))
        with pytest.raises(Interrupted):
            log.append(entry(user("half")))
        interrupting.append(False)
        log.append(entry(user("b")))
    assert SessionLog.open(path, read_only=True).entries == log.entries


def test_a_session_can_be_opened_though_no_room_is_left_for_the_pid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s_1.jsonl"
    path.write_bytes(session_bytes(conversation()))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log = SessionLog.open(path)
        with pytest.raises(SessionError, match="Free some space"):
            log.append(entry(user("x")))
    log.append(entry(user("x")))
    log.close()


@pytest.mark.parametrize("reason", ["no hard links", "taken name"])
def test_a_migration_keeps_the_file_as_it_was_whatever_stands_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    path = tmp_path / "s_1.jsonl"
    original = old_file(1, 3)
    path.write_bytes(original)
    backup = tmp_path / "s_1.jsonl.v1.bak"
    if reason == "no hard links":

        def link(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", link)
    else:
        backup.write_bytes(b"an earlier one")
        backup = tmp_path / "s_1.jsonl.v1-2.bak"
    with SessionLog.open(path) as log:
        log.append(entry(user("x")))
    assert backup.read_bytes() == original
    assert SessionLog.open(path, read_only=True).entries == log.entries
