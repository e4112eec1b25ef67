"""The list of all agents as a screen, which follows what they do."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from textual import getters
from textual.binding import Binding, BindingType
from textual.types import CSSPathType
from textual.widgets import Static

from agent_tui.commands.core.front import TextQuestion
from agent_tui.commands.core.short_words import short_path
from agent_tui.errors import AgentTuiError
from agent_tui.features.agents.command import AgentChoice, PickableAgents
from agent_tui.features.agents.rows import (
    AgentRow,
    context_words,
    cost_words,
    count_line,
    place_words,
    state_words,
)
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.parts import KeysLine, any_app
from agent_tui.ui.screens.picker import PickerRow, PickerScreen, RowList

_LOOK_S = 0.5
"""Seconds between looks at the times of files."""

_SAY_AGAIN_S, _SAY_SOON_S, _YOUNG_S = 30.0, 10.0, 90.0
"""Seconds after which the ages are written again, although nothing has changed: sooner if something
has changed in the last `_YOUNG_S`, whose age is in seconds."""

_FIRST_ROWS = 60
"""More than a screen holds."""

_KEYS = "enter open · {diff}n {filter} · r name · x stop · / search · esc close"
_SEARCH_KEYS = "↑↓ move · enter open · esc end the search"
_SHORT_ID = 8
_PLACE_CHARS = 26
_NOTHING = "No sessions of any agent."
_NOBODY_WAITS = "No agent needs you. n shows all."


class AgentsScreen(PickerScreen[AgentChoice]):
    """Returns what is to be done with a session, or nothing.

    Args:
        shown: The sessions, and what can be done with them.
    """

    app = getters.app(any_app)
    CSS_PATH: ClassVar[CSSPathType | None] = [
        "../../ui/screens/modal.tcss",
        "../../ui/screens/picker.tcss",
        "screen.tcss",
    ]
    heading = "Agents"
    placeholder = "/ searches goals, folders and agents"
    column_titles = ("cost", "tokens", "folder", "agent", "state")
    title_width = 40
    searches_at_once = False
    keeps_place = True
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose('open')", "Open"),
        Binding("d", "choose('diff')", "Changes"),
        Binding("n", "toggle_filter", "Those that need you"),
        Binding("r", "rename", "Name"),
        Binding("x", "stop", "Stop"),
        Binding("slash", "search", "Search"),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    def __init__(self, shown: PickableAgents) -> None:
        super().__init__()
        self._what = shown
        self._only_needing = shown.only_needing
        self._begins_at = shown.begins_at
        self._note = shown.told
        self._agent_rows: list[AgentRow] = []
        self._said_at = datetime.now(UTC)

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        if self._field.has_focus:
            return _SEARCH_KEYS
        diff = "d changes · " if self._what.can_compare else ""
        return _KEYS.format(diff=diff, filter="all" if self._only_needing else "needs you")

    async def _load(self) -> None:
        """Show the newest sessions, then all, and from then on what changes."""
        listed = self._what.listed
        await asyncio.to_thread(listed.look)
        for most in (_FIRST_ROWS, None):
            self._agent_rows = await asyncio.to_thread(listed.rows, most)
            self._fill()
        while True:
            await asyncio.sleep(_LOOK_S)
            if await asyncio.to_thread(listed.look):
                self._agent_rows = await asyncio.to_thread(listed.rows)
                self._fill()
            elif self._ages_are_due():
                self._fill()

    def _ages_are_due(self) -> bool:
        now, newest = datetime.now(UTC), self._agent_rows[:1]
        is_young = any((now - row.since).total_seconds() < _YOUNG_S for row in newest)
        shown_s = (now - self._said_at).total_seconds()
        return shown_s >= (_SAY_SOON_S if is_young else _SAY_AGAIN_S)

    def _fill(self) -> None:
        """Show the rows that are wanted now, unless the list is gone: it goes before the screen."""
        if not self.query(RowList):
            return
        self._said_at = now = datetime.now(UTC)
        rows = list(filter(self._what.wanted, self._agent_rows))
        shown = [row for row in rows if row.needs_you or not self._only_needing]
        self.nothing = _NOBODY_WAITS if rows else _NOTHING
        self.query_one("#picker-heading", Static).update(f"Agents: {count_line(rows, len(rows))}")
        home = Path.home()
        self.show_rows([_picker_row(row, now, home) for row in shown])

    def row_highlighted(self, row: PickerRow[AgentChoice]) -> None:
        """Show below the rows what has no room in them."""
        self.standing_note = _facts(row.value.row)
        self.say(self._note)

    def first_row(self, rows: Sequence[PickerRow[AgentChoice]]) -> int:
        """The session that was acted on before."""
        path = None if self._begins_at is None else self._begins_at.path
        return next((n for n, row in enumerate(rows) if row.value.path == path), 0)

    # Keys

    def action_choose(self, action: str) -> None:
        """Close with the session and what to do with it."""
        if (row := self.present_row) is None:
            return
        if action == "open" and row.value.row.problem:
            self.say(f"This session cannot be opened: {row.value.row.problem}")
        elif action == "open":
            self.dismiss(row.value)
        elif not self._what.can_compare:
            self.say("Nothing here shows the changes in a folder.")
        elif why := self._what.sessions.why_not_compare(row.value.row):
            self.say(why)
        else:
            self.dismiss(replace(row.value, action="diff"))

    def pick(self, row: PickerRow[AgentChoice]) -> None:
        """Enter or a click opens it."""
        self.action_choose("open")

    def action_toggle_filter(self) -> None:
        """Show only what needs the user, or all again."""
        self._only_needing = not self._only_needing
        self._fill()
        self.query_one("#picker-keys", KeysLine).update(self.keys_hint)

    def action_rename(self) -> None:
        """Give the session another name."""
        self._do(self._rename)

    def action_stop(self) -> None:
        """End the program that has the session open, after a question."""
        self._do(self._what.sessions.stop)

    def _do(self, work: Callable[[AgentRow], Awaitable[str]]) -> None:
        async def run(row: AgentRow) -> None:
            try:
                self.say(await work(row))
            except AgentTuiError as error:
                self.say(str(error))

        if (present := self.present_row) is not None:
            self.run_worker(run(present.value.row), group="change", exclusive=True)

    async def _rename(self, row: AgentRow) -> str:
        if not row.is_ours:
            return await self._what.sessions.rename(row, "")
        question = TextQuestion("Name this session", row.goal, row.goal, "removes it")
        name = await self._what.sessions.front.ask_text(question)
        return "" if name is None else await self._what.sessions.rename(row, name)


def _picker_row(row: AgentRow, now: datetime, home: Path) -> PickerRow[AgentChoice]:
    return PickerRow(
        AgentChoice(row.path, "open", row),
        row.goal or "(no message yet)",
        (
            cost_words(row),
            context_words(row),
            place_words(row, home, _PLACE_CHARS),
            row.agent,
            _state(row, now),
        ),
        search=f"{row.id}\n{row.cwd}",
        tag=f" – {row.last_line}" if row.last_line else "",
        is_dim=not (row.pid or row.needs_you),
    )


def _program(row: AgentRow) -> str:
    """What has the session open; empty if nothing has."""
    if row.pid == os.getpid():
        return "open here"
    return f"process {row.pid}" if row.pid else ""


def _state(row: AgentRow, now: datetime) -> str:
    return f"{'! ' if row.needs_you else ''}{state_words(row, now)}"


def _facts(row: AgentRow) -> str:
    """The whole folder of a session, and where it runs."""
    tokens = f"{context_words(row)} tokens" if row.context_tokens else ""
    facts = [
        short_path(row.cwd, Path.home()) if row.cwd != Path() else "folder unknown",
        f"branch {row.branch}" if row.branch else "",
        f"worktree {row.worktree}" if row.worktree else "",
        cost_words(row),
        tokens,
        _program(row),
        row.id[:_SHORT_ID],
    ]
    return " · ".join(filter(None, facts))


def make_picker(wanted: PickableAgents, _front: ScreenFront) -> AgentsScreen:
    """The screen for `wanted`, which has a front itself."""
    return AgentsScreen(wanted)
