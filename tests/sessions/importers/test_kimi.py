import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.features.importers.diffs import replacement
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.entries import CompactionEntry, CustomEntry, MessageEntry
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, read_foreign
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    present_path,
    replies,
    results,
    said,
)
from tests.sessions.importers.recordings import (
    PROJECT,
    kimi_cli,
    kimi_code,
    lines_of,
    put,
    write_lines,
)


def said_line(text: str, kind: str = "user") -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content, "origin": {"kind": kind}}
    return {"type": "context.append_message", "agentId": "main", "message": message}


def event(kind: str, **facts: Any) -> dict[str, Any]:
    told = {"type": kind, "stepUuid": "s1", **facts}
    return {"type": "context.append_loop_event", "agentId": "main", "event": told}


def read(tmp_path: Path, *lines: dict[str, Any]) -> ForeignSession:
    session = read_foreign(write_lines(tmp_path / "wire.jsonl", list(lines)), "kimi")
    assert_branches_sound(session)
    return session


def test_a_failed_turn_has_its_error(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        said_line("Hi."),
        event("step.begin", uuid="s1"),
        event("step.end", uuid="s1", finishReason="error"),
        {"type": "turn.ended", "reason": "failed", "error": {"message": "400 no model"}},
    )
    (failed,) = replies(session)
    assert (failed.stop_reason, failed.error_message) == ("error", "400 no model")


def test_a_reply_of_many_parts_is_put_together_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    copy = AssistantMessage.model_copy

    def note_copy(message: AssistantMessage, *, update: dict[str, Any]) -> AssistantMessage:
        copied.append(len(update.get("content", ())))
        return copy(message, update=update)

    monkeypatch.setattr(AssistantMessage, "model_copy", note_copy)
    part = event("content.part", part={"type": "text", "text": "x"})
    session = read(tmp_path, said_line("Hi."), *[part] * 2_000)
    (reply,) = replies(session)
    assert len(reply.content) == 2_000
    assert sum(copied) == 2_000


def test_a_cleared_conversation_begins_anew(tmp_path: Path) -> None:
    session = read(tmp_path, said_line("One."), {"type": "context.clear"}, said_line("Two."))
    assert said(session) == ["One.", "Two."]
    now = [e.message.text for e in present_path(session) if isinstance(e, MessageEntry)]
    assert now == ["Two."]


def test_unknown_lines_of_the_context_are_kept_and_said(tmp_path: Path) -> None:
    session = read(
        tmp_path, said_line("Hi."), {"type": "context.hologram", "weight": 3}, event("tool.dream")
    )
    assert session.warnings == (
        "line 2: unknown kind 'context.hologram'; kept as a note",
        "line 3: an event of unknown kind 'tool.dream'; left out",
    )
    assert "weight" in str([e.data for e in session.entries if isinstance(e, CustomEntry)])


@pytest.mark.parametrize("key", ["../../../secret", "file-history/../x@v1", "/etc/passwd", 7])
def test_a_copy_that_is_a_path_reads_no_file(tmp_path: Path, key: object) -> None:
    path = kimi_code(tmp_path)
    (path.parent.parent / "secret").write_text("secret")
    lines = lines_of(path)
    for line in lines:
        if line["type"] == "file_history.tracked" and line["entry"]["key"]:
            line["entry"]["key"] = key
    session = read_foreign(write_lines(path, lines))
    assert session.contents == {}


def test_what_a_subagent_of_kimi_code_changed_is_in_the_result_of_its_call(tmp_path: Path) -> None:
    path = kimi_code(tmp_path)
    lines = lines_of(path)
    spawned = next(n for n, line in enumerate(lines) if line["type"] == "subagent.spawned")
    copy = next(line for line in lines if line["type"] == "file_history.tracked")
    made = {**copy, "path": "extra.txt", "entry": {"key": None, "version": 1}}
    write_lines(path, [*lines[: spawned + 1], made, copy, *lines[spawned + 1 :]])
    agent = path.parent.parent / "agent-0/wire.jsonl"
    calls = (
        ("Write", {"path": f"{PROJECT}/extra.txt", "content": "one\n"}),
        ("Edit", {"path": f"{PROJECT}/extra.txt", "old_string": "one", "new_string": "two"}),
        ("Edit", {"path": f"{PROJECT}/greet.py", "old_string": "name):", "new_string": "who):"}),
    )
    events = [
        line
        for number, (name, given) in enumerate(calls)
        for line in (
            event("tool.call", toolCallId=f"w{number}", name=name, args=given),
            event("tool.result", toolCallId=f"w{number}", result={"output": "done"}),
        )
    ]
    write_lines(agent, [*lines_of(agent), *events])
    (told,) = [r for r in results(read_foreign(path)) if r.tool_name == "Agent"]
    extra = f"--- {PROJECT}/extra.txt\n+++ {PROJECT}/extra.txt\n"
    greet = f"--- {PROJECT}/greet.py\n+++ {PROJECT}/greet.py\n"
    assert told.tool_details.diff == (
        f"{extra}@@ -0,0 +1,1 @@\n+one\n"
        f"{extra}@@ -1,1 +1,1 @@\n-one\n+two\n"
        f"{greet}@@ -1,1 +1,1 @@\n-def greet(name):\n+def greet(who):\n"
    )


def test_what_a_subagent_of_kimi_cli_changed_is_in_the_result_of_its_call(tmp_path: Path) -> None:
    path = kimi_cli(tmp_path)
    lines = lines_of(path)
    made = next(line for line in lines if "notes.txt" in json.dumps(line) and "diff" in str(line))
    at = next(n for n, line in enumerate(lines) if "SubagentEvent" in json.dumps(line))
    told = {**lines[at]["message"]["payload"], "event": made["message"]}
    wrapped = {"timestamp": 1.0, "message": {"type": "SubagentEvent", "payload": told}}
    session = read_foreign(write_lines(path, [*lines[: at + 1], wrapped, *lines[at + 1 :]]))
    (result,) = [r for r in results(session) if r.tool_name == "Agent"]
    assert "+++ /home/someone/project/notes.txt" in (result.tool_details.diff or "")


def test_a_copy_is_of_the_file_whose_path_is_the_longest_that_fits(tmp_path: Path) -> None:
    path = tmp_path / "agents/main/wire.jsonl"
    keys = {name: f"file-history/{digit * 64}@v1" for name, digit in (("a.py", "a"), ("sub", "b"))}
    put(path.parent / keys["a.py"], "of the folder\n")
    put(path.parent / keys["sub"], "of sub\n")
    copies = [("sub/a.py", keys["sub"]), ("a.py", keys["a.py"])]
    tracked = [
        {"type": "file_history.tracked", "path": name, "entry": {"key": key}}
        for name, key in copies
    ]
    calls = [
        line
        for number, name in enumerate(("sub/a.py", "a.py"))
        for line in (
            event("tool.call", toolCallId=f"c{number}", name="Write", args={"path": f"/p/{name}"}),
            event("tool.result", toolCallId=f"c{number}", result={"output": "done"}),
        )
    ]
    session = read_foreign(write_lines(path, [said_line("Hi."), *tracked, *calls]))
    before = [session.contents[r.tool_details.digest_before] for r in results(session)]
    assert before == [b"of sub\n", b"of the folder\n"]


@pytest.mark.parametrize(
    ("text", "is_command"),
    [
        ("/home/me/app.py crashes, why?", False),
        ("/tmp", True),
        (" /model fast", True),
        ("/skill:review-code now", True),
        ("//help", False),
        ("/größe", False),
        ("/ is full", False),
    ],
)
def test_a_prompt_that_begins_with_a_path_is_no_command(
    tmp_path: Path, text: str, is_command: bool
) -> None:
    told = (
        ("TurnBegin", {"user_input": text}),
        ("StepBegin", {"n": 1}),
        ("ContentPart", {"type": "text", "text": "Because."}),
        ("TurnEnd", {}),
    )
    lines = [{"timestamp": 1.0, "message": {"type": k, "payload": given}} for k, given in told]
    head = {"type": "metadata", "protocol_version": "1"}
    session = read_foreign(write_lines(tmp_path / "s/wire.jsonl", [head, *lines]))
    assert said(session) == ([] if is_command else [text])


def test_a_summary_that_is_not_beside_the_session_is_said_to_be_missing(tmp_path: Path) -> None:
    path = kimi_cli(tmp_path)
    path.with_name("context.jsonl").unlink()
    session = read_foreign(path)
    assert not [e for e in session.entries if isinstance(e, CompactionEntry)]
    (warning,) = session.warnings
    assert "a compaction without its summary; its messages are kept" in warning


def test_a_session_of_kimi_cli_alone_knows_no_folder(tmp_path: Path) -> None:
    path = kimi_cli(tmp_path)
    (tmp_path / ".kimi/kimi.json").write_text("[" * 100_000)
    assert read_foreign(path).header.cwd == ""
    (found,) = foreign_sessions(tmp_path, {}, FORMATS)
    assert str(found.cwd) == "."


def test_sessions_are_found_where_the_environment_says(tmp_path: Path) -> None:
    kimi_code(tmp_path / "one")
    kimi_cli(tmp_path / "two")
    variables = {
        "KIMI_CODE_HOME": str(tmp_path / "one/.kimi-code"),
        "KIMI_SHARE_DIR": str(tmp_path / "two/.kimi"),
    }
    assert foreign_sessions(tmp_path, {}, FORMATS) == []
    assert len(foreign_sessions(tmp_path, variables, FORMATS)) == 2


@pytest.mark.parametrize(
    ("before", "after", "hunk"),
    [
        ("a\nb\nc\n", "a\nx\nc\n", "@@ -2,1 +2,1 @@\n-b\n+x\n"),
        ("a\nc\n", "a\nb\nc\n", "@@ -1,0 +2,1 @@\n+b\n"),
        ("a\nb\nc\n", "a\nc\n", "@@ -2,1 +1,0 @@\n-b\n"),
        ("a", "b\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n"),
        ("a\x0bb\u2028c\n", "a\x0bb\u2028d\n", "@@ -1,1 +1,1 @@\n-a\x0bb\u2028c\n+a\x0bb\u2028d\n"),
    ],
)
def test_a_replacement_is_one_hunk(before: str, after: str, hunk: str) -> None:
    assert replacement("f", before, after) == f"--- f\n+++ f\n{hunk}"
    assert replacement("f", before, before) == ""
