"""One MCP server: its process, listing and calling its tools, and a restart when it dies."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_tui._version import __version__
from agent_tui.config.addresses import address_problem
from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.features.mcp.connection import Connection, RequestFailed, ServerGone, ignore
from agent_tui.features.mcp.elicitation import decline, elicitation
from agent_tui.features.mcp.json_rpc import (
    FROM_BRIDGE,
    PROTOCOL_VERSION,
    STATELESS_VERSION,
    display_text,
    items_in,
)
from agent_tui.features.mcp.library import (
    Introduction,
    RemoteResource,
    ServerPrompt,
    introduction,
    listing_result,
    parse_prompts,
    parse_resources,
    resource_result,
    resource_tool,
)
from agent_tui.features.mcp.oauth import token_file
from agent_tui.features.mcp.remote_tools import RemoteTool, read_tools
from agent_tui.features.mcp.sources import expand_variables
from agent_tui.messages import JsonObject
from agent_tui.providers.log_file import ProcessLog
from agent_tui.secret_text import mask_secrets
from agent_tui.tools.form import DECLINED, FormFiller
from agent_tui.tools.processes.environment import outside_environ
from agent_tui.tools.processes.keeper import ProcessKeeper, TalkingChild
from agent_tui.tools.server_spec import ServerSpec

_MIN_SECRET_CHARS = 8
_END_WITHIN_S = 1.0
_BRIDGE = ("-P", "-m", "agent_tui.features.mcp.http_bridge")

ServerState: TypeAlias = Literal["off", "not asked", "starting", "ready", "failed"]

_CLIENT: Final[JsonObject] = {"name": "agent-tui", "version": __version__}
_MAX_REASON_CHARS = 200
_DISCOVERY_S = 10.0
"""Seconds for an answer to ``server/discover``; servers of older versions may give none."""

_MAX_FORMS = 10
"""The most forms in one call to a server without a handshake, as in the SDKs."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What servers are started with.

    Args:
        keeper: Starts their processes, and ends them however the program ends.
        environ: Their environment, without secrets.
        whole_environ: Holds the values of variables named in the settings.
        refused: Variables that no server may receive: the model providers' keys.
        secrets: Their values, which no log may contain.
        log_path: Receives what they write to stderr.
        cwd: Where they are started, unless they specify it.
        tokens: The folder with the login tokens.
    """

    keeper: ProcessKeeper
    environ: Mapping[str, str]
    whole_environ: Mapping[str, str]
    refused: frozenset[str]
    secrets: tuple[str, ...]
    log_path: Path
    cwd: Path
    tokens: Path


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The running process of a server, or of the bridge to it.

    Attributes:
        child: The process.
        log: What it writes to stderr.
        secrets: Texts kept out of its log and notices: our keys, and the values it received.
    """

    child: TalkingChild
    log: ProcessLog
    secrets: tuple[str, ...]

    async def ending(self) -> tuple[str, str]:
        """How it ended, after a short wait, and the last line of its log."""
        await asyncio.wait((self.child.ending,), timeout=_END_WITHIN_S)
        await self.log.finish()
        lines = [line for line in self.log.text.splitlines() if line.strip()]
        return _how_it_ended(self.child), lines[-1] if lines else ""


@asynccontextmanager
async def running_process(
    spec: ServerSpec, around: ServerContext
) -> AsyncGenerator[ServerProcess, None]:
    """Start the server of `spec`, or the bridge to its address; stop it when the block ends.

    Raises:
        ToolError: A variable that it names is not set, or may not be given to it.
        OSError: It cannot be started.
    """

    def fill(text: str) -> str:
        return expand_variables(text, around.whole_environ, around.refused)

    env = {name: fill(value) for name, value in spec.env.items()}
    environ = {**outside_environ(around.environ), **env}
    argv = tuple(fill(word) for word in spec.argv)
    headers: dict[str, str] = {}
    if spec.url:
        headers = {name: fill(value) for name, value in spec.headers.items()}
        argv = (sys.executable, *_BRIDGE)
        url = fill(spec.url)
        if problem := address_problem(url):
            raise ToolError(f"The address of the MCP server {spec.name} {problem}.")
        environ |= bridge_environ(spec.name, url, headers)
        if (tokens := token_file(around.tokens, spec.name, url)).exists():
            environ["AGENT_TUI_MCP_TOKENS"] = str(tokens)
    own = filter(_may_be_secret, (*env.values(), *headers.values()))
    secrets = (*around.secrets, *own)
    cwd = spec.cwd or around.cwd
    async with around.keeper.talking_child(argv, cwd=cwd, environ=environ) as child:
        log = ProcessLog(child.stderr, around.log_path, secrets)
        try:
            yield ServerProcess(child, log, secrets)
        finally:
            await log.finish()


def bridge_environ(name: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The environment that tells the bridge its server; arguments would be visible to all users.

    Raises:
        ToolError: A header cannot be sent. An HTTP client would show its value when it says so.
    """
    variables = {"AGENT_TUI_MCP_NAME": name, "AGENT_TUI_MCP_URL": url}
    for number, (header, value) in enumerate(headers.items()):
        if not value.isprintable():
            raise ToolError(f"The header {header} for {name} contains control characters.")
        variables[f"AGENT_TUI_MCP_HEADER_{number}"] = f"{header}: {value}"
    return variables


def _may_be_secret(value: str) -> bool:
    """Whether to mask a value in the log; masking short ones would garble it."""
    return len(value) >= _MIN_SECRET_CHARS


def _how_it_ended(child: TalkingChild) -> str:
    code = child.ending.result() if child.ending.done() else None
    if code is None:
        return "it closed its output"
    if code >= 0:
        return f"it exited with code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"


class McpServer:
    """A server and what is known about it.

    Args:
        spec: What to start.
        around: What it is started with.
        on_news: Called with lines for the user.
        fill: Lets the user fill its forms; None if nobody is there.

    Attributes:
        spec: What is started.
        state: Its state.
        why: Why it failed, or another remark.
        tools: Its tools, by name.
        prompts: Its prompts.
        notes: Which of its tools were left out, and why.
        is_outdated: Whether it reported that its tools changed.
        was_waited_for: Whether a turn has waited for its current start.
        introduction: How it introduces itself.
    """

    def __init__(
        self,
        spec: ServerSpec,
        around: ServerContext,
        on_news: Callable[[str], None],
        fill: FormFiller | None = None,
    ) -> None:
        self.spec = spec
        self.state: ServerState = "off"
        self.why = ""
        self.tools: tuple[RemoteTool, ...] = ()
        self.prompts: tuple[ServerPrompt, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._resources: tuple[RemoteResource, ...] | None = None
        self.is_outdated = False
        self.was_waited_for = False
        self.introduction = Introduction()
        self._around = around
        self._secrets = around.secrets
        self._on_news = on_news
        self._fill = fill
        self._connection: Connection | None = None
        self._running: asyncio.Task[None] | None = None
        self._start_ended = asyncio.Event()
        self._may_restart = True
        self._has_served = False

    @property
    def cwd(self) -> Path:
        """The folder it is started in."""
        return self.spec.cwd or self._around.cwd

    def start(self) -> None:
        """Start it in the background, unless it runs; needs a running event loop."""
        if self._running is None or self._running.done():
            self._note_start()
            self._may_restart = True
            self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop it and everything it started."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait((running,))
        self.state, self.why, self.tools, self.prompts, self.notes = "off", "", (), (), ()
        self._start_ended.set()

    @property
    def words(self) -> str:
        """Its description in its own words, or else some of its tools."""
        return self.introduction.words or ", ".join(tool.own_name for tool in self.tools)

    async def wait_until_started(self) -> None:
        """Wait until it is ready, has failed or is off."""
        if self.state == "starting":
            await self._start_ended.wait()

    async def list_again(self) -> None:
        """List the tools again, after it reported a change."""
        connection = self._connection
        if connection is None or self.state != "ready":
            return
        self.is_outdated = False
        try:
            await self._list_tools(connection)
        except asyncio.CancelledError:
            self.is_outdated = True
            raise
        except (RequestFailed, ServerGone, TimeoutError) as error:
            self._tell(f"cannot list its new tools: {self._reason(error)}")

    async def call(
        self, tool: RemoteTool, arguments: JsonObject, on_progress: Callable[[str], None]
    ) -> JsonObject:
        """Call a tool; cancelling also cancels the call in the server.

        Raises:
            ToolError: It failed; the text is for the model.
        """
        if tool.reads_resources:
            return await self.read(str(arguments.get("uri") or ""))
        params: JsonObject = {"name": tool.own_name, "arguments": arguments}
        return await self._request("tools/call", params, on_progress)

    async def read(self, uri: str) -> JsonObject:
        """A resource, or with an empty `uri` the list of resources, as the result of a call.

        Raises:
            ToolError: It failed; the text is for the model and the user.
        """
        if uri:
            return resource_result(await self._request("resources/read", {"uri": uri}))
        try:
            page = await self._request("resources/templates/list", {})
        except ToolError:
            page = {}
        templates = parse_resources(items_in(page.get("resourceTemplates")), "uriTemplate")
        return listing_result((*await self.resources(), *templates))

    @property
    def has_resources(self) -> bool:
        """Whether it is ready and supports resources."""
        return self.state == "ready" and "resources" in self.introduction.capabilities

    async def resources(self) -> tuple[RemoteResource, ...]:
        """The first page of its resources; cached until it reports a change.

        Raises:
            ToolError: It failed; the text is for the model and the user.
        """
        if self._resources is None or self.is_outdated:
            page = await self._request("resources/list", {})
            self._resources = parse_resources(items_in(page.get("resources")), "uri")
        return self._resources

    async def fill_prompt(self, own_name: str, arguments: Mapping[str, str]) -> JsonObject:
        """A prompt with its arguments, as the server returns it.

        Raises:
            ToolError: It failed; the text is for the user.
        """
        return await self._request("prompts/get", {"name": own_name, "arguments": {**arguments}})

    async def _request(
        self, method: str, params: JsonObject, on_progress: Callable[[str], None] = ignore
    ) -> JsonObject:
        connection = self._connection
        if connection is None or self.state != "ready":
            why = f": {self.why}" if self.why else ""
            raise ToolError(f"The MCP server {self.spec.name} is {self.state}{why}.")
        try:
            result = await self._request_with_forms(connection, method, params, on_progress)
        except ServerGone as error:
            raise ToolError(
                f"The MCP server {self.spec.name} stopped during this call, which may have had "
                "partial effects."
            ) from error
        except (RequestFailed, TimeoutError) as error:
            raise ToolError(f"The MCP server {self.spec.name}: {self._reason(error)}.") from error
        self._may_restart = True
        return result

    async def _request_with_forms(
        self,
        connection: Connection,
        method: str,
        params: JsonObject,
        on_progress: Callable[[str], None],
    ) -> JsonObject:
        """The result of a request; without a handshake, it is resent with each filled form."""
        sent: JsonObject = params
        for _ in range(_MAX_FORMS):
            result = await connection.request(
                method, sent, timeout_s=self.spec.timeout_s, on_progress=on_progress
            )
            wanted = result.get("inputRequests")
            if result.get("resultType") != "input_required" or not isinstance(wanted, dict):
                return result
            answers: JsonObject = {}
            for name, asked in wanted.items():
                match asked:
                    case {"method": "elicitation/create", "params": dict(form)}:
                        answers[name] = await self._answer_form(form)
                    case _:
                        return result
            sent = {**params, "inputResponses": answers}
            if (state := result.get("requestState")) is not None:
                sent["requestState"] = state
        raise RequestFailed(f"it asked for more than {_MAX_FORMS} forms in one call")

    async def _run(self) -> None:
        """Keep it running; restarts one that dies while working, at most once between calls."""
        while True:
            self._has_served = False
            why = await self._run_once()
            self._connection, self.tools, self.prompts = None, (), ()
            if not (self._has_served and self._may_restart):
                break
            self._tell(f"{why}; restarting it")
            self._may_restart = False
        self.state, self.why = "failed", why
        self._start_ended.set()
        self._tell(f"{why}. To try again: /mcp restart {self.spec.name}")

    async def _run_once(self) -> str:
        """Start it and wait for its end; returns how it ended."""
        try:
            async with running_process(self.spec, self._around) as process:
                self._secrets = process.secrets
                connection = Connection(
                    process.child.stdin,
                    process.child.stdout,
                    self._note_change,
                    None if self._fill is None else self._answer_form,
                )
                reading = asyncio.create_task(connection.read_all())
                try:
                    return await self._serve(connection, reading, process)
                finally:
                    reading.cancel()
                    await asyncio.wait((reading,))
        except (ToolError, OSError, ValueError) as error:
            return self._reason(error)

    async def _serve(
        self, connection: Connection, reading: "asyncio.Task[None]", process: ServerProcess
    ) -> str:
        try:
            await self._shake_hands(connection)
            await self._list_tools(connection)
            self._connection = connection
            self.state, self._has_served = "ready", True
            self._start_ended.set()
            if self.notes:
                more = len(self.notes) - 1
                self._tell(self.notes[0] + (f"; and {more} more, see /mcp" if more else ""))
            await asyncio.wait((reading,))
            self._note_start()
        except TimeoutError:
            return _with_output(f"it did not answer within {self.spec.timeout_s:g} s", connection)
        except RequestFailed as error:
            return _with_output(self._reason(error), connection)
        except ServerGone:
            pass
        how, last = await process.ending()
        return f"{how}: {self._one_line(last)}" if last else _with_output(how, connection)

    async def _shake_hands(self, connection: Connection) -> None:
        """Settle on a version: the one without a handshake first at an address, last for programs.

        That is the order in the protocol's own SDKs: older programs may end at an unknown request.
        """
        capabilities: JsonObject = {} if self._fill is None else {"elicitation": {}}
        if self.spec.url and await self._discover(connection, capabilities):
            return
        params: JsonObject = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": capabilities,
            "clientInfo": _CLIENT,
        }
        try:
            met = await connection.request("initialize", params, timeout_s=self.spec.timeout_s)
            await connection.tell("notifications/initialized")
        except RequestFailed as error:
            if error.code == FROM_BRIDGE or not await self._discover(connection, capabilities):
                raise
        else:
            self.introduction = introduction(met)

    async def _discover(self, connection: Connection, capabilities: JsonObject) -> bool:
        """Whether the server speaks the version without a handshake; if so, it is used."""
        connection.go_stateless(_CLIENT, capabilities)
        timeout_s = min(self.spec.timeout_s, _DISCOVERY_S)
        ask = partial(connection.request, "server/discover", {}, timeout_s=timeout_s)
        try:
            met = await ask()
        except (ServerGone, TimeoutError):
            met = {}
        except RequestFailed as error:
            if error.code == FROM_BRIDGE:
                raise
            met = await ask() if _is_listed(error.data, "supported") else {}
        if not _is_listed(met, "supportedVersions"):
            connection.meta = {}
            return False
        self.introduction = introduction(met)
        return True

    async def _list_tools(self, connection: Connection) -> None:
        self._resources = None
        name, picks, timeout_s = self.spec.name, self.spec.picks, self.spec.timeout_s
        listed = await connection.list_all("tools/list", "tools", timeout_s=timeout_s)
        tools, notes = await asyncio.to_thread(read_tools, name, listed, picks)
        reader = resource_tool(name)
        if (
            "resources" in self.introduction.capabilities
            and picks.is_offered(reader.own_name)
            and reader.name not in {tool.name for tool in tools}
        ):
            tools = (*tools, reader)
        try:
            if "prompts" in self.introduction.capabilities:
                listed = await connection.list_all("prompts/list", "prompts", timeout_s=timeout_s)
                self.prompts = parse_prompts(name, listed)
        except RequestFailed as error:
            notes = (*notes, f"cannot list its prompts: {self._reason(error)}")
        self.tools, self.notes = tools, notes

    async def _answer_form(self, params: JsonObject) -> JsonObject:
        """Let the user fill a form; declines one that is invalid or failed."""
        try:
            asked = elicitation(self.spec.name, params)
            return await (self._fill or decline)(asked)
        except (ValueError, AgentTuiError) as error:
            self._tell(f"it could not ask you something: {self._reason(error)}")
            return DECLINED

    def _note_start(self) -> None:
        self.state, self.why = "starting", ""
        self.was_waited_for = False
        self._start_ended.clear()

    def _note_change(self) -> None:
        self.is_outdated = True

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"it did not answer within {self.spec.timeout_s:g} s and was told to stop"
        if isinstance(error, ServerGone):
            return "it stopped"
        return self._one_line(str(error))

    def _one_line(self, text: str) -> str:
        return display_text(mask_secrets(text, self._secrets), _MAX_REASON_CHARS).removesuffix(".")

    def _tell(self, text: str) -> None:
        self._on_news(f"MCP server {self.spec.name}: {text.removesuffix('.')}.")


def _with_output(why: str, connection: Connection) -> str:
    """`why`, with the server's output that was not a message."""
    output = connection.unread_output
    return f"{why}; it wrote: {display_text(output, _MAX_REASON_CHARS)}" if output else why


def _is_listed(given: JsonValue, key: str) -> bool:
    """Whether the version without a handshake is in the list of versions at `key`."""
    versions = given.get(key) if isinstance(given, dict) else None
    return isinstance(versions, list) and STATELESS_VERSION in versions
