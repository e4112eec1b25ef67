"""Session files with texts to look for, for tests of lists and searches."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.entries import Entry, Header, SessionInfoEntry
from agent_tui.sessions.listing import SessionSummary
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.store import SessionStore
from tests.support.session_values import entry

NEWEST = 1_800_000_000
_MESSAGES = (UserMessage, AssistantMessage, ToolResultMessage, BashExecutionMessage)


def write_session(
    store: SessionStore,
    *said: Message | Entry,
    name: str = "",
    cwd: str = "/w/here",
    age_s: int = 0,
    **fields: object,
) -> Path:
    """Write a session whose file was changed `age_s` seconds before the newest."""
    header = Header.model_validate({"cwd": cwd, **fields})
    with store.create(header) as log:
        log.append_many(as_entries(said))
        if name:
            log.append(SessionInfoEntry(name=name))
    assert log.path is not None
    make_older(log.path, age_s)
    return log.path


def append_to(path: Path, *said: Message | Entry, age_s: int = 0) -> None:
    """Append to a session that nobody has open."""
    with SessionLog.open(path, "none") as log:
        log.append_many(as_entries(said))
    make_older(path, age_s)


def as_entries(said: Sequence[Message | Entry]) -> list[Entry]:
    return [entry(item) if isinstance(item, _MESSAGES) else item for item in said]


def make_older(path: Path, age_s: int) -> None:
    os.utime(path, (NEWEST - age_s, NEWEST - age_s))


def summary(
    session_id: str, parent: str | None = None, *, age_s: int = 0, folder: str = "/s"
) -> SessionSummary:
    """What a list knows of a session with nothing in it."""
    return SessionSummary(
        id=session_id,
        path=Path(folder) / f"stamp_{session_id}.jsonl",
        cwd=Path("/w"),
        name="",
        first_prompt="",
        message_count=0,
        modified=datetime.fromtimestamp(NEWEST - age_s, UTC),
        model="",
        parent_session=parent,
        size_bytes=0,
        launch_cwd=None,
        context_tokens=0,
    )
