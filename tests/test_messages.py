import json

import pytest
from pydantic import TypeAdapter, ValidationError

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    FileTouches,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    Todo,
    ToolCall,
    ToolDetails,
    ToolResultMessage,
    Usage,
    UserMessage,
)

_messages: TypeAdapter[Message] = TypeAdapter(Message)


def stored(message: Message) -> dict[str, object]:
    return json.loads(message.model_dump_json(by_alias=True, exclude_none=True))


def test_names_on_disk_are_camel_case():
    reply = AssistantMessage(
        content=(
            ThinkingContent(thinking="hm", signature="sig"),
            ToolCall(id="a", name="read", arguments={"path": "x"}),
        ),
        stop_reason="toolUse",
        usage=Usage(cache_read=3),
    )
    data = stored(reply)
    assert data["stopReason"] == "toolUse"
    assert data["content"][0]["thinkingSignature"] == "sig"  # pyright: ignore
    assert data["usage"]["cacheRead"] == 3  # pyright: ignore


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(content="hi"),
        UserMessage(content=(TextContent(text="hi"), ImageContent(data="x", mime_type="a/b"))),
        AssistantMessage(content=(TextContent(text="a"), ThinkingContent(thinking="b"))),
        ToolResultMessage(tool_call_id="a", tool_name="b", content=(TextContent(text="c"),)),
        BashExecutionMessage(command="ls", output="x", exit_code=1),
    ],
)
def test_a_message_reads_back_as_it_was_written(message: Message):
    text = message.model_dump_json(by_alias=True)
    assert _messages.validate_json(text) == message


def test_fields_we_do_not_know_are_kept():
    data = {"role": "user", "content": "hi", "timestamp": 1, "mood": {"is": "good"}}
    assert stored(_messages.validate_python(data)) == data


def test_an_unknown_role_is_refused():
    with pytest.raises(ValidationError):
        _messages.validate_python({"role": "system", "content": "hi"})


def test_values_cannot_be_changed():
    with pytest.raises(ValidationError):
        UserMessage(content="hi").content = "ho"  # pyright: ignore


def test_the_text_of_a_message_leaves_out_images_and_thinking():
    image = ImageContent(data="x", mime_type="image/png")
    said = UserMessage(content=(TextContent(text="a"), image, TextContent(text="b")))
    assert said.text == "a\nb"
    assert said.images == (image,)
    assert UserMessage(content="a").images == ()
    call = ToolCall(id="1", name="read")
    reply = AssistantMessage(
        content=(TextContent(text="a"), ThinkingContent(thinking="t"), call, TextContent(text="b"))
    )
    assert reply.text == "ab"
    assert reply.thinking == "t"
    assert reply.tool_calls == (call,)


def test_the_context_is_the_total_or_the_sum_of_its_parts():
    assert Usage(input=1, output=2, cache_read=3, cache_write=4).context_tokens == 10
    assert Usage(input=1, output=2, total_tokens=50).context_tokens == 50


def test_details_of_our_tools_read_back_typed():
    details = ToolDetails(
        summary="42 lines", files=FileTouches(edited=("/a",)), todos=(Todo(text="x"),)
    )
    result = ToolResultMessage(
        tool_call_id="a",
        tool_name="edit",
        details=details.model_dump(mode="json", by_alias=True),
    )
    assert result.tool_details == details


@pytest.mark.parametrize("details", [None, "text", 3, ["a"]])
def test_details_that_are_no_object_are_empty(details: object):
    result = ToolResultMessage.model_validate(
        {"tool_call_id": "a", "tool_name": "b", "details": details}
    )
    assert result.tool_details == ToolDetails()


def test_of_foreign_details_the_diff_is_read():
    result = ToolResultMessage(
        tool_call_id="a", tool_name="b", details={"diff": "+x", "files": 3, "todos": "none"}
    )
    assert result.tool_details == ToolDetails(diff="+x")
    assert (
        ToolResultMessage(tool_call_id="a", tool_name="b", details={"files": 3}).tool_details
        == ToolDetails()
    )
