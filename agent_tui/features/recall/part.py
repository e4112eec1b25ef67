"""The first message of a session comes with a hint of earlier ones that began like it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent_tui.agent.activity import Emit
from agent_tui.agent.part import Answer, Part
from agent_tui.attachments import earlier_work_block
from agent_tui.features.recall.earlier_work import hint_line, notice, resembling
from agent_tui.features.recall.originals import EARLIER_WORK
from agent_tui.features.recall.settings import RecallSettings
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.sessions.listing import SessionSummary


class RecallPart(Part):
    """Names similar sessions to the model and the user."""

    async def before_message(self, text: str, emit: Emit) -> Answer:
        """The hint, with the first message."""
        alike = await asyncio.to_thread(self._begun_like, text) if self._gives_hints else ()
        if not alike:
            return Answer()
        block = earlier_work_block([hint_line(session) for session in alike])
        entry = CustomMessageEntry(custom_type=EARLIER_WORK, content=block, display=False)
        return Answer(added=(entry,), notices=(notice(alike),))

    @property
    def _gives_hints(self) -> bool:
        services = self.host.services
        settings = services.settings
        is_wanted = settings.of(RecallSettings).hint_earlier_work
        can_search = services.keeps_sessions and settings.recall_other_sessions
        return is_wanted and can_search and self.host.conversation.is_new

    def _begun_like(self, text: str) -> Sequence[SessionSummary]:
        header = self.host.conversation.log.header
        others = self.host.services.store.newest_of_project(Path(header.cwd))
        return resembling(text, [found for found in others if found.id != header.id])
