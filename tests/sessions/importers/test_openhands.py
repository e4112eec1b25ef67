import json
from pathlib import Path
from typing import Any

import pytest

from agent_tui.errors import SessionError
from agent_tui.messages import FileTouches, ImageContent, TextContent, UserMessage
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
from tests.support.importers.openhands import read_openhands

TASK = {"id": 0, "source": "user", "action": "message", "args": {"content": "Make a game."}}


def asked(number: int, *, of: str, name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    """One action of the response `of`, which holds the call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    response = {
        "id": of,
        "model": "anthropic/claude-3-5-sonnet",
        "choices": [
            {
                "message": {
                    "content": "I will.",
                    "tool_calls": [{"id": call_id, "type": "function", "function": function}],
                }
            }
        ],
        "usage": {"prompt_tokens": 50, "completion_tokens": 5},
    }
    metadata = {"function_name": name, "tool_call_id": call_id, "model_response": response}
    return {
        "id": number,
        "source": "agent",
        "action": "edit",
        "args": {"path": "/workspace/unused.py"},
        "tool_call_metadata": metadata,
        "timestamp": "2025-01-27T22:45:13",
    }


def answered(number: int, cause: int, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": number, "cause": cause, "observation": "edit", "content": content, **fields}


def read(tmp_path: Path, *events: Any, name: str = "history.json") -> ForeignSession:
    file = tmp_path / name
    file.write_text(json.dumps(list(events)))
    session = read_openhands(file)
    assert_sound(session)
    return session


def test_calls_of_one_response_are_one_reply(tmp_path: Path) -> None:
    view = {"command": "view", "path": "/workspace/a.py"}
    create = {"command": "create", "path": "/workspace/b.py", "file_text": "x"}
    session = read(
        tmp_path,
        TASK,
        asked(1, of="r1", name="str_replace_editor", call_id="c1", **view),
        answered(2, 1, "1 x"),
        asked(3, of="r1", name="str_replace_editor", call_id="c2", **create),
        answered(4, 3, "File created successfully"),
    )
    (reply,) = replies(session)
    assert reply.text == "I will."
    assert [c.arguments for c in reply.tool_calls] == [view, create]
    assert (reply.provider, reply.model) == ("anthropic", "claude-3-5-sonnet")
    assert reply.usage.context_tokens == 55
    assert [r.tool_details.files for r in results(session)] == [
        FileTouches(read=("/workspace/a.py",)),
        FileTouches(written=("/workspace/b.py",)),
    ]


def test_old_events_without_ids_are_answered_in_order(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        {"action": "message", "content": "Make a game."},
        {"action": "run", "command": "ls", "thought": "Look.", "keep_prompt": True},
        {"observation": "run", "command": "ls", "exit_code": 2, "content": "ls: no"},
        {
            "action": "run_ipython",
            "code": "open_file('/w/a.py')\nedit_file_by_replace('/w/b.py',\n'x')",
        },
        {"observation": "run_ipython", "content": "shown"},
        {"action": "message", "content": "Shall I go on?"},
        {"action": "message", "content": "Yes, please."},
        {"action": "finish", "thought": "All done.", "outputs": {}},
    )
    assert said(session) == ["Make a game.", "Yes, please."]
    assert [r.text for r in replies(session)] == ["Look.", "", "Shall I go on?", "All done."]
    assert [(c.name, list(c.arguments)) for c in calls(session)] == [
        ("run", ["command"]),
        ("run_ipython", ["code"]),
    ]
    failed, shown = results(session)
    assert (failed.is_error, failed.tool_details.exit_code) == (True, 2)
    assert shown.tool_details.files == FileTouches(read=("/w/a.py",), edited=("/w/b.py",))


def test_pairs_of_action_and_observation_are_read_too(tmp_path: Path) -> None:
    pair = [
        {"action": "run", "args": {"command": "ls"}},
        {"observation": "run", "content": "a.py", "extras": {"metadata": {"exit_code": 0}}},
    ]
    session = read(tmp_path, [TASK, {}], pair)
    assert [r.text for r in results(session)] == ["a.py"]
    assert results(session)[0].tool_details.exit_code == 0


def test_what_the_model_never_saw_is_left_out(tmp_path: Path) -> None:
    session = read(
        tmp_path,
        {"action": "system", "source": "agent", "args": {"content": "You are OpenHands."}},
        TASK,
        {"action": "recall", "source": "user", "args": {"query": "game"}},
        {"observation": "agent_state_changed", "content": "", "extras": {}},
        {"action": "condensation", "source": "agent", "args": {"forgotten_event_ids": [1]}},
        {"observation": "error", "cause": 99, "content": "Something broke."},
    )
    assert len(messages(session)) == 1
    assert notes(session) == ["Something broke."]
    assert [warning[:9] for warning in session.warnings] == ["event 5: ", "event 6: "]


def test_an_error_in_answer_to_a_call_is_a_failed_result(tmp_path: Path) -> None:
    edit = {"command": "str_replace", "path": "/workspace/a.py"}
    session = read(
        tmp_path,
        TASK,
        asked(1, of="r1", name="str_replace_editor", call_id="c1", **edit),
        answered(2, 1, "ERROR:\nNo replacement was performed."),
    )
    (result,) = results(session)
    assert (result.is_error, result.tool_details.files) == (True, FileTouches())


def test_images_the_person_sent_come_along(tmp_path: Path) -> None:
    urls = ["data:image/png;base64,QQ==", "https://example.org/a.png"]
    session = read(tmp_path, {**TASK, "args": {"content": "Look.", "image_urls": urls}})
    (asked_for,) = messages(session)
    assert isinstance(asked_for, UserMessage)
    assert asked_for.content == (
        TextContent(text="Look."),
        ImageContent(data="QQ==", mime_type="image/png"),
        TextContent(text="[image: https://example.org/a.png]"),
    )


def test_of_several_histories_the_first_is_read_and_the_others_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / "output.jsonl"
    first = {"history": [TASK]}
    second = {"history": [{**TASK, "args": {"content": "Another."}}]}
    file.write_text("".join(f"{json.dumps(one)}\n" for one in ({}, first, second, second)))
    session = read_openhands(file)
    assert said(session) == ["Make a game."]
    assert session.warnings == ("2 more histories of the file were left out",)


def test_a_history_without_a_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="contains no messages"):
        read(tmp_path, {"observation": "agent_state_changed"})
