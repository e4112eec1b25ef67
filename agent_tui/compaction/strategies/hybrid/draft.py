"""The edits of strategy `hybrid` being chosen, one stage after the other; no model is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.strategies.hybrid.checks import condensed_problem
from agent_tui.compaction.strategies.hybrid.condenser import MESSAGES_A_CALL, LongMessage
from agent_tui.compaction.strategies.hybrid.file_cache import read_file_cache
from agent_tui.compaction.strategies.hybrid.messages import (
    CALLS_ALONE,
    ShortForms,
    unread_positions,
    with_protection,
)
from agent_tui.compaction.strategies.hybrid.modifications import read_modifications
from agent_tui.compaction.strategies.hybrid.result_lines import ResultLines
from agent_tui.compaction.tiers.batch import Batch, batch_id
from agent_tui.compaction.tiers.model import Content, Output, Proposal, Unit
from agent_tui.compaction.tiers.tier0 import propose_free
from agent_tui.compaction.tiers.tier1 import propose_shorter_output, propose_shorter_reply
from agent_tui.compaction.tiers.units import read_units
from agent_tui.messages import AssistantMessage
from agent_tui.sessions.context import edited_message
from agent_tui.sessions.entries import ContextEditEntry, CustomMessageEntry
from agent_tui.tokens import TokenCounter

_LINE_TOKENS = 60


@dataclass(frozen=True, slots=True)
class LongUnit:
    """An old message to be said in fewer words.

    Args:
        unit: The message.
        asked: What a model is asked.
        most_tokens: What is left of it at most, calls and rules included.
    """

    unit: Unit
    asked: LongMessage
    most_tokens: int


class HybridDraft:
    """Chooses edits, the oldest first, and stops where the target is reached.

    Attributes:
        units: The messages, oldest first, as this strategy protects them.
        tokens_before: Size of the next request as it is.
        target_tokens: Size to reach.
        problems: Why which message was cut rather than rewritten, by its entry id.
    """

    def __init__(self, request: CompactionRequest, counter: TokenCounter) -> None:
        settings = request.settings
        found = read_units(
            request.path,
            carryover=request.previous,
            counter=counter,
            settings=settings,
            window=request.window,
        )
        instructions = (
            entry.id
            for entry in request.path
            if isinstance(entry, CustomMessageEntry) and not entry.display
        )
        folders = (str(request.cwd), str(request.cwd.resolve()))
        self.units = with_protection(found.items, instructions)
        self.tokens_before = found.tokens + request.overhead_tokens
        self.target_tokens = request.target_tokens or int(
            request.window * settings.target_share(request.window)
        )
        self.problems: dict[str, str] = {}
        self._max_output_tokens = settings.max_output_tokens
        self._counter = counter
        self._forms = ShortForms(counter)
        self._lines = ResultLines(
            files=read_file_cache(self.units, folders),
            modifications=read_modifications(self.units, folders),
            outputs=sum(unit.output is not None for unit in self.units),
            folders=folders,
            counter=counter,
        )
        self._batch = Batch(
            counter,
            batch_id(request.path, "hybrid "),
            len(self.units),
            self.tokens_before,
            self.target_tokens,
        )
        self._border = next((u.position for u in self.units if u.is_protected), len(self.units))

    def describe_old_results(self) -> None:
        """What is free, then a line for every result before the newest messages.

        The arguments of old calls are cut along with it: what they wrote is in the files.
        """
        self._batch.take_whole(propose_free(self.units))
        self._batch.take_oldest(self._metadata(self.units[: self._border]))

    def missing_tokens(self) -> int:
        """How far the target is away."""
        return self._batch.missing_tokens()

    def long_units(self) -> Iterator[LongUnit]:
        """Old messages that can be said in fewer words, the oldest first."""
        for unit in self.units:
            asked = self._forms.long_message(unit)
            if asked is None or unit.edited_tier >= 3:
                continue
            short = self._forms.truncated(unit)
            most = self._size(unit, self._forms.content(unit, short))
            most += max(asked.max_tokens - self._counter.count_text(short), 0)
            if most < self._batch.size_of(unit):
                yield LongUnit(unit, asked, most)

    def next_call(self, waiting: Iterator[LongUnit]) -> Sequence[LongUnit]:
        """As many of `waiting` as are needed to reach the target, or as go into one call."""
        missing = self._batch.missing_tokens()
        chosen: list[LongUnit] = []
        while missing > 0 and len(chosen) < MESSAGES_A_CALL:
            if not (one := tuple(islice(waiting, 1))):
                break
            chosen += one
            missing -= self._batch.size_of(one[0].unit) - one[0].most_tokens
        return chosen

    def take_short_forms(self, asked: Sequence[LongUnit], texts: Sequence[str]) -> None:
        """Put a model's `texts` in place of the messages, or their beginnings where they fail.

        Args:
            asked: The messages.
            texts: For each what a model made of it; empty for no answer.
        """
        self._batch.take_oldest(
            self._short_form(long.unit, text) for long, text in zip(asked, texts, strict=True)
        )

    def describe_new_results(self) -> None:
        """A line for results between the newest messages; those nobody has read are shortened."""
        unread = unread_positions(self.units)
        seen = self.units[self._border : unread.start]
        self._batch.take_oldest(self._metadata(seen))
        limit = self._max_output_tokens
        self._batch.take_oldest(
            proposal
            for unit in self.units[unread.start :]
            for proposal in propose_shorter_output(unit, limit, self._counter)
        )

    def finished(self) -> tuple[ContextEditEntry, ...]:
        """The edits in the order of their messages."""
        edits, _ = self._batch.finished()
        return edits

    def size_of(self, unit: Unit) -> int:
        """What is left of `unit`, in tokens."""
        return self._batch.size_of(unit)

    def _metadata(self, units: Sequence[Unit]) -> Iterator[Proposal]:
        for unit in units:
            if unit.is_protected:
                continue
            if unit.output is not None:
                make = partial(self._line, unit, unit.output)
                yield Proposal(unit, 2, _LINE_TOKENS, make)
            elif isinstance(unit.message, AssistantMessage):
                yield from propose_shorter_reply(unit, unit.message, 2, CALLS_ALONE, self._counter)

    def _line(self, unit: Unit, output: Output) -> Content:
        return self._lines.line(output, unit.entry_id)

    def _short_form(self, unit: Unit, text: str) -> Proposal:
        problem = condensed_problem(text, unit.message.text) if text else "no answer"
        short = "" if problem else self._forms.condensed(unit, text)
        if not short:
            self.problems[unit.entry_id] = problem or "it is too long"
            short = self._forms.truncated(unit)
        content = self._forms.content(unit, short)
        return Proposal(unit, 3, self._size(unit, content), lambda: content)

    def _size(self, unit: Unit, content: Content) -> int:
        edit = ContextEditEntry(target_id=unit.entry_id, replacement=content)
        message = edited_message(unit.message, edit)
        left = self._counter.count_message(message) if message is not None else 0
        return left + unit.id_tokens
