"""The session picker: this project's first, by chain; every text in them can be searched."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from agent_tui.commands.core.front import loss_question
from agent_tui.commands.core.short_words import count_text, short_count, short_path
from agent_tui.commands.sessions import (
    NO_MESSAGE,
    SessionsOfProject,
    age,
    listed_title,
    project_sessions,
    session_title,
)
from agent_tui.errors import SessionError
from agent_tui.features.session_picker.command import PickableSessions, PickedSession
from agent_tui.safe_text import printable_line, safe_text
from agent_tui.sessions.importers.discovery import (
    ForeignFile,
    foreign_agents,
    foreign_sessions,
)
from agent_tui.sessions.importers.formats import read_foreign
from agent_tui.sessions.listing import SessionSummary, lineage_rows
from agent_tui.sessions.newest_entries import newest_entries
from agent_tui.sessions.search.word_index import SearchHit
from agent_tui.sessions.store import SessionStore
from agent_tui.ui.front import ScreenFront
from agent_tui.ui.parts import KeysLine, PaintedLines
from agent_tui.ui.screens.choice import ChoiceScreen, LineInputScreen
from agent_tui.ui.screens.picker import (
    PickerRow,
    PickerScreen,
    RowList,
    search_rows,
)
from agent_tui.ui.screens.session_preview import last_blocks, preview_lines
from agent_tui.ui.transcript.blocks import Block, NoticeBlock

_TYPING_PAUSE_S = 0.04
_END_ENTRIES = 60
"""Enough to include the last messages with text, between tool results."""

_NOTHING_OF_OTHERS = "No sessions of other agents found."
_COLUMNS_OF_OTHERS = ("agent", "size", "age")


AnswerT = TypeVar("AnswerT")


def session_rows(
    sessions: Sequence[SessionSummary], project: SessionsOfProject, now: datetime
) -> list[PickerRow[PickedSession]]:
    """This project's sessions first; in each part by chain, the one last worked in first."""
    ours = [summary for summary in sessions if project.has(summary)]
    others = [summary for summary in sessions if not project.has(summary)]
    return [
        _row(placed.summary, placed.guides, now, project, is_dim=part is others)
        for part in (ours, others)
        for placed in lineage_rows(part)
    ]


def foreign_rows(
    files: Iterable[ForeignFile], cwd: Path, now: datetime
) -> list[PickerRow[PickedSession]]:
    """Sessions of other agents, this project's first."""
    ordered = sorted(files, key=lambda file: file.cwd != cwd)
    return [_foreign_row(file, now, is_here=file.cwd == cwd) for file in ordered]


def session_facts(summary: SessionSummary, now: datetime) -> Content:
    """The facts about a session that need no reading."""
    tokens = f" · {short_count(summary.context_tokens)} tokens" if summary.context_tokens else ""
    messages = count_text(summary.message_count, "message")
    facts = [
        short_path(summary.cwd, Path.home()),
        f"{summary.model or 'model unknown'} · {messages}{tokens}",
        f"{age(summary.modified, now)} · {summary.id[:8]}",
    ]
    if summary.parent_session:
        facts.append("continues an earlier session")
    if summary.pulled_from:
        facts.append(f"pulled from {summary.pulled_from}")
    return _with_title(session_title(summary), facts)


def _foreign_title(file: ForeignFile) -> str:
    """Its name, or the beginning of its first prompt."""
    return file.title or NO_MESSAGE


def foreign_facts(file: ForeignFile, now: datetime) -> Content:
    """The facts about another agent's session that need no complete reading."""
    where = short_path(file.cwd, Path.home()) if file.cwd != Path() else "folder unknown"
    size = "" if file.size_bytes is None else f" · {_kilobytes(file)}"
    return _with_title(
        _foreign_title(file), [where, f"{file.agent_label}{size}", age(file.modified, now)]
    )


def _row(
    summary: SessionSummary,
    guide: str,
    now: datetime,
    project: SessionsOfProject,
    *,
    is_dim: bool,
) -> PickerRow[PickedSession]:
    return PickerRow(
        value=PickedSession(summary.path),
        title=listed_title(summary),
        tag=project.tag(summary),
        columns=(
            summary.model.rpartition("/")[2],
            f"{summary.message_count:,}",
            short_count(summary.context_tokens) if summary.context_tokens else "–",
            project.state_or_age(summary, now),
        ),
        search=f"{summary.id}\n{summary.first_prompt}\n{summary.cwd}",
        is_dim=is_dim,
        guide=guide,
    )


def _foreign_row(file: ForeignFile, now: datetime, *, is_here: bool) -> PickerRow[PickedSession]:
    return PickerRow(
        value=PickedSession(file.path, file.agent),
        title=_foreign_title(file),
        tag="" if is_here or not file.cwd.name else f"  ({file.cwd.name})",
        columns=(file.agent_label, _kilobytes(file), age(file.modified, now)),
        search=f"{file.path.stem}\n{file.cwd}",
        is_dim=not is_here,
    )


def _kilobytes(file: ForeignFile) -> str:
    return "–" if file.size_bytes is None else f"{file.size_bytes / 1_000:,.0f} kB"


def _with_title(title: str, facts: Iterable[str]) -> Content:
    lines = "\n".join(safe_text(fact, keep_newlines=False) for fact in facts)
    name = safe_text(title, keep_newlines=False)
    return Content.assemble((name, "bold"), "\n", (lines, "$foreground-muted"))


class Ask(Protocol):
    """Shows a screen and waits for its answer; None if it was left without one."""

    async def __call__(self, screen: Screen[AnswerT], /) -> AnswerT | None:
        """Show `screen`; returns its answer."""
        ...


class SessionPicker(PickerScreen[PickedSession]):
    """Returns the chosen session, ours or another agent's.

    Args:
        store: Where the sessions are.
        project: The present project, and which sessions are open. Called in a thread.
        present_id: The session in use, left out.
        ask: Shows a screen above this one and returns its answer.
        agents: Begin with the sessions of these other agents; empty: with ours.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "rename", "Rename", priority=True),
        Binding("ctrl+d", "delete", "Delete", priority=True),
        Binding("ctrl+o", "other_agents", "Other agents", priority=True),
    ]
    heading = "Resume a session"
    placeholder = "Type to search names and messages"
    nothing = "No earlier sessions."
    column_titles = ("model", "messages", "tokens", "age")
    title_width = 40
    has_preview = True

    def __init__(
        self,
        store: SessionStore,
        project: Callable[[], SessionsOfProject],
        present_id: str,
        ask: Ask,
        *,
        agents: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._store = store
        self._look_at_project = project
        self._project = SessionsOfProject(Path())
        self._present_id = present_id
        self._ask = ask
        self._now = datetime.now(UTC)
        self._agents = tuple(agents)
        self._sessions: dict[Path, SessionSummary] = {}
        self._foreign: dict[Path, ForeignFile] = {}
        self._hits_for = ""
        self._hits: dict[Path, SearchHit] = {}
        self._unsearched = 0
        self._is_left = threading.Event()

    @property
    def keys_hint(self) -> str:
        """The line at the bottom."""
        if self._agents:
            return "↑↓ move · enter resume a copy · ctrl+o agent-tui sessions · esc close"
        return "enter open · ctrl+r name · ctrl+d delete · ctrl+o other agents · esc close"

    def on_mount(self) -> None:
        """Bring the search up to date beside the list, which the base loads."""
        self._name_what_is_shown()
        self.run_worker(self._update_search, group="search-index", exit_on_error=False)

    def on_unmount(self) -> None:
        """Let the threads end."""
        self._is_left.set()

    @property
    def _is_open(self) -> bool:
        """Whether the list is still there; it goes before the screen does."""
        return not self._is_left.is_set() and bool(self.query(RowList))

    async def _load(self) -> None:
        self._project = await asyncio.to_thread(self._look_at_project)
        if self._agents:
            home = Path.home()
            wanted = [known for known in self._store.formats if known.name in self._agents]
            files = await asyncio.to_thread(foreign_sessions, home, os.environ, wanted)
            self._foreign = {file.path: file for file in files}
            self.say("")
            self.show_rows(foreign_rows(files, self._project.cwd, self._now))
            return
        self._sessions = {}
        await asyncio.to_thread(self._read_pages, asyncio.get_running_loop())
        listed = tuple(self._sessions.values())
        unread = await asyncio.to_thread(self._store.unreadable, listed, self._project.cwd)
        if self._is_open:
            self.say(f"Cannot read: {'; '.join(unread)}" if unread else self._asking())
            await self._show_sessions()

    def _read_pages(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show the first page at once, then each time the number of sessions has doubled."""
        shown = 0
        with closing(self._store.pages(self._project.cwd)) as pages:
            for page in pages:
                if self._is_left.is_set():
                    return
                self._sessions.update((found.path, found) for found in page)
                if len(self._sessions) >= 2 * shown:
                    shown = len(self._sessions)
                    loop.call_soon_threadsafe(self._show_ours, self._session_rows())

    def _asking(self) -> str:
        """Which of the project's sessions ask a question; empty if none does."""
        asking = [
            self._project.title(found)
            for found in self._sessions.values()
            if self._project.has(found)
            and found.id != self._present_id
            and self._project.state(found) == "waiting"
        ]
        return f"Asks you in another terminal: {', '.join(asking)}" if asking else ""

    def _session_rows(self) -> list[PickerRow[PickedSession]]:
        """Of all sessions read so far. Takes a while for thousands."""
        others = [found for found in self._sessions.values() if found.id != self._present_id]
        others.sort(key=lambda found: (found.modified, found.id), reverse=True)
        return session_rows(others, self._project, self._now)

    async def _show_sessions(self) -> None:
        self._show_ours(await asyncio.to_thread(self._session_rows))

    def _show_ours(self, rows: list[PickerRow[PickedSession]]) -> None:
        if self._is_open and not self._agents:
            self.show_rows(rows)

    def first_row(self, rows: Sequence[PickerRow[PickedSession]]) -> int:
        """The newest session of the first chain, which begins with its oldest one."""
        chain = [0, *takewhile(lambda index: rows[index].guide, range(1, len(rows)))]
        known = [index for index in chain if rows[index].value.path in self._sessions]
        by_age = {index: self._sessions[rows[index].value.path].modified for index in known}
        return max(known, key=lambda index: by_age[index], default=0)

    # Searching

    def matching(self, wanted: str) -> Sequence[PickerRow[PickedSession]]:
        """Rows that match `wanted`, then those of sessions that contain it."""
        certain = search_rows(self._rows, wanted, fuzzy=False)
        hits = self._hits if self._hits_for == wanted else {}
        if not hits:
            return certain or search_rows(self._rows, wanted)
        named = {row.value.path for row in certain}
        by_path = {row.value.path: row for row in self._rows}
        further = [by_path[path] for path in hits if path in by_path and path not in named]
        return [*certain, *further] or search_rows(self._rows, wanted)

    @on(Input.Changed, "#picker-search")
    def _look_into_sessions(self) -> None:
        self.run_worker(self._search, group="search", exclusive=True)

    async def _search(self) -> None:
        wanted = self.wanted
        if not wanted.strip() or self._agents:
            return
        await asyncio.sleep(_TYPING_PAUSE_S)  # the next key ends this search before it begins
        hits = await asyncio.to_thread(self._store.search, wanted)
        if wanted == self.wanted and self._is_open:
            self._hits_for, self._hits = wanted, {hit.path: hit for hit in hits}
            self.refill()
            left = self._unsearched
            self.say(f"{left:,} sessions are still being indexed." if left else "")

    async def _update_search(self) -> None:
        loop = asyncio.get_running_loop()

        def tell(done: int, total: int) -> None:
            loop.call_soon_threadsafe(self._note_progress, total - done)

        update = partial(self._store.update_search, tell, self._is_left.is_set)
        left = await asyncio.to_thread(update)
        self._note_progress(left)

    def _note_progress(self, unsearched: int) -> None:
        self._unsearched = unsearched
        if self.wanted and self._is_open:
            self._look_into_sessions()

    # The preview

    def preview_of(self, row: PickerRow[PickedSession]) -> Content:
        """The facts of the session."""
        path = row.value.path
        parts: list[Content] = []
        if (summary := self._sessions.get(path)) is not None:
            parts.append(session_facts(summary, self._now))
        elif (file := self._foreign.get(path)) is not None:
            parts.append(foreign_facts(file, self._now))
        return Content("\n\n").join(parts)

    def row_highlighted(self, row: PickerRow[PickedSession]) -> None:
        """Read the end of the session and show it under its facts."""
        self.run_worker(partial(self._show_end, row), group="preview", exclusive=True)

    async def _show_end(self, row: PickerRow[PickedSession]) -> None:
        try:
            blocks = await asyncio.to_thread(_read_end, row.value, self._store)
        except (SessionError, OSError) as error:
            blocks = (NoticeBlock("error", str(error)),)
        # None if the screen was left meanwhile.
        for end in self.query("#picker-preview-end").results(PaintedLines):
            hit = self._hits.get(row.value.path) if self._hits_for == self.wanted else None
            snippet = hit.snippet if hit is not None else ""
            end.show(partial(preview_lines, blocks, self.wanted, snippet=snippet))
            self.query_one("#picker-preview-text", Static).update(self.preview_of(row))

    # Keys

    def action_rename(self) -> None:
        """Give the session another name."""
        if summary := self._present_summary():
            self.run_worker(self._rename(summary), group="change", exclusive=True)

    def action_delete(self) -> None:
        """Move the session to the trash, after a question."""
        if summary := self._present_summary():
            self.run_worker(self._delete(summary), group="change", exclusive=True)

    def action_other_agents(self) -> None:
        """Show the sessions of other agents, or ours again."""
        self._agents = () if self._agents else foreign_agents(self._store.formats)
        self._name_what_is_shown()
        self.say("Loading…")
        self.show_rows(())
        self.run_worker(self._load, exclusive=True)

    def _name_what_is_shown(self) -> None:
        own = type(self)
        self.nothing = _NOTHING_OF_OTHERS if self._agents else own.nothing
        self.column_titles = _COLUMNS_OF_OTHERS if self._agents else own.column_titles
        heading = "Resume a session of another agent" if self._agents else own.heading
        search = "Type to search first messages" if self._agents else own.placeholder
        self.query_one("#picker-heading", Static).update(heading)
        self.query_one("#picker-search", Input).placeholder = search
        self.query_one("#picker-keys", KeysLine).update(self.keys_hint)

    def _present_summary(self) -> SessionSummary | None:
        row = self.present_row
        if row is None or row.value.agent is not None:
            return None
        return self._sessions.get(row.value.path)

    async def _rename(self, summary: SessionSummary) -> None:
        title = session_title(summary)
        name = await self._ask(
            LineInputScreen("Name this session", title, summary.name, empty_means="removes it")
        )
        if name is None or name == summary.name:
            return
        name = printable_line(name)
        if await self._try_change(lambda: self._store.rename(summary.path, name)):
            self._sessions[summary.path] = replace(summary, name=name)
            await self._show_sessions()

    async def _delete(self, summary: SessionSummary) -> None:
        title = session_title(summary)
        facts = f"{title}\n\nIts file moves to the trash folder of the sessions."
        if not await self._ask(ChoiceScreen(loss_question("Delete this session?", facts))):
            return
        if await self._try_change(lambda: self._store.delete(summary.path)):
            del self._sessions[summary.path]
            await self._show_sessions()
            self.say(f"Moved to the trash: {title}")

    async def _try_change(self, change: Callable[[], object]) -> bool:
        try:
            await asyncio.to_thread(change)
        except SessionError as error:
            self.say(str(error))
            return False
        return True


def _read_end(picked: PickedSession, store: SessionStore) -> tuple[Block, ...]:
    """What was said last in a session file, oldest of it first. Blocking.

    Raises:
        SessionError: Another agent's file cannot be read.
        OSError: The file cannot be read.
    """
    if picked.agent is not None:
        read = read_foreign(picked.path, picked.agent, store.formats)
        return last_blocks(read.entries[-_END_ENTRIES:])
    return last_blocks([*islice(newest_entries(picked.path), _END_ENTRIES)][::-1])


def make_picker(wanted: PickableSessions, front: ScreenFront) -> SessionPicker:
    """The screen for `wanted`, which asks its questions above the chat."""
    runtime = wanted.runtime
    return SessionPicker(
        runtime.services.store,
        partial(project_sessions, runtime),
        runtime.conversation.log.header.id,
        front.show_screen,
        agents=wanted.agents,
    )
