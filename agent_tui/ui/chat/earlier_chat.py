"""Messages from before compactions, added above the chat when the user scrolls up."""

import asyncio
from collections.abc import Sequence

from agent_tui.sessions.lineage.chain import KnownSession, PastSessions, snapshot
from agent_tui.sessions.lineage.joined import copies, leaf_when_continued, path_to, unread_line
from agent_tui.sessions.log import SessionLog
from agent_tui.ui.chat.history_blocks import blocks_of
from agent_tui.ui.transcript.blocks import Block, BlockId, NoticeBlock
from agent_tui.ui.transcript.view import Transcript

_MOST_BLOCKS = 3_000
"""If more blocks were added above, they are dropped when the user is at the end again."""


class EarlierChat:
    """Reads earlier sessions one by one, each when the user gets near.

    Args:
        transcript: The chat.
        past: Where the sessions are found.
    """

    def __init__(self, transcript: Transcript, past: PastSessions) -> None:
        self._transcript = transcript
        self._past = past
        self._own: KnownSession | None = None
        self._top: KnownSession | None = None
        self._first_id: BlockId | None = None
        self._count = 0

    def begin(self, log: SessionLog) -> None:
        """Start from `log`, with nothing before it."""
        path = log.path_entries()
        session = snapshot(log)
        is_on_trunk = bool(path) and path[0] is session.entries[0]
        self._own = session if is_on_trunk and session.begins_compacted else None
        self._first_id = self._transcript.first_id
        self._rewind()

    def _rewind(self) -> None:
        self._top, self._count = self._own, 0
        self._transcript.offer_earlier(self._top is not None)

    async def load(self) -> None:
        """Add the session before the topmost one above the chat."""
        below = self._top
        if below is None:
            return
        earlier, blocks = await asyncio.to_thread(self._read, below)
        if below is not self._top:  # another session is shown by now
            return
        self._count += len(blocks)
        self._transcript.prepend(blocks)
        self._top = earlier
        self._transcript.offer_earlier(earlier is not None and earlier.begins_compacted)

    def let_go(self) -> None:
        """Drop the blocks above if there are many, as the user is at the end again."""
        if self._count > _MOST_BLOCKS and self._first_id is not None:
            self._transcript.keep_from(self._first_id)
            self._rewind()

    def _read(self, below: KnownSession) -> tuple[KnownSession | None, Sequence[Block]]:
        """The session before `below`, and its blocks that `below` lacks. Reads files."""
        earlier = self._past.find_parent(below)
        if earlier is None:
            return None, (NoticeBlock("info", unread_line(below)),)
        taken = copies(below, earlier)
        path = path_to(earlier.entries, leaf_when_continued(earlier, below))
        return earlier, blocks_of([entry for entry in path if entry.id not in taken])
