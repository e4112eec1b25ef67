"""Servers that mean harm: what they list, answer and write is bounded, readable and harmless."""

import sys
from dataclasses import replace

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.mcp import connection
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.tools.registry import default_toolbox
from tests.support import hostile_mcp_server
from tests.support.hostile_mcp_server import MANY, OWN_NAMES
from tests.support.mcp_servers import Stage
from tests.support.patience import PATIENCE_S

WORDS = 120
"""More is no line for a person."""


async def meet(stage: Stage, way: str) -> None:
    argv = (sys.executable, "-I", "-S", hostile_mcp_server.__file__, way)
    stage.add(argv=argv, timeout_s=PATIENCE_S)
    await stage.take_up()
    assert stage.hub.servers[0].state == "ready", stage.hub.servers[0].why


async def call(stage: Stage) -> str:
    box = CombinedToolbox(default_toolbox(), stage.hub)
    return (await box.prepare("mcp__srv__do", {}, stage.context()).run()).for_model


@pytest.mark.parametrize(
    ("way", "offered", "note"),
    [
        ("many tools", 128, f"{MANY - 127:,} tools left out: more than 128"),
        ("many bad tools", 1, f"{MANY - 50:,} more tools left out"),
        ("endless pages", 1, "is over 12,000 characters"),
        ("long words", 1, ""),
    ],
)
async def test_of_what_is_listed_only_so_much_is_taken(stage, way: str, offered: int, note: str):
    await meet(stage, way)
    (server,) = stage.hub.servers
    assert len(server.tools) == offered
    assert note in "".join(server.notes[-1:])
    assert len(server.notes) <= 51
    assert all(len(tool.spec.description) <= 1_501 for tool in stage.hub.offered)
    assert all(len(line) < 2 * WORDS for line in stage.told)
    assert await call(stage) == "done"


async def test_no_name_of_a_servers_tool_is_one_of_ours(stage):
    await meet(stage, "own names")
    box = CombinedToolbox(default_toolbox(), stage.hub)
    names = [spec.name for spec in box.specs]
    assert len(names) == len(set(names)) == len(default_toolbox().specs) + 1 + len(OWN_NAMES)
    assert all(name.startswith("mcp__srv__") for name in stage.offered())
    context = stage.context()
    intent = box.prepare("bash", {"command": "true"}, context).intent
    assert (intent.access, intent.command) == ("execute", "true")
    assert box.prepare("mcp__srv__bash", {}, context).intent.access == "outside"
    assert not any("\x1b" in spec.description or "\u202e" in spec.description for spec in box.specs)


@pytest.mark.parametrize(
    ("way", "result"),
    [
        ("rather deep", "[\n [\n  ["),
        ("no UTF-8", "a\ufffd\ufffd\ufffdb"),
        ("twice", "first"),
        ("progress flood", "done"),
        ("garbage flood", "done"),
        ("request flood", "done"),
        pytest.param("stderr flood", "done", marks=pytest.mark.thorough),
    ],
)
async def test_a_strange_answer_is_given_and_the_next_call_works(stage, way: str, result: str):
    await meet(stage, way)
    for _ in range(2):
        assert (await call(stage)).startswith(result)
    assert stage.hub.servers[0].state == "ready"
    assert sum(map(len, stage.told)) < 100 * (connection._MAX_PROGRESS_CHARS + 1)


async def test_a_server_that_does_not_read_its_answers_takes_no_memory(stage):
    await meet(stage, "request flood")
    await call(stage)
    unread = stage.hub._servers["srv"]._connection._stdin.transport.get_write_buffer_size()
    assert unread < 2 * connection._MAX_UNREAD_REPLIES_BYTES


async def test_an_answer_that_is_nested_too_deeply_fails_its_call_at_once(stage):
    await meet(stage, "deep")
    for _ in range(2):
        with pytest.raises(ToolError, match="srv: it sent a message that is nested too deeply"):
            await call(stage)


async def test_a_server_that_never_answers_is_told_to_stop(stage):
    await meet(stage, "silence")
    server = stage.hub._servers["srv"]
    server.spec = replace(server.spec, timeout_s=0.5)
    with pytest.raises(ToolError, match=r"did not answer within 0.5 s and was told to stop"):
        await call(stage)


async def test_a_server_that_ends_in_the_middle_of_an_answer_is_started_again_once(stage):
    await meet(stage, "half")
    with pytest.raises(ToolError, match="stopped during this call"):
        await call(stage)
    await stage.take_up()
    assert stage.told == ["MCP server srv: it exited with code 3; restarting it."]
    with pytest.raises(ToolError, match="stopped during this call"):
        await call(stage)


@pytest.mark.thorough
async def test_a_flood_of_complaints_leaves_a_log_that_is_bounded_and_harmless(stage):
    await meet(stage, "stderr flood")
    await call(stage)
    logs = [path.read_bytes() for path in stage.log_path.parent.iterdir()]
    assert 1 <= len(logs) <= 2
    assert all(len(log) <= 1_000_000 and b"\x1b" not in log for log in logs)
