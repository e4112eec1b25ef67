"""``agent-tui acp``: lets editors and other programs hold the conversation."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from agent_tui.cli.arguments import Arguments, parse_arguments
from agent_tui.cli.command_parser import subcommand_parser
from agent_tui.cli.key_store import login_names
from agent_tui.cli.subcommands import SUBCOMMANDS
from agent_tui.errors import AgentTuiError
from agent_tui.providers.accounts import own_accounts

if TYPE_CHECKING:
    from agent_tui.cli.compose import Program
    from agent_tui.features.acp.agent import EditorProgram
    from agent_tui.tools.server_spec import ServerSpec

_DESCRIPTION = """\
Run as an agent for an editor that speaks the Agent Client Protocol (Zed,
JetBrains, Neovim, Toad ...). The editor starts this command and talks to it
over standard input and output. The options apply to each new session; you
can change model and permissions in the editor."""


_LOGIN = SUBCOMMANDS.get("login")
"""None if no feature brings it: then editors offer no sign-in."""

_SIGN_INS = {
    **{account.name: f"Sign in to {account.title}" for account in own_accounts().values()},
    "openrouter": "Sign in to OpenRouter",
    "anthropic": "Store an Anthropic API key",
    "openai": "Store an OpenAI API key",
}
"""Sign-ins that editors offer before a first conversation, by the name that login takes."""


_END_WITHIN_S = 10.0
"""Seconds for what still runs when the editor leaves; entries are saved one by one anyway."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``agent-tui acp``."""
    from agent_tui.config import PermissionMode

    parser = subcommand_parser("acp", _DESCRIPTION)
    add = parser.add_argument
    add("-m", "--model", metavar="NAME", help="model to start with")
    add("--base-url", metavar="URL", help="use the OpenAI-compatible server at this URL")
    add("--api-key-env", metavar="VAR", help="environment variable that holds the API key")
    add("--permission-mode", choices=get_args(PermissionMode), help="permission mode to start with")
    add("--session-dir", metavar="DIR", help="folder for session files")
    if _LOGIN is not None:
        add(
            "--login",
            metavar="NAME",
            choices=login_names(),
            help="run agent-tui login NAME; for editors",
        )
    parser.set_defaults(login=None)
    add("--trust", action="store_true", help="trust the folders that the editor opens")
    return parser


def run_command(argv: Sequence[str]) -> int:
    """Talk to the editor until it leaves; returns the exit code.

    Raises:
        AgentTuiError: Standard input or output cannot be used; with ``--login``, the sign-in failed
            or no key was stored.
    """
    login = cast("str | None", build_parser().parse_args(list(argv)).login)
    if login is not None and _LOGIN is not None:
        return _LOGIN.load().run_command((login,))
    asyncio.run(_serve(parse_arguments(argv)))
    return 0


async def _serve(arguments: Arguments) -> None:
    from acp import run_agent

    from agent_tui.cli.compose import editor_of
    from agent_tui.cli.folders import folder_trust
    from agent_tui.cli.settings import session_root, usable_settings
    from agent_tui.features.acp.agent import AcpAgent
    from agent_tui.features.acp.wire import StdioWire
    from agent_tui.sessions.store import SessionStore

    settings = usable_settings(editor_of(arguments, folder_trust(arguments), lambda: None).load())
    store = SessionStore(session_root(settings), settings.durability)

    async def open_program(cwd: Path, servers: "Sequence[ServerSpec]") -> "EditorProgram":
        opened = await asyncio.to_thread(_open_for_editor, arguments._replace(cwd=cwd), servers)
        program, for_editor = opened
        await program.recover()
        return for_editor

    agent = AcpAgent(open_program, store, _SIGN_INS if _LOGIN else {})
    wire = StdioWire(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        with redirect_stdout(sys.stderr):  # only the protocol is written there
            await run_agent(agent, wire, use_unstable_protocol=True)
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_WITHIN_S):
                await agent.aclose()
    if wire.fault:
        raise AgentTuiError(wire.fault)


def _open_for_editor(
    arguments: Arguments, servers: "Sequence[ServerSpec]"
) -> "tuple[Program, EditorProgram]":
    """The program for one session in the folder that `arguments` name."""
    from agent_tui.cli.compose import command_services, compose
    from agent_tui.cli.folders import withheld_notice
    from agent_tui.features.acp.agent import EditorProgram

    program = compose(arguments, is_interactive=True, of_editor=servers)
    runtime = program.runtime
    conversation = runtime.conversation
    withheld = withheld_notice(conversation.withheld_files, conversation.cwd)
    return program, EditorProgram(
        runtime=runtime,
        services=command_services(arguments, program),
        notices=tuple(filter(None, (*program.start_notices, withheld))),
        close=program.aclose,
    )
