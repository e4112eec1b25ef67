import pytest

from agent_tui.compaction.strategies.agent.tools import (
    METADATA,
    RESULT,
    SEGMENT,
    TOOLS,
    VERIFY,
    AgentAction,
    BadCallError,
    CompressResults,
    CompressSegment,
    ListMessages,
    Span,
    VerifyTarget,
    read_call,
)
from agent_tui.messages import JsonObject

READ: list[tuple[str, JsonObject, AgentAction]] = [
    (METADATA, {}, ListMessages(0)),
    (METADATA, {"skip": 12}, ListMessages(12)),
    (VERIFY, {"anything": None}, VerifyTarget()),
    (RESULT, {"ids": ["3", "5-9"]}, CompressResults((Span(3, 3), Span(5, 9)), False)),
    (RESULT, {"ids": [3, 4.0], "keep": "ends"}, CompressResults((Span(3, 3), Span(4, 4)), True)),
    (RESULT, {"ids": "3, #7-4"}, CompressResults((Span(3, 3), Span(4, 7)), False)),
    (RESULT, {"id": 8, "keep": "all of it"}, CompressResults((Span(8, 8),), False)),
    (SEGMENT, {"first": 1, "last": "6"}, CompressSegment(Span(1, 6), "")),
    (SEGMENT, {"first": 2, "last": 2, "text": " a\0b\ud800 "}, CompressSegment(Span(2, 2), "ab�")),
]


@pytest.mark.parametrize(("name", "arguments", "action"), READ)
def test_numbers_are_understood_as_models_write_them(
    name: str, arguments: JsonObject, action: AgentAction
) -> None:
    assert read_call(name, arguments) == action


JUNK: list[tuple[str, JsonObject, str]] = [
    ("", {}, "There is no tool ''. Available: get_compression_metadata, compress_tool_result,"),
    ("x" * 300, {}, "There is no tool"),
    (METADATA, {"skip": "a few"}, "skip: 'a few' is not the id of a message."),
    (METADATA, {"skip": "1-3"}, "skip must be one number."),
    (RESULT, {}, "ids: 'None' is not the id of a message."),
    (RESULT, {"ids": []}, "ids must be 1 to 200 message ids or ranges."),
    (RESULT, {"ids": [*["1"] * 201]}, "ids must be 1 to 200 message ids or ranges."),
    (RESULT, {"ids": [{"first": 1}]}, "is not the id of a message."),
    (RESULT, {"ids": [True]}, "ids: 'True' is not the id of a message."),
    (RESULT, {"ids": [-3]}, "ids: '-3' is not the id of a message."),
    (RESULT, {"ids": [1e300]}, "is not the id of a message."),
    (SEGMENT, {"first": 1}, "last: 'None' is not the id of a message."),
    (SEGMENT, {"first": 7, "last": 3}, "last (3) comes before first (7)."),
    (SEGMENT, {"first": 1, "last": 3, "text": ["a"]}, "text must be a string."),
]


@pytest.mark.parametrize(("name", "arguments", "told"), JUNK)
def test_junk_is_told_in_a_line(name: str, arguments: JsonObject, told: str) -> None:
    with pytest.raises(BadCallError) as caught:
        read_call(name, arguments)
    assert told in caught.value.message
    assert len(caught.value.message) < 250


def test_every_tool_has_a_description_and_an_object_for_arguments() -> None:
    assert [tool.name for tool in TOOLS] == [METADATA, RESULT, SEGMENT, VERIFY]
    for tool in TOOLS:
        assert tool.description.endswith(".")
        assert tool.parameters["type"] == "object"
