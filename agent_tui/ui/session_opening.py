"""Opening another session: what stands in the way is asked before anything is changed."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from agent_tui.errors import AgentTuiError
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.session_rows import PickedSession

if TYPE_CHECKING:
    from agent_tui.sessions.file.status import SessionStatus

Way = Literal["write", "read-only", "fork", "here"]

_LONG_S = 0.3


async def open_session(host: CommandHost, ref: str, *, keep_model: bool = False) -> bool:
    """Go on with the session `ref` means; false where the person would not, or it failed.

    Args:
        host: Where to ask and to show.
        ref: What `SessionStore.open` takes.
        keep_model: Go on with the present model instead of the session's.
    """
    try:
        look = await host.runtime.sessions.status(ref)
        way = await _way_to_open(host, look)
        if way is None:
            return False
        mode = "write" if way == "here" else way
        is_here = way == "here" or (way == "fork" and not look.has_folder)
        with _shows_that_it_lives(host):
            events = await host.runtime.sessions.open(
                str(look.path), keep_model=keep_model, mode=mode, here=is_here
            )
    except AgentTuiError as error:
        host.say(str(error), "error")
        return False
    host.show_events(events)
    host.show_events(await host.runtime.refresh_usage())
    return True


@contextmanager
def _shows_that_it_lives(host: CommandHost) -> Generator[None]:
    """A line in the chat where it takes long; the session that is opened takes its place."""
    waiting = asyncio.get_running_loop().call_later(_LONG_S, host.say, "Reading the session…")
    try:
        yield
    finally:
        waiting.cancel()


async def open_picked(host: CommandHost, picked: PickedSession) -> bool:
    """Go on with a picked session; one of another agent in a copy of our own."""
    if picked.agent is None:
        return await open_session(host, str(picked.path))
    from agent_tui.agent.session_manager import TAKEN_OVER
    from agent_tui.sessions.importers.import_session import import_session

    runtime = host.runtime
    try:
        imported = await asyncio.to_thread(
            import_session,
            runtime.services.store,
            picked.path,
            cwd=runtime.conversation.cwd,
            format_name=picked.agent,
        )
    except AgentTuiError as error:
        host.say(str(error), "error")
        return False
    if not await open_session(host, str(imported.path)):
        return False
    host.say(TAKEN_OVER.format(count=imported.entries))
    for warning in imported.warnings:
        host.say(warning, "warning")
    return True


async def _way_to_open(host: CommandHost, look: "SessionStatus") -> Way | None:
    from agent_tui.ui.screens.choice import Choice, ChoiceScreen

    choices: tuple[Choice[Way], ...]
    if look.owner_pid is not None:
        owner = f"another agent-tui (pid {look.owner_pid})" if look.owner_pid else "another one"
        title = "This session is open elsewhere"
        facts = f"It is open in {owner}; only one can write to it."
        choices = (
            Choice("r", "look at it, read-only", "read-only"),
            Choice("f", "fork: go on in a copy", "fork"),
        )
    elif not look.has_folder:
        title = "The folder of this session is gone"
        facts = f"It worked in {look.cwd}, which does not exist now."
        choices = (
            Choice("c", f"continue it in {host.runtime.conversation.cwd}", "here"),
            Choice("f", "fork: go on there in a copy", "fork"),
        )
    else:
        return "write"
    return await host.ask(ChoiceScreen(title, facts, choices))
