"""Copying a session up to some entry into a new one."""

import multiprocessing
import os
from collections.abc import Generator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_tui.errors import SessionError
from agent_tui.file_locks import LockOwner
from agent_tui.messages import Message
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    ContextEditEntry,
    Entry,
    Header,
    LabelEntry,
    ModelChangeEntry,
    SessionInfoEntry,
)
from agent_tui.sessions.file.writer import session_status
from agent_tui.sessions.lineage.joined import fork_session, labels_of, path_to
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import was_copied
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry, reply, result, user

NOW = Path("/now")


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


def written(store: SessionStore, *messages: Message, **fields: object) -> SessionLog:
    values = {"cwd": "/w", "provider": "p", "model_id": "m", "timestamp": "2026-03-01T00:00:00Z"}
    log = store.create(Header.model_validate({**values, **fields}))
    log.append_many([entry(message) for message in messages])
    return log


def context_of(path: tuple[Entry, ...], header: Header) -> str:
    context = build_context(path, carryover=header.compaction)
    sent = [f"{item.entry_id} {item.message.model_dump_json()}" for item in context.messages]
    return "\n".join([context.provider, context.model_id, context.summary, *sent])


def test_a_fork_has_the_path_under_the_same_ids_and_the_original_is_untouched(
    store: SessionStore,
) -> None:
    log = written(store, user("one"), reply("a"), user("two"), reply("b"))
    assert log.path is not None
    before = log.path.read_bytes()
    at = log.entries[1].id
    fork = fork_session(log, at, store, cwd=NOW)
    assert fork.entries == log.entries[:2]
    assert fork.leaf_id == at
    assert fork.header.id != log.header.id
    assert fork.header.parent_session == str(log.path)
    assert (fork.header.cwd, fork.header.provider, fork.header.model_id) == ("/now", "p", "m")
    assert log.path.read_bytes() == before
    assert fork.path is not None
    fork.append(entry(user("elsewhere")))
    fork.close()
    again = SessionLog.open(fork.path)
    assert [item.id for item in again.entries] == [item.id for item in fork.entries]
    again.close()


def test_the_name_stays_as_it_is_whatever_branch_gave_it(store: SessionStore) -> None:
    log = written(store, user("one"), reply("a"))
    at = log.leaf_id
    log.append(SessionInfoEntry(name="release"))
    early = fork_session(log, at, store, cwd=NOW)
    assert early.name == "release"
    late = fork_session(log, log.leaf_id, store, cwd=NOW)
    assert late.entries == log.entries


def test_the_labels_of_what_is_copied_come_along(store: SessionStore) -> None:
    log = written(store, user("one"), reply("a"), user("two"))
    ids = [item.id for item in log.entries]
    for target, label in ((ids[0], "start"), (ids[2], "later"), (ids[1], "gone")):
        log.append(LabelEntry(target_id=target, label=label))
    log.append(LabelEntry(target_id=ids[1]))
    fork = fork_session(log, ids[1], store, cwd=NOW)
    assert labels_of(fork.entries) == {ids[0]: "start"}
    whole = fork_session(log, log.leaf_id, store, cwd=NOW)
    assert whole.entries == log.entries


def test_a_fork_of_a_compacted_session_keeps_what_was_carried_over(store: SessionStore) -> None:
    carried = Carryover(lastSummary="the story so far", modified_files=("a.py",))
    log = written(store, user("one"), compaction=carried)
    log.append(CompactionEntry(summary="more", first_kept_entry_id=""))
    fork = fork_session(log, log.entries[0].id, store, cwd=NOW)
    assert fork.header.compaction == carried
    assert "the story so far" in context_of(fork.path_entries(), fork.header)


def test_a_fork_before_the_beginning_has_no_file_until_something_is_said(
    store: SessionStore,
) -> None:
    log = written(store, user("one"))
    fork = fork_session(log, None, store, cwd=NOW)
    assert fork.entries == ()
    assert fork.path is not None
    assert not fork.path.exists()
    fork.append(entry(user("anew")))
    assert SessionLog.open(fork.path, read_only=True).header.parent_session == str(log.path)


def test_a_fork_is_later_than_what_was_copied_whatever_the_clock_says(store: SessionStore) -> None:
    source = written(store, user("one"))
    source.append(entry(reply("two")).model_copy(update={"timestamp": "2999-01-01T00:00:00.000Z"}))
    with fork_session(source, source.leaf_id, store, cwd=NOW) as fork:
        assert fork.header.timestamp == "2999-01-01T00:00:00.001Z"
        assert all(was_copied(fork.header, copied) for copied in fork.entries)


def test_without_a_store_the_fork_lives_in_memory(store: SessionStore) -> None:
    log = SessionLog.create(None, Header(cwd="/w"))
    log.append(entry(user("one")))
    fork = fork_session(log, log.leaf_id, None, cwd=NOW)
    assert (fork.path, fork.header.parent_session) == (None, log.header.id)
    assert not store.root.exists()


def test_an_unknown_entry_is_refused_and_nothing_is_written(store: SessionStore) -> None:
    log = written(store, user("one"))
    with pytest.raises(SessionError, match="has no entry nothere"):
        fork_session(log, "nothere", store, cwd=NOW)
    assert len(list(store.root.rglob("*.jsonl"))) == 1


def test_a_fork_that_cannot_be_written_leaves_nothing_behind(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = written(store, user("one"), reply("a"))

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(SessionError):
        fork_session(log, log.leaf_id, store, cwd=NOW)
    monkeypatch.undo()
    assert [path.name for path in store.root.rglob("*") if path.is_file()] == [
        path.name for path in store.root.rglob(f"*{log.header.id}*")
    ]


def _hold(path: Path, told: Connection) -> None:
    with SessionLog.open(path):
        told.send(True)
        told.recv()


@pytest.fixture
def held_elsewhere(store: SessionStore) -> Generator[tuple[Path, int]]:
    """A session that another process has open: its file and that process."""
    log = written(store, user("one"), reply("a"))
    log.close()
    assert log.path is not None
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_hold, args=(log.path, theirs))
    process.start()
    ours.recv()
    assert process.pid is not None
    yield log.path, process.pid
    ours.send(True)
    process.join()


def test_what_another_process_has_open_can_be_copied(
    held_elsewhere: tuple[Path, int], store: SessionStore
) -> None:
    path, _ = held_elsewhere
    source = SessionLog.open(path, read_only=True)
    fork = fork_session(source, source.leaf_id, store, cwd=NOW)
    assert fork.entries == source.entries
    fork.append(entry(user("here")))


def test_a_look_names_the_process_that_has_it_open(held_elsewhere: tuple[Path, int]) -> None:
    path, pid = held_elsewhere
    assert session_status(path).owner == LockOwner(pid)


def test_a_look_says_whether_the_folder_is_there(store: SessionStore, tmp_path: Path) -> None:
    gone, there = written(store, user("a")), written(store, user("b"), cwd=str(tmp_path))
    for log, has_folder in ((gone, False), (there, True)):
        assert log.path is not None
        assert session_status(log.path).owner is None, "its own lock is no other process"
        log.close()
        looked = session_status(log.path)
        assert (looked.cwd, looked.has_folder) == (Path(log.header.cwd), has_folder)
        assert looked.owner is None


def test_a_look_at_a_file_without_a_header_names_no_folder(tmp_path: Path) -> None:
    for name, content in (("a", b"torn {"), ("b", b'{"type":"session","cwd":7}\n'), ("c", b"")):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        looked = session_status(path)
        assert (looked.cwd, looked.has_folder, looked.owner) == (None, True, None)


STEPS = st.sampled_from(
    [
        entry(user("a")),
        entry(reply("b", ("c", "read"))),
        entry(result("c", "long " * 20)),
        entry(reply("d")),
        ModelChangeEntry(provider="x", model_id="y"),
        LabelEntry(target_id="?", label="l"),
        SessionInfoEntry(name="n"),
        "edit",
        "compaction",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.integers(-1, 30), STEPS), min_size=1, max_size=25),
    at=st.integers(0, 30),
)
def test_the_model_sees_in_a_fork_byte_for_byte_what_it_saw_at_that_entry(
    steps: list[tuple[int, Entry | str]], at: int, store: SessionStore
) -> None:
    carried = Carryover(lastSummary="before")
    log = SessionLog.create(None, Header(cwd="/w", compaction=carried))
    for place, step in steps:
        ids = [item.id for item in log.entries]
        log.branch_to(ids[place % len(ids)] if ids and place >= 0 else None)
        path = log.path_entries()
        target = path[place % len(path)].id if path else ""
        match step:
            case "edit":
                log.append(ContextEditEntry(target_id=target, replacement="short"))
            case "compaction":
                log.append(CompactionEntry(summary="sum", first_kept_entry_id=target))
            case _:
                assert not isinstance(step, str)
                log.append(step)
    leaf = log.entries[at % len(log.entries)].id
    fork = fork_session(log, leaf, None, cwd=NOW)
    before = path_to(log.entries, leaf)
    assert fork.path_entries()[: len(before)] == before
    assert context_of(fork.path_entries(), fork.header) == context_of(before, log.header)
    assert fork.name == log.name
