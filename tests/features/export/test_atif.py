"""A session as a trajectory in ATIF, by its rules and, where Harbor is installed, its classes."""

import importlib
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_tui.features.export.atif import ATIF, to_atif
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Cost,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    UserMessage,
)
from agent_tui.sessions.entries import CompactionEntry, CustomMessageEntry, Entry, Header
from agent_tui.sessions.export.formats import export_text
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import AgentRun, run_entry
from tests.support.session_values import chain, conversation, entry, header, reply, result, user

EXAMPLES = Path(__file__).parents[3] / "sessions.example"
KEY = "sk-" + "test1234" * 3
USAGE = Usage(input=100, output=7, cache_read=30, cache_write=20, cost=Cost(total=0.25))
AGENT_ONLY = {"model_name", "reasoning_content", "tool_calls", "metrics"}


def trajectory(path: Sequence[Entry], of: Header | None = None, secrets: Sequence[str] = ()):
    written = json.loads(to_atif(of or header(provider="p", model_id="m"), path, secrets))
    check(written)
    return written


def check(written) -> None:
    """The rules of the format that a reader may rely on."""
    assert set(written) <= {
        *("schema_version", "session_id", "agent", "steps", "final_metrics", "extra"),
    }
    assert written["schema_version"] == "ATIF-v1.7"
    assert written["agent"]["name"] == "agent-tui"
    assert [step["step_id"] for step in written["steps"]] == list(
        range(1, len(written["steps"]) + 1)
    )
    for step in written["steps"]:
        assert step["source"] == "agent" or not AGENT_ONLY & set(step)
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        results = step.get("observation", {"results": []})["results"]
        assert {r["source_call_id"] for r in results if "source_call_id" in r} <= calls
    if importlib.util.find_spec("harbor"):
        importlib.import_module("harbor.models.trajectories").Trajectory.model_validate(written)


def test_each_reply_is_a_step_with_its_calls_and_their_results() -> None:
    written = trajectory(conversation())
    steps = written["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "user", "agent"]
    assert written["agent"]["model_name"] == "p/m"
    assert [call["function_name"] for call in steps[1]["tool_calls"]] == ["read", "read"]
    assert steps[1]["observation"]["results"] == [
        {"source_call_id": "c1", "content": "one\u2028line"},
        {"source_call_id": "c2", "content": "zwei: ü"},
    ]
    assert steps[4]["message"] == "Welcome."
    assert written["final_metrics"]["total_steps"] == len(steps)


def test_what_requests_took_is_told_by_step_and_in_sum() -> None:
    spent = reply("one").model_copy(update={"usage": USAGE})
    helper = run_entry(AgentRun(session="h", model="p/m", requests=1, usage=USAGE))
    summed = CompactionEntry(
        summary="s", first_kept_entry_id="1", tokens_before=9, tokens_after=4, usage=USAGE
    )
    written = trajectory(chain(entry(user("go")), entry(spent), summed, helper))
    assert written["steps"][1]["metrics"] == {
        "prompt_tokens": 150,
        "completion_tokens": 7,
        "cached_tokens": 30,
        "cost_usd": 0.25,
        "extra": {"cache_write_tokens": 20},
    }
    compaction = written["steps"][2]
    assert compaction["source"] == "system"
    assert compaction["extra"]["kind"] == "compaction"
    assert (compaction["extra"]["tokens_before"], compaction["extra"]["tokens_after"]) == (9, 4)
    assert written["final_metrics"] == {
        "total_prompt_tokens": 450,
        "total_completion_tokens": 21,
        "total_cached_tokens": 90,
        "total_cost_usd": 0.75,
        "total_steps": 3,
    }


def test_a_model_without_a_provider_goes_by_its_own_name() -> None:
    answer = reply("one").model_copy(update={"provider": ""})
    written = trajectory(chain(entry(answer)), header(model_id="m"))
    assert (written["agent"]["model_name"], written["steps"][0]["model_name"]) == ("m", "m")


def test_what_was_copied_from_another_session_is_marked_and_not_counted_again() -> None:
    spent = reply("one").model_copy(update={"usage": USAGE})
    later = entry(spent).model_copy(update={"timestamp": "2026-03-02T10:00:00.000Z"})
    child = header(parent_session="/s/parent.jsonl", timestamp="2026-03-02T09:30:00.000Z")
    written = trajectory(chain(entry(user("go")), entry(spent), later), child)
    copied, own = written["steps"][1:]
    assert copied["is_copied_context"] is True
    assert "metrics" not in copied
    assert own["metrics"]["cost_usd"] == written["final_metrics"]["total_cost_usd"]
    assert written["extra"]["parent_session"] == "/s/parent.jsonl"


def test_thinking_errors_images_commands_and_notes_have_their_places() -> None:
    image = ImageContent(data="QQ==", mime_type="image/png")
    drawing = ImageContent(data="QQ==", mime_type="image/svg+xml")
    failed = AssistantMessage(stop_reason="error", error_message="no route", timestamp=1)
    path = chain(
        entry(UserMessage(content=(TextContent(text="see"), image, drawing), timestamp=1)),
        entry(AssistantMessage(content=(ThinkingContent(thinking="hm"),), timestamp=1)),
        entry(failed),
        entry(result("c9", "lost").model_copy(update={"is_error": True})),
        entry(BashExecutionMessage(command="ls", output="a.py")),
        CustomMessageEntry(content="shown"),
    )
    seen, thought, error, lost, command, note = trajectory(path)["steps"]
    assert seen["message"] == [
        {"type": "text", "text": "see"},
        {
            "type": "image",
            "source": {"media_type": "image/png", "path": "data:image/png;base64,QQ=="},
        },
        {"type": "text", "text": "[image, image/svg+xml]"},
    ]
    assert thought["reasoning_content"] == "hm"
    assert error["extra"] == {"stop_reason": "error", "error": "no route"}
    assert lost["observation"]["results"] == [{"content": "lost", "extra": {"is_error": True}}]
    assert (command["message"], command["observation"]["results"]) == (
        "$ ls",
        [{"content": "a.py"}],
    )
    assert (note["source"], note["message"]) == ("system", "Note\n\nshown")


def test_an_id_that_comes_again_means_the_newest_call() -> None:
    path = chain(
        *(entry(m) for m in (reply("", ("c", "read")), result("c", "one"))),
        *(entry(m) for m in (reply("", ("c", "read")), result("c", "two"))),
    )
    first, second = trajectory(path)["steps"]
    assert first["observation"]["results"][0]["content"] == "one"
    assert second["observation"]["results"][0]["content"] == "two"


def test_secrets_are_taken_out_wherever_they_stand() -> None:
    call = ToolCall(id="c", name="bash", arguments={"env": [{KEY: "hunter22"}], "command": KEY})
    path = chain(entry(user(KEY)), entry(AssistantMessage(content=(call,), timestamp=1)))
    text = to_atif(header(), path, ["hunter22"])
    assert KEY not in text
    assert "hunter22" not in text
    assert text.count("[key removed]") == 4


def test_a_session_without_words_is_a_trajectory_too() -> None:
    (only,) = trajectory(())["steps"]
    assert only["source"] == "system"


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_recorded_sessions_keep_the_rules(example: Path) -> None:
    with SessionLog.open(example, read_only=True) as log:
        check(json.loads(export_text(log, ATIF)))
