import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import CompactionEntry, CustomEntry
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, read_foreign
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    messages,
    present_path,
    replies,
    results,
    said,
)
from tests.sessions.importers.recordings import gemini, lines_of, put, write_lines

HEAD = {"sessionId": "s", "projectHash": "h", "kind": "main"}


def user(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "type": "user", "content": [{"text": text}]}


def model(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "gemini", "content": text, **more}


def replaced(*told: dict[str, Any]) -> dict[str, Any]:
    return {"$set": {"messages": list(told)}}


def read(tmp_path: Path, *lines: dict[str, Any]) -> ForeignSession:
    session = read_foreign(write_lines(tmp_path / "a.jsonl", [HEAD, *lines]))
    assert_branches_sound(session)
    return session


def said_now(session: ForeignSession) -> list[str]:
    return [m.text for e in present_path(session) if (m := getattr(e, "message", None))]


def test_a_message_that_is_written_again_is_read_as_it_was_last(tmp_path: Path) -> None:
    call = {"id": "c", "name": "x", "args": {"a": 1}, "status": "success"}
    part = {"functionResponse": {"id": "c", "name": "x", "response": {"output": "done"}}}
    session = read(
        tmp_path,
        user("1", "Hi."),
        model("2", "Look."),
        model("2", "Look.", toolCalls=[{**call, "result": [part]}]),
        {"id": "3", "type": "user", "content": [part]},
    )
    assert [m.role for m in messages(session)] == ["user", "assistant", "toolResult"]
    assert results(session)[0].text == "done"


def test_a_result_that_only_the_next_message_has_is_read_from_it(tmp_path: Path) -> None:
    call = {"id": "c", "name": "x", "args": {}, "status": "success"}
    part = {"functionResponse": {"id": "c", "response": {"error": "no"}}}
    session = read(tmp_path, model("2", "", toolCalls=[call]), {**user("3", ""), "content": [part]})
    assert [(r.text, r.is_error) for r in results(session)] == [("no", True)]


def test_a_step_back_keeps_the_branch(tmp_path: Path) -> None:
    told = (user("1", "One."), model("2", "A."), user("3", "Two."), model("4", "B."))
    session = read(tmp_path, *told, {"$rewindTo": "3"}, user("5", "Three."))
    assert said_now(session) == ["One.", "A.", "Three."]
    assert said(session) == ["One.", "Two.", "Three."]
    whole = read(tmp_path, *told, {"$rewindTo": "unknown"}, user("5", "Three."))
    assert said_now(whole) == ["Three."]


def test_a_replaced_conversation_goes_on_where_it_says(tmp_path: Path) -> None:
    one, a, two = user("1", "One."), model("2", "A."), user("3", "Two.")
    session = read(tmp_path, one, a, two, replaced(one, a), user("4", "Three."))
    assert said_now(session) == ["One.", "A.", "Three."]
    session = read(tmp_path, one, a, replaced(one, a, two), user("4", "Three."))
    assert said_now(session) == ["One.", "A.", "Two.", "Three."]
    session = read(tmp_path, one, a, replaced(), user("4", "Three."))
    assert said_now(session) == ["Three."]


def test_a_summary_whose_kept_messages_are_unknown_keeps_their_copies(tmp_path: Path) -> None:
    summary = user("s", "<state_snapshot>\nAll of it.\n</state_snapshot>")
    tail = ({"id": "t", "type": "user", "content": [{"text": "Other."}]}, model("u", "B."))
    session = read(tmp_path, user("1", "One."), model("2", "A."), replaced(summary, *tail))
    (compaction,) = [e for e in session.entries if isinstance(e, CompactionEntry)]
    assert compaction.summary == "All of it."
    assert compaction.first_kept_entry_id == compaction.id
    assert said_now(session)[-2:] == ["Other.", "B."]


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("<state_snapshot>y</state_snapshot>", "y"),
        (" \n<state_snapshot>\n y z\n</state_snapshot>\n", "y z"),
        ("<state_snapshot>never closed ", "never closed"),
        ("<state_snapshot>y" + " " * 300_000 + "x", "y" + " " * 300_000 + "x"),
        ("<state_snapshot> </state_snapshot>", None),
        ("see <state_snapshot>y</state_snapshot>", None),
    ],
    ids=["short", "spaced", "open", "long", "empty", "quoted"],
)
def test_a_summary_is_what_is_between_the_tags(
    tmp_path: Path, text: str, summary: str | None
) -> None:
    session = read(tmp_path, user("1", "One."), replaced(user("s", text)))
    found = [e.summary for e in session.entries if isinstance(e, CompactionEntry)]
    assert found == ([] if summary is None else [summary])


@pytest.mark.parametrize(("depth", "is_found"), [(900, True), (2_100, False)])
def test_paths_that_no_system_has_are_not_searched_for_the_project(
    tmp_path: Path, depth: int, is_found: bool
) -> None:
    folder = "/a" * depth
    call = {"id": "c", "name": "read_file", "args": {"file_path": f"{folder}/b.py"}}
    project = hashlib.sha256(folder.encode()).hexdigest()
    told = {**HEAD, "projectHash": project, "messages": [model("1", "Hi.", toolCalls=[call])]}
    put(tmp_path / ".gemini/tmp/p/chats/session-1.json", json.dumps(told))
    (found,) = foreign_sessions(tmp_path, {}, FORMATS)
    assert str(found.cwd) == (folder if is_found else ".")


def test_unknown_parts_and_lines_are_said(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        {**user("1", ""), "content": [{"hologram": 1}, {"text": "Hi."}]},
        {"id": "2", "type": "ghost", "content": "boo"},
        {"what": "ever"},
    )
    assert len(session.warnings) == 3
    assert "line 2: a part of unknown kind 'hologram'; left out" in session.warnings
    assert "boo" in str([e.data for e in session.entries if isinstance(e, CustomEntry)])


def test_what_a_subagent_changed_is_in_the_result_of_its_call(tmp_path: Path) -> None:
    path = gemini(tmp_path)
    (agent,) = (path.parent / "00000000-0000-4000-8000-000000000001").iterdir()
    write = next(
        c for line in lines_of(path) for c in line.get("toolCalls", ()) if c["name"] == "write_file"
    )
    write_lines(agent, [*lines_of(agent), model("w", "", toolCalls=[write])])
    (told,) = [r for r in results(read_foreign(path)) if r.tool_name == "invoke_agent"]
    assert "+++ /home/someone/project/notes.txt" in (told.tool_details.diff or "")


@pytest.mark.parametrize("agent", ["../../secret", "..", "/etc/passwd", "a\0b", "x" * 300])
def test_a_subagent_that_is_a_path_reads_no_file(tmp_path: Path, agent: str) -> None:
    path = gemini(tmp_path)
    lines = lines_of(path)
    for line in lines:
        for call in line.get("toolCalls", ()):
            if "agentId" in call:
                call["agentId"] = agent
    session = read_foreign(write_lines(path, lines))
    (told,) = [r for r in results(session) if r.tool_name == "invoke_agent"]
    assert told.tool_details.diff is None


def test_a_document_without_messages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(json.dumps({**HEAD, "messages": []}, indent=1))
    with pytest.raises(SessionError, match="contains no Gemini CLI messages"):
        read_foreign(path)


def test_thoughts_are_not_text(tmp_path: Path) -> None:
    parts = [{"text": "Hm.", "thought": True}, {"text": "Yes."}]
    session = read(tmp_path, user("1", "Hi."), {"id": "2", "type": "gemini", "content": parts})
    assert replies(session)[0].text == "Yes."
    assert [part.type for part in replies(session)[0].content] == ["thinking", "text"]
