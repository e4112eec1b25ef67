from pathlib import Path

import pytest

from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage, ToolResultMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomEntry, Header, MessageEntry, SessionInfoEntry
from agent_tui.sessions.file.disk import DiskFile
from agent_tui.sessions.file.kept_files import KeptFiles, digest_of, folder_of
from agent_tui.sessions.importers.import_session import IMPORTED, import_session
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.normalise import NO_RESULT_TEXT
from agent_tui.sessions.store import SessionStore
from tests.sessions.importers import claude_lines, codex_lines
from tests.support.context_checks import assert_normalised, shown
from tests.support.importers.formats import ALL_FORMATS, read_recorded
from tests.support.session_values import conversation, header, session_bytes
from tests.support.trajectories import trajectories, trajectory

EXAMPLES = Path(__file__).parents[3] / "sessions.example"
HERE = Path("/here")


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions", "none", ALL_FORMATS)


def written(folder: Path, first: Header | None = None) -> Path:
    path = folder / "theirs.jsonl"
    path.write_bytes(session_bytes(conversation(), first))
    return path


def mark_of(log: SessionLog) -> dict[str, object]:
    mark = log.entries[-1]
    assert isinstance(mark, CustomEntry)
    assert mark.custom_type == IMPORTED
    assert isinstance(mark.data, dict)
    return dict(mark.data)


def test_the_new_session_begins_with_the_entries_of_the_other(
    store: SessionStore, tmp_path: Path
) -> None:
    theirs = written(tmp_path, header(provider="p", modelId="m"))
    before = theirs.read_bytes()
    imported = import_session(store, theirs, cwd=HERE)
    assert theirs.read_bytes() == before
    assert (imported.entries, imported.warnings) == (7, ())
    with store.open(imported.id, HERE) as log:
        assert log.warnings == ()
        assert log.path == imported.path
        assert log.entries[:7] == conversation()
        assert (log.header.id, log.header.cwd) == (imported.id, "/w")
        assert (log.header.provider, log.header.model_id) == ("p", "m")
        assert mark_of(log) == {
            "path": str(theirs),
            "format": "pi",
            "sessionId": header().id,
            "entries": 7,
            "entriesOfFile": 7,
        }
        assert imported.path.stat().st_mode & 0o777 == 0o600


def test_every_branch_of_a_tree_comes_along(store: SessionStore) -> None:
    theirs = EXAMPLES / "4-branch.jsonl"
    imported = import_session(store, theirs, cwd=HERE)
    with (
        SessionLog.open(theirs, read_only=True) as old,
        store.open(imported.id, HERE, read_only=True) as new,
    ):
        assert new.entries[:-1] == old.entries
        assert new.path_entries()[:-1] == old.path_entries()
        assert new.header.compaction == old.header.compaction


@pytest.mark.parametrize("count", range(1, 9))
def test_any_number_of_entries_leaves_a_conversation_that_can_be_sent(
    store: SessionStore, tmp_path: Path, count: int
) -> None:
    imported = import_session(store, written(tmp_path), cwd=HERE, until=count)
    assert imported.entries == min(count, 7)
    with store.open(imported.id, HERE, read_only=True) as log:
        assert log.entries[: imported.entries] == conversation()[:count]
        messages = [e.message for e in log.entries if isinstance(e, MessageEntry)]
        asked = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
        answered = [m.tool_call_id for m in messages if isinstance(m, ToolResultMessage)]
        assert answered == asked
        assert_normalised(build_context(log.path_entries()).messages)
    lost = sum(NO_RESULT_TEXT in str(message) for message in messages)
    assert lost == {2: 2, 3: 1}.get(count, 0)


def test_a_name_comes_along(store: SessionStore, tmp_path: Path) -> None:
    theirs = claude_lines.write(
        tmp_path / "c.jsonl",
        {"type": "custom-title", "customTitle": "Mending"},
        claude_lines.said("u1", None, "Hi."),
        claude_lines.replied("a1", "u1", claude_lines.text("Hello.")),
    )
    imported = import_session(store, theirs, cwd=HERE)
    with store.open(imported.id, HERE, read_only=True) as log:
        assert log.name == "Mending"
        assert isinstance(log.entries[-2], SessionInfoEntry)


def test_a_file_without_a_folder_is_of_the_present_one(store: SessionStore, tmp_path: Path) -> None:
    theirs = claude_lines.write(tmp_path / "c.jsonl", claude_lines.said("u", None, "Hi.", cwd=""))
    imported = import_session(store, theirs, cwd=HERE)
    assert [found.cwd for found in store.list(HERE)] == [HERE]
    assert imported.path.parent.parent == store.root


@pytest.mark.parametrize("stamp", ["/../../../out", "..", "", "9999-99-99", "2026\0"])
def test_no_header_leads_out_of_the_folder_of_sessions(
    store: SessionStore, tmp_path: Path, stamp: str
) -> None:
    hostile = header(timestamp=stamp, id="../../../id", cwd="/a/../../..\0")
    imported = import_session(store, written(tmp_path, hostile), cwd=HERE)
    assert imported.path.resolve().is_relative_to(store.root.resolve())
    assert imported.path.parent.parent == store.root
    assert not imported.path.name.startswith("1970")
    assert [found.id for found in store.list()] == [imported.id]


def test_lone_surrogates_are_repaired(store: SessionStore, tmp_path: Path) -> None:
    said = claude_lines.said("u", None, "a\ud800b")
    theirs = claude_lines.write(tmp_path / "c.jsonl", said)
    imported = import_session(store, theirs, cwd=HERE)
    with store.open(imported.id, HERE, read_only=True) as log:
        assert shown(build_context(log.entries)) == ["user: a\ufffdb"]


def test_an_import_that_cannot_be_written_leaves_nothing(
    store: SessionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: DiskFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    theirs = written(tmp_path)
    monkeypatch.setattr(DiskFile, "write", full)
    with pytest.raises(SessionError, match="could not be written: No space left"):
        import_session(store, theirs, cwd=HERE)
    assert not [path for path in store.root.rglob("*") if path.is_file()]


def test_a_file_with_no_entry_is_refused(store: SessionStore, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(session_bytes(()))
    with pytest.raises(SessionError, match="contains no session entries"):
        import_session(store, empty, cwd=HERE)


def test_turns_codex_took_back_are_a_branch_of_the_new_session(
    store: SessionStore, tmp_path: Path
) -> None:
    theirs = codex_lines.write(
        tmp_path / "rollout-1.jsonl",
        *(codex_lines.head(), codex_lines.said("one"), codex_lines.replied("1")),
        *(codex_lines.said("two"), codex_lines.event("thread_rolled_back", num_turns=1)),
    )
    imported = import_session(store, theirs, cwd=HERE)
    with store.open(imported.id, HERE, read_only=True) as log:
        assert shown(build_context(log.path_entries())) == ["user: one", "assistant: 1"]
        assert [e.message.text for e in log.entries if isinstance(e, MessageEntry)] == [
            "one",
            "1",
            "two",
        ]


@pytest.mark.parametrize("name", trajectories())
def test_a_recorded_session_is_the_same_context_after_its_import(
    store: SessionStore, name: str
) -> None:
    path = trajectory(name)
    foreign = read_recorded(path)
    imported = import_session(store, path, cwd=HERE)
    assert imported.entries == len(foreign.entries)
    with store.open(imported.id, HERE, read_only=True) as log:
        assert log.warnings == ()
        assert log.entries[: imported.entries] == foreign.entries
        before = build_context(foreign.entries).messages
        after = build_context(log.path_entries()).messages
        assert [item.message.text for item in after] == [item.message.text for item in before]


def test_what_files_were_before_changes_is_kept_beside_the_new_session(
    store: SessionStore, tmp_path: Path
) -> None:
    lines = [claude_lines.said("u0", None, "Go.")]
    for number, before in enumerate(("one\n", "two\n")):
        call = claude_lines.call(f"t{number}", "Edit", file_path="/w/a.py")
        noted = {"filePath": "/w/a.py", "originalFile": before, "structuredPatch": []}
        above = f"r{number - 1}" if number else "u0"
        lines.append(claude_lines.replied(f"a{number}", above, call))
        lines.append(
            claude_lines.result(f"r{number}", f"a{number}", f"t{number}", toolUseResult=noted)
        )
    theirs = tmp_path / "theirs.jsonl"
    claude_lines.write(theirs, *lines)
    one, two = (digest_of(content) for content in (b"one\n", b"two\n"))
    whole = KeptFiles(folder_of(import_session(store, theirs, cwd=HERE).path))
    assert (whole.content(one), whole.content(two)) == (b"one\n", b"two\n")
    part = KeptFiles(folder_of(import_session(store, theirs, cwd=HERE, until=3).path))
    assert (part.content(one), part.content(two)) == (b"one\n", None)
