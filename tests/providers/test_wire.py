"""Messages on the wire: whatever is in a settled conversation, both services would take it."""

import json
import re
from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    JsonObject,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.base import ModelRef
from agent_tui.providers.wires.anthropic import anthropic_payload
from agent_tui.providers.wires.chat import messages_to_send, model_family, openai_messages
from agent_tui.providers.wires.parts import CONTINUE, GO_ON, NO_OUTPUT
from tests.support.wire_rules import anthropic_problems, openai_problems

OTHER = ModelRef("openai/gpt-4o")
PNG = ImageContent(data="aGk=", mime_type="image/png")

any_text = st.one_of(
    st.text(st.characters(codec=None), max_size=12),  # lone surrogates among them
    st.sampled_from(["", " ", "\n", "\ud800", "hello", "\udc00\ud800", "<|endoftext|>", "\x00"]),
)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
any_image = st.builds(
    ImageContent,
    data=st.sampled_from(["aGk=", ""]),
    mime_type=st.sampled_from(["image/png", "image/tiff", ""]),
)
user_parts = st.lists(st.builds(TextContent, text=any_text) | any_image, max_size=3).map(tuple)
thinking = st.builds(
    ThinkingContent,
    thinking=any_text,
    signature=st.none() | st.sampled_from(["", "c2ln"]),
    redacted=st.booleans(),
)
sources = st.sampled_from([("anthropic", "claude-sonnet-4-5"), ("openai", "gpt-5"), ("", "")])


@st.composite
def settled_turns(draw: st.DrawFn) -> list[Message]:
    """One message of the person's, or a reply with the results of its calls."""
    if draw(st.booleans()):
        user = st.builds(UserMessage, content=any_text | user_parts)
        bash = st.builds(
            BashExecutionMessage,
            command=any_text,
            output=any_text,
            exit_code=st.none() | st.integers(0, 255),
            exclude_from_context=st.booleans(),
        )
        return [draw(user | bash)]
    provider, model = draw(sources)
    names = draw(st.lists(st.sampled_from(["read", "no such tool!", "", "ü" * 80]), max_size=2))
    call_ids = [draw(st.uuids().map(str)) + draw(any_text) for _ in names]
    content: list[TextContent | ThinkingContent | ToolCall] = []
    content += draw(st.lists(thinking | st.builds(TextContent, text=any_text), max_size=3))
    for call_id, name in zip(call_ids, names, strict=True):
        arguments = draw(st.dictionaries(any_text, any_json, max_size=2))
        content.append(ToolCall(id=call_id, name=name, arguments=arguments))
    reply = AssistantMessage(content=tuple(content), provider=provider, model=model)
    results: list[Message] = [
        ToolResultMessage(
            tool_call_id=call_id,
            tool_name=name,
            content=draw(user_parts),
            is_error=draw(st.booleans()),
        )
        for call_id, name in zip(call_ids, names, strict=True)
    ]
    return [reply, *results]


conversations = st.lists(settled_turns(), max_size=6).map(lambda turns: list(chain(*turns)))


@given(system=any_text, messages=conversations)
@settings(max_examples=100, deadline=None)
def test_every_settled_conversation_passes_the_openai_rules(
    system: str, messages: list[Message]
) -> None:
    for model in ("openai/gpt-5", "anthropic/claude-sonnet-4-5", "deepseek/deepseek-chat"):
        assert openai_problems(openai_messages(system, messages, model=model)) == []
        to_send = messages_to_send(system, messages, ModelRef(model))
        assert openai_problems(to_send) == []
        assert to_send[-1]["role"] in ("user", "tool")


@given(system=any_text, messages=conversations)
@settings(max_examples=100, deadline=None)
def test_every_settled_conversation_passes_the_anthropic_rules(
    system: str, messages: list[Message]
) -> None:
    assert anthropic_problems(anthropic_payload(system, messages)) == []


def test_a_tool_round_reads_as_both_services_expect_it() -> None:
    messages = _tool_round("call_1", {"path": "a.py"})
    assert openai_messages("Be brief.", messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "Reading.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path": "a.py"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "1 print()"},
    ]
    payload = anthropic_payload("Be brief.", messages)
    assert payload["system"] == "Be brief."
    assert payload["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [{"type": "text", "text": "1 print()"}],
                }
            ],
        },
    ]


def test_images_of_results_follow_all_results_as_the_users() -> None:
    reply = AssistantMessage(
        content=(ToolCall(id="a", name="read"), ToolCall(id="b", name="read")), model="gpt-5"
    )
    results = [
        ToolResultMessage(tool_call_id=call_id, tool_name="read", content=(PNG,))
        for call_id in ("a", "b")
    ]
    written = openai_messages("", [UserMessage(content="see"), reply, *results])
    assert [message["role"] for message in written] == ["user", "assistant", "tool", "tool", "user"]
    assert str(written[-1]).count("data:image/png;base64,aGk=") == 2


def test_an_image_type_no_service_takes_becomes_words() -> None:
    tiff = ImageContent(data="aGk=", mime_type="image/tiff")
    written = openai_messages("", [UserMessage(content=(tiff,))])
    assert written == [{"role": "user", "content": "[An image of type image/tiff cannot be sent.]"}]


def test_signed_thinking_goes_back_to_anthropic_and_to_nobody_else() -> None:
    messages = _with_thinking("anthropic", "claude-sonnet-4-5")
    block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    to_claude = openai_messages("", messages, model="anthropic/claude-sonnet-4-5")
    assert to_claude[1]["thinking_blocks"] == [block]
    assert "thinking_blocks" not in openai_messages("", messages, model="openai/gpt-5")[1]
    assert block in _reply_of(anthropic_payload("", messages))


def test_signed_thinking_that_cannot_be_sent_as_it_is_stays_away() -> None:
    part = ThinkingContent(thinking="hm \ud800", signature="c2ln")
    reply = AssistantMessage(content=(part, TextContent(text="Hi.")), provider="anthropic")
    blocks = _reply_of(anthropic_payload("", [UserMessage(content="x"), reply]))
    assert blocks == [{"type": "text", "text": "Hi."}]


def test_thinking_of_another_provider_is_not_sent_to_anthropic() -> None:
    messages = _with_thinking("openai", "gpt-5")
    written = openai_messages("", messages, model="anthropic/claude-sonnet-4-5")
    assert "thinking_blocks" not in written[1]
    assert _reply_of(anthropic_payload("", messages)) == [{"type": "text", "text": "Hi."}]


def test_redacted_thinking_goes_back_as_its_data() -> None:
    part = ThinkingContent(thinking="", signature="ZGF0YQ==", redacted=True)
    reply = AssistantMessage(
        content=(part, TextContent(text="Hi.")), provider="anthropic", model="claude"
    )
    blocks = _reply_of(anthropic_payload("", [UserMessage(content="x"), reply]))
    assert blocks[0] == {"type": "redacted_thinking", "data": "ZGF0YQ=="}


def test_reasoning_goes_back_where_the_service_wants_it_in_tool_rounds() -> None:
    messages = _with_thinking("deepseek", "deepseek-chat")
    written = openai_messages("", messages, model="deepseek/deepseek-chat")
    assert written[1]["reasoning_content"] == "hm"


def test_commands_of_the_person_are_told_unless_they_are_excluded() -> None:
    shown = BashExecutionMessage(command="make", output="ok\n", exit_code=2)
    hidden = BashExecutionMessage(command="secret", output="x", exclude_from_context=True)
    written = openai_messages("", [shown, hidden])
    assert written == [{"role": "user", "content": "Ran `make`\n```\nok\n\n```\nExit code 2"}]


def test_a_reply_aborted_before_its_first_word_is_left_out() -> None:
    messages = [UserMessage(content="a"), AssistantMessage(stop_reason="aborted")]
    assert openai_messages("", messages) == [{"role": "user", "content": "a"}]


def test_neighbouring_user_messages_are_one_turn_for_anthropic() -> None:
    messages = [UserMessage(content="a"), UserMessage(content="b")]
    assert anthropic_payload("", messages)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": t} for t in ("a", "b")]}
    ]


def test_a_conversation_that_begins_with_a_reply_gets_a_users_turn_first() -> None:
    messages = [AssistantMessage(content=(TextContent(text="Hi."),))]
    assert openai_messages("", messages)[0] == {"role": "user", "content": CONTINUE}
    assert anthropic_problems(anthropic_payload("", messages)) == []


def test_a_conversation_is_sent_with_the_users_word_last_and_shown_as_it_is() -> None:
    reply = AssistantMessage(content=(TextContent(text="The sky is"),), stop_reason="aborted")
    cut = [UserMessage(content="colour?"), reply]
    assert openai_messages("", cut)[-1]["role"] == "assistant"
    assert messages_to_send("", cut, OTHER)[:-1] == openai_messages("", cut)
    assert messages_to_send("", cut, OTHER)[-1] == {"role": "user", "content": GO_ON}
    for messages in (cut[:1], _tool_round("call_1", {})):
        assert messages_to_send("", messages, OTHER) == openai_messages("", messages)


def test_empty_output_says_so_and_errors_are_marked_for_anthropic() -> None:
    messages = _tool_round("c", {})
    failed = ToolResultMessage(tool_call_id="c", tool_name="read", is_error=True)
    messages[-1] = failed
    assert openai_messages("", messages)[-1]["content"] == NO_OUTPUT
    payload = json.dumps(anthropic_payload("", messages))
    assert '"is_error": true' in payload
    assert NO_OUTPUT in payload


def test_a_call_id_another_provider_refuses_is_replaced_in_call_and_result_alike() -> None:
    messages = _tool_round("toolu|" + "x" * 60, {})
    call, result = openai_messages("", messages)[1:]
    assert json.dumps(result["tool_call_id"]) in json.dumps(call["tool_calls"])
    assert openai_problems(openai_messages("", messages)) == []


def test_geminis_long_call_ids_carry_its_signature_and_stay() -> None:
    long_id = "call_1__thought__" + "QUJD" * 40
    written = openai_messages("", _tool_round(long_id, {}), model="gemini/gemini-2.5-pro")
    assert written[-1]["tool_call_id"] == long_id
    assert model_family("openrouter/google/gemini-2.5-pro") == "gemini"


@pytest.mark.parametrize("given", ["call_PTLP8xhu3uwZk4l3nlnrrJha", "", "ab", "toolu_1-2"])
def test_mistral_gets_ids_of_nine_letters_and_digits(given: str) -> None:
    for name in ("mistral/devstral-latest", "mistralai/Ministral-8B", "mistral/x"):
        written = openai_messages("", _tool_round(given, {}), model=name)
        (call,) = json.loads(json.dumps(written[-2]["tool_calls"]))
        assert re.fullmatch(r"[A-Za-z0-9]{9}", call["id"])
        assert written[-1]["tool_call_id"] == call["id"]
    own = openai_messages("", _tool_round("aB3dE6gH9", {}), model="mistral/devstral-latest")
    assert own[-1]["tool_call_id"] == "aB3dE6gH9"


def _tool_round(call_id: str, arguments: JsonObject) -> list[Message]:
    reply = AssistantMessage(
        content=(
            TextContent(text="Reading."),
            ToolCall(id=call_id, name="read", arguments=arguments),
        ),
        model="gpt-5",
    )
    result = ToolResultMessage(
        tool_call_id=call_id, tool_name="read", content=(TextContent(text="1 print()"),)
    )
    return [UserMessage(content="look"), reply, result]


def _with_thinking(provider: str, model: str) -> Sequence[Message]:
    content = (ThinkingContent(thinking="hm", signature="c2ln"), TextContent(text="Hi."))
    return [
        UserMessage(content="hello"),
        AssistantMessage(content=content, provider=provider, model=model),
    ]


def _reply_of(payload: JsonObject) -> list[JsonValue]:
    messages = payload["messages"]
    assert isinstance(messages, list)
    reply = messages[1]
    assert isinstance(reply, dict)
    blocks = reply["content"]
    assert isinstance(blocks, list)
    return blocks
