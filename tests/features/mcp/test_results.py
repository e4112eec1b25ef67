"""What the model is given of a server's answer."""

from pathlib import Path

from agent_tui.features.mcp.results import call_output
from agent_tui.messages import JsonObject
from agent_tui.tools.shorten import OutputLimits


def shown(result: JsonObject) -> str:
    output = call_output(
        result, limits=OutputLimits(), output_dir=Path("/nowhere"), known_secrets=()
    )
    return output.for_model


def test_data_without_words_is_given_as_json():
    assert shown({"content": [], "structuredContent": {"n": 1}}) == '{\n "n": 1\n}'


def test_where_there_are_words_the_same_data_is_not_given_twice():
    words: JsonObject = {"type": "text", "text": "one"}
    assert shown({"content": [words], "structuredContent": {"n": 1}}) == "one"


def test_a_file_a_server_hands_over_is_given_with_its_address():
    text: JsonObject = {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}}
    blob: JsonObject = {"type": "resource", "resource": {"uri": "file:///b", "blob": "AA=="}}
    assert shown({"content": [text, blob]}) == "file:///a:\nhi\n[file:///b, not text]"


def test_a_question_for_the_person_is_said_to_be_impossible():
    assert "wants to ask the user" in shown({"content": [], "resultType": "input_required"})
