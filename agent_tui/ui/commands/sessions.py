"""Commands about sessions: leave one, open one, name, export and copy."""

import asyncio

from agent_tui.agent.export_file import export_target, write_export
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.offers import session_choices
from agent_tui.ui.commands.registry import Choice, command

_EXPORT_KINDS = (
    ("md", "Markdown, to read"),
    ("html", "a web page by itself"),
    ("jsonl", "the whole session file"),
)
_BUSY = "Cannot leave this session while responding. Use /abort first."


@command(refusal=_BUSY)
async def new(host: CommandHost, _argument: str) -> None:
    """Begin an empty session."""
    host.show_events(await host.runtime.sessions.start_new())


@command(refusal=_BUSY)
async def clear(host: CommandHost, _argument: str) -> None:
    """Begin an empty session (this one stays)."""
    host.show_events(await host.runtime.sessions.start_new())


@command(
    "[id or name | --from agent]",
    aliases=("sessions",),
    refusal=_BUSY,
    choices=session_choices,
)
async def resume(host: CommandHost, argument: str) -> None:
    """Go on with an earlier session."""
    from agent_tui.ui.session_opening import open_picked, open_session
    from agent_tui.ui.trust_question import ask_about_workspace

    if argument and not argument.startswith("--from"):
        if await open_session(host, argument):
            await ask_about_workspace(host)
        return
    from agent_tui.sessions.importers.discovery import FOREIGN_AGENTS, ForeignAgent
    from agent_tui.ui.screens.session_picker import SessionPicker

    wanted = argument.removeprefix("--from").strip(" =")
    agents: list[ForeignAgent] = [agent for agent in FOREIGN_AGENTS if wanted == agent]
    if argument and not agents:
        host.say(f"/resume --from takes one of: {', '.join(FOREIGN_AGENTS)}.", "error")
        return
    runtime = host.runtime
    picker = SessionPicker(
        runtime.services.store,
        runtime.conversation.cwd,
        runtime.conversation.log.header.id,
        host.ask,
        agents=agents,
    )
    picked = await host.ask(picker)
    if picked is not None and await open_picked(host, picked):
        await ask_about_workspace(host)


@command("<name>")
async def name(host: CommandHost, argument: str) -> None:
    """Name this session."""
    from agent_tui.sessions.listing.summary import one_line

    if not argument:
        present = host.runtime.conversation.log.name
        text = f"This session is called {present}." if present else "This session has no name."
        host.say(f"{text} Use /name and a name.")
        return
    wanted = one_line(argument)
    host.show_events(host.runtime.sessions.rename(wanted))
    host.say(f"Session named: {wanted}")


@command(
    "[md|html|jsonl] [path]",
    choices=lambda _host: tuple(Choice(*kind) for kind in _EXPORT_KINDS),
    takes_path=True,
)
async def export(host: CommandHost, argument: str) -> None:
    """Write the conversation to a file."""
    log = host.runtime.conversation.log
    if not log.entries:
        host.say("There is nothing to export yet.", "warning")
        return
    kind, path = export_target(argument, log, host.runtime.conversation.cwd)
    try:
        await asyncio.to_thread(write_export, kind, path, log)
    except FileExistsError:
        host.say(f"{path} exists already; name another file.", "error")
    except OSError as error:
        host.say(f"{path} cannot be written: {error.strerror}.", "error")
    else:
        host.say(f"Exported to {path}")


@command()
async def copy(host: CommandHost, _argument: str) -> None:
    """Copy the last reply to the clipboard."""
    if text := host.last_reply:
        host.say(host.copy(text))
    else:
        host.say("There is no reply to copy yet.", "warning")
