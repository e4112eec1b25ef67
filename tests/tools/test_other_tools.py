"""Tools that are seldom used take a line each in the prompt, and say more when they are asked."""

from pathlib import Path

import pytest

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolContext
from agent_tui.tools.other_tools import OTHER_TOOL, gather_seldom_tools
from agent_tui.tools.registry import default_toolbox
from tests.support.offered import offered
from tests.support.tool_calls import call_tool

CWD = Path("/work")


def test_seldom_used_tools_are_offered_in_a_line_each():
    specs = default_toolbox().specs
    tools = {spec.name: spec for spec in offered(specs, "any")}
    seldom = [spec for spec in specs if spec.is_seldom]
    assert {spec.name for spec in seldom} == {"scope", "fetch", "web_search", "why"}
    assert not tools.keys() & {spec.name for spec in seldom}
    lines = tools[OTHER_TOOL].description.splitlines()[1:]
    assert lines == [f"{spec.name}: {spec.description.splitlines()[0]}" for spec in seldom]


def test_the_mark_of_a_seldom_used_tool_is_not_sent():
    spec = next(spec for spec in default_toolbox().specs if spec.is_seldom)
    assert "seldom" not in spec.model_dump_json()


def test_without_such_tools_there_is_no_tool_for_them():
    specs = [spec for spec in default_toolbox().specs if not spec.is_seldom]
    assert OTHER_TOOL not in {spec.name for spec in gather_seldom_tools(specs)}


@pytest.mark.parametrize("arguments", [{"path": "a.py"}, '{"path": "a.py"}'])
def test_a_call_with_arguments_is_one_of_the_tool_that_it_names(arguments: object):
    given = {"name": "why", "arguments": arguments}
    understood = default_toolbox().translate_call(OTHER_TOOL, given, CWD)  # pyright: ignore[reportArgumentType]
    assert (understood.name, understood.arguments) == ("why", {"path": "a.py"})


async def test_a_call_without_arguments_says_how_to_use_the_tool(context: ToolContext):
    toolbox = default_toolbox()
    assert toolbox.translate_call(OTHER_TOOL, {"name": "why"}, CWD).name == OTHER_TOOL
    told = (await call_tool(context, OTHER_TOOL, {"name": "why"})).for_model
    assert "Before changing or removing code" in told
    assert '"path":{"type":"string"}' in told


def test_a_tool_that_is_not_among_them_is_refused_with_their_names(context: ToolContext):
    with pytest.raises(
        ToolError, match=r"no tool 'bash'\. Its tools: scope, fetch, web_search, why"
    ):
        default_toolbox().prepare(OTHER_TOOL, {"name": "bash"}, context)
