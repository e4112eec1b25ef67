"""One batch of edits being put together, until the context is small enough."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agent_tui.compaction.tiers.model import Proposal, Unit
from agent_tui.sessions.context import edited_message
from agent_tui.sessions.entries import ContextEditEntry, Entry, timestamp_now
from agent_tui.tokens import TokenCounter

_LEAST_SAVING_TOKENS = (1, 16, 16)
"""By tier. What loses information must be worth a line of the session's file."""


class Batch:
    """Proposals taken so far; each is made and measured when it is taken.

    Args:
        counter: Measures what was made.
        batch_id: Of all the edits.
        messages: How many units there are.
        used_tokens: Size of the next request as it is.
        target_tokens: Size to reach.
    """

    def __init__(
        self,
        counter: TokenCounter,
        batch_id: str,
        messages: int,
        used_tokens: int,
        target_tokens: int,
    ) -> None:
        self._counter = counter
        self._batch_id = batch_id
        self._messages = messages
        self._timestamp = timestamp_now()
        self._used = used_tokens
        self._target = target_tokens
        self._sizes: dict[int, int] = {}
        self._edits: dict[int, tuple[Unit, ContextEditEntry]] = {}

    def take_whole(self, proposals: Iterable[Proposal]) -> None:
        """Take all of `proposals`, unless the target is reached already."""
        if self._used > self._target:
            for proposal in proposals:
                self._take(proposal)

    def take(self, proposals: Iterable[Proposal]) -> None:
        """Take `proposals`, all of one tier, one by one until the target is reached.

        First what frees most for its age: what is large and long ago is needed least for the
        room it takes, and many small outputs tell more than one large one.
        """
        for proposal in sorted(proposals, key=self._worth, reverse=True):
            if self._used <= self._target:
                return
            self._take(proposal)

    def finished(self) -> tuple[tuple[ContextEditEntry, ...], Mapping[int, int]]:
        """The edits in the order of their messages, and the tokens freed by tier."""
        freed = Counter[int]()
        taken = sorted(self._edits.items())
        for position, (unit, edit) in taken:
            freed[edit.tier] += unit.tokens - self._sizes[position]
        return tuple(edit for _, (_, edit) in taken), dict(freed)

    def _size_of(self, unit: Unit) -> int:
        """What `unit` takes with what was taken so far."""
        return self._sizes.get(unit.position, unit.tokens)

    def _worth(self, proposal: Proposal) -> int:
        unit = proposal.unit
        return (self._size_of(unit) - proposal.tokens_after) * (self._messages - unit.position)

    def _take(self, proposal: Proposal) -> None:
        unit = proposal.unit
        taken = self._edits.get(unit.position)
        if proposal.tier <= unit.edited_tier or (taken and proposal.tier < taken[1].tier):
            return
        edit = ContextEditEntry(
            target_id=unit.entry_id,
            replacement=proposal.make(),
            tier=proposal.tier,
            batch=self._batch_id,
            timestamp=self._timestamp,
        )
        size = proposal.tokens_after
        if not proposal.is_exact and (message := edited_message(unit.message, edit)):
            size = self._counter.count_message(message) + unit.id_tokens
        saving = self._size_of(unit) - size
        if saving >= _LEAST_SAVING_TOKENS[proposal.tier]:
            self._used -= saving
            self._sizes[unit.position] = size
            self._edits[unit.position] = unit, edit


def batch_id(path: Sequence[Entry], prefix: str = "") -> str:
    """The same for the same session and strategy, so that planning twice has the same outcome."""
    newest = path[-1].id if path else ""
    return hashlib.blake2b(f"{prefix}{newest}".encode(), digest_size=4).hexdigest()
