"""Which of the user's messages began turns that the user stopped."""

from collections.abc import Iterable

from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.replay.notes import is_continuation, is_stop

STOPPED_MARK = "[stopped by the user]"
"""Behind a message whose turn the user stopped."""


def find_stopped(path: Iterable[Entry]) -> frozenset[str]:
    """Ids of the user's messages whose turns were stopped and not continued."""
    stopped, asked = set[str](), ""
    for entry in path:
        match entry:
            case MessageEntry(message=UserMessage()):
                asked = entry.id
            case MessageEntry(message=AssistantMessage(stop_reason="stop")):
                asked = ""  # a later turn without a message, as for an ended job
            case _ if asked and is_stop(entry):
                stopped.add(asked)
            case _ if is_continuation(entry):
                stopped.discard(asked)
            case _:
                pass
    return frozenset(stopped)
