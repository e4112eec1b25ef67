"""Speaks with an MCP server at an address as if it were a program beside us.

``python -m agent_tui.tools.mcp.http_bridge``: JSON-RPC lines on stdin and stdout; the address and
the headers are in the environment. Only this process imports the SDK, which takes a second and
60 MB. It knows what `McpServer` asks, and nothing else.
"""

import asyncio
import importlib
import itertools
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final, Literal, Protocol, cast

from pydantic import JsonValue

from agent_tui.installation import install_command
from agent_tui.messages import JsonObject
from agent_tui.tools.mcp.connection import MAX_MESSAGE_BYTES
from agent_tui.tools.mcp.json_rpc import (
    PROTOCOL_VERSION,
    Notification,
    Request,
    Response,
    error_line,
    message_line,
    parse_line,
    result_line,
)
from agent_tui.tools.mcp.oauth import oauth_provider

_URL_VARIABLE: Final = "AGENT_TUI_MCP_URL"
_TOKENS_VARIABLE: Final = "AGENT_TUI_MCP_TOKENS"
_NO_PAGE: Final = "http://127.0.0.1/callback"
_HEADER_VARIABLE: Final = "AGENT_TUI_MCP_HEADER_"

_CONNECT_S = 30.0
_FAILED = -32000
_REFUSALS: Final = {
    401: "it requires a key or a login (HTTP 401): "
    "run agent-tui mcp login NAME, or name the variable with its key in headers_env",
    403: "it rejected this key (HTTP 403)",
}
_LIST_CHANGES: Final = {
    f"{what.title()}ListChangedNotification": f"notifications/{what}s/list_changed"
    for what in ("tool", "prompt", "resource")
}
_Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class _Dumped(Protocol):
    """A model of the SDK."""

    def model_dump(
        self, *, mode: Literal["json"], by_alias: bool, exclude_none: bool
    ) -> JsonObject: ...


class _List(Protocol):
    """A method that lists something by pages."""

    async def __call__(self, *, cursor: str | None, cache_mode: Literal["refresh"]) -> _Dumped: ...


class _Client(Protocol):
    """As much of ``mcp.Client`` as is used here."""

    list_tools: _List
    list_prompts: _List
    list_resources: _List
    list_resource_templates: _List

    @property
    def server_info(self) -> _Dumped | None: ...

    @property
    def server_capabilities(self) -> _Dumped: ...

    @property
    def instructions(self) -> str | None: ...

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> _Dumped: ...

    async def read_resource(self, uri: str, *, cache_mode: Literal["refresh"]) -> _Dumped: ...

    async def call_tool(
        self, name: str, arguments: JsonObject, *, progress_callback: _Progress
    ) -> _Dumped: ...


class _Answer(Protocol):
    """An HTTP answer."""

    status_code: int


class _Asking(Protocol):
    """Answers what a server asks the person."""

    async def __call__(self, _context: object, asked: _Dumped, /) -> object: ...


class _Validating(Protocol):
    """A class of models of the SDK."""

    def model_validate(self, value: JsonObject) -> object: ...


class _Types(Protocol):
    """As much of ``mcp.types`` as is used here."""

    ElicitResult: _Validating


class _Sdk(Protocol):
    """As much of the ``mcp`` package as is used here."""

    def Client(
        self,
        server: object,
        *,
        message_handler: Callable[[object], Awaitable[None]],
        elicitation_callback: _Asking | None,
    ) -> AbstractAsyncContextManager[_Client]: ...


class _Transports(Protocol):
    """As much of ``mcp.client.streamable_http`` as is used here."""

    def streamable_http_client(
        self, url: str, *, http_client: object, max_sse_event_size: int
    ) -> object: ...


class _Http(Protocol):
    """As much of ``httpx2`` as is used here."""

    def Timeout(self, timeout: float, *, read: float | None) -> object: ...

    def AsyncClient(
        self,
        *,
        headers: Mapping[str, str],
        timeout: object,
        event_hooks: Mapping[str, object],
        auth: object,
    ) -> AbstractAsyncContextManager[object]: ...


class Bridge:
    """Answers requests by asking the server at `url`.

    Args:
        url: Where it is.
        headers: Sent with every request.
        write: Takes the lines of the answers.
        tokens: The file of what logging in gave; None where nobody did.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        write: Callable[[bytes], None],
        tokens: Path | None = None,
    ) -> None:
        self._tokens = tokens
        self._url = url
        self._headers = headers
        self._write = write
        self._client: _Client | None = None
        self._refused = 0
        self._may_ask = False
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[JsonObject]] = {}
        self._calls: dict[JsonValue, asyncio.Task[None]] = {}

    async def run(self, lines: asyncio.StreamReader) -> None:
        """Answer until `lines` end."""
        async with AsyncExitStack() as held:
            while line := await lines.readline():
                for message in parse_line(line):
                    match message:
                        case Request(method="initialize"):
                            capabilities = message.params.get("capabilities")
                            self._may_ask = isinstance(capabilities, dict) and (
                                "elicitation" in capabilities
                            )
                            # In this task, as the connection must end in the one it began in.
                            await self._answer(message, self._connect(held))
                        case Request():
                            self._begin(message)
                        case Response(id=answered, result=result):
                            if (waiting := self._asked.pop(answered, None)) is not None:
                                waiting.set_result(result)
                        case Notification(method="notifications/cancelled", params=params):
                            if (call := self._calls.get(params.get("requestId"))) is not None:
                                call.cancel()
                        case _:
                            pass
            for call in self._calls.values():
                call.cancel()

    def _begin(self, asked: Request) -> None:
        task = asyncio.create_task(self._answer(asked, self._result(asked)))
        self._calls[asked.id] = task
        task.add_done_callback(lambda _: self._calls.pop(asked.id, None))

    async def _answer(self, asked: Request, work: Awaitable[JsonObject]) -> None:
        self._refused = 0
        try:
            line = result_line(asked.id, await work)
        except ModuleNotFoundError as error:
            missing = f"it needs the package mcp: {install_command('mcp')}"
            line = error_line(asked.id, _FAILED, missing if error.name == "mcp" else str(error))
        except Exception as error:  # noqa: BLE001 - the pump: whatever it was becomes an answer
            code = getattr(error, "code", _FAILED)
            why = _REFUSALS.get(self._refused) or _reason(error)
            line = error_line(asked.id, code if isinstance(code, int) else _FAILED, why)
        self._write(line)

    async def _connect(self, held: AsyncExitStack) -> JsonObject:
        sdk = cast(_Sdk, importlib.import_module("mcp"))
        transports = cast(_Transports, importlib.import_module("mcp.client.streamable_http"))
        http = cast(_Http, importlib.import_module("httpx2"))
        timeout = http.Timeout(_CONNECT_S, read=None)  # how long is waited is not decided here
        auth = oauth_provider(self._url, self._tokens, _NO_PAGE) if self._tokens else None
        client = await held.enter_async_context(
            http.AsyncClient(
                auth=auth,
                headers=self._headers,
                timeout=timeout,
                event_hooks={"response": [self._note_refusal]},
            )
        )
        transport = transports.streamable_http_client(
            self._url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
        )
        self._client = await held.enter_async_context(
            sdk.Client(
                transport,
                message_handler=self._handle_notification,
                elicitation_callback=self._ask if self._may_ask else None,
            )
        )
        client = self._client
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": _dumped(client.server_capabilities),
            "serverInfo": _dumped(client.server_info) if client.server_info else {},
            "instructions": client.instructions or "",
        }

    async def _result(self, asked: Request) -> JsonObject:
        client, params = self._client, asked.params
        if client is None:
            raise LookupError("it is not connected")
        cursor = params.get("cursor")
        lists: dict[str, _List] = {
            "tools/list": client.list_tools,
            "prompts/list": client.list_prompts,
            "resources/list": client.list_resources,
            "resources/templates/list": client.list_resource_templates,
        }
        if list_page := lists.get(asked.method):
            page = cursor if isinstance(cursor, str) else None
            return _dumped(await list_page(cursor=page, cache_mode="refresh"))
        given = params.get("arguments")
        arguments = given if isinstance(given, dict) else {}
        match asked.method:
            case "tools/call":
                return await self._call(client, asked, arguments)
            case "prompts/get":
                texts = {name: str(value) for name, value in arguments.items()}
                return _dumped(await client.get_prompt(str(params.get("name")), texts))
            case "resources/read":
                uri = str(params.get("uri"))
                return _dumped(await client.read_resource(uri, cache_mode="refresh"))
            case _:
                raise LookupError(f"{asked.method} is not supported")

    async def _call(self, client: _Client, asked: Request, arguments: JsonObject) -> JsonObject:
        async def tell(done: float, of: float | None, message: str | None) -> None:
            told: JsonObject = {"progressToken": asked.id, "progress": done}
            told |= {} if of is None else {"total": of}
            told |= {"message": message} if message else {}
            self._write(message_line("notifications/progress", told))

        name = str(asked.params.get("name"))
        return _dumped(await client.call_tool(name, arguments, progress_callback=tell))

    async def _ask(self, _context: object, asked: _Dumped) -> object:
        """Hand a question to the person on, and the answer back."""
        number = next(self._ids)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._write(message_line("elicitation/create", _dumped(asked), number))
        try:
            types = cast(_Types, importlib.import_module("mcp.types"))
            return types.ElicitResult.model_validate(await answer or {"action": "decline"})
        finally:
            self._asked.pop(number, None)

    async def _note_refusal(self, response: _Answer) -> None:
        """Keep that the server wants a key: the SDK does not tell."""
        if response.status_code in _REFUSALS:
            self._refused = response.status_code

    async def _handle_notification(self, message: object) -> None:
        """Hand on that what is offered is other now."""
        if method := _LIST_CHANGES.get(type(message).__name__):
            self._write(message_line(method))


def main() -> None:
    """Serve until stdin closes."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break a line

    def write(line: bytes) -> None:
        answers.write(line)
        answers.flush()

    async def serve() -> None:
        lines = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer
        )
        tokens = os.environ.get(_TOKENS_VARIABLE)
        await Bridge(
            os.environ[_URL_VARIABLE],
            _headers(os.environ),
            write,
            Path(tokens) if tokens else None,
        ).run(lines)

    asyncio.run(serve())


def _dumped(model: _Dumped) -> JsonObject:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _headers(environ: Mapping[str, str]) -> dict[str, str]:
    given = (value for name, value in environ.items() if name.startswith(_HEADER_VARIABLE))
    parts = (value.partition(": ") for value in given)
    return {name: value for name, _, value in parts}


def _reason(error: BaseException) -> str:
    """What went wrong, in the words of the innermost error."""
    if isinstance(error, BaseExceptionGroup):
        grouped = cast("BaseExceptionGroup[BaseException]", error)
        return _reason(grouped.exceptions[0])
    return str(error) or type(error).__name__


if __name__ == "__main__":
    main()
