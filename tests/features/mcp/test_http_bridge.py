"""Servers at an address, through the process that has the SDK."""

import asyncio
import json
import sys
from importlib.util import find_spec

import pytest

from agent_tui.errors import ToolError
from agent_tui.features.mcp.http_bridge import Bridge
from agent_tui.features.mcp.server import bridge_environ
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.installation import install_command
from agent_tui.messages import JsonObject
from agent_tui.tools.form import Elicitation, accept_form
from agent_tui.tools.registry import default_toolbox
from tests.support.mcp_http_server import TOOL, McpHttpServer
from tests.support.mcp_servers import KEY

HAS_SDK = find_spec("mcp") is not None


def asked(request_id: int, method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


async def test_without_the_sdk_one_line_says_what_to_install(monkeypatch):
    for name in ("mcp", "mcp.client.streamable_http"):  # another test may have imported it
        monkeypatch.setitem(sys.modules, name, None)
    lines, said = asyncio.StreamReader(), []
    lines.feed_data(asked(1, "initialize"))
    lines.feed_eof()
    await Bridge("x", "http://x", {}, lambda line: said.append(line)).run(lines)
    (answer,) = map(json.loads, said)
    assert install_command("mcp") in answer["error"]["message"]


def test_the_address_and_the_headers_are_in_no_command_line():
    environ = bridge_environ("x", "https://x/?key=1", {"Authorization": "Bearer: t"})
    assert environ == {
        "AGENT_TUI_MCP_NAME": "x",
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
    versions = [headers.get("mcp-protocol-version") for headers in far.headers]
    assert versions == ["2026-07-28", None, *["2025-06-18"] * (len(versions) - 2)]
    assert far.methods[:2] == ["server/discover", "initialize"]
    assert KEY not in json.dumps(far.headers)


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
@pytest.mark.parametrize(("status", "why"), [(401, "requires a key"), (403, "rejected this key")])
async def test_a_refused_key_is_said(stage, status, why):
    with McpHttpServer() as far:
        far.refusal = status
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert why in stage.hub.servers[0].why
        tried = ["server/discover", "initialize", "server/discover"]
        assert far.methods == (tried[:1] if status == 401 else tried)
        await stage.hub.aclose()


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_answers_and_errors_come_back_as_the_server_gives_them():
    with McpHttpServer() as far:
        lines, said = asyncio.StreamReader(), asyncio.Queue[bytes]()
        running = asyncio.create_task(Bridge("srv", far.url, {}, said.put_nowait).run(lines))
        lines.feed_data(asked(1, "initialize"))
        assert json.loads(await said.get())["result"]["serverInfo"] == {
            "name": "far",
            "version": "1",
        }
        lines.feed_data(asked(2, "roots/list"))
        error = {"code": -32601, "message": "no roots/list"}
        assert json.loads(await said.get()) == {"jsonrpc": "2.0", "id": 2, "error": error}
        lines.feed_eof()
        await running
    versions = [headers.get("mcp-protocol-version") for headers in far.headers]
    assert versions == [None, "2025-06-18"]


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_a_server_that_is_gone_fails_each_request_with_the_reason(stage):
    with McpHttpServer() as far:
        url = far.url
    stage.add(argv=(), url=url)
    await stage.take_up()
    assert "connection attempts failed" in stage.hub.servers[0].why


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_a_server_without_a_handshake_is_told_what_is_called_and_may_ask(stage):
    async def fill(form: Elicitation) -> JsonObject:
        return accept_form({"said": form.message})

    stage.hub.let_answer(fill)
    with McpHttpServer() as far:
        far.has_handshake = False
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert stage.hub.offer.instructions == (("srv", "Be kind."),)
        assert "initialize" not in far.methods
        box = CombinedToolbox(default_toolbox(), stage.hub)
        said = await box.prepare("mcp__srv__echo", {"text": "hi"}, stage.context()).run()
        await stage.hub.aclose()
    answer = {"one": {"action": "accept", "content": {"said": "Who?"}}}
    result, _, told = said.for_model.partition("\n")
    assert json.loads(result) == [answer, "kept"]
    assert told == "[the user answered the server: Who? -> said: Who?]"
    sent = {name.lower(): value for name, value in far.headers[-1].items()}
    assert sent["mcp-protocol-version"] == "2026-07-28"
    assert (sent["mcp-method"], sent["mcp-name"]) == ("tools/call", "echo")
    assert sent["mcp-param-text"] == "hi"


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
@pytest.mark.parametrize(
    ("supported", "methods"),
    [
        (["2026-07-28"], ["server/discover"] * 2),
        (["2031-01-01"], ["server/discover", "initialize", "server/discover"]),
    ],
)
async def test_a_version_that_is_refused_is_tried_again_if_the_server_has_it(
    stage, supported, methods
):
    with McpHttpServer() as far:
        far.has_handshake = False
        far.supported = supported
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert stage.hub.servers[0].why == ""
        await stage.hub.aclose()
    assert far.methods == [*methods, "tools/list"]


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
@pytest.mark.parametrize("has_handshake", [False, True])
async def test_a_tool_whose_arguments_cannot_be_sent_as_headers_is_left_out(stage, has_handshake):
    with McpHttpServer() as far:
        far.has_handshake = has_handshake
        text = {"type": "string", "x-mcp-header": "no\r\ntoken"}
        bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"text": text}}}
        far.tools = [bad, TOOL]
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        (shown,) = stage.hub.servers
        await stage.hub.aclose()
    if has_handshake:  # these versions know no such headers
        assert (shown.tools, shown.notes) == (("bad", "echo"), ())
    else:
        assert shown.tools == ("echo",)
        assert "'bad' left out: property 'text': x-mcp-header" in shown.notes[0]


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_a_key_that_lacks_a_right_is_said_and_the_server_stays_ready(stage):
    with McpHttpServer() as far:
        far.lacking_scope = "files:write"
        stage.add(argv=(), url=far.url, headers={"Authorization": "Bearer ${TOKEN_OF_MINE}"})
        await stage.take_up()
        box = CombinedToolbox(default_toolbox(), stage.hub)
        with pytest.raises(ToolError, match="this key lacks the scope files:write"):
            await box.prepare("mcp__srv__echo", {"text": "hi"}, stage.context()).run()
        assert stage.hub.servers[0].state == "ready"
        await stage.hub.aclose()


@pytest.mark.skipif(not HAS_SDK, reason="needs the extra mcp")
async def test_a_connection_that_is_lost_fails_the_call_and_is_tried_again_once(stage):
    why = "Server disconnected without sending a response"
    with McpHttpServer() as far:
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        far.hangs_up = True
        box = CombinedToolbox(default_toolbox(), stage.hub)
        with pytest.raises(ToolError, match=f"srv: {why}"):
            await box.prepare("mcp__srv__echo", {"text": "hi"}, stage.context()).run()
        while stage.hub.servers[0].state != "failed":
            await asyncio.sleep(0.01)
    again, failed = stage.told
    assert again == f"MCP server srv: it exited with code 1: {why}; restarting it."
    assert failed == f"MCP server srv: {why}. To try again: /mcp restart srv."


def test_a_header_that_cannot_be_sent_is_refused_and_not_shown():
    with pytest.raises(ToolError, match="header Authorization for far") as told:
        bridge_environ("far", "https://x.invalid", {"Authorization": "Bearer s3cret\nX: 1"})
    assert "s3cret" not in str(told.value)
