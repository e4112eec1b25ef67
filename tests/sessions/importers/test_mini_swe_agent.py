import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.sessions.entries import CustomEntry
from agent_tui.sessions.importers.builder import ForeignSession
from tests.sessions.importers.entry_checks import (
    assert_sound,
    calls,
    messages,
    notes,
    replies,
    results,
    said,
)
from tests.support.importers.mini_swe_agent import read_mini_swe_agent

SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
TASK = {"role": "user", "content": "Fix the bug. Never touch the tests."}


def asked(command: str, label: str = "bash", thought: str = "THOUGHT: look") -> dict[str, Any]:
    return {"role": "assistant", "content": f"{thought}\n\n```{label}\n{command}\n```"}


def told(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def read(tmp_path: Path, *told_messages: dict[str, Any], **info: Any) -> ForeignSession:
    file = tmp_path / "run.traj.json"
    file.write_text(json.dumps({"info": info, "messages": told_messages}))
    session = read_mini_swe_agent(file)
    assert_sound(session)
    return session


def test_a_fenced_command_is_a_call_and_what_follows_its_result(tmp_path: Path) -> None:
    output = "<returncode>0</returncode>\n<output>\na.py\n</output>"
    session = read(
        tmp_path,
        SYSTEM,
        TASK,
        asked("ls -la\npwd"),
        told(output),
        asked("cat a.py", label="mswea_bash_command", thought=""),
        told("<returncode>1</returncode>\n<output>\ncat: no\n</output>"),
    )
    assert said(session) == [TASK["content"]]
    assert [(c.name, c.arguments) for c in calls(session)] == [
        ("bash", {"command": "ls -la\npwd"}),
        ("bash", {"command": "cat a.py"}),
    ]
    assert [reply.text for reply in replies(session)] == ["THOUGHT: look", ""]
    first, second = results(session)
    assert (first.text, first.is_error, first.tool_details.exit_code) == (output, False, 0)
    assert (second.is_error, second.tool_details.exit_code) == (True, 1)


def test_a_reply_with_two_commands_runs_none_and_the_complaint_is_not_the_persons(
    tmp_path: Path,
) -> None:
    two = {"role": "assistant", "content": "```bash\nls\n```\nand\n```bash\npwd\n```"}
    session = read(tmp_path, TASK, two, told("Please always provide EXACTLY ONE action."))
    assert calls(session) == []
    assert replies(session)[0].text == two["content"]
    assert said(session) == [TASK["content"]]
    assert notes(session) == ["Please always provide EXACTLY ONE action."]


def test_a_command_that_timed_out_failed(tmp_path: Path) -> None:
    answer = "The last command <command>sleep 99</command> timed out and has been killed."
    session = read(tmp_path, TASK, asked("sleep 99"), told(answer))
    assert [r.is_error for r in results(session)] == [True]


def test_calls_of_the_interface_are_taken_as_they_are(tmp_path: Path) -> None:
    asks = [
        {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "c2", "function": {"name": "bash", "arguments": "{broken"}},
    ]
    session = read(
        tmp_path,
        TASK,
        {"role": "assistant", "content": None, "tool_calls": asks},
        {"role": "tool", "tool_call_id": "c2", "content": "second"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "first"}]},
        {"role": "exit", "content": "Submitted"},
    )
    assert [c.arguments for c in calls(session)] == [{"command": "ls"}, {"raw": "{broken"}]
    assert [(r.tool_call_id, r.text) for r in results(session)] == [
        ("c2", "second"),
        ("c1", "first"),
    ]


def test_model_folder_times_and_usage_are_the_files(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    reply = asked("ls") | {"extra": {"response": {"created": 1_763_511_695, "usage": usage}}}
    session = read(
        tmp_path,
        TASK,
        reply,
        config={
            "model": {"model_name": "google/gemini-3-pro-preview"},
            "environment": {"cwd": "/testbed"},
        },
    )
    assert session.header.cwd == "/testbed"
    assert (session.header.provider, session.header.model_id) == ("google", "gemini-3-pro-preview")
    used = replies(session)[0].usage
    assert (used.input, used.cache_read, used.output, used.context_tokens) == (40, 60, 7, 107)
    assert messages(session)[1].timestamp == 1_763_511_695_000


def test_the_system_prompt_is_kept_outside_the_context(tmp_path: Path) -> None:
    session = read(tmp_path, SYSTEM, TASK)
    first = session.entries[0]
    assert isinstance(first, CustomEntry)
    assert (first.custom_type, first.data) == ("system_prompt", {"text": SYSTEM["content"]})


def test_messages_alone_are_a_run_too(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps([SYSTEM, TASK, {"role": "ghost"}, 7]))
    session = read_mini_swe_agent(file)
    assert said(session) == [TASK["content"]]
    assert [warning[:24] for warning in session.warnings] == [
        "message 3: unknown role ",
        "message 4: unknown role ",
    ]


def test_the_same_bytes_give_the_same_id_and_others_another(tmp_path: Path) -> None:
    one, same, other = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    one.write_text(json.dumps([TASK]))
    same.write_text(json.dumps([TASK]))
    other.write_text(json.dumps([TASK, TASK]))
    assert read_mini_swe_agent(one) == read_mini_swe_agent(same)
    assert read_mini_swe_agent(one).header.id != read_mini_swe_agent(other).header.id


def test_a_file_that_ends_too_early_is_an_error_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text('[{"role": "user", "content": "Fix')
    with pytest.raises(SessionError, match=r"cut\.json: not valid JSON"):
        read_mini_swe_agent(file)
