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
        self.needs_login = b""
        self.has_handshake = True
        self.tools: list[JsonValue] = [TOOL]
        self.hangs_up = False
        self.registers = True
        self.reads_pages = False
        self.ways_to_send_secret: list[JsonValue] = []
        self.token_base = ""
        self.token_part: JsonObject = {}
        self.tokens = {"token-2"}
        self.new_token = "token-2"
        self.echoes = False
        self.lacking_scope = ""
        self.supported: JsonValue = None
        self.sent_secrets: list[str] = []
        self.accepted: list[str | None] = []
        self.lasts_s = 3_600
        self.grants: list[dict[str, str]] = []
        told = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if told.hangs_up:
                    self.close_connection = True
                elif told.echoes and self.path.endswith("/token"):
                    self.send_response(400)
                    self.send_header("Content-Length", "40")
                    self.end_headers()
                    self.wfile.write(body[-40:])
                elif self.path != "/mcp":
                    told.sent_secrets.append(self.headers["Authorization"] or "")
                    told.accepted.append(self.headers["Accept"])
                    self.answer_json(told.log_in(self.path, body.decode()))
                elif told.wants_login and not told.admits(self.headers["Authorization"], body):
                    self.answer_json(401)
                elif told.lacking_scope and b"tools/call" in body:
                    self.send_response(403)
                    challenge = f'error="insufficient_scope", scope="{told.lacking_scope}"'
                    self.send_header("WWW-Authenticate", f"Bearer {challenge}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
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

    def admits(self, authorization: str | None, body: bytes) -> bool:
        """Whether a request has a token that is still good, or needs none."""
        has_token = (authorization or "").removeprefix("Bearer ") in self.tokens
        return has_token or self.needs_login not in body

    def page(self, path: str) -> JsonObject | int:
        """What says where one logs in."""
        base = self.url.removesuffix("/mcp")
        if path.startswith("/.well-known/oauth-protected-resource"):
            servers: list[JsonValue] = [f"{base}/"]
            return {"resource": self.url, "authorization_servers": servers}
        if path.startswith("/.well-known/oauth-authorization-server"):
            codes: list[JsonValue] = ["code"]
            methods: list[JsonValue] = ["S256"]
            known: JsonObject = {
                "issuer": f"{base}/",
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{self.token_base or base}/login/token",
                "response_types_supported": codes,
                "code_challenge_methods_supported": methods,
                "client_id_metadata_document_supported": self.reads_pages,
            }
            if self.registers:
                known["registration_endpoint"] = f"{base}/register"
            if self.ways_to_send_secret:
                known["token_endpoint_auth_methods_supported"] = self.ways_to_send_secret
            return known
        return 404

    def log_in(self, path: str, body: str) -> JsonObject | int:
        """The answer to a client that registers, or wants a token for a code or a refresh token."""
        if path == "/register" and self.registers:
            return {**json.loads(body), "client_id": "client-1"}
        if path != "/login/token":
            return 404
        grant = dict(parse_qsl(body))
        self.grants.append(grant)
        if grant.get("code") != "code-1" and grant.get("refresh_token") != "again-1":
            return 400
        return {
            "access_token": self.new_token,
            "token_type": "Bearer",
            "expires_in": self.lasts_s,
            "refresh_token": "again-1",
            **self.token_part,
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
        params = message.get("params", {})
        assert isinstance(params, dict)
        if not self.has_handshake and (known := self.answer_without_handshake(method, params)):
            return {**answer, **known}
        match method:
            case "initialize":
                info: JsonObject = {"name": "far", "version": "1"}
                capabilities: JsonObject = {"tools": {}}
                result: JsonObject = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": capabilities,
                    "serverInfo": info,
                }
            case "tools/list":
                result = {"tools": self.tools}
            case "tools/call":
                result = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
            case _:
                error: JsonObject = {"code": -32601, "message": f"no {method}"}
                return {**answer, "error": error}
        return {**answer, "result": result}

    def answer_without_handshake(self, method: str, params: JsonObject) -> JsonObject | None:
        """The answer of a server that knows only the version without a handshake."""
        match method:
            case "initialize":
                return {"error": {"code": -32022, "message": "no handshake"}}
            case "server/discover" if self.supported is not None:
                data: JsonObject = {"supported": self.supported}
                self.supported = None
                return {"error": {"code": -32022, "message": "no", "data": data}}
            case "server/discover":
                versions: list[JsonValue] = ["2026-07-28"]
                result: JsonObject = {"supportedVersions": versions, "instructions": "Be kind."}
                return {"result": {**result, "capabilities": {"tools": {}}}}
            case "tools/call" if "inputResponses" not in params:
                form: JsonObject = {"message": "Who?", "requestedSchema": {"properties": {}}}
                asked: JsonObject = {"method": "elicitation/create", "params": form}
                result = {"resultType": "input_required", "requestState": "kept"}
                return {"result": {**result, "inputRequests": {"one": asked}}}
            case "tools/call":
                given = [params["inputResponses"], params["requestState"]]
                return {"result": {"content": [{"type": "text", "text": json.dumps(given)}]}}
            case _:
                return None
