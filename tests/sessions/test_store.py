import os
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from agent_tui.errors import SessionError
from agent_tui.paths import cwd_slug
from agent_tui.sessions.context import build_context, wrap_summary
from agent_tui.sessions.entries import (
    Carryover,
    CompactionEntry,
    Header,
    LabelEntry,
    ModelChangeEntry,
    PulledFrom,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
)
from agent_tui.sessions.lineage.joined import labels_of
from agent_tui.sessions.listing import read_summary
from agent_tui.sessions.log import SessionInUseError, SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.patience import PATIENCE_S
from tests.support.session_values import entry, reply, user

HERE = Path("/w/here")
ELSEWHERE = Path("/w/elsewhere")


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none")


def add(
    store: SessionStore, prompt: str, *, name: str = "", cwd: Path = HERE, age_s: int = 0, **fields
) -> Path:
    """Write a small session whose file is `age_s` seconds old."""
    with store.create(Header(cwd=str(cwd), **fields)) as log:
        log.append_many([entry(user(prompt)), entry(reply("ok"))])
        if name:
            log.append(SessionInfoEntry(name=name))
    assert log.path is not None
    age(log.path, age_s)
    return log.path


def age(path: Path, seconds: int) -> None:
    written = 1_800_000_000 - seconds
    os.utime(path, (written, written))


def session_id(path: Path) -> str:
    return path.stem.rpartition("_")[2]


def prompts(store: SessionStore, cwd: Path | None = None) -> list[str]:
    return [found.first_prompt for found in store.list(cwd)]


def test_a_session_lies_in_the_folder_of_its_working_folder(store: SessionStore) -> None:
    made = Header(cwd="/w/here", timestamp="2026-03-02T09:00:00.000Z", id="abc")
    path = store.create(made).path
    assert path == store.root / cwd_slug(HERE) / "2026-03-02T09-00-00-000Z_abc.jsonl"
    assert not store.root.exists()


def test_nothing_is_listed_or_made_where_nothing_was_written(store: SessionStore) -> None:
    assert store.list() == []
    assert store.newest(HERE) is None
    assert not store.root.exists()


def test_the_list_tells_what_a_person_looks_for(store: SessionStore) -> None:
    path = add(store, "fix\n  the \x1b[31mbug", name="Old name", provider="p", model_id="m1")
    with SessionLog.open(path) as log:
        log.append(ModelChangeEntry(provider="q", model_id="m2"))
        log.append(SessionInfoEntry(name="New name"))
    (found,) = store.list()
    assert found.id == session_id(path)
    assert found.path == path
    assert found.cwd == HERE
    assert found.name == "New name"
    assert found.first_prompt == "fix the bug"
    assert found.message_count == 2
    assert found.model == "q/m2"
    assert found.size_bytes == path.stat().st_size
    assert found.modified.timestamp() == pytest.approx(path.stat().st_mtime)
    assert found.modified.utcoffset() == timedelta(0)


def test_the_newest_comes_first_and_a_folder_sees_its_own(store: SessionStore) -> None:
    add(store, "old", age_s=20)
    add(store, "new", age_s=0)
    add(store, "other", cwd=ELSEWHERE, age_s=10)
    add(store, "demo", cwd=Path("/scratch"), launch_cwd=str(HERE), age_s=30)
    assert prompts(store) == ["new", "other", "old", "demo"]
    assert prompts(store, HERE) == ["new", "old", "demo"]
    newest = store.newest(ELSEWHERE)
    assert newest is not None
    assert newest.first_prompt == "other"


def test_a_folder_whose_name_is_no_text_lists_its_sessions_also_older_ones(
    store: SessionStore,
) -> None:
    folder = os.fsdecode(b"/work/odd\xff")
    for cwd in (folder, "/work/odd\ufffd"):  # as once written
        with store.create(Header(cwd=cwd)) as log:
            log.append(entry(user("hello")))
    for _ in ("read", "from the cache"):
        assert len(store.list(Path(folder))) == 2
    assert len(store.list(Path("/work/odd"))) == 0


def test_a_person_left_last_what_no_script_and_no_tour_made(store: SessionStore) -> None:
    def leave(path: Path, age_s: int = 0) -> None:
        store.note_left(path, HERE)
        age(path.parent / ".left", age_s)

    assert store.find_left_last(HERE) is None
    older, newer = add(store, "older", age_s=40), add(store, "newer", age_s=30)
    script = add(store, "script", age_s=20, origin="print")
    add(store, "tour", cwd=Path("/scratch"), launch_cwd=str(HERE), age_s=10, origin="tour")
    assert store.find_left_last(HERE) == newer
    leave(older)
    assert store.find_left_last(HERE) == older
    assert store.find_left_last(ELSEWHERE) is None
    assert store.list(HERE)[0].first_prompt == "tour"
    leave(script)  # the person was in it
    assert store.find_left_last(HERE) == script
    leave(older, age_s=35)  # another was written since, by a program that was killed
    assert store.find_left_last(HERE) == newer
    leave(script)
    store.delete(script)
    assert store.find_left_last(HERE) == newer


def test_only_scripts_leave_nothing_to_a_person(store: SessionStore) -> None:
    add(store, "script", origin="print")
    assert store.find_left_last(HERE) is None
    assert store.list()[0].origin == "print"
    assert store.list()[0].origin == "print"  # from the index


def test_files_that_are_damaged_or_foreign_hide_no_others(store: SessionStore) -> None:
    good = add(store, "good", age_s=5)
    no_header = add(store, "no header", age_s=10)
    no_header.write_bytes(b"broken\n" + no_header.read_bytes().split(b"\n", 1)[1])
    age(no_header, 10)
    folder = good.parent
    (folder / "notes.jsonl").write_bytes(b"\x00\xff\n")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "folder.jsonl").mkdir()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (store.root / "loose.txt").write_text("x")
    assert prompts(store, HERE) == ["good", "no header"]


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(store: SessionStore) -> None:
    path = add(store, "first", age_s=10)
    assert prompts(store) == ["first"]
    changed = path.read_bytes().replace(b"first", b"other")
    path.write_bytes(changed)
    age(path, 10)
    assert prompts(store) == ["first"], "same size and time: the cache answers"
    age(path, 9)
    assert prompts(store) == ["other"]
    path.unlink()
    assert prompts(store) == []


@pytest.mark.parametrize("damage", ["delete", "garbage", "other schema", "wrong rows", "locked"])
def test_the_cache_may_be_lost_broken_or_locked(store: SessionStore, damage: str) -> None:
    add(store, "still here")
    store.list()
    index = store.root / "index.sqlite"
    database: sqlite3.Connection | None = None
    match damage:
        case "delete":
            index.unlink()
        case "garbage":
            index.write_bytes(b"this is no database" * 500)
        case "other schema":
            database = sqlite3.connect(index)
            database.execute("DROP TABLE sessions")
            database.execute("CREATE TABLE sessions (a)")
            database.execute("PRAGMA user_version = 99")
            database.commit()
        case "wrong rows":
            database = sqlite3.connect(index)
            database.execute("UPDATE sessions SET summary = '[1]'")
            database.commit()
        case _:
            database = sqlite3.connect(index)
            database.execute("BEGIN EXCLUSIVE")
    try:
        assert prompts(store) == ["still here"]
    finally:
        if database is not None:
            database.close()
    assert prompts(store) == ["still here"]
    assert index.stat().st_mode & 0o077 == 0


def test_a_session_is_opened_by_file_id_beginning_or_name(store: SessionStore) -> None:
    path = add(store, "x", name="Fix the parser", id="1111aaaa-1")
    add(store, "y", name="Docs", id="2222bbbb-2")
    relative = os.path.relpath(path, store.root)
    for ref, cwd in (
        (str(path), HERE),
        (relative, store.root),
        ("1111aaaa-1", HERE),
        ("1111", HERE),
        ("Fix the parser", HERE),
    ):
        with store.open(ref, cwd) as log:
            assert log.path == path


def test_of_sessions_with_one_name_the_newest_is_opened(store: SessionStore) -> None:
    add(store, "old", name="Work", age_s=10)
    new = add(store, "new", name="Work", age_s=0)
    assert store.find("Work", HERE) == new


def test_a_pulled_session_never_takes_the_place_of_an_own_one(store: SessionStore) -> None:
    eve = PulledFrom(by="Eve <e@x>")
    own = add(store, "x", name="release", id="1111aaaa-1", age_s=20)
    add(store, "y", name="release", id="2222bbbb-2", pulled_from=eve)
    add(store, "y", id="release", pulled_from=eve)
    assert store.find("release", HERE) == own
    add(store, "y", name="1111", id="3333cccc-3", pulled_from=eve)
    with pytest.raises(SessionError, match=r"matches 2 sessions: .*1111aaaa.*") as told:
        store.find("1111", HERE)
    assert "from Eve" in str(told.value)


def test_a_pulled_session_is_found_by_its_name_if_there_is_one(store: SessionStore) -> None:
    eve = PulledFrom(by="Eve <e@x>")
    first = add(store, "x", name="tour", id="1111aaaa-1", pulled_from=eve)
    assert store.find("tour", HERE) == first
    add(store, "y", name="tour", id="2222bbbb-2", pulled_from=eve)
    with pytest.raises(SessionError, match="matches 2 sessions"):
        store.find("tour", HERE)
    whole = add(store, "y", id="1111", pulled_from=eve)
    assert store.find("1111", HERE) == whole


def test_what_others_name_an_own_session_is_not_its_name(store: SessionStore) -> None:
    own = add(store, "x", name="mine", id="1111aaaa-1")
    with SessionLog.open(own, "none") as log:
        leaf = log.leaf_id
        log.append_placed(
            [
                SessionInfoEntry(name="theirs", id=f"e{number}", parent_id=leaf, pulled_from="Eve")
                for number in range(20)
            ]
        )
        assert log.name == "mine"
        assert log.leaf_id == leaf
    (found,) = store.list()
    assert found.name == "mine"


def test_a_pulled_session_keeps_the_name_and_labels_given_here(store: SessionStore) -> None:
    path = add(store, "x", id="1111aaaa-1", pulled_from=PulledFrom(by="Eve <e@x>"))
    with SessionLog.open(path, "none") as log:

        def add_theirs(number: int, name: str, label: str) -> None:
            place = {"parent_id": target, "pulled_from": "Eve"}
            named, labelled = SessionInfoEntry(name=name), LabelEntry(target_id=target, label=label)
            entries = ((f"n{number}", named), (f"l{number}", labelled))
            log.append_placed([e.model_copy(update={"id": one, **place}) for one, e in entries])

        said = entry(user("theirs")).model_copy(update={"id": "e1", "pulled_from": "Eve"})
        log.append_placed([said.model_copy(update={"parent_id": log.leaf_id})])
        target = "e1"
        for number, name in enumerate(("first", "second")):
            add_theirs(number, name, name)
            assert (log.name, labels_of(log.entries)) == (name, {target: name})
            assert [found.name for found in store.list()] == [name]
        log.append(SessionInfoEntry(name="mine"))
        log.append(LabelEntry(target_id=target, label="mine"))
        add_theirs(5, "third", "third")
        assert (log.name, labels_of(log.entries)) == ("mine", {target: "mine"})
        assert [found.name for found in store.list()] == ["mine"]
        add_theirs(6, "fourth", "fourth")
        assert [found.name for found in store.list()] == ["mine"]
        read = read_summary(path)
        assert read is not None
        assert read.name == "mine"


def test_a_copy_of_what_was_pulled_continues_after_it(store: SessionStore, tmp_path: Path) -> None:
    said = [entry(user("one")), entry(user("two"))]
    pulled = [item.model_copy(update={"pulled_from": "Eve"}) for item in said]
    path = tmp_path / "x.jsonl"
    with SessionLog.write(path, Header(), [SessionInfoEntry(name="n"), *pulled], "none") as log:
        ids = [item.id for item in log.path_entries()]
    with SessionLog.open(path, "none") as log:
        assert [item.id for item in log.path_entries()] == ids
        assert len(ids) == 4


def test_a_session_that_is_not_there_is_answered_with_the_nearest(store: SessionStore) -> None:
    add(store, "x", name="Fix the parser", id="1111aaaa-1")
    add(store, "y", name="Docs", id="1122bbbb-2")
    with pytest.raises(SessionError, match=r"matches 2 sessions:.*Docs.*Fix the parser"):
        store.open("11", HERE)
    with pytest.raises(SessionError, match="Fix the parser"):
        store.open("fix the parsre", HERE)
    with pytest.raises(SessionError, match="sessions list"):
        store.open("qqqqqqqq", HERE)
    with pytest.raises(SessionError, match="does not exist"):
        store.open("sub/none.jsonl", HERE)


def test_a_child_carries_over_and_is_on_the_disk_at_once(store: SessionStore) -> None:
    with store.create(Header(cwd="/w/here", provider="p", model_id="m", launch_cwd="/l")) as log:
        tail = log.append_many([entry(user("a")), entry(reply("b")), SessionInfoEntry(name="Work")])
        log.append(ModelChangeEntry(provider="q", model_id="m2"))
        log.append(ThinkingLevelChangeEntry(thinking_level="xhigh"))
        carried = Carryover(lastSummary="S", read_files=("/w/here/a.py",))
        first = CompactionEntry(summary="S", first_kept_entry_id=tail[0].id)
        child = store.create_child(log, [first, *tail[:2]], carried)
    with child:
        assert child.path is not None
        assert child.path.parent == store.root / cwd_slug(HERE)
        on_disk = SessionLog.open(child.path, read_only=True)
        assert on_disk.entries == child.entries
        assert on_disk.header == child.header
        assert child.header.parent_session == str(log.path)
        assert child.header.compaction == carried
        assert (child.header.provider, child.header.model_id) == ("q", "m2")
        assert child.header.thinking_level == "xhigh"
        assert child.header.launch_cwd == "/l"
        assert child.header.id != log.header.id
        assert child.name == "Work"
        messages = build_context(child.path_entries()).messages
        assert [item.entry_id for item in messages[1:]] == [tail[0].id, tail[1].id]
        assert messages[0].message == user(wrap_summary("S")).model_copy(
            update={"timestamp": messages[0].message.timestamp}
        )
        child.append(entry(user("go on")))


def test_a_compacted_session_is_listed_by_the_first_message_of_the_conversation(
    store: SessionStore,
) -> None:
    with store.create(Header(cwd="/w/here")) as log:
        log.append_many([entry(user("fix the bug")), entry(reply("b"))])
    for _ in range(2):
        begun = CompactionEntry(summary="S", first_kept_entry_id="")
        with store.create_child(log, [begun], Carryover()) as log:
            pass
        assert prompts(store) == ["fix the bug"] * len(store.list())
    assert log.path is not None
    with SessionLog.open(log.path) as log:
        log.append(entry(user("and now the tests")))
    assert len(store.list()) == 3
    assert set(prompts(store)) == {"fix the bug"}


def test_the_child_of_a_memory_session_is_one_too(store: SessionStore) -> None:
    log = SessionLog.create(None, Header(cwd="/w/here"))
    log.append(entry(user("a")))
    child = store.create_child(
        log, [CompactionEntry(summary="S", first_kept_entry_id="")], Carryover()
    )
    assert child.path is None
    assert child.header.parent_session == log.header.id
    assert not store.root.exists()


def test_a_deleted_session_is_in_the_trash_and_an_open_one_stays(store: SessionStore) -> None:
    path = add(store, "x")
    with SessionLog.open(path), pytest.raises(SessionInUseError):
        store.delete(path)
    data = path.read_bytes()
    moved = store.delete(path)
    assert moved.read_bytes() == data
    assert moved.is_relative_to(store.root / "trash")
    assert store.list() == []
    assert list(path.parent.iterdir()) == []
    path.write_bytes(data)
    assert store.delete(path) != moved


def test_why_a_session_cannot_be_deleted_is_said(store: SessionStore) -> None:
    path = add(store, "x")
    (store.root / "trash").touch()
    with pytest.raises(SessionError, match=r"\.jsonl: could not be moved to the trash: "):
        store.delete(path)
    assert path.exists()


def test_a_folder_is_told_from_a_file_that_is_not_there(store: SessionStore) -> None:
    store.root.mkdir(parents=True)
    with pytest.raises(SessionError, match="is a folder"):
        store.find(str(store.root), HERE)


@pytest.mark.timeout(PATIENCE_S)
def test_what_is_no_regular_file_hides_no_session(store: SessionStore) -> None:
    path = add(store, "here I am")
    make_odd_files(path.parent)
    assert prompts(store, HERE) == ["here I am"]
    newest = store.newest(HERE)
    assert newest is not None
    assert newest.path == path
    store.update_search()
    assert [hit.path for hit in store.search("here")] == [path]
    assert store.find(session_id(path), HERE) == path
    assert store.unreadable(store.list(), HERE) == (
        "folder.jsonl: Is a directory",
        "null.jsonl: it is empty",
        "pipe.jsonl: Is a named pipe, not a regular file",
        "zero.jsonl: Is a device, not a regular file",
    )
    with pytest.raises(SessionError, match=r"pipe\.jsonl is a named pipe, not a session file"):
        store.find(str(path.parent / "pipe.jsonl"), HERE)


def make_odd_files(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "null.jsonl").symlink_to(os.devnull)


def test_a_session_can_be_renamed_without_opening_it(store: SessionStore) -> None:
    path = add(store, "x", name="Old")
    store.rename(path, "New")
    assert [found.name for found in store.list()] == ["New"]


def test_a_name_is_one_line_of_bearable_length(store: SessionStore) -> None:
    path = add(store, "x")
    store.rename(path, "a\x1b[31mb\n\x07c " + "n" * 5_000)
    with SessionLog.open(path, read_only=True) as log:
        assert log.name.startswith("a")
        assert log.name.isprintable()
        assert len(log.name) < 1_000


def test_a_new_name_makes_no_session_the_newest(store: SessionStore) -> None:
    older, newer = add(store, "older", age_s=3_600), add(store, "newer", age_s=60)
    assert [found.path for found in store.list()] == [newer, older]
    store.rename(older, "Tidied up")
    assert [found.path for found in store.list()] == [newer, older]
    assert store.list()[1].name == "Tidied up"


def test_files_that_are_no_sessions_are_told_with_the_reason(store: SessionStore):
    log = store.create(Header(cwd="/w"))
    log.append(entry(user("hello")))
    assert log.path is not None
    (log.path.parent / "bad.jsonl").write_text("nothing\n")
    (log.path.parent / "empty.jsonl").touch()
    (log.path.parent / "folder.jsonl").mkdir()
    told = ("bad.jsonl: it contains no session", "empty.jsonl: it is empty")
    found = store.unreadable(store.list())
    assert found[:2] == told
    assert found[2].startswith("folder.jsonl: ")
    assert store.unreadable(store.list(), Path("/w")) == found
    assert store.unreadable(store.list(), Path("/elsewhere")) == ()


def test_a_session_made_after_the_list_was_read_is_not_reported_as_unreadable(tmp_path: Path):
    store = SessionStore(tmp_path / "sessions")
    listed = store.list()
    with store.create(Header(cwd="/w", id="new")) as log:
        log.append_many([entry(user("hello"))])
    assert store.unreadable(listed) == ()
