"""One batch of edits being put together, until the context is small enough."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agent_tui.compaction.tiers.model import Proposal
from agent_tui.sessions.context import edited_message
from agent_tui.sessions.entries import ContextEditEntry, Entry, timestamp_now
from agent_tui.tokens import TokenCounter

_LEAST_SAVING_TOKENS = (1, 16, 16)
"""By tier. What loses information must be worth a line of the session's file."""


class Batch:
    """Proposals taken so far. They count by their guessed size until it matters, then exactly.

    What a higher tier replaces before it mattered is never made at all.

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
        self._taken: dict[int, list[Proposal]] = {}
        self._sizes: dict[int, int] = {}
        self._unmade: set[int] = set()
        self._edits: dict[int, ContextEditEntry] = {}

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
        if self._is_reached():
            return
        for proposal in sorted(proposals, key=self._worth, reverse=True):
            if self._is_reached():
                return
            self._take(proposal)

    def finished(self) -> tuple[tuple[ContextEditEntry, ...], Mapping[int, int]]:
        """The edits in the order of their messages, and the tokens freed by tier."""
        self._make()
        freed = Counter[int]()
        for position, edit in sorted(self._edits.items()):
            unit = self._taken[position][-1].unit
            freed[edit.tier] += unit.tokens - self._sizes[position]
        return tuple(edit for _, edit in sorted(self._edits.items())), dict(freed)

    def _worth(self, proposal: Proposal) -> int:
        return self._saving(proposal) * (self._messages - proposal.unit.position)

    def _saving(self, proposal: Proposal) -> int:
        unit = proposal.unit
        return self._sizes.get(unit.position, unit.tokens) - proposal.tokens_after

    def _take(self, proposal: Proposal) -> None:
        unit = proposal.unit
        taken = self._taken.get(unit.position)
        if proposal.tier <= unit.edited_tier or (taken and proposal.tier < taken[-1].tier):
            return
        least = _LEAST_SAVING_TOKENS[proposal.tier]
        if self._saving(proposal) < least and unit.position in self._unmade:
            self._make_one(unit.position)
            self._unmade.discard(unit.position)
        if (saving := self._saving(proposal)) < least:
            return
        self._used -= saving
        self._sizes[unit.position] = proposal.tokens_after
        self._taken.setdefault(unit.position, []).append(proposal)
        self._unmade.add(unit.position)

    def _is_reached(self) -> bool:
        if self._used <= self._target:
            self._make()
        return self._used <= self._target

    def _make(self) -> None:
        """Make what was only guessed; a proposal that turns out to free too little is dropped."""
        for position in self._unmade:
            self._make_one(position)
        self._unmade.clear()

    def _make_one(self, position: int) -> None:
        guessed = self._sizes[position]
        self._sizes[position] = self._made_size(position)
        self._used += self._sizes[position] - guessed

    def _made_size(self, position: int) -> int:
        """Make the edit of the highest tier taken that frees enough; the size it leaves."""
        self._edits.pop(position, None)
        unit = self._taken[position][-1].unit
        for proposal in reversed(self._taken[position]):
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
            if unit.tokens - size >= _LEAST_SAVING_TOKENS[proposal.tier]:
                self._edits[position] = edit
                return size
        return unit.tokens


def batch_id(path: Sequence[Entry], prefix: str = "") -> str:
    """The same for the same session and strategy, so that planning twice has the same outcome."""
    newest = path[-1].id if path else ""
    return hashlib.blake2b(f"{prefix}{newest}".encode(), digest_size=4).hexdigest()
