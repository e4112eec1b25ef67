import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.messages import FileTouches
from agent_tui.sessions.importers.builder import ForeignSession
from tests.sessions.importers.entry_checks import (
    assert_sound,
    calls,
    notes,
    replies,
    results,
    said,
)
from tests.support.importers.swe_agent import read_swe_agent
from tests.support.trajectories import trajectory

TASK = {"role": "user", "message_type": "observation", "content": "Solve this."}


def asked(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "Let me.",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def answered(content: str, call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_ids": [call_id]}


def read(tmp_path: Path, *history: dict[str, Any], **others: Any) -> ForeignSession:
    file = tmp_path / "run.traj"
    file.write_text(json.dumps({"history": history, **others}))
    session = read_swe_agent(file)
    assert_sound(session)
    return session


def test_calls_used_twice_under_one_id_are_answered_each(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        TASK,
        asked("bash", command="ls"),
        answered("a.py"),
        asked("bash", command="pwd"),
        answered("/w"),
    )
    assert [c.arguments["command"] for c in calls(session)] == ["ls", "pwd"]
    assert [r.text for r in results(session)] == ["a.py", "/w"]


def test_commands_written_as_text_are_calls(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        TASK,
        {
            "role": "assistant",
            "content": "Look.\n```\nls\n```",
            "thought": "Look.",
            "action": "ls\n",
        },
        {"role": "user", "content": "a.py"},
    )
    assert [c.arguments for c in calls(session)] == [{"command": "ls"}]
    assert [r.text for r in replies(session)] == ["Look."]
    assert [r.text for r in results(session)] == ["a.py"]
    assert said(session) == ["Solve this."]


def test_a_demonstration_is_not_what_the_person_said(tmp_path: Path) -> None:
    demo = {"role": "user", "content": "Always do as here.", "is_demo": True}
    session = read(tmp_path, {"role": "system", "content": "S"}, demo, TASK)
    assert said(session) == ["Solve this."]
    assert notes(session) == ["Always do as here."]


def test_files_of_the_window_editor_are_known(tmp_path: Path) -> None:
    shown = "File updated.\r\n[File: /w/a.py (9 lines total)]\r\n1:x"
    refused = (
        "Your proposed edit has introduced new syntax error(s).\n[File: /w/a.py (9 lines total)]"
    )
    session = read(
        tmp_path,
        TASK,
        asked("create", filename="/w/new.py"),
        answered("[File: /w/new.py (1 lines total)]"),
        asked("edit", start_line=1, replacement_text="x"),
        answered(shown),
        asked("open", path="/w/b.py"),
        answered("[File: /w/b.py (3 lines total)]"),
        asked("edit", start_line=1, replacement_text="("),
        answered(refused),
    )
    created, edited, opened, failed = results(session)
    assert created.tool_details.files == FileTouches(written=("/w/new.py",))
    assert edited.tool_details.files == FileTouches(edited=("/w/a.py",))
    assert opened.tool_details.files == FileTouches(read=("/w/b.py",))
    assert (failed.is_error, failed.tool_details.files) == (True, FileTouches())


@pytest.mark.parametrize("as_text", [True, False])
def test_model_and_folder_are_the_files(tmp_path: Path, as_text: bool) -> None:
    replay: Any = {"agent": {"model": {"name": "anthropic/claude-sonnet-4-5"}}}
    session = read(
        tmp_path,
        TASK,
        replay_config=json.dumps(replay) if as_text else replay,
        trajectory=[{"state": {"working_dir": "/testbed"}}],
    )
    assert session.header.cwd == "/testbed"
    assert (session.header.provider, session.header.model_id) == ("anthropic", "claude-sonnet-4-5")


def test_a_result_nobody_asked_for_is_left_out_with_a_warning(tmp_path: Path) -> None:
    session = read(tmp_path, TASK, answered("what?"))
    assert results(session) == []
    assert session.warnings == ("message 2: a result without a call; left out",)


def test_a_file_without_a_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="has no history"):
        read(tmp_path)


def test_a_real_run_knows_what_it_wrote() -> None:
    session = read_swe_agent(trajectory("swe-agent/marshmallow-1867-fc.traj"))
    files = [r.tool_details.files for r in results(session)]
    assert [p for one in files for p in one.written] == ["reproduce.py"]
    assert {p.removeprefix("/testbed/") for one in files for p in one.edited} == {
        "reproduce.py",
        "src/marshmallow/fields.py",
    }
