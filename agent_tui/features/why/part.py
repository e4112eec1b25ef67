"""Where the `why` tool of a conversation looks for sessions."""

from collections.abc import Sequence
from typing import ClassVar

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.part import Part
from agent_tui.sessions.store import SessionStore
from agent_tui.tools.base import Ability


class StoredSessions(Ability):
    """All stored sessions.

    Args:
        store: Where they are.
    """

    unavailable: ClassVar[str] = "Sessions cannot be read here."

    def __init__(self, store: SessionStore) -> None:
        self.store = store


class WhyPart(Part):
    """Gives the stored sessions to the tool."""

    def abilities(self, emit: Emit) -> Sequence[Ability]:
        """The stored sessions."""
        return (StoredSessions(self.host.services.store),)

    def for_helper(self, helper: Conversation) -> Part:
        """The same for a helper."""
        return self
