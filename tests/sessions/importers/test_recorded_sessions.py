"""What is read from the sessions recorded from Gemini CLI, opencode and Kimi."""

import contextlib
import hashlib
from pathlib import Path

import pytest

from agent_tui import regular_files
from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage, ImageContent, UserMessage
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CompactionEntry, CustomEntry, MessageEntry
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, detect_format, read_foreign
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    calls,
    messages,
    present_path,
    replies,
    results,
    said,
)
from tests.sessions.importers.recordings import FORMAT_OF, LAID_OUT, PROJECT

ALPHA = ("gemini", "gemini_document", "opencode", "opencode_storage", "kimi_code", "kimi_cli")
"""The recordings that begin with the same turn."""

BEFORE = 'def greet(name):\n    return "hello " + name\n\n\nprint(greet("you"))\n'


def laid_out(name: str, home: Path) -> Path:
    home.mkdir(parents=True)
    return LAID_OUT[name](home)


@pytest.fixture
def session(request: pytest.FixtureRequest, tmp_path: Path) -> ForeignSession:
    return read_foreign(LAID_OUT[request.param](tmp_path))


@pytest.mark.parametrize("name", LAID_OUT)
def test_a_recorded_session_is_recognised_and_read_without_loss(name: str, tmp_path: Path) -> None:
    path = LAID_OUT[name](tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert detect_format(path) == FORMAT_OF[name]
    session = read_foreign(path)
    assert session.warnings == ()
    assert session.header.cwd == PROJECT
    assert_branches_sound(session)
    assert read_foreign(path, FORMAT_OF[name]) == session
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("name", [name for name in LAID_OUT if name != "opencode_export"])
def test_a_recorded_session_is_found_where_its_agent_keeps_it(name: str, tmp_path: Path) -> None:
    path = LAID_OUT[name](tmp_path)
    (found,) = foreign_sessions(tmp_path, {}, FORMATS)
    assert (found.path, found.agent, str(found.cwd)) == (path, FORMAT_OF[name], PROJECT)
    assert found.title in ("Please follow plan alpha", "Greeting of the program", "plan long") or (
        name == "kimi_code" and found.title == "plan slow"
    )
    assert found.size_bytes == (None if name == "opencode" else path.stat().st_size)


@pytest.mark.parametrize("session", ALPHA, indirect=True)
def test_the_first_turn_has_each_call_with_its_result(session: ForeignSession) -> None:
    first = replies(session)[0]
    assert [part.type for part in first.content] == ["thinking", "text", "toolCall"]
    assert "I look at the file first." in str(first.content[0])
    assert first.usage.input + first.usage.cache_read > 1_000
    assert first.usage.cache_read == 512
    answered = {result.tool_call_id for result in results(session)}
    assert answered == {call.id for call in calls(session)}
    assert results(session)[0].tool_details.files.read == (f"{PROJECT}/greet.py",)
    details = [result.tool_details for result in results(session)]
    exits = [(d.exit_code, r.is_error) for d, r in zip(details, results(session), strict=True)]
    assert (0, False) in exits
    assert (1, True) in exits
    assert any(r.is_error and "missing.py" in r.text for r in results(session))
    assert "The greeting says good day now." in [reply.text for reply in replies(session)]


@pytest.mark.parametrize("session", [name for name in ALPHA if name != "gemini"], indirect=True)
def test_a_plan_is_read(session: ForeignSession) -> None:
    (plan,) = [t for r in results(session) if (t := r.tool_details.todos)]
    assert [(todo.text, todo.status) for todo in plan] == [
        ("change the greeting", "completed"),
        ("run the tests", "pending"),
    ]


@pytest.mark.parametrize("session", ALPHA, indirect=True)
def test_a_file_that_a_call_made_has_a_diff(session: ForeignSession) -> None:
    made = [r.tool_details for r in results(session) if "notes.txt" in (r.tool_details.diff or "")]
    assert made[0].diff == (
        f"--- {PROJECT}/notes.txt\n+++ {PROJECT}/notes.txt\n@@ -0,0 +1,3 @@\n+one\n+two\n+three\n"
    )


@pytest.mark.parametrize("session", ["gemini", "opencode_storage", "kimi_code"], indirect=True)
def test_the_content_before_an_edit_is_kept(session: ForeignSession) -> None:
    digests = [d for r in results(session) if (d := r.tool_details.digest_before)]
    assert digests[0] == digest_of(BEFORE.encode())
    assert session.contents[digests[0]] == BEFORE.encode()


@pytest.mark.parametrize(
    "session", ["opencode", "opencode_storage", "kimi_code", "kimi_cli"], indirect=True
)
def test_a_cancelled_reply_is_marked(session: ForeignSession) -> None:
    (cut,) = [reply for reply in replies(session) if reply.stop_reason == "aborted"]
    assert cut.text.startswith("word0 word1")


@pytest.mark.parametrize("session", ["gemini", "opencode", "opencode_storage"], indirect=True)
def test_an_attached_image_is_the_users(session: ForeignSession) -> None:
    (shown,) = [
        m
        for m in messages(session)
        if isinstance(m, UserMessage) and not isinstance(m.content, str)
    ]
    (image,) = [part for part in shown.content if isinstance(part, ImageContent)]
    assert image.mime_type == "image/png"
    assert "plan image" in shown.text
    assert "Content from referenced files" not in shown.text
    assert "Called the Read tool" not in shown.text


def test_a_failed_request_has_its_error(tmp_path: Path) -> None:
    session = read_foreign(LAID_OUT["opencode"](tmp_path))
    (failed,) = [reply for reply in replies(session) if reply.stop_reason == "error"]
    assert failed.error_message == "The model is not available"


def test_a_patch_has_the_diff_of_each_file(tmp_path: Path) -> None:
    session = read_foreign(LAID_OUT["opencode"](tmp_path))
    (patch,) = [r for r in results(session) if r.tool_name == "apply_patch"]
    diff = patch.tool_details.diff or ""
    assert diff.count("--- ") == 2
    assert f"+++ {PROJECT}/more.txt\n@@ -0,0 +1,1 @@\n+four\n" in diff


@pytest.mark.parametrize("session", ["gemini", "opencode", "kimi_code"], indirect=True)
def test_what_was_taken_back_is_a_branch(session: ForeignSession) -> None:
    present = present_path(session)
    asked = [e.message.text for e in present if isinstance(e, MessageEntry)]
    assert "Say something" in said(session)
    assert "Say something" not in asked
    assert "Please follow plan gamma" in asked


@pytest.mark.parametrize(
    ("session", "kept"),
    [
        ("gemini_compressed", "Please follow plan gamma"),
        ("opencode", None),
        ("opencode_storage", None),
        ("kimi_code", None),
        ("kimi_cli", ""),
    ],
    indirect=["session"],
)
def test_a_summary_replaces_what_it_says_and_keeps_the_rest(
    session: ForeignSession, kept: str | None
) -> None:
    (compaction,) = [e for e in session.entries if isinstance(e, CompactionEntry)]
    assert compaction.summary
    assert "state_snapshot" not in compaction.summary
    if kept is None:
        assert compaction.first_kept_entry_id == compaction.id
        return
    (first,) = [e for e in session.entries if e.id == compaction.first_kept_entry_id]
    assert isinstance(first, MessageEntry)
    assert first.message.text == kept
    told = build_context(present_path(session)).messages
    assert "It greets the world." in [one.message.text for one in told]
    assert "plan long" not in [one.message.text for one in told]


LINKED = {
    "gemini": (".gemini/tmp/project/.project_root", ".gemini/tmp/project/chats/*/*.jsonl"),
    "opencode_storage": ("message/*/*.json", "part/*/*.json", "session/*/*.json"),
    "kimi_code": ("state.json", "agents/agent-*/wire.jsonl", "file-history/*"),
    "kimi_cli": ("state.json", "context*.jsonl"),
}
"""The files beside a session that are read with it, as patterns below the home folder."""


@pytest.mark.parametrize("links_folders", [False, True], ids=["files", "folders"])
@pytest.mark.parametrize(
    ("name", "pattern"), [(name, one) for name, of in LINKED.items() for one in of]
)
def test_links_beside_a_session_bring_no_other_file_into_it(
    tmp_path: Path, name: str, pattern: str, links_folders: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, private, opened = tmp_path / "home", tmp_path / "private", set[Path]()
    path = LAID_OUT[name](home)
    files = {file for file in home.rglob(pattern) if file.is_file() and file != path}
    folders = {file.parent for file in files} - set(path.parents)
    open_file = regular_files._open

    def note_opened(file: Path, *args: int) -> int:
        descriptor = open_file(file, *args)
        opened.add(file.resolve())
        return descriptor

    monkeypatch.setattr(regular_files, "_open", note_opened)
    read_foreign(path)
    assert opened & files
    private.mkdir()
    for number, linked in enumerate((links_folders and folders) or files):
        linked.symlink_to(linked.rename(private / str(number)))
    opened.clear()
    with contextlib.suppress(SessionError):  # all of its messages are in such files
        read_foreign(path)
    assert path in opened
    assert not [file for file in opened if private in file.parents]


def test_requests_that_kimi_code_keeps_beside_a_summary_are_in_it(tmp_path: Path) -> None:
    session = read_foreign(LAID_OUT["kimi_code"](tmp_path))
    (compaction,) = [e for e in session.entries if isinstance(e, CompactionEntry)]
    _, _, requests = compaction.summary.partition("word for word\n\n")
    assert requests.split("\n\n") == said(session)[:4]
    assert compaction.tokens_before == 22_280


def test_models_are_those_of_the_provider_and_change_where_they_did(tmp_path: Path) -> None:
    session = read_foreign(laid_out("opencode", tmp_path / "o"))
    assert {(reply.provider, reply.model) for reply in replies(session)} == {
        ("loop", "demo-1"),
        ("loop", "gpt-5-demo"),
    }
    kimi = read_foreign(laid_out("kimi_code", tmp_path / "k"))
    assert (kimi.header.provider, kimi.header.model_id) == ("moonshot", "demo-1")
    gemini = read_foreign(laid_out("gemini", tmp_path / "g"))
    assert (gemini.header.provider, gemini.header.model_id) == ("gemini", "gemini-3.8-flash")


def test_what_a_program_adds_is_not_the_users(tmp_path: Path) -> None:
    session = read_foreign(laid_out("kimi_code", tmp_path / "k"))
    assert not [text for text in said(session) if "system-reminder" in text]
    gemini = read_foreign(laid_out("gemini", tmp_path / "g"))
    assert not [text for text in said(gemini) if "session_context" in text]
    (rules,) = [
        e for e in gemini.entries if isinstance(e, CustomEntry) and e.custom_type == "instructions"
    ]
    assert "Workspace Directories" in str(rules.data)


def test_every_reply_of_a_recording_has_its_own_time(tmp_path: Path) -> None:
    for name in LAID_OUT:
        session = read_foreign(laid_out(name, tmp_path / name))
        spoken = [m for m in messages(session) if isinstance(m, (UserMessage, AssistantMessage))]
        times = [message.timestamp for message in spoken]
        assert times[0] > 1_700_000_000_000, name
        assert times[0] < times[-1], name


def test_a_project_of_an_older_gemini_is_known_by_the_hash_of_its_folder(tmp_path: Path) -> None:
    path = LAID_OUT["gemini_document"](tmp_path)
    assert path.parent.parent.name == hashlib.sha256(PROJECT.encode()).hexdigest()
    whole = path.read_text("utf-8")
    path.write_text(whole.replace(path.parent.parent.name, "0" * 64), encoding="utf-8")
    assert read_foreign(path).header.cwd == ""
