from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.transcript import (
    LIMITS,
    OWN_TAGS,
    escape_tags,
    fit_texts,
    message_texts,
)
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.omissions import one_line, shorten_middle
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
        BashExecutionMessage(command="make", output="cc", cancelled=True),
        BashExecutionMessage(command="secret", output="", exclude_from_context=True),
        AssistantMessage(),
    ]
    assert message_texts(messages) == [
        "[User]: look\n[image]",
        '[Assistant]: I look.\n[Assistant calls]: read path="a.py" limit=3',
        "[Tool error (read)]: x",
        "[User ran a command, exit 0]: $ ls\na.py",
        "[User ran a command, interrupted]: $ make\ncc",
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


def bounded(messages: Sequence[Message], counter: TokenCounter, room_tokens: int) -> str:
    return fit_texts(lambda limits: message_texts(messages, limits), counter, room_tokens)


def test_a_short_conversation_is_all_there(counter: TokenCounter):
    messages = [UserMessage(content="a"), UserMessage(content="b")]
    assert bounded(messages, counter, 1_000) == "[User]: a\n\n[User]: b"
    assert bounded([], counter, 1_000) == "(no text)"


def test_a_message_larger_than_the_room_is_cut(counter: TokenCounter):
    text = " ".join(str(n) for n in range(1_000))
    made = bounded([UserMessage(content=text)], counter, 300)
    assert 200 < counter.count_text(made) <= 300
    assert "[User]: 0 1 2" in made


def test_what_there_is_no_room_for_goes_from_the_middle_and_is_counted(counter: TokenCounter):
    messages = [UserMessage(content=f"message {n} " + "word " * 200) for n in range(300)]
    made = bounded(messages, counter, 4_000)
    assert f"[... {300 - made.count('[User]: message ')} messages left out ...]" in made
    assert "message 0 " in made
    assert "message 299 " in made
    assert 3_500 < counter.count_text(made) <= 4_000


@given(st.lists(st.integers(0, 400), max_size=80), st.integers(200, 600))
def test_the_text_always_fits(counter: TokenCounter, sizes: list[int], room_tokens: int):
    messages = [UserMessage(content="word " * size) for size in sizes]
    assert 0 < counter.count_text(bounded(messages, counter, room_tokens)) <= room_tokens


def test_limits_go_from_generous_to_tight():
    assert [limit.result for limit in LIMITS] == sorted((n.result for n in LIMITS), reverse=True)
