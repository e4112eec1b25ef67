"""``/resume``: continue an earlier session."""

import asyncio
import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Listing
from agent_tui.commands.core.short_words import count_text
from agent_tui.commands.sessions import (
    CANNOT_LEAVE,
    NO_MESSAGE,
    age,
    continue_wait,
    listed_title,
    open_copy,
    open_session,
    project_sessions,
)
from agent_tui.commands.trust import ask_about_workspace
from agent_tui.safe_text import printable_line
from agent_tui.sessions.importers.discovery import foreign_agents, foreign_sessions

_MOST_COMPLETED = 1_000
_MOST_LISTED = 20
_SHORT_ID = 8
_TITLE_CHARS = 80


async def _completions(front: Front) -> tuple[Completion, ...]:
    """Earlier sessions by name or first prompt, this project's first; each inserts its id."""
    runtime = front.runtime
    sessions = await asyncio.to_thread(
        _session_completions,
        runtime,
        datetime.now(UTC),
    )
    others = (
        Completion(f"--from {agent}", f"sessions from {agent}")
        for agent in foreign_agents(runtime.services.store.formats)
    )
    return (*sessions, *others)


def _session_completions(runtime: AgentRuntime, now: datetime) -> tuple[Completion, ...]:
    """All sessions but the present one. Blocking."""
    project = project_sessions(runtime)
    sessions = runtime.services.store.list()
    begun = Counter(found.id[:_SHORT_ID] for found in sessions)
    others = [found for found in sessions if found.id != runtime.conversation.log.header.id]
    others.sort(key=lambda found: not project.has(found))
    completions: list[Completion] = []
    for found in others[:_MOST_COMPLETED]:
        facts = [project.state_or_age(found, now), count_text(found.message_count, "message")]
        completions.append(
            Completion(
                found.id[:_SHORT_ID] if begun[found.id[:_SHORT_ID]] == 1 else found.id,
                " · ".join(facts if project.is_here(found) else [*facts, found.cwd.name]),
                " ".join(listed_title(found).split()),
            )
        )
    return tuple(completions)


@command(
    "[id or name | --from agent]",
    aliases=("sessions",),
    refusal=CANNOT_LEAVE,
    completions=_completions,
)
async def resume(front: Front, argument: str) -> None:
    """Resume an earlier session."""
    picked: PickedSession | str | None = argument
    if not argument or argument.startswith("--from"):
        wanted = argument.removeprefix("--from").strip(" =")
        known = foreign_agents(front.runtime.services.store.formats)
        agents = [agent for agent in known if wanted == agent]
        if argument and not agents:
            front.say(f"/resume --from takes one of: {', '.join(known)}.", "error")
            return
        picked = await front.pick(PickableSessions(front.runtime, tuple(agents)))
    if picked is None:
        return
    if isinstance(picked, str):
        is_open = await open_session(front, picked)
    elif picked.agent is None:
        is_open = await open_session(front, str(picked.path))
    else:
        is_open = await open_copy(front, picked.path, picked.agent)
    if is_open:
        await ask_about_workspace(front)
        await continue_wait(front)


@dataclass(frozen=True, slots=True)
class PickedSession:
    """A session file; `agent` wrote it, or the program itself if None."""

    path: Path
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class PickableSessions:
    """Earlier sessions.

    Attributes:
        runtime: The present session, which is left out, and the store of the others.
        agents: Other agents whose sessions to list; empty for our own.
    """

    runtime: AgentRuntime
    agents: tuple[str, ...] = ()

    async def listing(self) -> Listing[PickedSession]:
        """The newest sessions of this folder; others can be typed."""
        return await asyncio.to_thread(self._foreign if self.agents else self._ours)

    def _ours(self) -> Listing[PickedSession]:
        runtime = self.runtime
        project = project_sessions(runtime)
        present_id = runtime.conversation.log.header.id
        listed = runtime.services.store.list(project.cwd, project.elsewhere)
        sessions = [found for found in listed if found.id != present_id]
        sessions.sort(key=lambda found: project.state(found) != "waiting")
        now = datetime.now(UTC)

        choices = tuple(
            Choice(
                PickedSession(found.path),
                printable_line(project.title(found), _TITLE_CHARS),
                details=f"{count_text(found.message_count, 'message')} · "
                f"{project.state_or_age(found, now)}",
            )
            for found in sessions[:_MOST_LISTED]
        )
        nothing = "No other sessions in this folder."
        title = f"Resume a session (newest {_MOST_LISTED})"
        if len(sessions) <= _MOST_LISTED:
            title = "Resume a session in this folder"
        return Listing(title, choices, nothing, typed="a session ID or name")

    def _foreign(self) -> Listing[PickedSession]:
        cwd, now = self.runtime.conversation.cwd, datetime.now(UTC)
        formats = self.runtime.services.store.formats
        wanted = [known for known in formats if known.name in self.agents]
        files = foreign_sessions(Path.home(), os.environ, wanted)
        ordered = sorted(files, key=lambda file: file.cwd != cwd)
        choices = tuple(
            Choice(
                PickedSession(file.path, file.agent),
                printable_line(file.title or NO_MESSAGE, _TITLE_CHARS),
                details=f"{file.agent_label} · {file.cwd} · {age(file.modified, now)}",
            )
            for file in ordered[:_MOST_LISTED]
        )
        nothing = "No sessions of other agents found."
        return Listing("Continue a copy of another agent's session", choices, nothing)
