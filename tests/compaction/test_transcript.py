from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.transcript_parts import split_transcript
from agent_tui.compaction.transcript_text import LIMITS, OWN_TAGS, escape_tags, message_texts
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.tokens import TokenCounter


def test_roles_calls_and_results_are_labelled():
    messages = [
        UserMessage(
            content=(TextContent(text="look"), ImageContent(data="xx", mime_type="image/png"))
        ),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="secret thought"),
                TextContent(text="I look."),
                ToolCall(id="a", name="read", arguments={"path": "a.py", "limit": 3}),
            )
        ),
        ToolResultMessage(
            tool_call_id="a", tool_name="read", content=(TextContent(text="x"),), is_error=True
        ),
        BashExecutionMessage(command="ls", output="a.py", exit_code=0),
        BashExecutionMessage(command="secret", output="", exclude_from_context=True),
        AssistantMessage(),
    ]
    assert message_texts(messages) == [
        "[User]: look\n[image]",
        '[Assistant]: I look.\n[Assistant calls]: read(path="a.py", limit=3)',
        "[Tool error (read)]: x",
        "[User ran a command, exit 0]: $ ls\na.py",
    ]


def test_giant_arguments_and_results_are_shortened():
    call = ToolCall(id="a", name="write", arguments={"path": "a", "content": "z" * 600_000})
    result = ToolResultMessage(
        tool_call_id="a", tool_name="write", content=(TextContent(text="r" * 600_000),)
    )
    called, returned = message_texts([AssistantMessage(content=(call,)), result])
    assert len(called) < 3_000
    assert len(returned) < 3_000
    assert "left out" in called


@given(
    st.text(max_size=200), st.sampled_from(OWN_TAGS), st.sampled_from(["<{}>", "</{} >", "< {}>"])
)
def test_no_own_tag_survives_escaping(text: str, tag: str, form: str):
    escaped = escape_tags(text + form.format(tag.upper()) + text)
    assert form.format(tag.upper()) not in escaped


@given(st.text(max_size=3_000), st.integers(1, 500))
def test_shortened_text_is_never_longer_than_the_text(text: str, limit: int):
    short = shorten_middle(text, limit)
    assert len(short) <= max(limit, 60)
    assert short == text or "left out" in short
    assert len(one_line(text, limit)) <= limit


def test_a_short_conversation_is_one_part(counter: TokenCounter):
    messages = [UserMessage(content="a"), UserMessage(content="b")]
    assert split_transcript(messages, counter, 1_000) == ["[User]: a\n\n[User]: b"]
    assert split_transcript([], counter, 1_000) == ["(no text)"]


def test_parts_fit_and_hold_everything_in_order(counter: TokenCounter):
    messages = [UserMessage(content=f"message {n} " + "word " * 50) for n in range(20)]
    parts = split_transcript(messages, counter, 250)
    assert len(parts) > 1
    assert all(counter.count_text(part) <= 250 for part in parts)
    assert [f"message {n} " in "\n".join(parts) for n in range(20)] == [True] * 20


def test_a_message_larger_than_a_part_is_cut_into_pieces(counter: TokenCounter):
    text = " ".join(str(n) for n in range(1_000))
    parts = split_transcript([UserMessage(content=text)], counter, 300)
    assert all(counter.count_text(part) <= 300 for part in parts)
    assert "".join(parts).startswith("[User]: 0 1 2")


def test_very_many_parts_lose_the_older_ones_and_say_so(counter: TokenCounter):
    messages = [UserMessage(content=f"message {n} " + "word " * 200) for n in range(300)]
    parts = split_transcript(messages, counter, 500)
    assert len(parts) <= 24
    assert "left out here" in parts[0]
    assert "message 299 " in parts[-1]


def test_limits_go_from_generous_to_tight():
    assert [limit.result for limit in LIMITS] == sorted((n.result for n in LIMITS), reverse=True)
