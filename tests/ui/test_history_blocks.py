from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from agent_tui.features.tour.scripted import Reply
from agent_tui.features.tour.scripted import call as tool_call
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    TurnFacts,
    UserMessage,
)
from agent_tui.sessions.entries import (
    CompactionEntry,
    CustomMessageEntry,
    MessageEntry,
    ModelChangeEntry,
    UnknownEntry,
)
from agent_tui.ui.chat.history_blocks import bash_block, blocks_of, call_title, user_block
from agent_tui.ui.transcript.blocks import (
    AssistantBlock,
    BashBlock,
    NoticeBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    TurnBlock,
    UserBlock,
)
from tests.support.runtime import Stage
from tests.ui.app_support import running_app


def test_a_turn_with_a_tool_comes_back_as_it_was_seen():
    entries = (
        MessageEntry(message=UserMessage(content="fix it")),
        MessageEntry(
            message=AssistantMessage(
                content=(
                    ThinkingContent(thinking="Look first."),
                    TextContent(text="I look."),
                    ToolCall(id="c1", name="edit", arguments={"path": "a.py"}),
                ),
                stop_reason="toolUse",
            )
        ),
        MessageEntry(
            message=ToolResultMessage(
                tool_call_id="c1",
                tool_name="edit",
                content=(TextContent(text="Edited."),),
                details={"summary": "+1 -0", "diff": "@@ -1 +1 @@\n+x"},
            )
        ),
        ModelChangeEntry(provider="x", model_id="y"),
        MessageEntry(message=AssistantMessage(content=(TextContent(text="Done."),))),
    )
    assert blocks_of(entries) == [
        UserBlock("fix it"),
        ThinkingBlock("Look first."),
        AssistantBlock("I look."),
        ToolBlock("c1", "edit", "a.py", "ok", "Edited.", "@@ -1 +1 @@\n+x", "+1 -0"),
        AssistantBlock("Done."),
    ]


def test_a_call_without_a_result_was_cancelled():
    call = ToolCall(id="c1", name="bash", arguments={"command": "sleep 9"})
    message = AssistantMessage(content=(call,), stop_reason="aborted")
    (block,) = blocks_of((MessageEntry(message=message),))
    assert block == ToolBlock("c1", "bash", "sleep 9", "cancelled", command="sleep 9")


@pytest.mark.parametrize(
    ("details", "status"),
    [
        (ToolDetails(ending="declined"), "denied"),
        (ToolDetails(ending="cancelled"), "cancelled"),
        (ToolDetails(exit_code=1, printed_lines=0), "nothing"),
        (ToolDetails(exit_code=1, printed_lines=1), "error"),
        (ToolDetails(exit_code=2, printed_lines=0), "error"),
    ],
)
def test_how_a_call_ended_is_told_by_its_mark(details: ToolDetails, status: str):
    call = ToolCall(id="c1", name="bash", arguments={"command": "grep x a.py"})
    result = ToolResultMessage(
        tool_call_id="c1",
        tool_name="bash",
        is_error=True,
        details=details.model_dump(mode="json", exclude_defaults=True),
    )
    said = AssistantMessage(content=(call,))
    (block,) = blocks_of((MessageEntry(message=said), MessageEntry(message=result)))
    assert isinstance(block, ToolBlock)
    assert block.status == status


def test_an_interrupted_reply_is_marked_at_its_end():
    message = AssistantMessage(
        content=(TextContent(text="One."), TextContent(text="Tw")),
        stop_reason="aborted",
        error_message="interrupted",
    )
    assert blocks_of((MessageEntry(message=message),)) == [
        AssistantBlock("One."),
        AssistantBlock("Tw", mark="interrupted", note="interrupted"),
    ]


def test_an_error_before_the_first_word_is_shown():
    message = AssistantMessage(stop_reason="error", error_message="no key")
    assert blocks_of((MessageEntry(message=message),)) == [
        AssistantBlock("", mark="error", note="no key")
    ]


def test_a_compaction_and_shell_commands_and_notes_are_shown():
    entries = (
        CompactionEntry(
            summary="## Goal", first_kept_entry_id="x", tokens_before=9, tokens_after=3
        ),
        MessageEntry(
            id="b1", message=BashExecutionMessage(command="ls", output="a\n", exit_code=0)
        ),
        CustomMessageEntry(content="a note"),
        CustomMessageEntry(content="hidden", display=False),
        UnknownEntry(type="from the future"),
    )
    assert blocks_of(entries) == [
        SummaryBlock("## Goal", 9, 3),
        BashBlock("b1", "ls", "ok", "a", 0),
        NoticeBlock("info", "a note"),
    ]


def test_a_result_of_no_known_call_breaks_nothing():
    stray = ToolResultMessage(tool_call_id="?", tool_name="read")
    assert blocks_of((MessageEntry(message=stray),)) == []


def test_a_call_is_titled_by_its_most_telling_argument():
    assert call_title("bash", {"timeout": 3, "command": "make\ntest"}) == "make"
    assert call_title("todo", {"items": []}) == "todo"
    steps: list[JsonValue] = [{"text": "a", "status": "completed"}, {"text": "b"}, "no step"]
    assert call_title("todo", {"todos": steps}) == "plan: 1 of 3 done"


@pytest.mark.parametrize(
    ("said", "summary", "output", "beside"),
    [
        ("one\ntwo\n[exit code 0]", "exit code 0", "one\ntwo", "2 lines"),
        ("(no output)\n[exit code 0]", "exit code 0", "", "no output"),
        ("it broke\n[exit code 1]", "exit code 1", "it broke", "exit 1 · 1 line"),
        ("12 lines of a.py", "12 lines", "12 lines of a.py", "12 lines"),
    ],
)
def test_what_a_command_came_to_is_told_once(said: str, summary: str, output: str, beside: str):
    call = ToolCall(id="c1", name="bash", arguments={"command": "make"})
    result = ToolResultMessage(
        tool_call_id="c1",
        tool_name="bash",
        content=(TextContent(text=said),),
        details=ToolDetails(summary=summary).model_dump(mode="json", exclude_defaults=True),
    )
    asked = AssistantMessage(content=(call,))
    (block,) = blocks_of((MessageEntry(message=asked), MessageEntry(message=result)))
    assert isinstance(block, ToolBlock)
    assert (block.output, block.summary) == (output, beside)


@pytest.mark.parametrize(("code", "shown"), [(0, "hi"), (3, "hi"), (None, "hi\n[timeout]")])
def test_how_a_command_of_the_persons_ended_is_told_once(code: int | None, shown: str):
    output = f"hi\n[{'timeout' if code is None else f'exit code {code}'}]"
    block = bash_block("b1", BashExecutionMessage(command="x", output=output, exit_code=code))
    assert (block.output, block.exit_code) == (shown, code)


async def test_a_turn_is_shown_the_same_when_its_session_is_opened_again(tmp_path: Path):
    def plan(call_id: str, *steps: tuple[str, str]) -> Reply:
        todos = [{"text": text, "status": status} for text, status in steps]
        return Reply(tool_calls=(tool_call(call_id, "todo", todos=todos),))

    script = (
        plan("p1", ("one", "in_progress"), ("two", "pending")),
        Reply(tool_calls=(tool_call("b1", "bash", command="seq 1 4312"),)),
        plan("p2", ("one", "completed"), ("two", "in_progress")),
        Reply(tool_calls=(tool_call("b2", "bash", command="echo 'error: x'; seq 40; exit 3"),)),
        plan("p3", ("one", "completed"), ("three", "in_progress")),
        Reply("A file.", tool_calls=(tool_call("w1", "write", path="a.py", content="x\n"),)),
        Reply("Done."),
    )
    stage = Stage(tmp_path)
    async with running_app(tmp_path, stage=stage, runtime=stage.runtime(list(script))) as ui:
        await ui.send("go")
        live = [block for block in ui.blocks if isinstance(block, ToolBlock | TurnBlock)]
        ui.redraw()
        again = [block for block in ui.blocks if isinstance(block, ToolBlock | TurnBlock)]
    by_id = {block.call_id: block for block in live if isinstance(block, ToolBlock)}
    assert [by_id[call_id].is_new_plan for call_id in ("p1", "p2", "p3")] == [True, False, True]
    assert (by_id["b1"].summary, by_id["b1"].printed_lines) == ("4,312 lines", 4_312)
    assert by_id["b2"].summary == "exit 3 · 41 lines"
    assert live[-1] == TurnBlock(TurnFacts(changed=("a.py",)))
    # Titles of live calls are the tools' own.
    assert [_untitled(block) for block in again] == [_untitled(block) for block in live]


def _untitled(block: ToolBlock | TurnBlock) -> ToolBlock | TurnBlock:
    return replace(block, title="") if isinstance(block, ToolBlock) else block


def test_a_message_shows_what_was_attached_to_it():
    message = UserMessage(content='see @a.txt\n\n<file path="a.txt">\none\n</file>')
    block = user_block(message)
    assert (block.text, block.attached) == ("see @a.txt", ("a.txt · 1 line · 3 bytes",))
