"""The protocol's own test server, `@modelcontextprotocol/server-everything`, over both wires.

``AGENT_TUI_MCP_EVERYTHING`` names the folder of that npm package.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import JsonValue

from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.messages import JsonObject
from agent_tui.tools.base import ToolOutput
from agent_tui.tools.form import Elicitation, accept_form
from agent_tui.tools.registry import default_toolbox
from tests.support.mcp_servers import Stage

PROGRAM = Path(os.environ.get("AGENT_TUI_MCP_EVERYTHING", "/nowhere")) / "dist" / "index.js"
RESOURCE = "demo://resource/dynamic/text/1"

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        not (PROGRAM.is_file() and shutil.which("node")),
        reason="AGENT_TUI_MCP_EVERYTHING names no package, or there is no node",
    ),
]


@pytest.fixture(params=["stdio", "http"])
async def everything(
    request: pytest.FixtureRequest, stage: Stage
) -> AsyncGenerator[tuple[Stage, list[Elicitation]]]:
    """The hub with the server, and the forms it had filled."""
    asked: list[Elicitation] = []

    async def fill(form: Elicitation) -> JsonObject:
        asked.append(form)
        return accept_form({"name": "Ada"})

    stage.hub.let_answer(fill)
    if request.param == "stdio":
        stage.add(argv=("node", str(PROGRAM), "stdio"))
        await stage.take_up()
        yield stage, asked
        return
    if find_spec("mcp") is None:
        pytest.skip("needs the extra mcp")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = await asyncio.create_subprocess_exec(
        "node",
        str(PROGRAM),
        "streamableHttp",
        env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        stage.add(argv=(), url=f"http://127.0.0.1:{port}/mcp")
        await stage.take_up()
        yield stage, asked
        await stage.hub.aclose()
    finally:
        running.kill()
        await running.wait()


async def listening(port: int) -> None:
    for _ in range(2_000):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return
    raise AssertionError("the server does not listen")


async def call(stage: Stage, name: str, **arguments: JsonValue) -> ToolOutput:
    box = CombinedToolbox(default_toolbox(), stage.hub)
    return await box.prepare(f"mcp__srv__{name}", arguments, stage.context()).run()


async def test_each_tool_does_what_it_is_for(everything):
    stage, asked = everything
    (shown,) = stage.hub.servers
    assert (shown.state, shown.why) == ("ready", "")
    assert "only as a task" in " ".join(shown.notes)
    assert (await call(stage, "echo", message="hi")).for_model == "Echo: hi"
    assert "is 3" in (await call(stage, "get-sum", a=1, b=2)).for_model
    assert len((await call(stage, "get-tiny-image")).images) == 1
    weather = await call(stage, "get-structured-content", location="New York")
    assert "temperature" in weather.for_model
    said = await call(stage, "get-annotated-message", messageType="error")
    assert "Operation failed" in said.for_model
    await call(stage, "trigger-long-running-operation", duration=0.1, steps=2)
    assert stage.told[-2:] == ["1 of 2\n", "2 of 2\n"]
    assert RESOURCE in (await call(stage, "get-resource-links", count=2)).for_model.replace(
        "text/2", "text/1"
    )
    assert RESOURCE in (await call(stage, "get-resource-reference", resourceId=1)).for_model
    assert "Ada" in (await call(stage, "trigger-elicitation-request")).for_model
    assert len(asked[0].fields) > 10


async def test_instructions_prompts_and_resources_come_through(everything):
    stage, _ = everything
    (_, instructions), *_ = stage.hub.offer.instructions
    assert "Everything" in instructions
    prompts = {prompt.name: prompt for prompt in stage.hub.prompts}
    assert prompts["srv:args-prompt"].hint == "<city> [state]"
    said = await stage.hub.prompt(prompts["srv:args-prompt"], "Ulm")
    assert said == "What's weather in Ulm?"
    assert "demo://resource/" in (await call(stage, "read_resource")).for_model
    assert "Resource 1" in (await call(stage, "read_resource", uri=RESOURCE)).for_model
