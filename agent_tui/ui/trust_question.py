"""Asking whether a folder is trusted: at the start, in another session's folder, with /trust."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent_tui.errors import AgentTuiError
from agent_tui.ui.breakpoints import size_classes

if TYPE_CHECKING:
    from agent_tui.permissions.trust import FolderTrust
    from agent_tui.ui.app import AgentApp
    from agent_tui.ui.commands.host import CommandHost


async def ask_at_start(app: "AgentApp", trust: "FolderTrust", cwd: Path) -> None:
    """Ask about `cwd` before anything of it is read; what is typed meanwhile is kept."""
    question = await asyncio.to_thread(trust.question, cwd)
    if question is None:
        return
    from agent_tui.ui.screens.trust import TrustScreen

    screen = TrustScreen(question, app.prompt.area.insert)
    screen.add_class(*size_classes(app.size))
    answer = await app.push_screen_wait(screen)
    try:
        await asyncio.to_thread(trust.answer, question, answer)
    except AgentTuiError as error:
        app.notify(str(error), severity="warning")


async def ask_about_workspace(host: "CommandHost", *, is_wanted: bool = False) -> None:
    """Ask about the folder that is worked in, and go on as the answer says.

    Args:
        host: Where to ask and to show.
        is_wanted: Ask even if it is decided, or nothing there would be obeyed.
    """
    from agent_tui.ui.screens.trust import TrustScreen

    runtime = host.runtime
    trust, cwd = runtime.services.trust, runtime.conversation.cwd
    find = trust.question_about if is_wanted else trust.question
    question = await asyncio.to_thread(find, cwd)
    if question is None:
        if is_wanted:
            host.say(f"{cwd} is too broad to be trusted. Work in one of the folders below.")
        await ask_about_servers(host)
        return
    answer = await host.ask(TrustScreen(question))
    if answer is None and is_wanted:
        return
    try:
        await asyncio.to_thread(trust.answer, question, answer)
    except AgentTuiError as error:
        host.say(str(error), "warning")
    host.show_events(await runtime.sessions.apply_trust())
    if is_wanted:
        host.say(f"{question.folder}: {trust.state_of(question.folder)}")
    if answer in ("trust", "this run") and any(f.suffix == ".toml" for f in question.files):
        host.say("Its rules hold now, its other settings when agent-tui is started there.")
    await ask_about_servers(host)


async def ask_about_servers(host: "CommandHost") -> None:
    """Ask about each MCP server of the project that was not decided on, and start it or not."""
    servers = host.servers
    if servers is None:
        return
    await servers.look(host.runtime.conversation.cwd)
    if not servers.not_asked:
        return
    from agent_tui.ui.screens.mcp_server import McpServerScreen

    for spec in servers.not_asked:
        answer = await host.ask(McpServerScreen(spec, host.write_letter))
        if answer is None:
            continue
        try:
            await servers.answer(spec, is_allowed=answer)
        except AgentTuiError as error:
            host.say(str(error), "warning")
