"""The copy of a context that the compression agent works on: edits so far, nothing written."""

from collections.abc import Collection, Sequence
from functools import cached_property

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.compaction.strategies.agent.prompt import replacement
from agent_tui.compaction.strategies.agent.tools import Span
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.tiers.batch import Batch, batch_id
from agent_tui.compaction.tiers.model import Content, Proposal, Unit
from agent_tui.compaction.tiers.tier0 import propose_free
from agent_tui.compaction.tiers.tier1 import propose_shorter
from agent_tui.compaction.tiers.tier2 import propose_lines
from agent_tui.compaction.tiers.units import read_units
from agent_tui.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.context import build_context, edited_message
from agent_tui.sessions.entries import ContextEditEntry, Entry, Ledger, timestamp_now
from agent_tui.sessions.replay.normalise import ContextMessage
from agent_tui.tokens import TokenCounter

LEAST_SAVING_TOKENS = 16
"""What a change must free to be worth a line of the session's file, as for the tiers."""

_LINE_TIER = 2
_SEGMENT_TIER = 3


class ContextCopy:
    """The messages of a request that can be changed, numbered from 1, and the edits made so far.

    It begins with what costs nothing (tier 0): the agent need not decide that.

    Attributes:
        units: What can be changed, oldest first; the first has number 1.
        target_tokens: Size of the next request to reach.
        before_tokens: Its size at the beginning.
    """

    def __init__(self, request: CompactionRequest, counter: TokenCounter) -> None:
        settings = request.settings
        self._request = request
        self._counter = counter
        read = read_units(
            request.path,
            carryover=request.previous,
            counter=counter,
            settings=settings,
            window=request.window,
        )
        self.units: tuple[Unit, ...] = read.items
        self.target_tokens = request.target_tokens or int(
            request.window * settings.target_share(request.window)
        )
        self.before_tokens = read.tokens + request.overhead_tokens
        self._timestamp = timestamp_now()
        self._batch_id = batch_id(request.path, "agent ")
        self._edits: dict[int, ContextEditEntry] = {}
        self._gone: set[int] = set()
        self._context: tuple[ContextMessage, ...] | None = None
        self._make_free()

    @property
    def edits(self) -> tuple[ContextEditEntry, ...]:
        """All edits so far, in the order of their messages."""
        return tuple(edit for _, edit in sorted(self._edits.items()))

    @property
    def used_tokens(self) -> int:
        """Size of the next request with `edits`, counted anew."""
        messages = (item.message for item in self.messages)
        return self._request.overhead_tokens + self._counter.count_messages(messages)

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.used_tokens <= self.target_tokens

    @property
    def protected_tokens(self) -> int:
        """Size of what stays in any case, as far as it is messages that could be changed."""
        protected = sum(unit.tokens for unit in self.units if unit.is_protected)
        return self._request.overhead_tokens + protected

    @property
    def messages(self) -> tuple[ContextMessage, ...]:
        """What the model would see."""
        if self._context is None:
            self._context = context_after(self._request, self.edits)
        return self._context

    def tokens(self, position: int) -> int:
        """Size of one message with its edit, if it has one."""
        if position in self._gone:
            return 0
        unit, edit = self.units[position], self._edits.get(position)
        return unit.tokens if edit is None else self._size(unit, edit)

    def is_open(self, position: int) -> bool:
        """Whether the message may still be changed."""
        edit = self._edits.get(position)
        is_in_segment = edit is not None and edit.tier == _SEGMENT_TIER
        return not (self.units[position].is_protected or is_in_segment)

    def is_line(self, position: int) -> bool:
        """Whether the message was made as short as it can be by itself."""
        edit = self._edits.get(position)
        tier = self.units[position].edited_tier if edit is None else edit.tier
        return tier >= _LINE_TIER

    def present(self, span: Span) -> list[Message]:
        """The messages of `span` as the model would see them."""
        ids = {self.units[number - 1].entry_id for number in range(span.first, span.last + 1)}
        return [item.message for item in self.messages if item.entry_id in ids]

    def written(self, span: Span) -> list[Message]:
        """The messages of `span` as they were written."""
        return [unit.message for unit in self.units[span.first - 1 : span.last]]

    def widened(self, span: Span) -> Span:
        """`span` with the rest of the exchanges it cuts into: calls and results stay together."""
        first, last = span.first, span.last
        while first > 1 and self._is_result(first):
            first -= 1
        while last < len(self.units) and self._is_result(last + 1):
            last += 1
        return Span(first, last)

    def shorten(self, position: int, *, keeps_ends: bool) -> int:
        """Make the result at `position` and the reply that asked for it short.

        Returns:
            Tokens freed; 0 where there is nothing to gain.
        """
        freed = self._take(position, keeps_ends)
        asking = position
        while asking > 0 and isinstance(self.units[asking].message, ToolResultMessage):
            asking -= 1
        if asking != position and self.is_open(asking):
            freed += self._take(asking, keeps_ends)
        return freed

    def replace(self, span: Span, text: str) -> int:
        """Put `text` in the place of the messages of `span`, with facts added by code.

        The text stands in the first message of the person's or answer without calls; where there
        is none, the first reply keeps its calls, shortened, and their results as lines.

        Returns:
            Tokens freed; 0 where it would not be worth it, and nothing was changed.
        """
        positions = range(span.first - 1, span.last)
        carrier = self._carrier(positions)
        if carrier is None:
            return 0
        kept = self._kept_with(carrier)
        before = sum(self.tokens(position) for position in positions)
        facts = segment_facts(self._request, self.units, span, before, self._open_errors)
        whole = replacement(len(positions), self.units[positions[0]].entry_id, text, facts)
        edits = {position: self._edit(position, None, _SEGMENT_TIER) for position in positions}
        edits[carrier] = self._edit(carrier, self._carrying(carrier, whole), _SEGMENT_TIER)
        for position in kept:
            edits[position] = self._edit(position, self._lines[position].make(), _SEGMENT_TIER)
        left = (carrier, *kept)
        after = sum(self._size(self.units[position], edits[position]) for position in left)
        if before - after < LEAST_SAVING_TOKENS:
            return 0
        self._edits.update(edits)
        self._gone.update(position for position in positions if position not in left)
        self._context = None
        return before - after

    @cached_property
    def _open_errors(self) -> tuple[str, ...]:
        return open_errors(self._request)

    @cached_property
    def _lines(self) -> dict[int, Proposal]:
        outputs = sum(unit.output is not None for unit in self.units)
        return {p.unit.position: p for p in propose_lines(self.units, outputs, self._counter)}

    @cached_property
    def _ends(self) -> dict[int, Proposal]:
        limit = self._request.settings.max_output_tokens
        found = propose_shorter(self.units, max_output_tokens=limit, counter=self._counter)
        return {p.unit.position: p for p in found}

    def _make_free(self) -> None:
        batch = Batch(
            self._counter,
            self._batch_id,
            len(self.units),
            self.before_tokens,
            self.target_tokens,
        )
        batch.take_whole(propose_free(self.units))
        positions = {unit.entry_id: unit.position for unit in self.units}
        for edit in batch.finished()[0]:
            self._edits[positions[edit.target_id]] = edit
            if edit.replacement is None:
                self._gone.add(positions[edit.target_id])

    def _take(self, position: int, keeps_ends: bool) -> int:
        unit = self.units[position]
        proposal = (self._ends if keeps_ends else self._lines).get(position)
        if proposal is None or proposal.tier <= unit.edited_tier:
            return 0
        edit = self._edit(position, proposal.make(), proposal.tier)
        freed = self.tokens(position) - self._size(unit, edit)
        if freed < LEAST_SAVING_TOKENS:
            return 0
        self._edits[position] = edit
        self._context = None
        return freed

    def _edit(self, position: int, content: Content, tier: int) -> ContextEditEntry:
        return ContextEditEntry(
            target_id=self.units[position].entry_id,
            replacement=content,
            tier=tier,
            batch=self._batch_id,
            timestamp=self._timestamp,
        )

    def _size(self, unit: Unit, edit: ContextEditEntry) -> int:
        message = edited_message(unit.message, edit)
        return 0 if message is None else self._counter.count_message(message) + unit.id_tokens

    def _is_result(self, number: int) -> bool:
        return isinstance(self.units[number - 1].message, ToolResultMessage)

    def _carrier(self, positions: Sequence[int]) -> int | None:
        """Which message the text of a segment stands in."""
        with_calls: int | None = None
        for position in positions:
            match self.units[position].message:
                case AssistantMessage(tool_calls=calls) if calls:
                    with_calls = position if with_calls is None else with_calls
                case AssistantMessage() | UserMessage() if position not in self._gone:
                    return position
                case _:
                    pass
        return with_calls

    def _kept_with(self, carrier: int) -> list[int]:
        """The results of the calls that a carrier keeps."""
        message = self.units[carrier].message
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            return []
        end = carrier + 1
        while end < len(self.units) and self._is_result(end + 1):
            end += 1
        return list(range(carrier + 1, end))

    def _carrying(self, carrier: int, text: str) -> Content:
        message = self.units[carrier].message
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            return text
        line = self._lines.get(carrier)
        content = line.make() if line else None
        shortened = content if isinstance(content, tuple) else ()
        calls = tuple(part for part in shortened if isinstance(part, ToolCall))
        return (TextContent(text=text), *(calls or message.tool_calls))


def context_after(request: CompactionRequest, edits: Sequence[Entry]) -> tuple[ContextMessage, ...]:
    """What the model would see of `request` after `edits`."""
    context = build_context(
        (*request.path, *edits),
        summary_role=request.settings.summary_role,
        carryover=request.previous,
    )
    return context.messages


_TOKENS_PER_FILE_CHAR = 2
"""File names may add this much to a text: an eighth of what it stands for, about."""


def open_errors(request: CompactionRequest) -> tuple[str, ...]:
    """The errors of the conversation that nothing has made good since."""
    return build_ledger(request.path, folders=_folders(request), previous=None).errors


def segment_facts(
    request: CompactionRequest,
    units: Sequence[Unit],
    span: Span,
    tokens: int,
    still_open: Collection[str],
) -> str:
    """Rules of the person, word for word, errors and touched files of a segment; may be empty.

    Args:
        request: The conversation.
        units: Its messages.
        span: The segment.
        tokens: Its size in the context.
        still_open: The `open_errors` of the conversation.
    """
    inside = _entries_of(request.path, units, span)
    ledger = build_ledger(inside, folders=_folders(request), previous=None)
    facts = Ledger(
        pinned=ledger.pinned,
        errors=tuple(error for error in ledger.errors if error in still_open),
        read_files=ledger.read_files,
        modified_files=ledger.modified_files,
    )
    told_chars = sum(len(line) + 3 for line in (*facts.pinned, *facts.errors))
    room_chars = 2 * told_chars + tokens // _TOKENS_PER_FILE_CHAR  # rules get half of it
    return fact_blocks(facts, request="", window=3 * room_chars)


def _folders(request: CompactionRequest) -> tuple[str, str]:
    return str(request.cwd), str(request.cwd.resolve())


def _entries_of(path: Sequence[Entry], units: Sequence[Unit], span: Span) -> Sequence[Entry]:
    """The entries of a segment, those among them included that earlier edits left out."""
    places = {entry.id: place for place, entry in enumerate(path)}
    start = min(places[unit.entry_id] for unit in units[span.first - 1 : span.last])
    end = min((places[unit.entry_id] for unit in units[span.last :]), default=len(path))
    return path[start:end]
