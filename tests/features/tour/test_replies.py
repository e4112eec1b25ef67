"""The tour can be walked to its end, and says that it is scripted."""

import json
import subprocess
from pathlib import Path

from agent_tui.features.tour.replies import DEMO_MODEL, demo_reply, prepare_demo_folder
from agent_tui.features.tour.scripted import call
from agent_tui.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.base import (
    ModelRequest,
)
from tests.support.rows import each_row

HEADINGS = [
    "## Goal",
    "## Constraints & Preferences",
    "## Progress",
    "### Done",
    "### In Progress",
    "### Blocked",
    "## Key Decisions",
    "## Next Steps",
    "## Critical Context",
]


def request(*messages: Message, purpose: str = "turn") -> ModelRequest:
    """A request to the tour's model."""
    kind = "summary" if purpose == "summary" else "turn"
    return ModelRequest(DEMO_MODEL, "", messages or (UserMessage(content="hi"),), purpose=kind)


def test_the_tour_fixes_the_bug_with_calls_that_really_work(tmp_path: Path) -> None:
    prepare_demo_folder(tmp_path)
    messages: list[Message] = [UserMessage(content="hello")]
    names: list[str] = []
    plans: list[int] = []
    while (reply := demo_reply(request(*messages))).tool_calls:
        messages.append(AssistantMessage(content=(TextContent(text=reply.text), *reply.tool_calls)))
        for tool_call in reply.tool_calls:
            if tool_call.name == "todo":
                plans.append(json.dumps(tool_call.arguments).count("completed"))
            else:
                names.append(tool_call.name)
            messages.append(carried_out(tool_call, tmp_path))
        assert len(names) < 20
    assert names == ["read", "bash", "edit", "bash"]
    assert plans == [0, 1, 2, 3, 4]
    assert "The test passes" in reply.text
    assert "OK: 41 greetings" in messages[-3].model_dump_json()


def test_the_tour_says_plainly_that_it_is_scripted() -> None:
    text = demo_reply(request()).text
    assert "scripted" in text
    assert "no model is being called" in text


def test_a_refused_step_ends_the_tour_honestly() -> None:
    messages = tour_up_to_the_command("The person did not allow this.", is_error=True)
    reply = demo_reply(request(*messages))
    assert reply.tool_calls == ()
    assert "did not go as scripted" in reply.text
    assert "The person did not allow this." in reply.text


@each_row(
    ("typed", "expected"),
    [
        ("how does /compact work", "/compact"),
        ("where are my sessions", "/resume"),
        ("which model is this", "/model"),
        ("help", "Type `/`"),
        ("add a feature to my parser", "would now"),
        ("", "would now"),
    ],
)
def test_after_the_tour_answers_fit_what_was_typed_and_stay_scripted(
    typed: str, expected: str
) -> None:
    over = AssistantMessage(content=(TextContent(text="The test passes."),))
    messages = (UserMessage(content="hi"), over, UserMessage(content=typed))
    text = demo_reply(request(*messages)).text
    assert expected in text
    assert "scripted" in text


def test_after_a_compaction_the_tour_does_not_begin_again() -> None:
    summary = UserMessage(content="Earlier history was compacted.\n<summary>\n…\n</summary>")
    assert demo_reply(request(summary, UserMessage(content="help"))).tool_calls == ()


def test_a_summary_has_the_headings_in_order_and_what_was_asked() -> None:
    prompt = (
        "<conversation>\n[User]: fix the greeting\n\n[Assistant]: ok\n\n"
        "[Tool result (bash)]: FAIL: greet('') …\n\n[User]: and explain\n</conversation>\n\n"
        "<focus>\nthe tests\n</focus>"
    )
    text = demo_reply(request(UserMessage(content=prompt), purpose="summary")).text
    assert [line for line in text.splitlines() if line.startswith("#")] == HEADINGS
    assert "## Goal\nfix the greeting" in text
    assert "- [x] Ran the test of greet.py and saw it fail" in text
    assert "- Asked for: and explain" in text
    assert "- Focus: the tests" in text
    assert "- [ ] " in text


def test_an_updated_summary_keeps_the_goal_and_what_was_done() -> None:
    before = "## Goal\nfix the greeting\n\n## Progress\n\n### Done\n- [x] Read it"
    prompt = (
        "<conversation>\n[User]: help\n</conversation>\n\n"
        f"<previous-summary>\n{before}\n</previous-summary>"
    )
    text = demo_reply(request(UserMessage(content=prompt), purpose="summary")).text
    assert "## Goal\nfix the greeting" in text
    assert "- [x] Read it" in text


def carried_out(tool_call: ToolCall, folder: Path) -> ToolResultMessage:
    """The call done by hand, as the tools would."""
    arguments = tool_call.arguments
    text, failed = "ok", False
    match tool_call.name:
        case "read":
            text = (folder / str(arguments["path"])).read_text(encoding="utf-8")
        case "bash":
            ran = subprocess.run(
                ["sh", "-c", str(arguments["command"])],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            text, failed = ran.stdout + ran.stderr, ran.returncode != 0
        case "edit":
            path = folder / str(arguments["path"])
            changes = json.loads(json.dumps(arguments["edits"]))
            content = path.read_text(encoding="utf-8")
            assert content.count(changes[0]["old"]) == 1
            path.write_text(content.replace(changes[0]["old"], changes[0]["new"]), encoding="utf-8")
        case _:
            assert tool_call.name == "todo"
    return ToolResultMessage(
        tool_call_id=tool_call.id,
        tool_name=tool_call.name,
        content=(TextContent(text=text),),
        is_error=failed,
    )


def tour_up_to_the_command(output: str, *, is_error: bool) -> list[Message]:
    """The tour as far as the result of its first command."""
    results = [("todo", "ok", False), ("read", 'return f"Hello, {name}!"', False)]
    results.append(("bash", output, is_error))
    messages: list[Message] = [UserMessage(content="hello")]
    for number, (name, text, failed) in enumerate(results, start=1):
        messages += [
            AssistantMessage(content=(call(f"tour_{number}", name),), stop_reason="toolUse"),
            ToolResultMessage(
                tool_call_id=f"tour_{number}",
                tool_name=name,
                content=(TextContent(text=text),),
                is_error=failed,
            ),
        ]
    return messages
