"""What servers offer beside tools: prompts and resources."""

import pytest
from pydantic import JsonValue

from agent_tui.errors import ToolError
from agent_tui.features.mcp.library import (
    PromptArgument,
    ServerPrompt,
    prompt_arguments,
    prompt_text,
)
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.server_spec import ToolPicks
from agent_tui.tools.shorten import OutputLimits
from tests.support.rows import each_row

PROMPT = ServerPrompt("srv", "p", "", (PromptArgument("what", True), PromptArgument("whom", False)))


@each_row(
    ("typed", "filled"),
    [
        ("code", {"what": "code"}),
        ("code me and you", {"what": "code", "whom": "me and you"}),
        ('"all of it" me', {"what": "all of it", "whom": "me"}),
        ("whom=you code", {"what": "code", "whom": "you"}),
        ("what=a=b", {"what": "a=b"}),
        ("it's mine", {"what": "it's", "whom": "mine"}),
    ],
)
def test_what_the_person_types_fills_the_arguments(typed, filled):
    assert prompt_arguments(PROMPT, typed) == filled


def test_a_missing_argument_is_asked_for():
    with pytest.raises(ToolError, match=r"needs what. Usage: /srv:p <what> \[whom\]"):
        prompt_arguments(PROMPT, "")


@pytest.mark.parametrize("messages", [None, [], ["x"], [{"content": {"type": "image"}}]])
def test_a_prompt_without_text_is_said(messages):
    if messages == [{"content": {"type": "image"}}]:
        assert "cannot be shown" in prompt_text({"messages": messages})
        return
    with pytest.raises(ToolError, match="no text"):
        prompt_text({"messages": messages})


def test_what_the_model_is_to_have_said_is_marked():
    said: list[JsonValue] = [
        {"role": role, "content": {"type": "text", "text": role}} for role in ("user", "assistant")
    ]
    assert prompt_text({"messages": said}) == "user\n\nAssistant: assistant"


async def test_the_prompts_of_a_server_are_listed_and_filled(stage):
    await stage.ready("library")
    first, thief = stage.hub.prompts
    assert (first.name, first.hint) == ("srv:review-it", "<what> [whom]")
    assert first.description == "Looks at something"
    assert await stage.hub.prompt(first, "code me") == "Review code for me."
    assert thief.name == "srv:key-thief"
    with pytest.raises(ToolError, match="needs what"):
        await stage.hub.prompt(first, "")


async def test_the_model_reads_and_lists_resources_with_a_tool_of_the_server(stage):
    await stage.ready("library")
    box = CombinedToolbox(default_toolbox(), stage.hub)

    async def read(**arguments: JsonValue):
        call = box.prepare("mcp__srv__read_resource", arguments, stage.context())
        assert call.intent.access == "outside"
        return await call.run()

    memo = await read(uri="memo://a")
    assert memo.for_model == "Buy\nmilk"
    assert [image.mime_type for image in memo.images] == ["image/png"]
    assert (await read()).for_model == "memo://a  The memo\nmemo://{name}  memo"
    with pytest.raises(ToolError, match="srv: not there"):
        await read(uri="memo://b")


async def test_what_can_be_mentioned_are_servers_and_then_their_resources(stage):
    await stage.ready("library")
    choices = stage.hub.resource_choices
    assert await choices("sr") == {"srv:": "resources of an MCP server"}
    assert await choices("srv:") == {"srv:memo://a": "The memo"}
    assert await choices("other:") == {}
    await stage.hub.aclose()
    assert await choices("srv:") == await choices("") == {}


async def test_servers_without_resources_have_no_tool_for_them_nor_those_whose_person_said_no(
    stage,
):
    stage.add("plain")
    stage.add("quiet", fault="library", picks=ToolPicks(exclude=("read_resource",)))
    await stage.take_up()
    assert not [name for name in stage.offered() if name.endswith("read_resource")]


async def test_a_resource_goes_along_only_from_a_server_that_runs(stage):
    await stage.ready("library")
    read = await stage.hub.read_resource("srv", "memo://a", OutputLimits())
    assert read is not None
    assert read.for_model == "Buy\nmilk"
    assert await stage.hub.read_resource("other", "memo://a", OutputLimits()) is None
