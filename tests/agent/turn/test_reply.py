import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.agent.turn.reply import ReplyBuilder
from agent_tui.messages import TextContent, ThinkingContent, ToolCall, Usage
from agent_tui.providers.base import (
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)


def build(*chunks, taken=frozenset()):
    builder = ReplyBuilder("anthropic", "claude", taken)
    for chunk in chunks:
        builder.add(chunk)
    return builder


def test_parts_keep_the_order_in_which_they_came():
    reply = build(
        ThinkingChunk("hm"),
        ThinkingChunk("", "sig"),
        TextChunk("I will "),
        TextChunk("look."),
        ToolCallChunk(0, "a", "read", '{"path"'),
        ToolCallChunk(0, "", "", ': "x"}'),
        FinishChunk("toolUse"),
    ).build()
    assert reply.message.content == (
        ThinkingContent(thinking="hm", signature="sig"),
        TextContent(text="I will look."),
        ToolCall(id="a", name="read", arguments={"path": "x"}),
    )
    assert reply.broken_calls == {}
    assert reply.message.stop_reason == "toolUse"


def test_a_signature_closes_its_thinking_block():
    reply = build(
        ThinkingChunk("one", "s1"), ThinkingChunk("two", "s2"), FinishChunk("stop")
    ).build()
    assert [p.signature for p in reply.message.content if isinstance(p, ThinkingContent)] == [
        "s1",
        "s2",
    ]


def test_a_redacted_block_stays_one_of_its_own():
    reply = build(
        ThinkingChunk("seen"),
        ThinkingChunk("", "encrypted", redacted=True),
        ThinkingChunk("more", "s"),
        FinishChunk("stop"),
    ).build()
    kinds = [
        (p.thinking, p.redacted) for p in reply.message.content if isinstance(p, ThinkingContent)
    ]
    assert kinds == [("seen", False), ("", True), ("more", False)]


def test_call_ids_used_before_are_replaced():
    reply = build(
        ToolCallChunk(0, "same", "ls", "{}"),
        ToolCallChunk(1, "same", "ls", "{}"),
        FinishChunk("toolUse"),
        taken=frozenset({"same"}),
    ).build()
    ids = [call.id for call in reply.message.tool_calls]
    assert len(set(ids)) == 2
    assert "same" not in ids


def test_two_calls_merged_into_one_are_broken_not_run():
    reply = build(
        ToolCallChunk(0, "a", "ls", '{"path": "x"}{"path": "y"}'), FinishChunk("toolUse")
    ).build()
    assert reply.message.tool_calls[0].arguments == {}
    assert "not valid JSON" in reply.broken_calls["a"]


def test_null_arguments_are_stored_as_an_empty_object_and_broken():
    reply = build(ToolCallChunk(0, "a", "ls", "null"), FinishChunk("toolUse")).build()
    assert reply.message.tool_calls[0].arguments == {}
    assert "not a JSON object" in reply.broken_calls["a"]


def test_arguments_are_mended_before_a_tool_sees_them():
    text = r'{"text": "a\ud83d\ude00 b\ud83d", "size": NaN}'
    reply = build(ToolCallChunk(0, "a", "write", text), FinishChunk("toolUse")).build()
    assert reply.message.tool_calls[0].arguments == {"text": "a😀 b\ufffd", "size": None}
    assert reply.broken_calls == {}


@pytest.mark.parametrize(
    "written", ['{"content": "a\n\tb"}', '"{\\"content\\": \\"a\\\\n\\\\tb\\"}"']
)
def test_line_ends_as_they_are_and_arguments_encoded_twice_are_read(written):
    reply = build(ToolCallChunk(0, "a", "write", written), FinishChunk("toolUse")).build()
    assert reply.broken_calls == {}
    assert reply.message.tool_calls[0].arguments == {"content": "a\n\tb"}


def test_no_arguments_at_all_are_an_empty_object():
    reply = build(ToolCallChunk(0, "a", "ls", ""), FinishChunk("toolUse")).build()
    assert reply.broken_calls == {}


def test_the_last_call_of_a_reply_cut_by_length_is_broken():
    reply = build(
        ToolCallChunk(0, "a", "ls", "{}"),
        ToolCallChunk(1, "b", "write", '{"path": "x", "content": "half'),
        FinishChunk("length"),
    ).build()
    assert set(reply.broken_calls) == {"b"}


def test_an_interrupted_reply_keeps_prose_and_leaves_calls_out():
    builder = build(TextChunk("so far"), ToolCallChunk(0, "a", "ls", "{"))
    message = builder.build_interrupted("aborted")
    assert message.text == "so far"
    assert message.tool_calls == ()
    assert message.stop_reason == "aborted"


def test_usage_is_an_estimate_until_the_provider_sends_it():
    assert build(FinishChunk("stop")).build().message.usage.is_estimate
    usage = Usage(input=10, output=2, total_tokens=12)
    reply = build(UsageChunk(usage), FinishChunk("stop")).build()
    assert reply.message.usage == usage


@given(st.text())
def test_any_argument_text_gives_an_object(text):
    reply = build(ToolCallChunk(0, "a", "ls", text), FinishChunk("toolUse")).build()
    assert isinstance(reply.message.tool_calls[0].arguments, dict)


@given(st.lists(st.one_of(st.builds(TextChunk, st.text()), st.builds(ThinkingChunk, st.text()))))
def test_no_text_is_lost_or_reordered_within_its_kind(chunks):
    reply = build(*chunks, FinishChunk("stop")).build()
    assert reply.message.text == "".join(c.text for c in chunks if isinstance(c, TextChunk))
    assert reply.message.thinking == "".join(c.text for c in chunks if isinstance(c, ThinkingChunk))
