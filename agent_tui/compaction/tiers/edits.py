"""Makes the edits that shorten messages, and weighs what each one saves."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from agent_tui.compaction.tiers.forms import pointers_to_newer
from agent_tui.compaction.tiers.model import Content, Unit
from agent_tui.sessions.context import apply_edit
from agent_tui.sessions.entries import ContextEditEntry, timestamp_now
from agent_tui.tokens import TokenCounter


class MadeEdit(NamedTuple):
    """The edit that shortens a message (None if it saves too little), and its size then."""

    edit: ContextEditEntry | None
    tokens: int


class EditMaker:
    """Makes the edits of `units`; all have the same `batch`."""

    def __init__(self, units: Sequence[Unit], batch: str, counter: TokenCounter) -> None:
        self._units, self._batch, self._counter = units, batch, counter
        self._timestamp = timestamp_now()

    @cached_property
    def pointers(self) -> Mapping[int, str]:
        """See `pointers_to_newer`."""
        return pointers_to_newer(self._units)

    def make(self, unit: Unit, content: Content, tier: int, least: float) -> MadeEdit:
        """The edit that replaces `unit` with `content` if it saves at least `least` tokens."""
        edit = self.entry(unit, content, tier)
        message = apply_edit(unit.message, edit)
        size = self._counter.count_message(message) if message else 0
        return MadeEdit(edit, size) if unit.tokens - size >= least else MadeEdit(None, unit.tokens)

    def entry(self, unit: Unit, content: Content, tier: int) -> ContextEditEntry:
        """The edit that replaces `unit` with `content`, whatever it saves."""
        return ContextEditEntry(
            target_id=unit.entry_id,
            replacement=content,
            tier=max(tier, unit.edited_tier, 0),
            batch=self._batch,
            timestamp=self._timestamp,
        )
