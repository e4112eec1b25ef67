"""Looking at what a reader made of a file."""

from agent_tui.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomMessageEntry, Entry, MessageEntry
from agent_tui.sessions.importers.builder import ForeignSession
from tests.support.context_checks import assert_normalised


def messages(session: ForeignSession) -> list[Message]:
    return [entry.message for entry in session.entries if isinstance(entry, MessageEntry)]


def said(session: ForeignSession) -> list[str]:
    return [m.text for m in messages(session) if isinstance(m, UserMessage)]


def replies(session: ForeignSession) -> list[AssistantMessage]:
    return [m for m in messages(session) if isinstance(m, AssistantMessage)]


def calls(session: ForeignSession) -> list[ToolCall]:
    return [call for reply in replies(session) for call in reply.tool_calls]


def results(session: ForeignSession) -> list[ToolResultMessage]:
    return [m for m in messages(session) if isinstance(m, ToolResultMessage)]


def notes(session: ForeignSession) -> list[str]:
    return [entry.text for entry in session.entries if isinstance(entry, CustomMessageEntry)]


def present_path(session: ForeignSession) -> tuple[Entry, ...]:
    """From the root to the last entry."""
    by_id = {entry.id: entry for entry in session.entries}
    upward = [session.entries[-1]]
    while upward[-1].parent_id is not None:
        upward.append(by_id[upward[-1].parent_id])
    return tuple(reversed(upward))


def assert_sound(session: ForeignSession) -> None:
    """One chain of entries with ids of their own, and a context that can be sent."""
    assert present_path(session) == session.entries
    assert_branches_sound(session)


def assert_branches_sound(session: ForeignSession) -> None:
    """Entries with ids of their own behind their parents, and a context that can be sent."""
    seen: set[str] = set()
    for entry in session.entries:
        assert entry.parent_id is None or entry.parent_id in seen
        assert entry.id not in seen
        seen.add(entry.id)
    assert_normalised(build_context(present_path(session)).messages)
