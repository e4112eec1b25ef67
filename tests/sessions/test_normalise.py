import pytest

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.sessions.context import build_context
from agent_tui.sessions.replay.normalise import NO_RESULT_TEXT
from tests.support.context_checks import assert_normalised, shown
from tests.support.session_values import chain, entry, reply, result, user


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    path = chain(entry(user("x")), entry(reply("", ("c1", "bash"))), entry(user("again")))
    context = build_context(path)
    assert shown(context) == [
        "user: x",
        "assistant:  <c1>",
        f"result c1: {NO_RESULT_TEXT}",
        "user: again",
    ]
    made_up = context.messages[2].message
    assert isinstance(made_up, ToolResultMessage)
    assert made_up.is_error
    assert made_up.tool_name == "bash"
    assert context.messages[2].entry_id == "00000002"


def test_results_stand_after_their_reply_in_the_order_of_its_calls() -> None:
    path = chain(
        entry(user("x")),
        entry(reply("", ("c1", "read"), ("c2", "read"))),
        entry(result("c2", "two")),
        entry(user("wait")),
        entry(result("c1", "one")),
        entry(result("c1", "one again")),
        entry(result("c9", "nobody asked")),
    )
    assert shown(build_context(path)) == [
        "user: x",
        "assistant:  <c1> <c2>",
        "result c1: one",
        "result c2: two",
        "user: wait",
    ]


def test_ids_used_again_are_told_apart_by_turn() -> None:
    path = chain(
        entry(user("x")),
        entry(reply("", ("c1", "read"), ("c1", "read"), ("", "read"))),
        entry(result("c1", "a")),
        entry(result("c1", "b")),
        entry(result("", "c")),
        entry(reply("", ("c1", "read"))),
        entry(result("c1", "d")),
    )
    context = build_context(path)
    assert_normalised(context.messages)
    assert [text.split(": ")[1] for text in shown(context) if "result" in text] == [
        "a",
        "b",
        "c",
        "d",
    ]


@pytest.mark.parametrize("empty", [reply(stop_reason="aborted"), reply("  \n")])
def test_a_reply_with_nothing_in_it_is_left_out(empty: AssistantMessage) -> None:
    thinking = AssistantMessage(content=(ThinkingContent(thinking="hm"),), stop_reason="aborted")
    path = chain(entry(user("x")), entry(empty), entry(thinking), entry(user("")))
    assert shown(build_context(path)) == ["user: x"]


def test_an_aborted_reply_with_text_stays() -> None:
    path = chain(entry(user("x")), entry(reply("Let me", stop_reason="aborted")))
    assert shown(build_context(path))[-1] == "assistant: Let me"


def test_lone_surrogates_are_repaired_wherever_they_are() -> None:
    bad = "a\ud83d"
    call = ToolCall(id="c", name="x", arguments={"p": [bad, {"k": bad}]})
    path = chain(
        entry(user(bad)),
        entry(
            AssistantMessage(content=(TextContent(text=bad), ThinkingContent(thinking=bad), call))
        ),
        entry(result("c", bad)),
        entry(BashExecutionMessage(command=bad, output=bad)),
    )
    context = build_context(path)
    assert_normalised(context.messages)
    assert "\ud83d" not in repr(context)
