"""The reply that a killed program was streaming is stored at the next opening, once."""

import stat
from pathlib import Path

import pytest

from agent_tui.messages import AssistantMessage, TextContent
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


def test_a_reply_that_was_stored_is_not_stored_again(session: Path):
    with SessionLog.open(session) as log:
        log.append(entry(reply("Half of it, and the rest.")))
    assert reopened(session) == ["Hello.", "Half of it, and the rest."]


def test_other_entries_that_came_meanwhile_are_no_reply(session: Path):
    with SessionLog.open(session) as log:
        log.append(CustomEntry(custom_type="x"))
    assert reopened(session) == ["Hello.", "Half of"]


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


def test_it_goes_to_the_trash_with_its_session(session: Path):
    moved = SessionStore(session.parent).delete(session)
    assert not session.with_suffix(".reply").exists()
    assert moved.with_suffix(".reply").is_file()
