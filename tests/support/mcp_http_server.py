"""A small MCP server at an address on loopback."""

import json
from urllib.parse import parse_qsl

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from tests.support.loopback import LoopbackServer, QuietHandler

TOOL: JsonObject = {
    "name": "echo",
    "description": "Says the same.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "x-mcp-header": "Text"}},
    },
}


class McpHttpServer(LoopbackServer):
    """The server; a context manager. `headers` are those of each request that came."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.methods: list[str] = []
        self.refusal = 0
        self.wants_login = False
        self.has_handshake = True
        self.hangs_up = False
        self.lasts_s = 3_600
        self.grants: list[dict[str, str]] = []
        told = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if told.hangs_up:
                    self.close_connection = True
                elif self.path != "/mcp":
                    self.answer_json(told.log_in(self.path, body.decode()))
                elif told.wants_login and self.headers["Authorization"] != "Bearer token-2":
                    self.answer_json(401)
                else:
                    self.answer_json(told.answer(json.loads(body), dict(self.headers)))

            def do_GET(self) -> None:
                self.answer_json(told.page(self.path) if told.wants_login else 405)

            def do_DELETE(self) -> None:
                self.answer_json(200)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/mcp"

    def page(self, path: str) -> JsonObject | int:
        """What says where one logs in."""
        base = self.url.removesuffix("/mcp")
        if path.startswith("/.well-known/oauth-protected-resource"):
            servers: list[JsonValue] = [f"{base}/"]
            return {"resource": self.url, "authorization_servers": servers}
        if path.startswith("/.well-known/oauth-authorization-server"):
            codes: list[JsonValue] = ["code"]
            methods: list[JsonValue] = ["S256"]
            return {
                "issuer": f"{base}/",
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "registration_endpoint": f"{base}/register",
                "response_types_supported": codes,
                "code_challenge_methods_supported": methods,
            }
        return 404

    def log_in(self, path: str, body: str) -> JsonObject | int:
        """The answer to a client that registers, or wants a token for a code or a refresh token."""
        if path == "/register":
            return {**json.loads(body), "client_id": "client-1"}
        if path != "/token":
            return 404
        grant = dict(parse_qsl(body))
        self.grants.append(grant)
        if grant.get("code") != "code-1" and grant.get("refresh_token") != "again-1":
            return 400
        return {
            "access_token": "token-2",
            "token_type": "Bearer",
            "expires_in": self.lasts_s,
            "refresh_token": "again-1",
        }

    def answer(self, message: JsonObject, headers: dict[str, str]) -> JsonObject | int:
        """The answer to one message, or the status of an empty one."""
        method = str(message.get("method"))
        self.headers.append(headers)
        self.methods.append(method)
        if self.refusal:
            return self.refusal
        if "id" not in message:
            return 202
        answer: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params")
        assert isinstance(params, dict)
        match method:
            case "initialize" if not self.has_handshake:
                unsupported: JsonObject = {"code": -32022, "message": "no handshake"}
                return {**answer, "error": unsupported}
            case "server/discover":
                result = {"capabilities": {"tools": {}}, "instructions": "Be kind."}
            case "tools/call" if not self.has_handshake and "inputResponses" not in params:
                form: JsonObject = {"message": "Who?", "requestedSchema": {"properties": {}}}
                asked: JsonObject = {"method": "elicitation/create", "params": form}
                result = {
                    "resultType": "input_required",
                    "inputRequests": {"one": asked},
                    "requestState": "kept",
                }
            case "tools/call" if not self.has_handshake:
                given = [params["inputResponses"], params["requestState"]]
                result = {"content": [{"type": "text", "text": json.dumps(given)}]}
            case "initialize":
                info: JsonObject = {"name": "far", "version": "1"}
                capabilities: JsonObject = {"tools": {}}
                result: JsonObject = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities,
                    "serverInfo": info,
                }
            case "tools/list":
                result = {"tools": [TOOL]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
            case _:
                error: JsonObject = {"code": -32601, "message": f"no {method}"}
                return {**answer, "error": error}
        return {**answer, "result": result}
