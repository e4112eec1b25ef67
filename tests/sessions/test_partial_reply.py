"""The reply that a killed program was streaming is stored at the next opening, once."""

import stat
from pathlib import Path
from threading import Event, Thread

import pytest

from agent_tui.messages import AssistantMessage, TextContent
from agent_tui.sessions import partial_reply
from agent_tui.sessions.entries import CustomEntry, Header, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.partial_reply import PartialReply, store_partial_reply
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry, reply, user

PARTIAL = AssistantMessage(content=(TextContent(text="Half of"),), stop_reason="aborted")


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session in which a reply was being streamed when its program was killed."""
    path = tmp_path / "s.jsonl"
    with SessionLog.write(path, Header(), [entry(reply("Hello.")), entry(user("go"))]) as log:
        assert log.leaf_id is not None
        PartialReply(path, log.leaf_id).write(PARTIAL, log.leaf_id)
    return path


def reopened(path: Path) -> list[str]:
    """The replies after the next opening, from the first entry to the leaf."""
    with SessionLog.open(path) as log:
        store_partial_reply(log)
        path_entries = log.path_entries()
    assert not path.with_suffix(".reply").exists()
    said = [one.message for one in path_entries if isinstance(one, MessageEntry)]
    return [message.text for message in said if isinstance(message, AssistantMessage)]


def test_it_is_stored_once_as_an_interrupted_reply(session: Path):
    assert stat.S_IMODE(session.with_suffix(".reply").stat().st_mode) == 0o600
    left = session.with_suffix(".reply").read_bytes()
    assert reopened(session) == ["Hello.", "Half of"]
    newest = SessionLog.open(session, read_only=True).path_entries()[-1]
    assert isinstance(newest, MessageEntry)
    assert newest.message == PARTIAL
    session.with_suffix(".reply").write_bytes(left)  # killed before the file was removed
    assert reopened(session) == ["Hello.", "Half of"]
    assert reopened(session) == ["Hello.", "Half of"], "no file is no reply"


def test_a_reply_that_was_stored_is_not_stored_again(session: Path):
    with SessionLog.open(session) as log:
        log.append(entry(reply("Half of it, and the rest.")))
    assert reopened(session) == ["Hello.", "Half of it, and the rest."]


def test_other_entries_that_came_meanwhile_are_no_reply(session: Path):
    with SessionLog.open(session) as log:
        later = log.append(CustomEntry(custom_type="x"))
    assert reopened(session) == ["Hello.", "Half of"]
    assert later.id in {one.id for one in SessionLog.open(session, read_only=True).path_entries()}


def test_a_reply_that_cannot_be_stored_is_stored_at_the_next_opening(session: Path):
    with SessionLog.open(session, read_only=True) as log:
        store_partial_reply(log)
    assert reopened(session) == ["Hello.", "Half of"]


@pytest.mark.parametrize(("newest", "parent"), [("gone", True), (None, False)])
def test_a_reply_without_its_place_is_not_stored(tmp_path: Path, newest: str | None, parent: bool):
    path = tmp_path / "s.jsonl"
    with SessionLog.write(path, Header(), [entry(user("go"))]) as log:
        assert log.leaf_id is not None
        kept = PartialReply(path, newest or log.leaf_id)
        kept.write(PARTIAL, log.leaf_id if parent else "gone")
    assert reopened(path) == []


def test_a_reply_on_another_branch_than_the_newest_entry_keeps_its_place(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    with SessionLog.write(path, Header(), [entry(user("go"))]) as log:
        asked = log.leaf_id
        cut = log.append(entry(reply("Half")))
        PartialReply(path, cut.id).write(PARTIAL, asked)
    assert reopened(path) == ["Half of"]


@pytest.mark.parametrize("content", [b"", b"e1\n{}", b"\xff\n\xff", b"no such id\n"])
def test_anything_else_in_the_file_is_removed(session: Path, content: bytes):
    whole = session.with_suffix(".reply").read_bytes().partition(b"\n")[2]
    session.with_suffix(".reply").write_bytes(content + (whole if b"such" in content else b""))
    assert reopened(session) == ["Hello."]


def test_nothing_is_written_after_the_end_of_the_reply(session: Path):
    kept = PartialReply(session, "e1")
    kept.remove()
    kept.write(PARTIAL, "e1")
    assert not session.with_suffix(".reply").exists()
    kept.remove()


def test_a_reply_that_ends_while_it_is_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    replace, begun, go_on = partial_reply.replace_private_file, Event(), Event()

    def replace_slowly(path: Path, content: bytes) -> None:
        begun.set()
        go_on.wait()
        replace(path, content)

    kept = PartialReply(tmp_path / "s.jsonl", "e1")
    monkeypatch.setattr(partial_reply, "replace_private_file", replace_slowly)
    writes, removes = Thread(target=kept.write, args=(PARTIAL, "e1")), Thread(target=kept.remove)
    writes.start()
    begun.wait()
    removes.start()
    removes.join(0.05)  # it ends at once only if it does not wait for its turn
    go_on.set()
    writes.join()
    removes.join()
    assert list(tmp_path.iterdir()) == []


def test_a_reply_whose_file_cannot_be_written_is_no_failure(tmp_path: Path):
    (tmp_path / "file").touch()
    kept = PartialReply(tmp_path / "file" / "s.jsonl", "e1")
    kept.write(PARTIAL, "e1")
    kept.remove()


def test_a_session_without_a_file_has_no_partial_reply():
    log = SessionLog.create(None, Header())
    store_partial_reply(log)
    assert not log.entries


def test_it_goes_to_the_trash_with_its_session(session: Path):
    moved = SessionStore(session.parent).delete(session)
    assert not session.with_suffix(".reply").exists()
    assert moved.with_suffix(".reply").is_file()
