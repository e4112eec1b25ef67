"""All MCP servers of a program: which exist, which run, and what they offer in a turn."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_tui.errors import AgentTuiError, ToolError
from agent_tui.features.mcp.elicitation import tell_answer
from agent_tui.features.mcp.finding import ServerLine, finder_specs
from agent_tui.features.mcp.library import ServerPrompt, prompt_arguments, prompt_text
from agent_tui.features.mcp.remote_tools import RemoteTool
from agent_tui.features.mcp.results import call_output
from agent_tui.features.mcp.server import McpServer, ServerContext, ServerState
from agent_tui.features.mcp.sources import ServerSources
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.messages import JsonObject
from agent_tui.tools.base import Toolbox, ToolOutput
from agent_tui.tools.form import Elicitation, FormFiller
from agent_tui.tools.server_offer import ServerOffer
from agent_tui.tools.server_spec import ServerSpec
from agent_tui.tools.shorten import OutputLimits
from agent_tui.tools.tool_servers import ToolServers

_QUIET_WAIT_S: Final = 0.5
"""Seconds that a turn waits for a server before it says so."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server as it is shown. `tools` are the server's own names."""

    spec: ServerSpec
    state: ServerState
    why: str
    tools: tuple[str, ...]
    notes: tuple[str, ...]


class McpHub(ToolServers):
    """Starts servers, and decides which of their tools a turn may use.

    Nothing is read or started before `start` or `take_up` is called. A turn's offer stays the same
    until the next turn begins, as a change would invalidate the prompt cache.

    Args:
        sources: Where servers are named.
        around: What they are started with, except the folder.
        wait_s: Seconds that a turn waits, once, for a server that is starting.
    """

    def __init__(self, sources: ServerSources, around: ServerContext, *, wait_s: float) -> None:
        self._sources = sources
        self._around = around
        self._wait_s = wait_s
        self._servers: dict[str, McpServer] = {}
        self._switched_on: dict[str, bool] = {}
        self._told: set[str] = set()
        self._untold: list[str] = []
        self._listener: Callable[[str], None] | None = None
        self._fill: FormFiller | None = None
        self._filling = asyncio.Lock()
        self._answers: defaultdict[str, list[str]] = defaultdict(list)
        self._reconciling = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._offered: tuple[tuple[McpServer, RemoteTool], ...] = ()
        self._found: list[str] = []
        self._offer = ServerOffer()

    @property
    def offered(self) -> tuple[RemoteTool, ...]:
        """The tools of the current turn, in a stable order."""
        return tuple(tool for _, tool in self._offered)

    @property
    def offer(self) -> ServerOffer:
        """What the current turn's prompt says about the servers."""
        return self._offer

    @property
    def servers(self) -> tuple[ServerView, ...]:
        """All servers in their current state, in the order of their files."""
        return tuple(
            ServerView(
                server.spec,
                server.state,
                server.why,
                tuple(tool.own_name for tool in server.tools),
                server.notes,
            )
            for server in self._servers.values()
        )

    @property
    def not_asked(self) -> tuple[ServerSpec, ...]:
        """Servers of the project that the user was not asked about."""
        return tuple(s.spec for s in self._servers.values() if s.state == "not asked")

    def combine(self, own: Toolbox) -> Toolbox:
        """The tools of `own`, then what the servers offer in the current turn."""
        return CombinedToolbox(own, self)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Give `listener` every line for the user, past ones included, on the event loop."""
        self._listener = listener
        untold, self._untold = self._untold, []
        for line in untold:
            listener(line)

    def let_answer(self, fill: FormFiller) -> None:
        """Let servers started from now on ask the user through `fill`, one at a time."""

        async def in_turn(asked: Elicitation) -> JsonObject:
            async with self._filling:
                answer = await fill(asked)
            if told := tell_answer(asked, answer):
                self._answers[asked.server].append(told)
            return answer

        self._fill = in_turn

    def start(self, cwd: Path) -> None:
        """Start the servers for `cwd` in the background; needs a running event loop."""
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self.reconcile(cwd))

    async def reconcile(self, cwd: Path) -> None:
        """Start and stop servers to match the configuration files for `cwd`."""
        async with self._reconciling:
            found = await asyncio.to_thread(self._sources.find, cwd)
            for problem in found.problems:
                self._tell_once(problem)
            wanted = {one.spec.name: one for one in found.servers}
            for name, server in tuple(self._servers.items()):
                one = wanted.get(name)
                if one is None or not _is_the_same(server, one.spec, cwd):
                    del self._servers[name]
                    await server.stop()
            before = self._servers
            self._servers = {
                name: before.get(name)
                or McpServer(one.spec, replace(self._around, cwd=cwd), self._tell, self._fill)
                for name, one in wanted.items()
            }
            for name, server in self._servers.items():
                await self._start_or_stop(server, wanted[name].is_allowed)

    async def take_up(self, cwd: Path, tell: Callable[[str], None]) -> bool:
        """Adopt the servers' current offer for the turn that begins; returns whether it changed.

        Waits for starting servers, once per start and no longer than the settings allow.

        Args:
            cwd: The workspace.
            tell: Called with a line for the user.
        """
        await self.reconcile(cwd)
        for spec in self.not_asked:
            self._tell_once(
                f"The {spec.origin}'s MCP server {spec.name} is not started: it needs your "
                f"approval. In an interactive session: /mcp ask {spec.name}."
            )
        await self._wait(tell)
        outdated = [server for server in self._servers.values() if server.is_outdated]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                await asyncio.gather(*(server.list_again() for server in outdated))
        untold, self._untold = self._untold, []
        for line in untold:
            tell(line)
        self._offered = tuple(
            (server, tool) for server in self._servers.values() for tool in server.tools
        )
        before, self._offer = self._offer, self._new_offer()
        return before != self._offer

    def keep_found(self, names: Sequence[str]) -> None:
        """Always offer these tools from the next turn on, however many tools there are."""
        self._found += [name for name in names if name not in self._found]

    def _new_offer(self) -> ServerOffer:
        def comes_later(each: tuple[McpServer, RemoteTool]) -> bool:
            server, tool = each
            return not server.spec.picks.is_always(tool.own_name)

        wanted = sorted(self._offered, key=comes_later)
        names = {tool.name for tool in self.offered}
        lines = [
            ServerLine(server.spec.name, server.words, len(server.tools))
            for server in self._servers.values()
            if server.tools
        ]
        return ServerOffer(
            specs=tuple(tool.spec for _, tool in wanted),
            found=tuple(name for name in self._found if name in names),
            finders=finder_specs(lines) if lines else (),
            instructions=tuple(
                (server.spec.name, server.introduction.instructions)
                for server in self._servers.values()
                if server.tools and server.introduction.instructions
            ),
        )

    async def call(
        self, name: str, arguments: JsonObject, on_progress: Callable[[str], None]
    ) -> JsonObject:
        """Call an offered tool.

        Raises:
            ToolError: It no longer exists, or failed.
        """
        for server, tool in self._offered:
            if tool.name == name:
                return await server.call(tool, arguments, on_progress)
        raise ToolError(f"{name} no longer exists.")

    def take_answers(self, name: str) -> str:
        """What the user answered to the server of the tool `name` since the last time."""
        servers = {tool.name: server.spec.name for server, tool in self._offered}
        return "\n".join(self._answers.pop(servers.get(name, ""), ()))

    @property
    def prompts(self) -> tuple[ServerPrompt, ...]:
        """The current prompts of all servers."""
        return tuple(prompt for server in self._servers.values() for prompt in server.prompts)

    async def prompt(self, wanted: ServerPrompt, typed: str) -> str:
        """The text of a prompt, filled with what the user typed after its name.

        Raises:
            ToolError: An argument is missing, or the server failed.
        """
        server = self._servers.get(wanted.server)
        if server is None:
            raise ToolError(f"The MCP server {wanted.server} no longer exists.")
        return prompt_text(
            await server.fill_prompt(wanted.own_name, prompt_arguments(wanted, typed))
        )

    async def read_resource(self, server: str, uri: str, limits: OutputLimits) -> ToolOutput | None:
        """A resource as the output of a call; None if no server of this name runs.

        Raises:
            ToolError: It cannot be read.
        """
        found = self._servers.get(server)
        if found is None or found.state != "ready":
            return None
        result = await found.read(uri)
        secrets = self._around.secrets
        return await asyncio.to_thread(
            call_output, result, limits=limits, output_dir=None, known_secrets=secrets
        )

    async def resource_choices(self, typed: str) -> Mapping[str, str]:
        """Completions of `typed` for ``@server:uri``: servers, then the resources of one.

        Returns:
            Completions, each with the server's description; empty if the server does not respond.
        """
        name, colon, _ = typed.partition(":")
        if not colon:
            there = (each for each, server in self._servers.items() if server.has_resources)
            return {f"{each}:": "resources of an MCP server" for each in there}
        server = self._servers.get(name)
        try:
            listed = await server.resources() if server and server.has_resources else ()
        except ToolError:
            return {}
        return {f"{name}:{resource.uri}": resource.about for resource in listed}

    async def answer(self, spec: ServerSpec, *, is_allowed: bool) -> None:
        """Start or permanently refuse a server of the project, as the user decided.

        Raises:
            ConfigError: The decision cannot be stored; it applies to this run.
        """
        server = self._servers.get(spec.name)
        if server is None or server.spec.fingerprint != spec.fingerprint:
            return  # the file changed while the question was open
        self._switched_on.pop(spec.name, None)
        await self._start_or_stop(server, is_allowed, is_asked=True)
        await asyncio.to_thread(self._sources.answer, spec, is_allowed=is_allowed)

    def project_server(self, name: str) -> ServerSpec:
        """The project's server `name`, which needs the user's consent.

        Raises:
            AgentTuiError: There is none.
        """
        spec = self._get_server(name).spec
        if not spec.is_asked_about:
            raise AgentTuiError(
                f"{name} is your own server: {spec.source} decides whether it starts."
            )
        return spec

    async def restart(self, name: str) -> None:
        """Stop a server and start it again.

        Raises:
            AgentTuiError: There is none of this name, or it may not be started.
        """
        server = self._startable(name)
        await server.stop()
        server.start()

    async def switch(self, name: str, *, is_on: bool) -> None:
        """Start or stop a server for this run.

        Raises:
            AgentTuiError: There is none of this name, or it may not be started.
        """
        server = self._startable(name) if is_on else self._get_server(name)
        self._switched_on[name] = is_on
        if is_on:
            server.start()
        else:
            await server.stop()

    async def aclose(self) -> None:
        """Stop all servers."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        servers, self._servers = self._servers, {}
        await asyncio.gather(*(server.stop() for server in servers.values()))

    async def _start_or_stop(
        self, server: McpServer, is_allowed: bool | None, *, is_asked: bool = False
    ) -> None:
        """Start or stop `server` as configured; one that failed or was stopped stays so."""
        is_wanted = self._switched_on.get(server.spec.name, server.spec.is_enabled)
        if is_allowed is not True:
            if server.state in ("starting", "ready", "failed") or is_asked:
                await server.stop()
            server.state = "not asked" if is_allowed is None else "off"
            server.why = "you said no to it" if is_allowed is False else ""
        elif is_wanted and server.state in ("off", "not asked"):
            server.start()

    async def _wait(self, tell: Callable[[str], None]) -> None:
        starting = [
            server
            for server in self._servers.values()
            if server.state == "starting" and not server.was_waited_for
        ]
        if not starting or not self._wait_s:
            return
        waits = [asyncio.ensure_future(server.wait_until_started()) for server in starting]
        try:
            quiet_s = min(_QUIET_WAIT_S, self._wait_s)
            _, pending = await asyncio.wait(waits, timeout=quiet_s)
            if pending:
                names = ", ".join(s.spec.name for s in starting if s.state == "starting")
                tell(f"Waiting up to {self._wait_s:g} s for the MCP server {names}.")
                await asyncio.wait(pending, timeout=self._wait_s - quiet_s)
        finally:
            for wait in waits:
                wait.cancel()
        for server in starting:
            server.was_waited_for = True
        if late := [server.spec.name for server in starting if server.state == "starting"]:
            tell(f"Continuing without the MCP server {', '.join(late)}, which is still starting.")

    def _startable(self, name: str) -> McpServer:
        server = self._get_server(name)
        if server.state == "not asked" or server.why == "you said no to it":
            raise AgentTuiError(
                f"The project's server {name} is not approved.",
                f"To approve it: /mcp ask {name}",
            )
        return server

    def _get_server(self, name: str) -> McpServer:
        server = self._servers.get(name)
        if server is None:
            names = ", ".join(self._servers) or "none"
            raise AgentTuiError(f"There is no MCP server {name!r}.", f"Servers: {names}.")
        return server

    def _tell_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._tell(line)

    def _tell(self, line: str) -> None:
        if self._listener is not None:
            self._listener(line)
        else:
            self._untold.append(line)


def _is_the_same(server: McpServer, spec: ServerSpec, cwd: Path) -> bool:
    """Whether `server` is the same as one that `spec` would start in `cwd`."""
    return server.spec.fingerprint == spec.fingerprint and server.cwd == (spec.cwd or cwd)
