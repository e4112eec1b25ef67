"""The agent's side of the protocol: begin, open, list, prompt and close sessions."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from acp import PROTOCOL_VERSION, Client, RequestError, schema

from agent_tui._version import __version__
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices
from agent_tui.errors import AgentTuiError
from agent_tui.features.acp.editor import EditorTraits, traits_of
from agent_tui.features.acp.session import AcpSession
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.server_spec import ServerSpec, check_showable, name_problem

GivenServer: TypeAlias = (
    schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
)

_SOURCE = "the editor"
_MOST_NAME_CHARS = 24


def speaks_http() -> bool:
    """Whether the package for remote MCP servers is installed."""
    return find_spec("mcp") is not None


def servers_of_editor(
    given: Sequence[GivenServer] | None,
) -> tuple[tuple[ServerSpec, ...], tuple[str, ...]]:
    """The servers that may be started if the user agrees, and why the others cannot."""
    specs: list[ServerSpec] = []
    problems: list[str] = []
    for server in given or ():
        try:
            specs.append(_spec(server))
        except ValueError as error:
            problems.append(f"The editor's MCP server {server.name[:40]!r} was ignored: {error}.")
    return tuple(specs), tuple(problems)


def _spec(given: GivenServer) -> ServerSpec:
    name = re.sub(r"[^A-Za-z0-9]+", "-", given.name)[:_MOST_NAME_CHARS].strip("-")
    if why := name_problem(name):
        raise ValueError(why)
    match given:
        case schema.McpServerStdio(command=command, args=args, env=env):
            variables = {each.name: each.value for each in env}
            spec = ServerSpec(name, _SOURCE, argv=(command, *args), env=variables, origin="editor")
        case schema.HttpMcpServer(url=url, headers=headers):
            named = {each.name: each.value for each in headers}
            spec = ServerSpec(name, _SOURCE, url=url, headers=named, origin="editor")
        case _:
            raise ValueError(f"its type is {given.type}; only stdio and http are supported")
    return check_showable(spec)


_PAGE = 50
_REFUSED = -32602
"""The code for invalid parameters; the next code means that the user must sign in."""
_NO_SESSION = "No such session. Start or load one first."


@dataclass(frozen=True, slots=True)
class EditorProgram:
    """A program for one session.

    Attributes:
        runtime: Its conversation, still empty.
        services: The other services for commands.
        notices: Texts about the start for the user.
        close: Ends its processes.
    """

    runtime: AgentRuntime
    services: CommandServices
    notices: tuple[str, ...]
    close: Callable[[], Awaitable[None]]


class AcpAgent:
    """Holds the sessions of one editor.

    Args:
        open_program: Makes a program for a folder and the MCP servers that an editor names.
        store: The sessions to list.
        sign_ins: Names and titles of providers for ``agent-tui acp --login NAME``.
    """

    def __init__(
        self,
        open_program: Callable[[Path, Sequence[ServerSpec]], Awaitable[EditorProgram]],
        store: SessionStore,
        sign_ins: Mapping[str, str],
    ) -> None:
        self._open_program = open_program
        self._store = store
        self._sign_ins = [
            schema.TerminalAuthMethod(id=name, name=title, type="terminal", args=["--login", name])
            for name, title in sign_ins.items()
        ]
        self._client: Client | None = None
        self._editor = EditorTraits()
        self._sessions: dict[str, tuple[AcpSession, EditorProgram]] = {}

    def on_connect(self, conn: Client) -> None:
        """Note the editor's connection."""
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_more: object,
    ) -> schema.InitializeResponse:
        """The agent's capabilities."""
        self._editor = traits_of(client_capabilities, client_info)
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            auth_methods=list(self._sign_ins) if self._editor.signs_in else [],
            agent_info=schema.Implementation(
                name="agent-tui", title="agent-tui", version=__version__
            ),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=speaks_http()),
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
        )

    async def authenticate(
        self, method_id: str, **_more: object
    ) -> schema.AuthenticateResponse | None:
        """Does nothing: keys are in the environment, or stored by signing in."""
        return schema.AuthenticateResponse()

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_more: object,
    ) -> schema.NewSessionResponse:
        """Begin a session."""
        opened = await self._program(cwd, mcp_servers)
        session = self._add(opened.runtime.conversation.log.header.id, opened)
        options = await session.begin(opened.notices)
        return schema.NewSessionResponse(
            session_id=session.id, modes=session.modes, config_options=options
        )

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[GivenServer] | None = None,
        additional_directories: list[str] | None = None,
        **_more: object,
    ) -> schema.LoadSessionResponse | None:
        """Open an earlier session, and send its messages."""
        session, notices = await self._open(cwd, session_id, mcp_servers)
        await session.replay()
        await session.flush()
        options = await session.begin(notices)
        return schema.LoadSessionResponse(modes=session.modes, config_options=options)

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_more: object,
    ) -> schema.ResumeSessionResponse:
        """Open an earlier session that the editor knows already."""
        session, notices = await self._open(cwd, session_id, mcp_servers)
        options = await session.begin(notices)
        return schema.ResumeSessionResponse(modes=session.modes, config_options=options)

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[GivenServer] | None = None,
        **_more: object,
    ) -> schema.ForkSessionResponse:
        """Begin a session as a copy of a stored one."""
        opened = await self._program(cwd, mcp_servers)
        try:
            await opened.runtime.sessions.open(session_id, mode="fork", here=True)
        except AgentTuiError as error:
            await opened.close()
            raise _request_error(error) from error
        session = self._add(opened.runtime.conversation.log.header.id, opened)
        options = await session.begin(opened.notices)
        return schema.ForkSessionResponse(
            session_id=session.id, modes=session.modes, config_options=options
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: object
    ) -> schema.ListSessionsResponse:
        """The stored sessions, newest first, of one folder or all."""
        found = self._store.list(Path(cwd) if cwd else None)
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        page = found[start : start + _PAGE]
        more = str(start + _PAGE) if len(found) > start + _PAGE else None
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=each.id,
                    cwd=str(each.cwd),
                    title=each.name or each.first_prompt or None,
                    updated_at=each.modified.isoformat(),
                )
                for each in page
            ],
            next_cursor=more,
        )

    async def prompt(
        self,
        session_id: str,
        prompt: list[
            schema.TextContentBlock
            | schema.ImageContentBlock
            | schema.AudioContentBlock
            | schema.ResourceContentBlock
            | schema.EmbeddedResourceContentBlock
        ],
        **_more: object,
    ) -> schema.PromptResponse:
        """Run a message, or a slash command, to its end."""
        return schema.PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **_more: object) -> None:
        """Stop the running work of a session."""
        if session_id in self._sessions:
            await self._session(session_id).cancel()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_more: object
    ) -> schema.SetSessionModeResponse | None:
        """Set the permission mode."""
        if not self._session(session_id).set_mode(mode_id):
            raise RequestError.invalid_params({"modeId": mode_id})
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_more: object
    ) -> schema.SetSessionConfigOptionResponse | None:
        """Set the model or the thinking level."""
        session = self._session(session_id)
        try:
            if not await session.set_option(config_id, str(value)):
                raise RequestError.invalid_params({config_id: value})
        except AgentTuiError as error:
            raise _request_error(error) from error
        return schema.SetSessionConfigOptionResponse(config_options=await session.options())

    async def close_session(
        self, session_id: str, **_more: object
    ) -> schema.CloseSessionResponse | None:
        """Stop a session's work and close it; its file stays."""
        session, opened = self._sessions.pop(session_id, (None, None))
        if session is not None and opened is not None:
            await session.aclose()
            await opened.close()
        return schema.CloseSessionResponse()

    async def ext_method(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """There are no extensions."""
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, object]) -> None:
        """There are no extensions."""

    async def aclose(self) -> None:
        """End everything after the editor has disconnected."""
        for session_id in list(self._sessions):
            await self.close_session(session_id)

    def _add(self, session_id: str, opened: EditorProgram) -> AcpSession:
        assert self._client is not None
        session = AcpSession(
            session_id, opened.runtime, opened.services, self._client, self._editor
        )
        self._sessions[session_id] = (session, opened)
        return session

    async def _open(
        self, cwd: str, session_id: str, servers: list[GivenServer] | None
    ) -> tuple[AcpSession, tuple[str, ...]]:
        await self.close_session(session_id)
        opened = await self._program(cwd, servers)
        try:
            await opened.runtime.sessions.open(session_id, here=True)
        except AgentTuiError as error:
            await opened.close()
            raise _request_error(error) from error
        return self._add(session_id, opened), opened.notices

    async def _program(self, cwd: str, servers: list[GivenServer] | None) -> EditorProgram:
        specs, problems = servers_of_editor(servers)
        try:
            opened = await self._open_program(Path(cwd), specs)
            return replace(opened, notices=(*opened.notices, *problems))
        except AgentTuiError as error:
            raise _request_error(error) from error

    def _session(self, session_id: str) -> AcpSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise RequestError.invalid_params({"sessionId": session_id, "why": _NO_SESSION})
        return found[0]


def _request_error(error: AgentTuiError) -> RequestError:
    return RequestError(_REFUSED, str(error))
