"""The newest messages as they stay: what stands elsewhere takes a line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.plan import LiveConversation
from agent_tui.compaction.tiers.cut import SLACK, cut_middle
from agent_tui.compaction.tiers.model import UNEDITED, Content, Unit
from agent_tui.compaction.tiers.outputs import action_of
from agent_tui.compaction.tiers.replies import left_out_whole, without_thinking
from agent_tui.compaction.tiers.tier0 import pointers_to_newer
from agent_tui.messages import AssistantMessage, TextContent, ToolCall, ToolResultMessage
from agent_tui.omissions import recall_mark
from agent_tui.sessions.context import edited_message
from agent_tui.sessions.entries import ContextEditEntry, timestamp_now
from agent_tui.tokens import TokenCounter

_SHOWING = ("read", "write", "edit")
"""Actions whose output may show the file; writes and edits do with some agents."""

_SHORT_ARGUMENT_TOKENS = 60
_LEAST_SAVING_TOKENS = 24
_LEAST_END_TOKENS = 60
_MARK_TOKENS = 40
_LEAST_OUTPUT_TOKENS = 200
_LONG_ARGUMENT_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Tail:
    """What each live entry takes if it stays, and the edits that make it so."""

    tokens: tuple[int, ...]
    edits: Mapping[str, ContextEditEntry]


class TailEditor:
    """Edits of messages that stay. All edits are of one batch.

    Args:
        units: The messages of the context that can be changed.
        batch: Of the edits.
        counter: Measures them.
    """

    def __init__(self, units: Sequence[Unit], batch: str, counter: TokenCounter) -> None:
        self._units = {unit.entry_id: unit for unit in units}
        self._order = units
        self._batch = batch
        self._counter = counter
        self._timestamp = timestamp_now()

    def lines_for_what_stands_elsewhere(
        self,
        live: LiveConversation,
        shown: frozenset[str],
        folders: Sequence[str],
        room: int,
    ) -> Tail:
        """The edits of the newest messages of `live`, looked at until `room` tokens are full.

        A view of a file of which there is a newer one, an output that came again later, and
        views and edits of files that are `shown` whole give way to a line; so does the thinking
        of all but the newest reply. The newest exchange stays as it is.
        """
        pointers = pointers_to_newer(self._order)
        newest = self._newest_exchange()
        tokens = list(live.tokens)
        edits: dict[str, ContextEditEntry] = {}
        for at in range(len(live.entries) - 1, -1, -1):
            if room < 0:
                break
            unit = self._units.get(live.entries[at].id)
            if unit is not None and unit.position < newest:
                content = self._line(unit, pointers, shown, folders)
                if content is not None and (edit := self._edit(unit, content, 0)):
                    edits[unit.entry_id], tokens[at] = edit
            room -= tokens[at]
        return Tail(tuple(tokens), edits)

    def verbatim(self, live: LiveConversation) -> frozenset[str]:
        """The entries of `live` that stay as they are in any case: the newest exchange."""
        newest = self._newest_exchange()
        units = (self._units.get(entry.id) for entry in live.entries)
        return frozenset(u.entry_id for u in units if u is not None and u.position >= newest)

    def unchanged(self, live: LiveConversation, tail: Tail, cut: int) -> frozenset[str]:
        """The entries of `live` from `cut` on that the model sees as they were written."""
        entries = [entry.id for entry in live.entries[cut:] if entry.id not in tail.edits]
        edited = {u.entry_id for u in self._order if u.edited_tier != UNEDITED}
        return frozenset(entries) - edited

    def filled(
        self,
        live: LiveConversation,
        tail: Tail,
        first: int,
        last: int,
        room: int,
        whole: frozenset[str] = frozenset(),
    ) -> Tail | None:
        """`tail` with the entries `first` to `last` shortened to fit `room`, but for `whole` ones.

        Long texts that calls write or run become a line first, then outputs keep their two ends.
        None where that is not enough.
        """
        tokens, edits = list(tail.tokens), dict(tail.edits)
        for at in range(first, last):
            unit = self._units.get(live.entries[at].id)
            if unit is not None and isinstance(unit.message, AssistantMessage):
                parts = tuple(
                    left_out_whole(part, _LONG_ARGUMENT_TOKENS, unit.entry_id, self._counter)
                    if isinstance(part, ToolCall) and action_of(part).kind != "other"
                    else part
                    for part in without_thinking(unit.message)
                )
                if edit := self._edit(unit, parts, 1):
                    edits[unit.entry_id], tokens[at] = edit
        long = [at for at in range(first, last) if self._can_be_cut(live, tail, at, whole)]
        fixed = sum(tokens[first:last]) - sum(tokens[at] for at in long)
        share = (room - fixed) // len(long) if long else 0
        for at in long if share >= _LEAST_OUTPUT_TOKENS else ():
            unit = self._units[live.entries[at].id]
            if tokens[at] <= share or unit.output is None:
                continue
            ends = max(int((share - _MARK_TOKENS) / (2 * SLACK)), _LEAST_END_TOKENS)
            text = unit.output.text
            size = self._counter.count_text(text)
            cut = cut_middle(
                text, tokens=size, end_tokens=ends, entry_id=unit.entry_id, counter=self._counter
            )
            if edit := self._edit(unit, cut, 1):
                edits[unit.entry_id], tokens[at] = edit
        if sum(tokens[first:last]) > room:
            return None
        return Tail(tuple(tokens), edits)

    def _can_be_cut(
        self, live: LiveConversation, tail: Tail, at: int, whole: frozenset[str]
    ) -> bool:
        entry_id = live.entries[at].id
        if entry_id in whole:
            return False
        unit = self._units.get(entry_id)
        is_output = unit is not None and unit.output is not None
        return is_output and entry_id not in tail.edits and tail.tokens[at] > _LEAST_OUTPUT_TOKENS

    def _newest_exchange(self) -> int:
        """Position of the newest reply that has results after it, or of the newest message."""
        at = len(self._order) - 1
        while at > 0 and isinstance(self._order[at].message, ToolResultMessage):
            at -= 1
        return self._order[at].position if self._order else 0

    def _line(
        self,
        unit: Unit,
        pointers: Mapping[int, str],
        shown: frozenset[str],
        folders: Sequence[str],
    ) -> Content:
        """What `unit` becomes; None where it stays as it is."""
        if unit.output is not None:
            action = unit.output.action
            path = normalise_path(action.path, folders) if action.path else ""
            if path in shown and not unit.output.has_failed and action.kind in _SHOWING:
                return f"({path} is in files-now) {recall_mark(unit.entry_id)}"
            return pointers.get(unit.position)
        if isinstance(unit.message, AssistantMessage):
            parts = tuple(self._parts(unit.message, unit.entry_id, shown, folders))
            return parts if parts != unit.message.content else None
        return None

    def _parts(
        self,
        message: AssistantMessage,
        entry_id: str,
        shown: frozenset[str],
        folders: Sequence[str],
    ) -> Iterator[TextContent | ToolCall]:
        for part in without_thinking(message):
            if isinstance(part, ToolCall):
                action = action_of(part)
                is_change = action.kind in ("write", "edit") and bool(action.path)
                if is_change and normalise_path(action.path, folders) in shown:
                    yield left_out_whole(part, _SHORT_ARGUMENT_TOKENS, entry_id, self._counter)
                    continue
            yield part

    def _edit(self, unit: Unit, content: Content, tier: int) -> tuple[ContextEditEntry, int] | None:
        """The edit that puts `content` in the place of `unit`, and its size; None if no gain."""
        edit = ContextEditEntry(
            target_id=unit.entry_id,
            replacement=content,
            tier=max(tier, unit.edited_tier, 0),
            batch=self._batch,
            timestamp=self._timestamp,
        )
        message = edited_message(unit.message, edit)
        size = unit.id_tokens + (self._counter.count_message(message) if message else 0)
        return (edit, size) if unit.tokens - size >= _LEAST_SAVING_TOKENS else None
