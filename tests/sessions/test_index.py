import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from agent_tui.sessions import listing
from agent_tui.sessions.listing import SessionIndex, SessionSummary, session_files
from agent_tui.sessions.store import SessionStore
from tests.support.session_files import append_to, make_older, write_session
from tests.support.session_values import reply, user


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files were read, and how: "whole" or "end"."""
    seen: list[str] = []
    read_summary, extend_summary = listing.read_summary, listing.extend_summary

    def note_whole(path: Path) -> SessionSummary | None:
        seen.append("whole")
        return read_summary(path)

    def note_end(known: SessionSummary) -> SessionSummary | None:
        seen.append("end")
        return extend_summary(known)

    monkeypatch.setattr(listing, "read_summary", note_whole)
    monkeypatch.setattr(listing, "extend_summary", note_end)
    return seen


def prompts(sessions: Sequence[SessionSummary]) -> list[str]:
    return [found.first_prompt for found in sessions]


def test_of_a_file_that_grew_only_the_end_is_read(store: SessionStore, reads: list[str]) -> None:
    path = write_session(store, user("first"), reply("ok"), age_s=10)
    write_session(store, user("other"), age_s=20)
    store.list()
    append_to(path, user("more"), reply("ok"), age_s=5)
    reads.clear()
    (grown, _) = store.list()
    assert reads == ["end"]
    assert (grown.first_prompt, grown.message_count) == ("first", 4)
    reads.clear()
    assert store.list()[0] == grown
    assert reads == []


def test_some_summaries_are_stored_and_the_others_not_forgotten(
    store: SessionStore, reads: list[str]
) -> None:
    path = write_session(store, user("first"), age_s=10)
    write_session(store, user("other"), age_s=20)
    store.list()
    append_to(path, user("more"), age_s=5)
    reads.clear()
    ((file, found),) = store.summaries(store.files()[:1])
    assert found is not None
    assert (file.path, found.path, found.message_count) == (path, path, 2)
    assert reads == ["end"]
    reads.clear()
    assert prompts(store.list()) == ["first", "other"]
    assert reads == []


@pytest.mark.parametrize("change", ["another beginning", "shorter", "torn before", "same size"])
def test_a_file_that_did_not_only_grow_is_read_whole(
    store: SessionStore, reads: list[str], change: str
) -> None:
    path = write_session(store, user("first"), reply("ok"), age_s=10)
    data = path.read_bytes()
    if change == "torn before":
        path.write_bytes(data[:-1])
        make_older(path, 9)
    store.list()
    reads.clear()
    match change:
        case "another beginning":
            path.write_bytes(data.replace(b"first", b"other") + data[data.index(b"\n") + 1 :])
        case "shorter":
            path.write_bytes(data[: data.rindex(b'{"type')])
        case "torn before":
            path.write_bytes(data + data.rstrip().rsplit(b"\n", 1)[1] + b"\n")
        case _:
            path.write_bytes(data.replace(b"first", b"other"))
    make_older(path, 5)
    (found,) = store.list()
    assert reads == ["whole"]
    assert found.size_bytes == path.stat().st_size


def test_the_first_page_is_there_before_the_rest_is_read(
    store: SessionStore, reads: list[str]
) -> None:
    for number in range(7):
        write_session(store, user(f"p{number}"), age_s=number)
    pages = store.pages(page_size=3)
    assert prompts(next(pages)) == ["p0", "p1", "p2"]
    assert len(reads) == 3
    pages.close()
    reads.clear()
    assert [prompts(page) for page in store.pages(page_size=3)] == [
        ["p0", "p1", "p2"],
        ["p3", "p4", "p5"],
        ["p6"],
    ]
    assert len(reads) == 4, "what was read before the list was left is kept"


def test_sessions_of_the_present_folder_are_on_the_first_page(store: SessionStore) -> None:
    for number in range(4):
        write_session(store, user(f"elsewhere {number}"), cwd="/w/elsewhere", age_s=number)
    write_session(store, user("here"), age_s=99)
    assert prompts(next(store.pages(Path("/w/here"), page_size=2))) == ["here", "elsewhere 0"]


def test_a_file_that_is_no_session_leaves_its_page_shorter(store: SessionStore) -> None:
    path = write_session(store, user("a"), age_s=5)
    other = path.with_name("x.jsonl")
    other.write_bytes(b"\x00\xff\n")
    make_older(other, 0)
    assert [prompts(page) for page in store.pages(page_size=1)] == [[], ["a"]]


def test_without_a_folder_there_are_no_pages(store: SessionStore) -> None:
    assert list(store.pages()) == []


def test_files_that_are_gone_are_forgotten(store: SessionStore) -> None:
    path = write_session(store, user("a"))
    write_session(store, user("b"))
    store.list()
    path.unlink()
    store.list()
    with closing(sqlite3.connect(store.root / "index.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_listed(store: SessionStore) -> None:
    write_session(store, user("a"))
    store.root.chmod(0o500)
    try:
        assert prompts(store.list()) == ["a"]
    finally:
        store.root.chmod(0o700)


def test_a_cache_that_cannot_be_a_file_is_done_without(store: SessionStore) -> None:
    write_session(store, user("a"))
    (store.root / "index.sqlite").mkdir()
    assert prompts(store.list()) == ["a"]
    assert prompts(store.list()) == ["a"]


def test_the_cache_of_an_older_version_is_made_anew(store: SessionStore, reads: list[str]) -> None:
    write_session(store, user("a"))
    with closing(sqlite3.connect(store.root / "index.sqlite")) as database, database:
        database.execute("CREATE TABLE sessions (path BLOB PRIMARY KEY, size, mtime_ns, summary)")
        database.execute("PRAGMA user_version = 1")
    assert prompts(store.list()) == ["a"]
    reads.clear()
    assert prompts(store.list()) == ["a"]
    assert reads == []


def test_several_may_list_at_once(store: SessionStore) -> None:
    for number in range(30):
        write_session(store, user(f"p{number:02}"), age_s=number)
    expected = [f"p{number:02}" for number in range(30)]
    results: list[list[str]] = []
    threads = [Thread(target=lambda: results.append(prompts(store.list()))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 6
    with closing(sqlite3.connect(store.root / "index.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM sessions").fetchone() == (30,)


def test_an_index_without_files_lists_nothing(tmp_path: Path) -> None:
    assert list(SessionIndex(tmp_path / "i.sqlite").summaries(session_files([]))) == []
    assert session_files([tmp_path / "none.jsonl"]) == []
