"""Walking a conversation back through all its sessions."""

import threading
from pathlib import Path

import pytest

from agent_tui.sessions.entries import Carryover, CompactionEntry, Entry, Header, MessageEntry
from agent_tui.sessions.importers.formats import FORMATS, read_foreign
from agent_tui.sessions.lineage.chain import PastSessions, SessionChain, is_of_another_program
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import claude_lines
from tests.support.session_values import entry, header, reply, session_bytes, user


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


@pytest.fixture
def past(store: SessionStore) -> PastSessions:
    return PastSessions(store)


def begin(store: SessionStore, *prompts: str) -> SessionLog:
    log = store.create(Header(cwd="/w"))
    log.append_many([entry(user(prompt)) for prompt in prompts])
    return log


def go_on(store: SessionStore, parent: SessionLog, kept: int, *prompts: str) -> SessionLog:
    """The session after `parent`: a compaction, copies of its last entries, new prompts."""
    tail = parent.entries[len(parent.entries) - kept :]
    first = CompactionEntry(
        id="c0ffee00", summary="so far", first_kept_entry_id=tail[0].id if tail else ""
    )
    child = store.create_child(parent, (first, *tail), Carryover())
    child.append_many([entry(user(prompt)) for prompt in prompts])
    return child


def path_of(log: SessionLog) -> Path:
    assert log.path is not None
    return log.path


def said(chain: SessionChain) -> list[str]:
    return [item.message.text for item in chain.entries() if isinstance(item, MessageEntry)]


def test_a_conversation_is_walked_from_its_newest_entry_to_the_first_of_all(store, past) -> None:
    with (
        begin(store, "one", "two") as first,
        go_on(store, first, 0, "three") as second,
        go_on(store, second, 0, "four", "five") as third,
    ):
        chain = SessionChain(third, past)
        assert said(chain) == ["five", "four", "three", "two", "one"]
        assert chain.session_count == 3
        assert chain.missing == ""


def test_a_tail_that_was_copied_comes_once(store, past) -> None:
    with begin(store, "one", "two", "three") as first, go_on(store, first, 2, "four") as second:
        chain = SessionChain(second, past)
        assert said(chain) == ["four", "three", "two", "one"]
        copied = [item.id for item in chain.entries()]
        assert len(copied) == len(set(copied))


def test_an_entry_that_has_the_id_of_another_by_chance_is_not_lost(store, past) -> None:
    with begin(store, "one") as first, go_on(store, first, 0) as second:
        by_chance = entry(user("two")).model_copy(
            update={"id": first.entries[0].id, "timestamp": "2026-04-01T00:00:00.000Z"}
        )
        second.append(by_chance)
        assert said(SessionChain(second, past)) == ["two", "one"]


def test_a_pulled_entry_takes_the_place_of_no_own_one(store, past) -> None:
    with begin(store, "one") as first, go_on(store, first, 0, "two") as second:
        forged = first.entries[0].model_copy(update={"message": user("theirs")})
        copied = second.entries[-1].model_copy(update={"message": user("theirs, too")})
        places = {"parent_id": second.leaf_id, "pulled_from": "Eve"}
        second.append_placed([forged.model_copy(update=places)])
        assert said(SessionChain(second, past)) == ["theirs", "two", "one"]
        first.append_placed([copied.model_copy(update={**places, "parent_id": first.leaf_id})])
        assert said(SessionChain(second, past)) == ["theirs", "two", "one"]


def test_branches_that_were_left_are_walked_too(store, past) -> None:
    with begin(store, "one", "wrong way") as log:
        log.branch_to(log.entries[0].id)
        log.append(entry(user("right way")))
        assert said(SessionChain(log, past)) == ["right way", "wrong way", "one"]


def test_what_is_said_after_a_chain_was_made_is_not_in_it(store, past) -> None:
    with begin(store, "one") as log:
        chain = SessionChain(log, past)
        log.append(entry(user("two")))
        assert said(chain) == ["one"]
        assert said(SessionChain(log, past)) == ["two", "one"]


def test_earlier_sessions_are_read_only_when_the_walk_comes_to_them_and_once(store, past) -> None:
    with begin(store, "one") as first:
        second = go_on(store, first, 0, "two")
    walk = SessionChain(second, past).entries()
    assert next(walk).id == second.entries[-1].id
    unread = path_of(first).read_bytes()
    path_of(first).unlink()
    again = SessionChain(second, past)
    assert said(again) == ["two"]
    assert again.missing == str(first.path)
    path_of(first).write_bytes(unread)
    assert said(again) == ["two", "one"]
    path_of(first).unlink()
    assert said(SessionChain(second, past)) == ["two", "one"]
    second.close()


def test_a_parent_is_found_by_its_id(store, past) -> None:
    first = begin(store, "one")
    first.close()
    with store.create(Header(cwd="/elsewhere", parent_session=first.header.id)) as log:
        log.append(entry(user("two")))
        assert said(SessionChain(log, past)) == ["two", "one"]


@pytest.mark.parametrize("where", ["renamed-folder", "another-folder"])
def test_a_parent_that_was_moved_is_found(store, past, where: str) -> None:
    with begin(store, "one") as first:
        second = go_on(store, first, 0, "two")
    second.close()
    folder = path_of(first).parent
    if where == "renamed-folder":
        moved = folder.rename(folder.with_name("renamed"))
        present = moved / path_of(second).name
    else:
        (store.root / "other").mkdir()
        path_of(first).rename(store.root / "other" / path_of(first).name)
        present = path_of(second)
    with SessionLog.open(present) as log:
        assert said(SessionChain(log, past)) == ["two", "one"]


def test_a_parent_that_another_process_has_open_is_read(store, past) -> None:
    with begin(store, "one") as first, go_on(store, first, 0, "two") as second:
        assert said(SessionChain(second, past)) == ["two", "one"]
        first.append(entry(user("still open")))


def test_a_damaged_parent_gives_what_can_be_read(store, past) -> None:
    with begin(store, "one", "two") as first:
        second = go_on(store, first, 0, "three")
    lines = path_of(first).read_bytes().split(b"\n")
    path_of(first).write_bytes(b"\n".join([lines[0], lines[1], b"\xff broken", lines[2][:20]]))
    assert said(SessionChain(second, past)) == ["three", "one"]
    second.close()


@pytest.mark.parametrize(
    "parent", ["/no/such/file.jsonl", "no-such-id", "nul\0byte", "x" * 5_000, "/", "."]
)
def test_a_parent_that_cannot_be_found_ends_the_chain_and_is_named(store, past, parent) -> None:
    log = SessionLog.create(None, Header(parent_session=parent))
    log.append(entry(user("one")))
    chain = SessionChain(log, past)
    assert said(chain) == ["one"]
    assert chain.missing == parent


def test_a_parent_that_is_no_session_ends_the_chain_and_is_named(store, past, tmp_path) -> None:
    (tmp_path / "picture.jsonl").write_bytes(b"\x89PNG\x00\n")
    log = SessionLog.create(None, Header(parent_session=str(tmp_path / "picture.jsonl")))
    chain = SessionChain(log, past)
    assert said(chain) == []
    assert chain.missing == str(tmp_path / "picture.jsonl")


def test_sessions_that_name_each_other_are_walked_once(store, past, tmp_path) -> None:
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, (file, other) in enumerate(zip(files, reversed(files), strict=True)):
        item = entry(user(file.stem)).model_copy(update={"id": f"0000000{number}"})
        first = header(id=file.stem, parentSession=str(other))
        file.write_bytes(session_bytes([item], first))
    with SessionLog.open(files[0]) as log:
        chain = SessionChain(log, past)
        assert said(chain) == ["a", "b"]
        assert chain.missing == ""


def test_what_a_conversation_without_files_left_behind_is_remembered(store, past) -> None:
    first = SessionLog.create(None, Header(cwd="/w"))
    first.append_many([entry(user("one")), entry(reply("yes"))])
    second = go_on(store, first, 1, "two")
    assert second.path is None
    assert SessionChain(second, past).missing == ""
    assert said(SessionChain(second, past)) == ["two", "yes"]
    past.remember(first)
    assert said(SessionChain(second, past)) == ["two", "yes", "one"]


def test_a_session_that_was_left_is_not_read_again(store, past) -> None:
    with begin(store, "one") as first:
        second = go_on(store, first, 0, "two")
    past.remember(first)
    path_of(first).unlink()
    assert said(SessionChain(second, past)) == ["two", "one"]
    second.close()


def test_a_chain_may_be_walked_while_the_session_goes_on(store, past) -> None:
    with begin(store, *map(str, range(500))) as log:
        chain = SessionChain(log, past)
        walked: list[list[Entry]] = []
        thread = threading.Thread(target=lambda: walked.append(list(chain.entries())))
        thread.start()
        log.append_many([entry(reply(str(number))) for number in range(500)])
        thread.join()
        assert len(walked[0]) == 500


def test_a_parent_that_another_agent_wrote_is_read_with_its_tail_once(
    store, past, tmp_path: Path
) -> None:
    file = claude_lines.write(
        tmp_path / "theirs.jsonl",
        claude_lines.said("u1", None, "one"),
        claude_lines.said("u2", "u1", "two"),
        claude_lines.replied("a1", "u2", claude_lines.text("three")),
        claude_lines.replied("a2", "a1", claude_lines.text("four")),
    )
    tail = read_foreign(file).entries[2:]
    with store.create(Header(cwd="/w", parent_session=str(file))) as child:
        first = CompactionEntry(summary="so far", first_kept_entry_id=tail[0].id)
        child.append_many([first, *tail, entry(user("five"))])
        chain = SessionChain(child, past)
        assert said(chain) == ["five", "four", "three", "two", "one"]
        assert chain.missing == ""


@pytest.mark.parametrize(
    ("content", "is_of_another"),
    [
        ('{"type":"user","uuid":"u1","message":{"role":"user","content":"hi"}}\n', True),
        ('{"messages": [{"role": "user", "content": "hi"}]}', True),
        ('{"history": [{"action": "message"}]}\n' * 2, True),
        ('{"type":"session","version":3,"id":"x"}\n', False),
        ('{torn\n{"type":"message","id":"1","parentId":null,"message":{}}\n', False),
        ("Dear diary\n", False),
        ("", False),
    ],
)
def test_whose_file_it_is_is_told_by_what_it_holds(
    tmp_path: Path, content: str, is_of_another: bool
) -> None:
    (tmp_path / "file").write_text(content)
    assert is_of_another_program(tmp_path / "file", FORMATS) is is_of_another
    assert not is_of_another_program(tmp_path / "gone", FORMATS)
