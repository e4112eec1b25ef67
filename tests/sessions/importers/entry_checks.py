"""Looking at what a reader made of a file."""

from agent_tui.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import CustomMessageEntry, MessageEntry
from agent_tui.sessions.importers.foreign import ForeignSession
from tests.support.context_checks import assert_settled


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


def assert_sound(session: ForeignSession) -> None:
    """One chain of entries with ids of their own, and a context that can be sent."""
    parent = None
    for entry in session.entries:
        assert entry.parent_id == parent
        parent = entry.id
    ids = [entry.id for entry in session.entries]
    assert len(set(ids)) == len(ids)
    assert_settled(build_context(session.entries).messages)
