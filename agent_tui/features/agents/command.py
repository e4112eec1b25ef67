"""``/agents``: the sessions of all agents; open, compare, rename and stop them."""

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.agent.part import abilities_of
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Listing, loss_question
from agent_tui.commands.core.reviews import FolderReviews
from agent_tui.commands.sessions import CANNOT_LEAVE, continue_wait, open_copy, open_session
from agent_tui.commands.trust import ask_about_workspace
from agent_tui.errors import AgentTuiError, UsageError
from agent_tui.features.agents.agent_list import AgentList
from agent_tui.features.agents.programs import stop_program
from agent_tui.features.agents.rows import AgentRow, count_line, is_in, state_words, table_lines
from agent_tui.safe_paths import is_folder
from agent_tui.safe_text import printable_line

AgentAction: TypeAlias = Literal["open", "diff"]

_MOST_PRINTED = 40
_LINE_WIDTH = 120
_OURS_ONLY = "Only sessions of agent-tui can be {done}."
_SHORT_ID = 8

_WHAT = (
    Completion("needs me", "those that ask you, or wait for a limit"),
    Completion("here", "those of this folder and its worktrees"),
    Completion("stop ", "end the program that has a session open"),
)


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """What to do with a session. Two choices are the same if they do the same with one session."""

    path: Path
    action: AgentAction
    row: AgentRow = field(compare=False)


@command("[needs me | here | stop ID]", completions=lambda _front: _WHAT)
async def agents(front: Front, argument: str) -> None:
    """List the sessions of all agents on this machine."""
    verb, _, named = argument.partition(" ")
    listed = AgentList(front.runtime.services.store, Path.home(), os.environ)
    if verb == "stop" and named.strip():
        row = await asyncio.to_thread(_find_ours, listed, named.strip())
        front.say(await Sessions(front).stop(row) or "Nothing stopped.")
    elif argument not in ("", "here", "needs me"):
        raise UsageError(f"/agents takes needs me, here or stop ID, not {argument}.")
    elif front.screen is None:
        lines = await asyncio.to_thread(_printed_lines, front.runtime, listed, argument)
        front.say("\n".join(lines))
    else:
        await _show(front, listed, argument)


def _find_ours(listed: AgentList, start: str) -> AgentRow:
    listed.look()
    found = [row for row in listed.rows() if row.is_ours and row.id.startswith(start)]
    if len(found) != 1:
        what = f"{len(found)} sessions" if found else "No session"
        raise UsageError(
            f"{what} of agent-tui with the id {start}.", "agent-tui sessions list shows them."
        )
    return found[0]


def _wanted(runtime: AgentRuntime, filter_name: str) -> Callable[[AgentRow], bool]:
    """Whether a row is among those that `filter_name` lists; empty lists all. Blocking."""
    match filter_name:
        case "needs me":
            return lambda row: row.needs_you
        case "here":
            cwd = runtime.conversation.cwd
            folders = (cwd, *runtime.services.folders_elsewhere(cwd))
            return lambda row: is_in(row, folders)
        case _:
            return lambda _row: True


def _printed_lines(runtime: AgentRuntime, listed: AgentList, filter_name: str) -> list[str]:
    """The newest sessions as lines, and how many there are. Blocking."""
    listed.look()
    rows = list(filter(_wanted(runtime, filter_name), listed.rows()))
    shown = rows[:_MOST_PRINTED]
    width = shutil.get_terminal_size((_LINE_WIDTH, 0)).columns
    lines = table_lines(shown, width, datetime.now(UTC), Path.home())
    return [*lines, count_line(rows, len(shown))]


async def _show(front: Front, listed: AgentList, filter_name: str) -> None:
    """Show the list, and again after what was done from it, until something is opened."""
    reviews = _reviews_of(front.runtime)
    wanted = await asyncio.to_thread(_wanted, front.runtime, "here" * (filter_name == "here"))
    shown = PickableAgents(
        Sessions(front),
        listed,
        wanted,
        can_compare=reviews is not None,
        only_needing=filter_name == "needs me",
    )
    while True:
        picked = await front.pick(shown)
        if picked is None or isinstance(picked, str):
            return
        if picked.action == "open" or reviews is None:
            await _open(front, picked.row)
            return
        try:
            told = await reviews.show_changes(front, picked.row.cwd)
        except AgentTuiError as error:
            told = str(error)
        shown = replace(shown, begins_at=picked, told=told)


def _reviews_of(runtime: AgentRuntime) -> FolderReviews | None:
    """What shows the changes in a folder; None if no feature does."""
    abilities = abilities_of(runtime.parts, lambda _event: None)
    return next((one for one in abilities if isinstance(one, FolderReviews)), None)


async def _open(front: Front, row: AgentRow) -> None:
    """Continue a session of ours, or a copy of another agent's."""
    runtime = front.runtime
    if row.path == runtime.conversation.log.path:
        return
    if runtime.is_busy:
        sentence, _, hint = CANNOT_LEAVE.partition(" {")
        raise AgentTuiError(sentence, f"{{{hint}")
    if row.is_ours:
        is_open = await open_session(front, str(row.path))
    else:
        is_open = await open_copy(front, row.path, row.format_name)
    if is_open:
        await ask_about_workspace(front)
        await continue_wait(front)


@dataclass(frozen=True, slots=True)
class Sessions:
    """What can be done with a session while it stays where it is."""

    front: Front

    def why_not_compare(self, row: AgentRow) -> str:
        """Why the changes in its folder cannot be shown; empty if they can."""
        if row.cwd == Path():
            return "The folder of this session is unknown."
        return "" if is_folder(row.cwd) else f"{row.cwd} no longer exists."

    async def rename(self, row: AgentRow, name: str) -> str:
        """Rename a session of ours; returns what the user reads.

        Raises:
            AgentTuiError: It is another agent's, or open in another program.
        """
        if not row.is_ours:
            raise AgentTuiError(_OURS_ONLY.format(done="renamed"))
        runtime, line = self.front.runtime, printable_line(name)
        if row.path == runtime.conversation.log.path:
            self.front.show_events(runtime.sessions.rename(line))
        else:
            await asyncio.to_thread(runtime.services.store.rename, row.path, line)
        return f"Session named: {line}" if line else "The session has no name now."

    async def stop(self, row: AgentRow) -> str:
        """End the program that has a session of ours open, once the user agrees.

        Returns:
            What the user reads; empty if they do not agree.

        Raises:
            AgentTuiError: It is another agent's, nothing has it open, or this program has.
        """
        if not row.is_ours:
            raise AgentTuiError(_OURS_ONLY.format(done="stopped"))
        if not row.pid:
            raise AgentTuiError("No program has this session open.")
        if row.pid == os.getpid():
            raise AgentTuiError("This program has it open.", "/quit leaves it.")
        facts = (
            f"{row.goal or row.id[:_SHORT_ID]}: {state_words(row, datetime.now(UTC))}. "
            f"Its program (pid {row.pid}) gets SIGTERM: it stops the turn, keeps what was done, "
            "and ends. The session can be resumed."
        )
        if not await self.front.ask(loss_question("Stop this session?", facts)):
            return ""
        pid = await asyncio.to_thread(stop_program, row.path)
        return f"SIGTERM was sent to process {pid}."


@dataclass(frozen=True, slots=True)
class PickableAgents:
    """The sessions of all agents, for a screen.

    Attributes:
        sessions: What can be done with one.
        listed: The sessions.
        wanted: Which of them to list.
        can_compare: Whether something shows the changes in a folder.
        only_needing: Whether only those that need the user are shown at first.
        begins_at: The choice to highlight at first; None for the newest session.
        told: What the user is told below the list at first; may be empty.
    """

    sessions: Sessions
    listed: AgentList
    wanted: Callable[[AgentRow], bool]
    can_compare: bool
    only_needing: bool = False
    begins_at: AgentChoice | None = None
    told: str = ""

    async def listing(self) -> Listing[AgentChoice]:
        """The newest sessions."""
        await asyncio.to_thread(self.listed.look)
        rows = await asyncio.to_thread(self.listed.rows, _MOST_PRINTED)
        now = datetime.now(UTC)
        choices = tuple(
            Choice(
                AgentChoice(row.path, "open", row),
                row.goal,
                details=f"{row.agent} · {state_words(row, now)}",
            )
            for row in rows
            if self.wanted(row)
        )
        return Listing("Sessions of all agents", choices, "No sessions.")
