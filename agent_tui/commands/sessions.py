"""Sessions: leave one, open one, and name it."""

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.agent.session.manager import TAKEN_OVER
from agent_tui.commands.core.command import command
from agent_tui.commands.core.front import Choice, Front, Question
from agent_tui.commands.core.short_words import task_title
from agent_tui.errors import AgentTuiError
from agent_tui.safe_text import printable_line
from agent_tui.sessions.file.writer import RunningSession, SessionState, SessionStatus
from agent_tui.sessions.importers.import_session import import_session
from agent_tui.sessions.listing import SessionSummary

OpenChoice: TypeAlias = Literal["write", "read-only", "fork", "here", "take over"]

CANNOT_LEAVE = "Cannot leave this session while the agent works. {stop}"
"""What commands say that open another session."""

_LONG_S = 0.3


@command(refusal=CANNOT_LEAVE)
async def new(front: Front, _argument: str) -> None:
    """Start a new session."""
    await _start_new(front)


@command(refusal=CANNOT_LEAVE)
async def clear(front: Front, _argument: str) -> None:
    """Start a new session (this one is kept)."""
    await _start_new(front)


async def _start_new(front: Front) -> None:
    front.show_events(await front.runtime.sessions.start_new())
    front.show_events(await front.runtime.refresh_usage())


@command("<name>", aliases=("rename",))
async def name(front: Front, argument: str) -> None:
    """Name this session."""
    if not argument:
        present = front.runtime.conversation.log.name
        text = f"This session is named {present}." if present else "This session has no name."
        front.say(f"{text} /name NAME names it.")
        return
    wanted = printable_line(argument)
    front.show_events(front.runtime.sessions.rename(wanted))
    front.say(f"Session named: {wanted}")


# Picking one


NO_MESSAGE = "(no message yet)"


def session_title(summary: SessionSummary) -> str:
    """A session's name, or what its first prompt asks for."""
    return summary.name or task_title(summary.first_prompt) or NO_MESSAGE


def listed_title(summary: SessionSummary) -> str:
    """The title of a session in a list, behind who it was pulled from: the end may be cut."""
    source = f"(from {summary.pulled_from}) " if summary.pulled_from else ""
    return f"{source}{session_title(summary)}"


@dataclass(frozen=True, slots=True)
class SessionsOfProject:
    """Which sessions are of the project, and what programs do with them now.

    Attributes:
        cwd: The folder the user is in.
        elsewhere: The other worktrees of its repository.
        running: The sessions that a program has open.
    """

    cwd: Path
    elsewhere: Sequence[Path] = ()
    running: Mapping[Path, RunningSession] = field(default_factory=dict[Path, RunningSession])

    def is_here(self, found: SessionSummary) -> bool:
        """Whether a session works or was started in the present folder; a tour only works."""
        return self.cwd in (found.cwd, None if found.origin == "tour" else found.launch_cwd)

    def has(self, found: SessionSummary) -> bool:
        """Whether a session is of the project."""
        return self.is_here(found) or any(map(found.cwd.is_relative_to, self.elsewhere))

    def title(self, found: SessionSummary) -> str:
        """A session's title, with its folder if that is another one."""
        return f"{listed_title(found)}{self.tag(found)}"

    def tag(self, found: SessionSummary) -> str:
        """The folder of a session, to show behind its title; empty if it is the present one."""
        return "" if self.is_here(found) else f"  ({found.cwd.name})"

    def state(self, found: SessionSummary) -> SessionState | None:
        """What a program does with a session; None if none has it open."""
        running = self.running.get(found.path)
        return None if running is None else running.state

    def state_or_age(self, found: SessionSummary, now: datetime) -> str:
        """What a program does with a session, or else when it was last written."""
        state = self.state(found)
        return STATE_WORDS[state] if state is not None else age(found.modified, now)


STATE_WORDS: Mapping[SessionState, str] = MappingProxyType(
    {"waiting": "asks you", "working": "working", "idle": "open"}
)
"""What a program does with a session, as lists show it."""


def project_sessions(runtime: AgentRuntime) -> SessionsOfProject:
    """The sessions of the folder of `runtime`. Blocking."""
    services, cwd = runtime.services, runtime.conversation.cwd
    return SessionsOfProject(cwd, services.folders_elsewhere(cwd), services.store.running())


def age(then: datetime, now: datetime) -> str:
    """``now``, ``5m``, ``3h``, ``2d``, or the date after two weeks."""
    seconds = max((now - then).total_seconds(), 0)
    if seconds < 60:
        return "now"
    if seconds < 3_600:
        return f"{seconds // 60:.0f}m"
    if seconds < 86_400:
        return f"{seconds // 3_600:.0f}h"
    if seconds < 14 * 86_400:
        return f"{seconds // 86_400:.0f}d"
    return f"{then:%Y-%m-%d}"


# Opening a session: ask about obstacles before anything changes


async def open_session(front: Front, ref: str, *, keep_model: bool = False) -> bool:
    """Continue the session that `ref` names; false if the user declined or it failed.

    Reports errors. Arguments are those of `resume_session`.
    """
    try:
        return await resume_session(front, ref, keep_model=keep_model)
    except AgentTuiError as error:
        front.say(str(error), "error")
        return False


async def resume_session(front: Front, ref: str, *, keep_model: bool = False) -> bool:
    """Continue the session that `ref` names; false if the user declined.

    Args:
        front: The front to ask and show in.
        ref: As for `SessionStore.open`.
        keep_model: Keep the present model instead of the session's.

    Raises:
        AgentTuiError: There is none, or it cannot be opened.
    """
    look = await front.runtime.sessions.status(ref)
    way = await _ask_how_to_open(front, look)
    if way is None:
        return False
    if way == "take over" and look.owner is not None and look.owner.file is not None:
        await asyncio.to_thread(look.owner.file.unlink, missing_ok=True)
    mode = "write" if way in ("here", "take over") else way
    is_here = way == "here" or (way == "fork" and not look.has_folder)
    with _shows_that_it_lives(front):
        events = await front.runtime.sessions.open(
            str(look.path), keep_model=keep_model, mode=mode, here=is_here
        )
    front.show_events(events)
    front.show_events(await front.runtime.refresh_usage())
    return True


async def open_copy(front: Front, path: Path, format_name: str) -> bool:
    """Continue a copy of another agent's session; false if the user declined or it failed.

    Args:
        front: The front to ask and show in. It reports errors.
        path: The session, which does not change.
        format_name: Its format.
    """
    runtime = front.runtime
    try:
        imported = await asyncio.to_thread(
            import_session,
            runtime.services.store,
            path,
            cwd=runtime.conversation.cwd,
            format_name=format_name,
        )
    except AgentTuiError as error:
        front.say(str(error), "error")
        return False
    if not await open_session(front, str(imported.path)):
        return False
    front.say(TAKEN_OVER.format(count=imported.entries))
    for warning in imported.warnings:
        front.say(warning, "warning")
    return True


async def continue_wait(front: Front) -> None:
    """Continue the turn that waited for a model's limit when the session was left, if it did."""
    runtime = front.runtime
    if runtime.conversation.model.name and runtime.unfinished_wait is not None:
        await front.run(runtime.continue_turn())


@contextmanager
def _shows_that_it_lives(front: Front) -> Generator[None]:
    """If opening takes long, show a line in the chat, which the opened session replaces."""
    waiting = asyncio.get_running_loop().call_later(_LONG_S, front.say, "Reading the session…")
    try:
        yield
    finally:
        waiting.cancel()


async def _ask_how_to_open(front: Front, look: SessionStatus) -> OpenChoice | None:
    choices: tuple[Choice[OpenChoice], ...]
    if look.owner is not None:
        title = "This session is open elsewhere"
        facts = (f"It is open in {look.owner}. Only one program can write to it.",)
        choices = (
            Choice("read-only", "open it read-only", "r"),
            Choice("fork", "fork: continue in a copy", "f"),
        )
        if look.owner.file is not None:
            label = f"take over: it no longer runs on {look.owner.host}"
            take_over: Choice[OpenChoice] = Choice("take over", label, "t")
            choices = (*choices, take_over)
    elif not look.has_folder:
        title = "The folder of this session no longer exists"
        asked = front.runtime.sessions.how_to_return
        way = await asked(look.cwd, look.id) if look.cwd else ""
        facts = tuple(filter(None, (f"It worked in {look.cwd}.", way)))
        choices = (
            Choice("here", f"continue it in {front.runtime.conversation.cwd}", "c"),
            Choice("fork", "fork: continue there in a copy", "f"),
        )
    else:
        return "write"
    return await front.ask(Question(title, facts, choices))
