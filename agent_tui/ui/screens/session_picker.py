"""The session picker: this project's sessions first, each with a look at how it ended."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from textual.content import Content
from textual.widgets import Static

from agent_tui.errors import SessionError
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore, SessionSummary
from agent_tui.ui.sanitise import safe_text
from agent_tui.ui.screens.picker import PickerRow, PickerScreen
from agent_tui.ui.status_bar import short_path

PREVIEW_MESSAGES = 6
PREVIEW_CHARS = 600


class SessionPicker(PickerScreen[Path]):
    """Returns the file of the chosen session.

    Args:
        store: Where the sessions are.
        cwd: The present project.
        present_id: The session in use, left out.
        now: The time ages are counted from; the present if left out.
    """

    heading = "Go on with a session"
    placeholder = "Type to search names, prompts, folders and models"
    nothing = "There are no earlier sessions."
    column_titles = ("model", "messages", "age")
    has_preview = True

    def __init__(
        self, store: SessionStore, cwd: Path, present_id: str, now: datetime | None = None
    ) -> None:
        super().__init__()
        self._store = store
        self._cwd = cwd
        self._present_id = present_id
        self._now = now or datetime.now(UTC)

    async def load_rows(self) -> Sequence[PickerRow[Path]]:
        """All sessions but the present one, this project's first, newest first in each part."""
        listed = await asyncio.to_thread(self._store.list)
        others = [summary for summary in listed if summary.id != self._present_id]
        ordered = sorted(others, key=lambda summary: not self._is_here(summary))
        return [self._row(summary) for summary in ordered]

    def row_highlighted(self, row: PickerRow[Path]) -> None:
        """Read the end of the session and show it under its facts."""
        self.run_worker(partial(self._show_end, row), group="preview", exclusive=True)

    async def _show_end(self, row: PickerRow[Path]) -> None:
        try:
            end = await asyncio.to_thread(read_end, row.value)
        except (SessionError, OSError) as error:
            end = Content.assemble((safe_text(str(error)), "$text-error"))
        preview = self.query_one("#picker-preview-text", Static)
        preview.update(Content("\n\n").join([row.preview or Content(""), end]))

    def _is_here(self, summary: SessionSummary) -> bool:
        return self._cwd in (summary.cwd, summary.launch_cwd)

    def _row(self, summary: SessionSummary) -> PickerRow[Path]:
        here = self._is_here(summary)
        title = session_title(summary)
        return PickerRow(
            value=summary.path,
            title=title if here else f"{title}  ({summary.cwd.name})",
            columns=(
                summary.model.rpartition("/")[2],
                f"{summary.message_count:,}",
                age(summary.modified, self._now),
            ),
            search=f"{summary.id}\n{summary.first_prompt}\n{summary.cwd}",
            preview=session_facts(summary, self._now),
            is_dim=not here,
        )


def session_title(summary: SessionSummary) -> str:
    """Its name, or the beginning of its first prompt."""
    text = summary.name or " ".join(summary.first_prompt.split())
    return text or "(no message yet)"


def session_facts(summary: SessionSummary, now: datetime) -> Content:
    """What is known of a session without reading it."""
    name = safe_text(session_title(summary), keep_newlines=False)
    facts = [
        short_path(summary.cwd, Path.home()),
        f"{summary.model or 'model unknown'} · {summary.message_count:,} messages",
        f"{age(summary.modified, now)} · {summary.id[:8]}",
    ]
    if summary.parent_session:
        facts.append("goes on after a compaction")
    lines = "\n".join(safe_text(fact, keep_newlines=False) for fact in facts)
    return Content.assemble((name, "bold"), "\n", (lines, "$foreground-muted"))


def read_end(path: Path) -> Content:
    """The last messages of a session file, oldest of them first. Blocking.

    Raises:
        SessionError: the file cannot be read.
    """
    log = SessionLog.open(path, read_only=True)
    try:
        shown = [line for entry in log.path_entries() if (line := _end_line(entry)) is not None]
    finally:
        log.close()
    return Content("\n\n").join(shown[-PREVIEW_MESSAGES:])


def _end_line(entry: Entry) -> Content | None:
    match entry:
        case MessageEntry(message=UserMessage() as message) if message.text.strip():
            return _quote("›", "$primary", message.text, "bold")
        case MessageEntry(message=AssistantMessage() as message) if message.text.strip():
            return _quote(" ", "", message.text, "$foreground")
        case CompactionEntry():
            return _quote("≡", "$text-accent", entry.summary, "$foreground-muted")
        case _:
            return None


def _quote(sign: str, sign_style: str, text: str, style: str) -> Content:
    whole = safe_text(text.strip())
    short = whole if len(whole) <= PREVIEW_CHARS else whole[:PREVIEW_CHARS].rstrip() + " …"
    return Content.assemble((f"{sign} ", sign_style), (short, style))


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
