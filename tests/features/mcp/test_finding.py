"""Finding tools of servers that do not fit the context."""

import json

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.mcp.finding import (
    ServerLine,
    describe_found,
    finder_specs,
    parse_call,
    search_tools,
)
from agent_tui.features.mcp.remote_tools import RemoteTool
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.messages import ToolSpec
from agent_tui.tools.registry import default_toolbox
from agent_tui.tools.server_spec import ToolPicks
from agent_tui.tools.shorten import OutputLimits
from tests.support.rows import each_row


def remote(own_name: str, description: str, server: str = "srv") -> RemoteTool:
    spec = ToolSpec(name=f"mcp__{server}__{own_name}", description=description, parameters={})
    return RemoteTool(server, own_name, spec)


TOOLS = (
    remote("create_issue", "Open a ticket in the tracker."),
    remote("listIssues", "All tickets of the tracker."),
    remote("send_mail", "Write to a person of the tracker."),
    remote("rain", "How the weather is.", server="sky"),
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create an issue", "create_issue"),
        ("LIST ISSUES", "listIssues"),
        ("weather", "rain"),
        ("sky", "rain"),
        ("mails", "send_mail"),
    ],
)
def test_what_fits_best_comes_first(query, first):
    assert search_tools(query, TOOLS)[0].own_name == first


def test_what_fits_nothing_is_said():
    assert search_tools("zebra", TOOLS) == []
    output, names = describe_found("zebra", [], OutputLimits())
    assert "No tool matches 'zebra'" in output.for_model
    assert names == ()


def test_found_tools_are_told_whole_as_far_as_there_is_room():
    output, names = describe_found("x", TOOLS, OutputLimits(max_bytes=120))
    assert names == ("mcp__srv__create_issue",)
    assert "arguments: {}" in output.for_model
    assert "Other matches: mcp__srv__listIssues, mcp__srv__send_mail" in output.for_model


def test_the_servers_share_a_bounded_room():
    finder, _ = finder_specs([ServerLine(f"s{n}", "words " * 50, 3) for n in range(32)])
    assert "\ns31 (3): words" in finder.description
    assert len(finder.description) < 3_000


@each_row(
    ("arguments", "meant"),
    [
        ({"name": "mcp__a__b", "arguments": {"c": 1}}, ("mcp__a__b", {"c": 1})),
        ({"name": "mcp__a__b", "arguments": '{"c": 1}'}, ("mcp__a__b", {"c": 1})),
        ({"name": "mcp__a__b"}, ("mcp__a__b", {})),
        ({"name": "mcp__a__b", "arguments": "{"}, None),
        ({"name": "bash", "arguments": {"command": "ls"}}, None),
        ({}, None),
    ],
)
def test_a_call_of_a_found_tool_is_that_tools_call_and_no_tool_of_ours(arguments, meant):
    assert parse_call(arguments) == meant


async def test_what_is_found_is_called_at_once_and_offered_in_the_next_turn(stage):
    await stage.ready("many tools")
    box = CombinedToolbox(default_toolbox(), stage.hub)
    said = await box.prepare("find_tools", {"query": "echo"}, stage.context()).run()
    assert said.for_model.startswith("Tools, as their servers describe them:\n\n## mcp__srv__echo")
    assert stage.hub.offer.found == ()
    given = {"name": "mcp__srv__echo", "arguments": {"text": "hi"}}
    meant = box.translate_call("call_tool", given, stage.folder)
    called = await box.prepare(meant.name, meant.arguments, stage.context()).run()
    assert called.for_model == "hi"
    assert await stage.take_up() is True
    assert stage.hub.offer.found == ("mcp__srv__echo",)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("find_tools", {}), ("find_tools", {"query": ""}), ("call_tool", {"name": "bash"})],
)
async def test_wrong_arguments_are_answered_in_words(stage, name, arguments):
    box = CombinedToolbox(default_toolbox(), stage.hub)
    with pytest.raises(ToolError, match="was not run"):
        box.check(name, arguments)


async def test_the_person_picks_tools_and_which_come_first(stage):
    picks = ToolPicks(("*_issue", "get_*"), ("delete_*",), ("get_runner",))
    stage.add(fault="many tools", picks=picks)
    await stage.take_up()
    names = [spec.name.removeprefix("mcp__srv__") for spec in stage.hub.offer.specs]
    assert names[0] == "get_runner"
    assert len(names) == 8 + 7  # of issues all but one, and what else can be got
    assert "delete_issue" not in names


async def test_a_tool_that_runs_only_as_a_task_is_left_out_and_the_server_says_what_it_is(stage):
    await stage.ready("bad tools")
    (shown,) = stage.hub.servers
    assert "tool 'later' left out: it runs only as a task, which is not supported" in shown.notes
    finder, _ = stage.hub.offer.finders
    assert f"srv ({len(shown.tools)}): A small server." in finder.description
    json.dumps(finder.parameters)
