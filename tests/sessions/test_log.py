import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_tui.config import Durability
from agent_tui.errors import SessionError
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    MessageEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.disk import DiskFile
from agent_tui.sessions.log import SessionInUseError, SessionLog
from tests.support.session_values import (
    conversation,
    entry,
    header,
    session_bytes,
    user,
)
from tests.support.trajectories import trajectory

ENTRIES = conversation()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slug" / "s_0a1b.jsonl"


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def texts(log: SessionLog) -> list[str]:
    return [
        item.message.text
        for item in log.path_entries()
        if isinstance(item, MessageEntry) and isinstance(item.message, UserMessage)
    ]


def test_a_new_session_has_no_file_until_its_first_entry(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        assert not path.parent.exists()
        log.append(entry(user("hello")))
        assert path.read_bytes().count(b"\n") == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_what_is_appended_is_what_a_later_open_reads(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        first = log.append(entry(user("hello")))
        rest = log.append_many([entry(user("a\u2028b")), SessionInfoEntry(name="My work")])
        assert log.entries == (first, *rest)
        assert [item.parent_id for item in log.entries] == [None, first.id, rest[0].id]
    with SessionLog.open(path) as again:
        assert again.entries == log.entries
        assert again.header == log.header
        assert again.leaf_id == log.leaf_id
        assert again.name == "My work"
        assert again.warnings == ()


def test_a_memory_session_writes_nothing(tmp_path: Path) -> None:
    log = SessionLog.create(None, header())
    log.append(entry(user("hello")))
    assert texts(log) == ["hello"]
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_taken_are_made_anew_and_others_are_kept(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        kept = log.append(ENTRIES[0])
        other = log.append(ENTRIES[0])
    assert kept.id == ENTRIES[0].id != other.id
    assert other.parent_id == kept.id


def test_a_compaction_that_keeps_nothing_names_itself(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        placed = log.append(CompactionEntry(summary="S", first_kept_entry_id=""))
    assert placed.first_kept_entry_id == placed.id


def test_a_branch_begins_at_an_earlier_entry_without_touching_the_rest(path: Path) -> None:
    written(path, session_bytes(ENTRIES))
    before = path.read_bytes()
    with SessionLog.open(path) as log:
        log.branch_to(ENTRIES[0].id)
        assert path.read_bytes() == before
        added = log.append(entry(user("another way")))
        assert log.path_entries() == (ENTRIES[0], added)
        assert len(log.entries) == len(ENTRIES) + 1
        with pytest.raises(SessionError, match="no entry ffffffff"):
            log.branch_to("ffffffff")
        log.branch_to(None)
        assert log.append(entry(user("new root"))).parent_id is None
    assert path.read_bytes().startswith(before)


def test_appending_works_after_a_cut_at_every_byte(path: Path) -> None:
    whole = session_bytes(ENTRIES[:2])
    for cut in range(len(whole) + 1):
        written(path, whole[:cut])
        with SessionLog.open(path, "none") as log:
            before = log.entries
            added = log.append(entry(user("after the crash")))
        with SessionLog.open(path, "none") as again:
            assert again.path_entries() == (*before, added)
            assert again.entries == (*before, added)
        assert path.read_bytes().startswith(whole[:cut])


def test_lone_surrogates_never_reach_the_file(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        placed = log.append(MessageEntry(message=UserMessage(content="a\ud83d")))
    assert isinstance(placed.message, UserMessage)
    assert placed.message.text == "a\ufffd"
    with SessionLog.open(path) as again:
        assert again.entries == (placed,)


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(content=(TextContent(text="a\ud83d"),)),
        AssistantMessage(content=(TextContent(text="a\ud83d"),)),
        AssistantMessage(
            content=(ToolCall(id="c", name="read", arguments={"\ud83d": ["\ud83d"]}),)
        ),
        ToolResultMessage(
            tool_call_id="c",
            tool_name="\ud83d",
            content=(TextContent(text="\ud83d"),),
            details={"diff": "\ud83d"},
        ),
        BashExecutionMessage(command="\ud83d", output="\ud83d"),
    ],
    ids=["user", "reply", "call", "result", "bash"],
)
def test_a_message_of_any_kind_with_lone_surrogates_is_kept(path: Path, message: Message) -> None:
    with SessionLog.create(path, header()) as log:
        placed = log.append(MessageEntry(message=message))
    assert "\ufffd" in str(placed)
    with SessionLog.open(path) as again:
        assert again.warnings == ()
        assert again.entries == (placed,)


def test_a_header_with_lone_surrogates_is_kept(path: Path) -> None:
    carried = Carryover(lastSummary="\ud83d", read_files=("a\ud83d",))
    odd = header().model_copy(update={"compaction": carried})
    with SessionLog.create(path, odd) as log:
        log.append(entry(user("hello")))
    with SessionLog.open(path) as again:
        assert again.header.compaction is not None
        assert again.header.compaction.read_files == ("a\ufffd",)


def test_an_omission_is_told_from_a_missing_replacement(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        log.append(ContextEditEntry(target_id="1"))
    assert b'"replacement":null' in path.read_bytes()


def test_a_read_only_or_closed_session_takes_no_entries(path: Path) -> None:
    written(path, session_bytes(ENTRIES))
    log = SessionLog.open(path, read_only=True)
    assert log.is_read_only
    with pytest.raises(SessionError, match="read-only"):
        log.append(entry(user("x")))
    log = SessionLog.open(path)
    log.close()
    log.close()
    with pytest.raises(SessionError, match="closed"):
        log.append(entry(user("x")))


def test_a_file_that_is_missing_or_no_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="does not exist"):
        SessionLog.open(tmp_path / "none.jsonl")
    notes = written(tmp_path / "notes.md", b"# Notes\n")
    with pytest.raises(SessionError, match="not a session"):
        SessionLog.open(notes)
    assert [item.name for item in tmp_path.iterdir()] == ["notes.md"]


def test_a_session_open_here_cannot_be_opened_twice_until_it_is_closed(path: Path) -> None:
    with SessionLog.create(path, header()) as log:
        log.append(entry(user("x")))
        with pytest.raises(SessionInUseError) as caught:
            SessionLog.open(path)
        assert caught.value.owner.pid == os.getpid()
        assert SessionLog.open(path, read_only=True).entries == log.entries
    SessionLog.open(path).close()


HOLDER = """
import sys, time
from pathlib import Path
from agent_tui.sessions.log import SessionLog
log = SessionLog.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_another_process_is_told_who_has_the_session_and_gets_it_after_a_kill(path: Path) -> None:
    written(path, session_bytes(ENTRIES))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(SessionInUseError, match=str(holder.pid)) as caught:
            SessionLog.open(path)
        assert caught.value.owner.pid == holder.pid
        assert not (path.parent / "other").exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with SessionLog.open(path) as log:
            log.append(entry(user("mine now")))
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_a_version_1_file_is_migrated_by_the_first_append_and_the_original_kept(
    path: Path,
) -> None:
    path.parent.mkdir()
    shutil.copy(trajectory("pi/before-compaction.jsonl"), path)
    path.chmod(0o600)
    original = path.read_bytes()
    with SessionLog.open(path) as log:
        assert path.read_bytes() == original
        before = log.entries
        added = log.append(entry(user("go on")))
        log.append(entry(user("and on")))
        entries = log.entries
    assert path.with_name(path.name + ".v1.bak").read_bytes() == original
    with SessionLog.open(path) as again:
        assert again.header.version == 3
        assert again.entries == entries
        assert entries[:-1] == (*before, added)
        assert again.warnings == ()
        assert (again.header.model_extra or {})["branchedFrom"]


class Faults:
    """Opens files whose n-th operation (write or sync) fails, having written `written` bytes."""

    def __init__(self, failing: int, error: int, written: int) -> None:
        self.remaining = failing
        self.error = error
        self.written = written

    def open(self, path: Path, create: bool) -> "FaultyFile":
        return FaultyFile(DiskFile(path, create), self)

    def strikes(self) -> bool:
        self.remaining -= 1
        return self.remaining == 0


class FaultyFile:
    def __init__(self, inner: DiskFile, faults: Faults) -> None:
        self.inner = inner
        self.faults = faults

    def write(self, data: bytes) -> None:
        if self.faults.strikes():
            self.inner.write(data[: self.faults.written])
            raise OSError(self.faults.error, os.strerror(self.faults.error))
        self.inner.write(data)

    def sync(self) -> None:
        if self.faults.strikes():
            raise OSError(self.faults.error, os.strerror(self.faults.error))
        self.inner.sync()

    def is_deleted(self) -> bool:
        return self.inner.is_deleted()

    def close(self) -> None:
        self.inner.close()


NO_SPACE, INPUT_OUTPUT = 28, 5


@pytest.mark.parametrize("error", [NO_SPACE, INPUT_OUTPUT])
@pytest.mark.parametrize("written_bytes", [0, 1, 60])
def test_whatever_write_or_sync_fails_committed_entries_stay_and_writing_resumes(
    tmp_path: Path, error: int, written_bytes: int
) -> None:
    for failing in range(1, 22):
        faults = Faults(failing, error, written_bytes)
        path = tmp_path / f"{failing}.jsonl"
        problems: list[str] = []
        with SessionLog.create(path, header(), open_file=faults.open) as log:
            for number in range(10):
                before = log.entries
                try:
                    log.append(entry(user(f"message {number}")))
                except SessionError as caught:
                    problems.append(str(caught))
                    after_failure = log.entries
                    log.append(entry(user(f"message {number}")))
                    assert after_failure == before
            assert texts(log) == [f"message {number}" for number in range(10)]
        assert len(problems) == (failing <= 20)
        assert all(os.strerror(error) in text and str(path) in text for text in problems)
        with SessionLog.open(path) as again:
            assert again.path_entries() == log.path_entries()
            assert again.header == log.header


def test_a_failed_first_write_leaves_no_file(path: Path) -> None:
    log = SessionLog.create(path, header(), open_file=Faults(1, NO_SPACE, 30).open)
    with pytest.raises(SessionError, match="Free some space"):
        log.append(entry(user("x")))
    assert not path.exists()
    log.append(entry(user("x")))
    log.close()
    assert path.read_bytes().startswith(b'{"type":"session"')


def test_a_failed_migration_leaves_the_file_as_it_was(path: Path) -> None:
    data = b'{"type":"session","id":"s","cwd":"/w"}\n'
    data += b'{"type":"message","timestamp":"t","message":{"role":"user","content":"a"}}\n'
    for failing in (1, 2):
        written(path, data)
        log = SessionLog.open(path, open_file=Faults(failing, NO_SPACE, 30).open)
        with pytest.raises(SessionError, match="No space left"):
            log.append(entry(user("b")))
        assert path.read_bytes() == data
        log.append(entry(user("b")))
        log.close()
        assert texts(SessionLog.open(path, read_only=True)) == ["a", "b"]
        assert not list(path.parent.glob(".*"))


@pytest.mark.parametrize(
    ("durability", "per_append", "per_turn"), [("entry", 1, 0), ("turn", 0, 1), ("none", 0, 0)]
)
def test_durability_decides_when_the_disk_is_waited_for(
    path: Path, durability: Durability, per_append: int, per_turn: int
) -> None:
    syncs: list[Path] = []

    class CountingFile(DiskFile):
        def sync(self) -> None:
            syncs.append(path)

    opener: Callable[[Path, bool], DiskFile] = CountingFile
    with SessionLog.create(path, header(), durability, open_file=opener) as log:
        for _ in range(3):
            log.append(entry(user("x")))
        assert len(syncs) == 3 * per_append
        log.sync()
        log.sync()
        assert len(syncs) == 3 * per_append + per_turn


@pytest.mark.parametrize(("durability", "waits"), [("entry", 1), ("turn", 1), ("none", 0)])
def test_a_session_written_whole_waits_for_the_disk_once_and_then_has_nothing_left_to_sync(
    path: Path, durability: Durability, waits: int
) -> None:
    syncs: list[Path] = []

    class CountingFile(DiskFile):
        def sync(self) -> None:
            syncs.append(path)

    with SessionLog.write(path, header(), ENTRIES, durability, open_file=CountingFile) as log:
        assert len(syncs) == waits
        log.sync()
    assert len(syncs) == waits


def test_a_folder_that_cannot_be_written_is_named(path: Path) -> None:
    written(path.parent, b"a file where a folder should be")
    with pytest.raises(SessionError, match="could not be written"):
        SessionLog.create(path, header()).append(entry(user("x")))


def test_write_makes_the_whole_file_or_none(path: Path) -> None:
    with pytest.raises(SessionError, match="No space left"):
        SessionLog.write(path, header(), ENTRIES, open_file=Faults(1, NO_SPACE, 50).open)
    assert list(path.parent.iterdir()) == []
    with SessionLog.write(path, header(), ENTRIES) as log:
        added = log.append(entry(user("more")))
    assert SessionLog.open(path, read_only=True).entries == (*ENTRIES, added)
