"""Passes messages between stdin and stdout and an MCP server at an address.

``python -m agent_tui.features.mcp.http_bridge``: JSON-RPC lines on stdin and stdout; the address
and the headers are in the environment. Only this process imports the SDK, which takes a second and
60 MB. It uses only the SDK's transport: `McpServer` speaks the protocol, as with programs.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from pydantic import JsonValue

from agent_tui.features.mcp.connection import MAX_MESSAGE_BYTES
from agent_tui.features.mcp.json_rpc import FROM_BRIDGE, error_line
from agent_tui.features.mcp.oauth import TokenFile, innermost, want_json
from agent_tui.features.mcp.remote_tools import UNUSABLE
from agent_tui.installation import install_command
from agent_tui.messages import JsonObject

if TYPE_CHECKING:  # takes a second to import, and the extra may be missing
    import httpx2
    from mcp.client import Transport
    from mcp_types import JSONRPCMessage

_NAME_VARIABLE: Final = "AGENT_TUI_MCP_NAME"
_URL_VARIABLE: Final = "AGENT_TUI_MCP_URL"
_TOKENS_VARIABLE: Final = "AGENT_TUI_MCP_TOKENS"
_HEADER_VARIABLE: Final = "AGENT_TUI_MCP_HEADER_"

_CONNECT_S = 30.0


class Bridge:
    """Passes messages to the server at `url`, and its answers back.

    Args:
        name: The server's name, for advice.
        url: The server's address.
        headers: Sent with every request.
        write: Called with each line from the server.
        tokens: The file with the login tokens; None without a login.
    """

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        write: Callable[[bytes], None],
        tokens: Path | None = None,
    ) -> None:
        self._url = url
        self._login = f"agent-tui mcp login {name}"
        self._headers = headers
        self._write = write
        self._tokens = tokens
        self._refusals: dict[JsonValue, JsonObject] = {}
        self._waiting: dict[JsonValue, str] = {}
        self._version = ""
        self._schemas: dict[str, JsonObject] = {}

    async def run(self, lines: asyncio.StreamReader) -> str:
        """Pass messages on until `lines` end or the connection fails.

        Returns:
            Why it failed, which is also the answer to open requests; empty at the end of input.
        """
        line = await lines.readline()
        self._note_request(line)
        try:
            async with self._connect() as transport:
                await self._exchange(line, lines, transport)
        except ModuleNotFoundError:
            return self._fail(f"it needs the package mcp: {install_command('mcp')}")
        except Exception as error:  # noqa: BLE001 - the pump: any error becomes an answer
            cause = innermost(error)
            return self._fail(str(cause) or type(cause).__name__)
        return ""

    @asynccontextmanager
    async def _connect(self) -> "AsyncGenerator[Transport]":
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from agent_tui.features.mcp.stored_login import StoredLogin

        auth = StoredLogin(self._url, self._tokens) if self._tokens else None
        async with httpx2.AsyncClient(
            auth=auth,
            headers=dict(self._headers),
            timeout=httpx2.Timeout(_CONNECT_S, read=None),  # `McpServer` has the timeouts
            event_hooks={"request": [want_json], "response": [self._note_refusal]},
        ) as client:
            yield streamable_http_client(
                self._url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            )

    async def _exchange(
        self, line: bytes, lines: asyncio.StreamReader, transport: "Transport"
    ) -> None:
        from mcp.shared.message import ClientMessageMetadata, SessionMessage
        from mcp_types import jsonrpc_message_adapter

        async with transport as (incoming, outgoing):

            async def pass_back() -> None:
                async for item in incoming:
                    if not isinstance(item, Exception):
                        self._pass_back(item.message)

            passing = asyncio.create_task(pass_back())
            try:
                while line:
                    headers = self._routing_headers(json.loads(line))
                    message = jsonrpc_message_adapter.validate_json(line)
                    metadata = ClientMessageMetadata(headers=headers)
                    await outgoing.send(SessionMessage(message, metadata))
                    line = await lines.readline()
                    self._note_request(line)
            finally:
                passing.cancel()

    def _note_request(self, line: bytes) -> None:
        match json.loads(line or b"{}"):
            case {"method": str(method), "id": int(request_id)}:
                self._waiting[request_id] = method
            case _:
                pass

    def _pass_back(self, given: "JSONRPCMessage") -> None:
        message = cast(JsonObject, given.model_dump(mode="json", by_alias=True, exclude_unset=True))
        if "method" not in message:
            asked = self._waiting.pop(message.get("id"), "")
            refusal = self._refusals.pop(message.get("id"), {})
            match message:
                case {"error": dict(error)}:
                    error.update(refusal)
                case {"result": {"protocolVersion": str(version)}} if asked == "initialize":
                    self._version = version
                case {"result": {"tools": list(tools)}} if asked == "tools/list":
                    if not self._version:
                        self._note_schemas(tools)
                case _:
                    pass
        self._write(json.dumps(message).encode() + b"\n")

    def _note_schemas(self, tools: Sequence[JsonValue]) -> None:
        """Remember which arguments go into HTTP headers, and mark tools whose headers are invalid.

        Clients must leave those out (MCP 2026-07-28, transports).
        """
        from mcp.shared import inbound

        for tool in tools:
            match tool:
                case {"name": str(name), "inputSchema": dict(schema)}:
                    self._schemas[name] = schema
                    if why := inbound.find_invalid_x_mcp_header(schema):
                        tool["_meta"] = {UNUSABLE: why}
                case _:
                    pass

    def _routing_headers(self, message: JsonObject) -> dict[str, str]:
        """The HTTP headers the protocol requires with `message`: its version, and what it calls.

        Only versions without a handshake need more than the version (MCP 2026-07-28, transports).
        """
        from mcp.shared import inbound

        match message:
            case {
                "method": str(method),
                "params": {
                    "_meta": {"io.modelcontextprotocol/protocolVersion": str(version)},
                    **params,
                },
            }:
                headers = {
                    inbound.MCP_PROTOCOL_VERSION_HEADER: version,
                    inbound.MCP_METHOD_HEADER: method,
                }
                name = params.get(inbound.NAME_BEARING_METHODS.get(method, ""))
                if isinstance(name, str):
                    headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
                    names = inbound.x_mcp_header_map(self._schemas.get(name, {}))
                    arguments = params.get("arguments")
                    given = arguments if isinstance(arguments, dict) else {}
                    headers |= inbound.mcp_param_headers(names, given)
                return headers
            case _:
                return {inbound.MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}

    async def _note_refusal(self, response: "httpx2.Response") -> None:
        """Remember why a request was refused: the SDK does not pass it on."""
        match _json(response.request.content):
            case {"id": int(request_id)}:
                self._refusals[request_id] = self._refusal(response)
            case _:
                pass

    def _refusal(self, response: "httpx2.Response") -> JsonObject:
        """What the error of a refused request says; nothing if it was not refused."""
        match response.status_code:
            case HTTPStatus.UNAUTHORIZED:
                why = (
                    f"it requires a key or a login (HTTP 401): run {self._login}, "
                    "or name the variable with its key in headers_env"
                )
                return {"message": why, "code": FROM_BRIDGE}
            case HTTPStatus.FORBIDDEN:  # perhaps only of this method: no reason to give up
                return {"message": self._lack(response)}
            case _:
                return {}

    def _lack(self, response: "httpx2.Response") -> str:
        """Why a request with a key or a login was refused."""
        from mcp.client.auth.utils import extract_field_from_www_auth

        scope = extract_field_from_www_auth(response, "scope")
        if extract_field_from_www_auth(response, "error") == "insufficient_scope" and scope:
            if self._tokens is None:
                return f"this key lacks the scope {scope} (HTTP 403)"
            TokenFile(self._tokens).want_scope(scope)
            return f"log in again with {self._login}: it wants the scope {scope}"
        whom = "this key" if self._tokens is None else "this login"
        return f"it rejected {whom} (HTTP 403)"

    def _fail(self, why: str) -> str:
        for request_id in self._waiting:
            self._write(error_line(request_id, FROM_BRIDGE, why))
        return why


def main() -> None:
    """Serve until stdin closes; if the connection failed, the last line on stderr says so."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break a line

    def write(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    async def serve() -> str:
        lines = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
        )
        tokens = os.environ.get(_TOKENS_VARIABLE)
        return await Bridge(
            os.environ[_NAME_VARIABLE],
            os.environ[_URL_VARIABLE],
            _headers(os.environ),
            write,
            Path(tokens) if tokens else None,
        ).run(lines)

    sys.exit(asyncio.run(serve()) or 0)


def _json(content: bytes) -> JsonValue:
    """The JSON in `content`; None if it is none, such as the form that renews a token."""
    try:
        return cast("JsonValue", json.loads(content))
    except ValueError:
        return None


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    given = (value for name, value in environ.items() if name.startswith(_HEADER_VARIABLE))
    parts = (value.partition(": ") for value in given)
    return {name: value for name, _, value in parts}


if __name__ == "__main__":
    main()
