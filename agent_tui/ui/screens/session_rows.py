"""Sessions as rows to pick from, and what is told of one beside them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from textual.content import Content

from agent_tui.commands.core.short_words import short_count, short_path
from agent_tui.commands.sessions import (
    NO_MESSAGE,
    PickedSession,
    age,
    session_title,
)
from agent_tui.safe_text import safe_text
from agent_tui.sessions.importers.discovery import ForeignFile
from agent_tui.sessions.lineage.rows import lineage_rows
from agent_tui.sessions.listing.summary import SessionSummary
from agent_tui.ui.screens.picker import PickerRow


def session_rows(
    sessions: Sequence[SessionSummary], cwd: Path, now: datetime
) -> list[PickerRow[PickedSession]]:
    """This project's sessions first; in each part by chain, the one last worked in first."""
    here = [summary for summary in sessions if _is_here(summary, cwd)]
    elsewhere = [summary for summary in sessions if not _is_here(summary, cwd)]
    return [
        _row(placed.summary, placed.guides, now, is_here=part is here)
        for part in (here, elsewhere)
        for placed in lineage_rows(part)
    ]


def foreign_rows(
    files: Iterable[ForeignFile], cwd: Path, now: datetime
) -> list[PickerRow[PickedSession]]:
    """Sessions of other agents, this project's first."""
    ordered = sorted(files, key=lambda file: file.cwd != cwd)
    return [_foreign_row(file, now, is_here=file.cwd == cwd) for file in ordered]


def session_facts(summary: SessionSummary, now: datetime) -> Content:
    """What is known of a session without reading it."""
    tokens = f" · {short_count(summary.context_tokens)} tokens" if summary.context_tokens else ""
    facts = [
        short_path(summary.cwd, Path.home()),
        f"{summary.model or 'model unknown'} · {summary.message_count:,} messages{tokens}",
        f"{age(summary.modified, now)} · {summary.id[:8]}",
    ]
    if summary.parent_session:
        facts.append("continues an earlier session")
    return _titled(session_title(summary), facts)


def _foreign_title(file: ForeignFile) -> str:
    """Its name, or the beginning of its first prompt."""
    return file.title or NO_MESSAGE


def foreign_facts(file: ForeignFile, now: datetime) -> Content:
    """What is known of another agent's session without reading it whole."""
    where = short_path(file.cwd, Path.home()) if file.cwd != Path() else "folder unknown"
    size = f"{file.agent_label} · {_kilobytes(file)}"
    return _titled(_foreign_title(file), [where, size, age(file.modified, now)])


def _is_here(summary: SessionSummary, cwd: Path) -> bool:
    return cwd in (summary.cwd, summary.launch_cwd)


def _row(
    summary: SessionSummary, guide: str, now: datetime, *, is_here: bool
) -> PickerRow[PickedSession]:
    title = session_title(summary)
    return PickerRow(
        value=PickedSession(summary.path),
        title=title if is_here else f"{title}  ({summary.cwd.name})",
        columns=(
            summary.model.rpartition("/")[2],
            f"{summary.message_count:,}",
            short_count(summary.context_tokens) if summary.context_tokens else "–",
            age(summary.modified, now),
        ),
        search=f"{summary.id}\n{summary.first_prompt}\n{summary.cwd}",
        is_dim=not is_here,
        guide=guide,
    )


def _foreign_row(file: ForeignFile, now: datetime, *, is_here: bool) -> PickerRow[PickedSession]:
    title = _foreign_title(file)
    return PickerRow(
        value=PickedSession(file.path, file.agent),
        title=title if is_here or not file.cwd.name else f"{title}  ({file.cwd.name})",
        columns=(file.agent_label, _kilobytes(file), age(file.modified, now)),
        search=f"{file.path.stem}\n{file.cwd}",
        is_dim=not is_here,
    )


def _kilobytes(file: ForeignFile) -> str:
    return f"{file.size_bytes / 1_000:,.0f} kB"


def _titled(title: str, facts: Iterable[str]) -> Content:
    lines = "\n".join(safe_text(fact, keep_newlines=False) for fact in facts)
    name = safe_text(title, keep_newlines=False)
    return Content.assemble((name, "bold"), "\n", (lines, "$foreground-muted"))
