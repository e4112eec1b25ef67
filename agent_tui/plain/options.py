"""What this front end is built from; filled in by the composition root."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.front import CommandServices


@dataclass(frozen=True, slots=True)
class PlainOptions:
    """Everything a conversation by lines needs.

    Args:
        runtime: The conversation; closed at the end.
        services: What commands work on besides.
        warm: Gets the provider and the present model ready, in the background.
        close: Stops the provider, once the conversation is closed.
        history_file: Where what is sent is kept, for the up key.
        notices: Lines to tell at the start.
        first_prompt: Sent at once, as if it had been typed.
        resume: A session to open at the start, by path, id or name.
        keeps_model: Go on with the runtime's model instead of the opened session's.
        lists_sessions: Begin with the list of sessions (``-r`` without an id).
    """

    runtime: AgentRuntime
    services: CommandServices
    warm: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]
    history_file: Path
    notices: tuple[str, ...] = ()
    first_prompt: str = ""
    resume: str = ""
    keeps_model: bool = False
    lists_sessions: bool = False
