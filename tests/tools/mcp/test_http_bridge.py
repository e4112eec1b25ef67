"""Servers at an address, through the process that has the SDK."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from agent_tui.installation import install_command
from agent_tui.messages import JsonObject
from agent_tui.tools.mcp.http_bridge import Bridge
from agent_tui.tools.mcp.launch import bridge_environ
from agent_tui.tools.mcp.toolbox import CombinedToolbox
from agent_tui.tools.registry import default_toolbox
from tests.support.mcp_http_server import McpHttpServer
from tests.support.mcp_servers import KEY

HAS_SDK = find_spec("mcp") is not None


class Dumped:
    def __init__(self, **values: object) -> None:
        self.values = values

    def model_dump(self, **_how: object) -> dict[str, object]:
        return self.values


class FakeClient:
    """As much of the SDK's client as the bridge uses."""

    def __init__(self) -> None:
        self.is_slow = asyncio.Event()
        self.was_cancelled = False

        self.server_info = Dumped(name="far")
        self.server_capabilities = Dumped(tools={}, prompts={})
        self.instructions = "Be kind."
        self.list_prompts = self.list_resources = self.list_resource_templates = self.list_tools

    async def get_prompt(self, name: str, arguments: JsonObject) -> Dumped:
        return Dumped(messages=[name, arguments])

    async def read_resource(self, uri: str, *, cache_mode: str) -> Dumped:
        return Dumped(contents=[uri, cache_mode])

    async def list_tools(self, *, cursor: str | None, cache_mode: str) -> Dumped:
        return Dumped(tools=[cursor, cache_mode])

    async def call_tool(
        self, name: str, arguments: JsonObject, *, progress_callback: Callable[..., object]
    ) -> Dumped:
        if name == "fail":
            raise ExceptionGroup("all", [ValueError("the far side said no")])
        if name == "slow":
            await progress_callback(1, None, "half")  # pyright: ignore[reportGeneralTypeIssues]
            self.is_slow.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
        return Dumped(content=[name, arguments])


class ToolListChangedNotification:
    pass


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    made = FakeClient()

    @asynccontextmanager
    async def connected(
        _transport: object, *, message_handler, elicitation_callback
    ) -> AsyncGenerator[FakeClient]:
        await message_handler(ToolListChangedNotification())
        yield made

    @asynccontextmanager
    async def http(**_given: object) -> AsyncGenerator[object]:
        yield object()

    modules = {
        "mcp": SimpleNamespace(Client=connected),
        "mcp.client.streamable_http": SimpleNamespace(streamable_http_client=lambda *a, **k: None),
        "httpx2": SimpleNamespace(AsyncClient=http, Timeout=lambda *a, **k: None),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return made


def asked(request_id: int, method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


async def test_requests_are_handed_on_and_errors_come_back_in_words(client):
    lines, said = asyncio.StreamReader(), []
    running = asyncio.create_task(Bridge("http://x", {}, lambda b: said.append(b)).run(lines))
    lines.feed_data(asked(1, "initialize") + asked(2, "tools/list", cursor="c"))
    lines.feed_data(asked(3, "tools/call", name="add", arguments={"a": 1}))
    lines.feed_data(asked(4, "tools/call", name="fail") + asked(5, "roots/list"))
    lines.feed_data(asked(7, "prompts/get", name="p", arguments={"n": 1}))
    lines.feed_data(asked(8, "resources/read", uri="u:1") + asked(9, "prompts/list"))
    lines.feed_data(asked(6, "tools/call", name="slow"))
    await client.is_slow.wait()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 6}}
    lines.feed_data(json.dumps(cancel).encode() + b"\n")
    while not client.was_cancelled:
        await asyncio.sleep(0)
    lines.feed_eof()
    await running
    answers = [json.loads(line) for line in said]
    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert by_id[1]["result"]["capabilities"] == {"tools": {}, "prompts": {}}
    assert by_id[1]["result"]["serverInfo"] == {"name": "far"}
    assert by_id[1]["result"]["instructions"] == "Be kind."
    assert by_id[2]["result"] == {"tools": ["c", "refresh"]}
    assert by_id[3]["result"] == {"content": ["add", {"a": 1}]}
    assert by_id[4]["error"]["message"] == "the far side said no"
    assert "roots/list is not supported" in by_id[5]["error"]["message"]
    assert by_id[7]["result"] == {"messages": ["p", {"n": "1"}]}
    assert by_id[8]["result"] == {"contents": ["u:1", "refresh"]}
    assert by_id[9]["result"] == {"tools": [None, "refresh"]}
    assert 6 not in by_id
    changed, progress = [answer for answer in answers if "method" in answer]
    assert changed["method"] == "notifications/tools/list_changed"
    assert progress["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": 6, "progress": 1, "message": "half"}


async def test_without_the_sdk_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    lines, said = asyncio.StreamReader(), []
    lines.feed_data(asked(1, "initialize"))
    lines.feed_eof()
    await Bridge("http://x", {}, lambda line: said.append(line)).run(lines)
    (answer,) = map(json.loads, said)
    assert install_command("mcp") in answer["error"]["message"]


def test_the_address_and_the_headers_are_in_no_command_line():
    environ = bridge_environ("https://x/?key=1", {"Authorization": "Bearer: t"})
    assert environ == {
        "AGENT_TUI_MCP_URL": "https://x/?key=1",
        "AGENT_TUI_MCP_HEADER_0": "Authorization: Bearer: t",
    }


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_a_server_at_an_address_is_spoken_with_through_the_sdk(stage):
    with McpHttpServer() as far:
        stage.add(argv=(), url=far.url, headers={"Authorization": "Bearer ${TOKEN_OF_MINE}"})
        await stage.take_up()
        assert stage.hub.servers[0].why == ""
        box = CombinedToolbox(default_toolbox(), stage.hub)
        said = await box.prepare("mcp__srv__echo", {"text": "hi"}, stage.context()).run()
        assert json.loads(said.for_model) == {"text": "hi"}
        await stage.hub.aclose()
    assert {headers.get("Authorization") for headers in far.headers} == {"Bearer s3cret-token-1"}
    assert KEY not in json.dumps(far.headers)


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
@pytest.mark.parametrize(("status", "why"), [(401, "requires a key"), (403, "rejected this key")])
async def test_a_refused_key_is_said(stage, status, why):
    with McpHttpServer() as far:
        far.refusal = status
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert why in stage.hub.servers[0].why
        await stage.hub.aclose()
