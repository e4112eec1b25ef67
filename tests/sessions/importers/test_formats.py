import contextlib
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_tui.errors import SessionError
from agent_tui.features.importers import kimi
from agent_tui.messages import UserMessage
from agent_tui.sessions.entries import CompactionEntry, CustomMessageEntry, MessageEntry
from agent_tui.sessions.file import chunks
from agent_tui.sessions.importers import fields as foreign_input
from agent_tui.sessions.importers.builder import ForeignSession
from agent_tui.sessions.importers.discovery import foreign_sessions
from agent_tui.sessions.importers.formats import FORMATS, detect_format, read_foreign
from agent_tui.sessions.log import SessionLog
from tests.sessions.importers import claude_lines
from tests.sessions.importers.entry_checks import (
    assert_branches_sound,
    assert_sound,
    calls,
    replies,
    results,
)
from tests.sessions.importers.odd_json import odd_objects
from tests.sessions.importers.raw_counts import COUNTED, Counts
from tests.sessions.importers.recordings import (
    LAID_OUT,
    kimi_code,
    opencode_export,
    opencode_storage,
)
from tests.support.importers.formats import ALL_FORMATS, read_recorded
from tests.support.rows import each_row
from tests.support.trajectories import trajectories, trajectory

FOLDER_OF: dict[str, str] = {
    "claude-code": "claude",
    "pi": "pi",
    "mini-swe-agent": "mini-swe-agent",
    "swe-agent": "swe-agent",
    "openhands": "openhands",
}
NAMES = "pi, claude, codex, gemini, opencode, kimi"
LINES = ("pi", "claude", "codex", "gemini", "kimi")
"""The formats whose files are lines."""

HUGE = 10**400
"""More than a float, or a time, can be."""

RECORDED = [name for name in trajectories() if name.partition("/")[0] in FOLDER_OF]
"""Not those of other folders, which may have branches and mixed messages: `raw_counts` has none."""
ALL_NAMES = [known.name for known in ALL_FORMATS]


def counted(session: ForeignSession) -> Counts:
    entries = session.entries
    users = [
        e for e in entries if isinstance(e, MessageEntry) and isinstance(e.message, UserMessage)
    ]
    return Counts(
        spoken=len(users) + sum(isinstance(e, CustomMessageEntry) for e in entries),
        replies=len(replies(session)),
        calls=len(calls(session)),
        results=len(results(session)),
        compactions=sum(isinstance(e, CompactionEntry) for e in entries),
    )


@pytest.mark.skipif(not RECORDED, reason="there are no recorded sessions")
@each_row("name", RECORDED)
def test_a_recorded_session_has_what_its_file_holds(name: str) -> None:
    path = trajectory(name)
    written_by = FOLDER_OF[name.partition("/")[0]]
    assert detect_format(path, ALL_FORMATS) == written_by
    session = read_recorded(path)
    assert counted(session) == COUNTED[written_by](path)
    assert_sound(session)
    assert read_recorded(path, written_by) == session


def test_a_session_of_ours_is_read_as_the_log_reads_it_with_every_branch() -> None:
    example = Path(__file__).parents[3] / "sessions.example" / "4-branch.jsonl"
    session = read_recorded(example)
    with SessionLog.open(example, read_only=True) as log:
        assert session.entries == log.entries
        assert session.header == log.header
        assert len(log.entries) > len(log.path_entries())
    assert session.warnings == ()


@pytest.mark.parametrize(
    ("content", "written_by"),
    [
        ('[{"role": "user", "content": "Hi."}]', "mini-swe-agent"),
        ('{"info": {}, "messages": [{"role": "user", "content": "Hi."}]}', "mini-swe-agent"),
        ('{"history": [{"role": "user", "content": "Hi."}]}', "swe-agent"),
        ('[{"action": "message", "args": {"content": "Hi."}}]', "openhands"),
        ('{"history": [[{"action": "message", "content": "Hi."}, {}]]}\n', "openhands"),
        ('{"type": "session", "version": 3}\n', "pi"),
        ('{"type": "session_meta", "payload": {"id": "a"}}\n', "codex"),
        ('{"id": "a", "timestamp": "", "instructions": null}\n', "codex"),
        ('{"record_type": "state"}\n{"type": "message", "role": "user"}\n', "codex"),
        ('{"type": "summary"}\n{"type": "user", "uuid": "u", "message": {}}\n', "claude"),
        ('garbage\n{"type": "message", "message": {"role": "user"}}\n', "pi"),
    ],
)
def test_the_content_tells_the_format(tmp_path: Path, content: str, written_by: str) -> None:
    file = tmp_path / "session"
    file.write_text(content)
    assert detect_format(file, ALL_FORMATS) == written_by
    file.write_text(json.dumps(json.loads(content), indent=2) if content[0] in "[" else content)
    assert detect_format(file, ALL_FORMATS) == written_by


@pytest.mark.parametrize(
    "content",
    [
        "plain text\n",
        "{}",
        '{"type": "response_item"}\n',
        "[]",
        "1",
        '{"messages": [{"role": "user", "content": "Hi."}]}',
        '[{"action": "message", "args": {"content": "Hi."}}]',
    ],
)
def test_other_files_are_refused_with_the_formats_there_are(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text(content)
    with pytest.raises(SessionError, match=rf"notes\.jsonl is not a session.*{NAMES}\."):
        read_foreign(file)
    with pytest.raises(SessionError, match=rf"Unknown format openhands.*{NAMES}\."):
        read_foreign(file, "openhands")


def test_empty_files_folders_and_missing_files_are_named(tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.touch()
    with pytest.raises(SessionError, match=r"empty\.jsonl is empty"):
        read_recorded(file)
    with pytest.raises(SessionError, match="is a folder"):
        read_recorded(tmp_path)
    with pytest.raises(SessionError, match="does not exist"):
        read_recorded(tmp_path / "gone")


@pytest.mark.parametrize("written_by", ALL_NAMES)
def test_bytes_that_are_no_session_are_an_error_in_every_format(
    tmp_path: Path, written_by: str
) -> None:
    file = tmp_path / "noise"
    file.write_bytes(random.Random(7).randbytes(20_000))
    with pytest.raises(SessionError, match="noise"):
        read_recorded(file, written_by)
    file.write_text("[" * 100_000)
    with pytest.raises(SessionError, match="noise"):
        read_recorded(file, written_by)


def test_a_line_that_is_too_long_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_input, "MAX_DOCUMENT_BYTES", 1_000)
    monkeypatch.setattr(chunks, "MAX_LINE_BYTES", 1_000)
    file = claude_lines.write(
        tmp_path / "long.jsonl",
        claude_lines.said("u1", None, "Hi."),
        claude_lines.said("u2", "u1", "x" * 5_000),
        claude_lines.replied("a1", "u2", claude_lines.text("Hello.")),
    )
    session = read_recorded(file, "claude")
    assert [reply.text for reply in replies(session)] == ["Hello."]
    assert session.warnings[0].startswith("line 2: too long to read; left out (5,")
    file.write_text(json.dumps([{"role": "user", "content": "x" * 5_000}]))
    with pytest.raises(SessionError, match="larger than 1,000 bytes"):
        read_recorded(file, "mini-swe-agent")


def test_warnings_do_not_fill_the_memory(tmp_path: Path) -> None:
    lines = ["{broken"] * 5_000
    file = claude_lines.write(tmp_path / "c.jsonl", claude_lines.said("u1", None, "Hi."), *lines)
    warnings = read_recorded(file, "claude").warnings
    assert len(warnings) == 201
    assert warnings[-1] == "4,800 more problems"


@pytest.mark.parametrize("name", [name for name in LAID_OUT if name != "opencode"])
def test_values_that_no_program_writes_are_read_as_nothing(name: str, tmp_path: Path) -> None:
    path = LAID_OUT[name](tmp_path)
    number = r'("(?:time|created|updated|start|end|input|timestamp)": ?)[\d.]+'
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        text = re.sub(number, rf"\g<1>{HUGE}", file.read_text("utf-8"))
        file.write_text(text, encoding="utf-8")
    assert replies(read_foreign(path))
    assert name == "opencode_export" or len(foreign_sessions(tmp_path, {}, FORMATS)) == 1


def test_kinds_that_are_no_texts_are_kept_as_notes(tmp_path: Path) -> None:
    path = opencode_export(tmp_path)
    whole = json.loads(path.read_bytes())
    for message in whole["messages"][:2]:
        message["parts"].append({"type": ["x"]})
    path.write_text(json.dumps(whole))
    session = read_foreign(path)
    assert len([one for one in session.warnings if "unknown kind" in one]) == 2


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_values_that_are_nested_too_deeply_are_said(tmp_path: Path, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    path = kimi_code(tmp_path)
    call = f'"event": {{"type": "tool.call", "args": {deep}}}'
    path.write_text(f'{path.read_text()}{{"type": "context.append_loop_event", {call}}}\n')
    (warning,) = read_foreign(path).warnings
    assert "nested too deeply; left out" in warning
    path = opencode_export(tmp_path)
    part = f'{{"type": "tool", "state": {{"input": {deep}}}}}, '
    path.write_text(path.read_text().replace('"parts": [', f'"parts": [{part}', 1))
    with pytest.raises(SessionError, match="nested too deeply"):
        read_foreign(path, "opencode")


def test_a_fault_in_a_reader_is_said_of_the_file_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise KeyError("lighthouse\nkeeper")

    path = kimi_code(tmp_path)
    opencode_storage(tmp_path)
    monkeypatch.setattr(kimi, "facts_beside", fail)
    with pytest.raises(SessionError, match="the format kimi failed: KeyError: ") as caught:
        read_foreign(path)
    assert "agent-tui" in caught.value.hint
    assert "opencode" in [file.agent for file in foreign_sessions(tmp_path, {}, FORMATS)]


@pytest.mark.thorough
@pytest.mark.parametrize("written_by", ALL_NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_any_json_gives_a_sound_session_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, written_by: str, data: st.DataObject
) -> None:
    pieces = data.draw(st.lists(odd_objects, min_size=1, max_size=8))
    file = tmp_path_factory.getbasetemp() / f"{written_by}.any"
    match written_by:
        case _ if written_by in LINES:
            heads = [{"sessionId": "s", "projectHash": "h"}] if written_by == "gemini" else []
            lines = [*heads, *_in_envelopes(data, pieces)]
            text = "".join(f"{json.dumps(line)}\n" for line in lines)
        case "opencode":
            items = [{"info": piece, "parts": pieces} for piece in pieces]
            info = {"id": "ses_1", "directory": "/w", "revert": pieces[0]}
            text = json.dumps({"info": info, "messages": items})
        case "mini-swe-agent":
            text = json.dumps({"messages": pieces, "info": pieces[0]})
        case "swe-agent":
            text = json.dumps({**pieces[0], "history": pieces})
        case _:
            text = json.dumps(pieces)
    file.write_text(text)
    with contextlib.suppress(SessionError):
        detect_format(file, ALL_FORMATS)
    try:
        session = read_recorded(file, written_by)
    except SessionError as error:
        if error.__cause__ is not None and "the format" in error.message:  # a fault in a reader
            raise
        return
    assert read_recorded(file, written_by) == session
    assert_branches_sound(session)
    if written_by not in (*LINES, "opencode"):
        assert_sound(session)


_ENVELOPES = (
    lambda piece: piece,
    lambda piece: {"$set": {"messages": [piece, {**piece, "id": "b"}]}},
    lambda piece: {**piece, "id": "a", "type": "gemini", "toolCalls": [piece]},
    lambda piece: {"type": "context.append_loop_event", "agentId": "main", "event": piece},
    lambda piece: {"type": "context.append_message", "message": piece},
    lambda piece: {**piece, "type": "context.apply_compaction", "agentId": "main"},
    lambda piece: {"timestamp": 1.5, "message": {"type": "ToolResult", "payload": piece}},
    lambda piece: {"timestamp": 1.5, "message": {"type": "ToolCall", "payload": piece}},
    lambda piece: {"timestamp": 1.5, "message": {"type": "TurnBegin", "payload": piece}},
)
"""The forms of lines that have the content of a message inside."""


def _in_envelopes(data: st.DataObject, pieces: Sequence[Any]) -> list[dict[str, Any]]:
    return [data.draw(st.sampled_from(_ENVELOPES))(piece) for piece in pieces]


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_conversation_is_read_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = _conversation()
    kept = [line for line in whole if data.draw(st.integers(0, 9))]
    shuffled = data.draw(st.permutations(kept)) if data.draw(st.booleans()) else kept
    file = claude_lines.write(tmp_path_factory.getbasetemp() / "damaged.jsonl", *shuffled)
    cut = data.draw(st.integers(0, 400))
    file.write_bytes(file.read_bytes()[: -cut or None])
    try:
        session = read_recorded(file, "claude")
    except SessionError:
        return
    assert_branches_sound(session)


def _conversation() -> list[dict[str, object]]:
    lines = [claude_lines.said("u0", None, "Begin.")]
    for number in range(6):
        parent, call_id = lines[-1]["uuid"], f"t{number}"
        lines.append(claude_lines.replied(f"a{number}", parent, claude_lines.call(call_id)))
        lines.append(claude_lines.result(f"r{number}", f"a{number}", call_id))
        if number == 3:
            lines.append(claude_lines.boundary("b", f"r{number}"))
            lines.append(claude_lines.said("s", "b", "Summary.", isCompactSummary=True))
    return lines


def test_a_file_of_an_unknown_kind_is_refused_with_the_kind_of_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"n": 1}\n{"type": "hologram\\u001b", "n": 2}\n', "utf-8")
    with pytest.raises(SessionError, match="imported: it has lines of an unknown kind, 'hologram"):
        detect_format(file)
