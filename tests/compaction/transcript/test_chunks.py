from hypothesis import given
from hypothesis import strategies as st

from agent_tui.compaction.shorten import one_line, shorten_middle
from agent_tui.compaction.transcript.chunks import MOST_PARTS, split_transcript
from agent_tui.compaction.transcript.text import LIMITS, OWN_TAGS, escape_tags, message_texts
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
from agent_tui.sessions.context import build_context
from agent_tui.tokens import TokenCounter
from tests.support.talk import Talk


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
        '[Assistant]: I look.\n[Assistant calls]: read path="a.py" limit=3',
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
    assert split_transcript(messages, counter, 1_000).parts == ("[User]: a\n\n[User]: b",)
    assert split_transcript([], counter, 1_000).parts == ("(no text)",)


def test_parts_fit_and_hold_everything_in_order(counter: TokenCounter):
    messages = [UserMessage(content=f"message {n} " + "word " * 50) for n in range(20)]
    parts = split_transcript(messages, counter, 250).parts
    assert len(parts) > 1
    assert all(counter.count_text(part) <= 250 for part in parts)
    assert [f"message {n} " in "\n".join(parts) for n in range(20)] == [True] * 20


def test_a_message_larger_than_a_part_is_cut_into_pieces(counter: TokenCounter):
    text = " ".join(str(n) for n in range(1_000))
    parts = split_transcript([UserMessage(content=text)], counter, 300).parts
    assert all(counter.count_text(part) <= 300 for part in parts)
    assert "".join(parts).startswith("[User]: 0 1 2")


def test_what_a_small_window_cannot_take_is_left_out_and_counted(counter: TokenCounter):
    messages = [UserMessage(content=f"message {n} " + "word " * 200) for n in range(300)]
    transcript = split_transcript(messages, counter, 500)
    text = "\n".join(transcript.parts)
    assert len(transcript.parts) <= MOST_PARTS
    assert 0 < transcript.left_out == 300 - text.count("message ")
    assert f"[{transcript.left_out} of 300 messages are left out" in text
    assert "message 0 " in text
    assert "message 299 " in text


def test_old_tool_results_are_left_out_first_and_the_persons_words_last(counter: TokenCounter):
    talk = Talk()
    for n in range(60):
        talk.user(f"wish {n} ends here")
        call = ToolCall(id=f"c{n}", name="read", arguments={"path": f"f{n}"})
        talk.reply(f"thought {n} ends here " + "so " * 40, call)
        talk.result(call, f"result {n} ends here " + "text " * 100)
    messages = [item.message for item in build_context(talk.path).messages]
    few = "\n".join(split_transcript(messages, counter, 900).parts)
    assert [f"wish {n} " in few for n in range(60)] == [True] * 60
    assert [f"thought {n} " in few for n in range(60)] == [True] * 60
    assert "result 0 " not in few
    assert "result 59 " in few
    fewer = "\n".join(split_transcript(messages, counter, 300).parts)
    assert [f"wish {n} " in fewer for n in range(60)] == [True] * 60
    assert "result " not in fewer
    assert "thought 0 " not in fewer
    assert "thought 59 " in fewer


@given(st.lists(st.integers(0, 400), max_size=80), st.integers(200, 600))
def test_there_are_never_more_parts_than_the_bound(
    counter: TokenCounter, sizes: list[int], room_tokens: int
):
    messages = [UserMessage(content="word " * size) for size in sizes]
    transcript = split_transcript(messages, counter, room_tokens)
    assert 1 <= len(transcript.parts) <= MOST_PARTS
    assert all(counter.count_text(part) <= room_tokens for part in transcript.parts)


def test_limits_go_from_generous_to_tight():
    assert [limit.result for limit in LIMITS] == sorted((n.result for n in LIMITS), reverse=True)
