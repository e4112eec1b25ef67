from pathlib import Path

import pytest

from agent_tui.agent.conversation import without_secrets
from agent_tui.features.tour.scripted import Reply, call
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.keys import key_values
from tests.support.runtime import Stage, collect, lines_of

KEY = "canary-0123456789"

MESSAGES = [
    UserMessage(content=f"use {KEY}", typed=(f"use {KEY}",), timestamp=1),
    AssistantMessage(
        content=(
            TextContent(text=f"so {KEY}", signature="signed"),
            ThinkingContent(thinking=f"hm {KEY}", signature="signed"),
            ToolCall(
                id="c",
                name="bash",
                arguments={KEY: [{"command": f"echo {KEY}"}]},
                signature="signed",
            ),
        ),
        timestamp=1,
    ),
    ToolResultMessage(
        tool_call_id="c",
        tool_name="bash",
        content=(TextContent(text=KEY, signature="signed"),),
        details={"diff": f"+{KEY}"},
        timestamp=1,
    ),
    BashExecutionMessage(command=f"echo {KEY}", output=KEY, timestamp=1),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.role)
def test_a_key_is_in_no_field_and_the_rest_is_as_it_was(message):
    masked = without_secrets(message, (KEY,))
    assert KEY not in masked.model_dump_json()
    assert type(masked) is type(message)
    assert (
        masked.model_dump_json()
        .replace("[key removed]", KEY)
        .replace('"signature":null', '"signature":"signed"')
        == message.model_dump_json()
    )


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.role)
def test_a_message_without_a_key_is_the_same_object(message):
    assert without_secrets(message, ("another",)) is message
    assert without_secrets(message, ()) is message


def test_only_changed_thinking_loses_its_signature():
    kept = ThinkingContent(thinking="fine", signature="signed")
    changed = ThinkingContent(thinking=KEY, signature="signed")
    masked = without_secrets(AssistantMessage(content=(kept, changed), timestamp=1), (KEY,))
    signatures = [p.signature for p in masked.content if isinstance(p, ThinkingContent)]
    assert signatures == ["signed", None]


def test_stand_ins_for_a_key_are_none():
    environ = {"OPENAI_API_KEY": "not-needed", "GROQ_API_KEY": KEY, "MINE": "x" * 20 + "1"}
    assert key_values(environ) == (KEY,)
    assert set(key_values(environ, ("MINE",))) == {KEY, "x" * 20 + "1"}


async def test_what_a_tool_prints_reaches_neither_the_session_nor_the_next_request(tmp_path: Path):
    stage = Stage(tmp_path)
    (stage.workspace / "notes").write_text(f"the key is {KEY}\n" * 30_000)
    seen: list[str] = []

    def script(request):
        seen.append(repr(request.messages))
        calls = (call("c1", "bash", command="cat notes"), call("c2", "read", path="notes"))
        return Reply(f"It is {KEY}.") if len(seen) > 1 else Reply(tool_calls=calls)

    runtime = stage.runtime(script, secrets=(KEY,))
    await collect(runtime.submit("look"))
    await collect(runtime.run_bash("head -1 notes", in_context=True))
    assert len(seen) == 2
    assert KEY not in seen[1]
    assert "the key is [key removed]" in seen[1]
    assert KEY.encode() not in lines_of(runtime)
    (whole_output,) = (tmp_path / "outputs").iterdir()
    assert whole_output.read_text() == "the key is [key removed]\n" * 30_000
