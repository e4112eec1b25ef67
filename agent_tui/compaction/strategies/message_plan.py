"""What becomes of every message of a conversation: the plan that all strategies make."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import NamedTuple, TypeAlias

from agent_tui.compaction.draft import CompactionRequest, ledger_of
from agent_tui.compaction.ledger.pinned import pinned_sentences
from agent_tui.compaction.plan import previous_summary
from agent_tui.compaction.sections.files import file_view, shown_paths
from agent_tui.compaction.strategies.base import OnDecisions, StrategyPlan
from agent_tui.compaction.tiers.cut import left_out_whole
from agent_tui.compaction.tiers.describe import line_count, outdated_positions
from agent_tui.compaction.tiers.forms import one_line_of, two_ends, with_images, without_repetition
from agent_tui.compaction.tiers.model import Content, EditTier, Output, Unit
from agent_tui.compaction.tiers.outputs import action_of
from agent_tui.compaction.tiers.repeats import pointers_to_newer
from agent_tui.compaction.tiers.units import batch_id, read_units
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.sessions.context import build_context, edited_message
from agent_tui.sessions.entries import ContextEditEntry, Entry, timestamp_now
from agent_tui.sessions.replay.normalise import OPENING_TEXT, ContextMessage
from agent_tui.tokens import TokenCounter

_LEAST_SAVING_TOKENS = 16
"""What is left out must be worth a line of the session's file; other words were paid for."""

_ARGUMENT_TOKENS = 60
"""A longer text in the arguments of a call is left out where its reply gets other words."""


@dataclass(frozen=True, slots=True)
class Whole:
    """As it was, without thinking, and without output that a later message shows again."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Parts of it: first and last number of lines of a result, or none for its two ends."""

    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line on a result; a reply keeps its calls without their long arguments."""


@dataclass(frozen=True, slots=True)
class Words:
    """`text` in place of what was said; calls stay, and rules of the person word for word.

    `problem` says why a model did not write it; empty where one did.
    """

    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """Out of the context."""


Fate: TypeAlias = Whole | Lines | Line | Words | Gone
"""What becomes of one message."""

Fates: TypeAlias = Mapping[int, Fate]
"""What becomes of messages, by their position; the others are `Whole`."""

WHOLE = Whole()
_DONE: Mapping[type[Fate], str] = {
    Whole: "without what is seen elsewhere",
    Lines: "cut in the middle",
    Line: "metadata only",
    Words: "fewer words",
    Gone: "left out",
}


class Made(NamedTuple):
    """The edit that brings a fate on a message, None if that would save nothing; the size then."""

    edit: ContextEditEntry | None
    tokens: int


class Conversation:
    """The messages of a request that can be changed, and what each would be after its fate.

    Args:
        request: What is to become smaller.
        counter: Measures.
        name: The strategy.
        protect: Marks the messages that stay; None for the marks that the tiers go by.

    Attributes:
        units: The messages, oldest first.
        tokens_before: Size of the next request as it is.
        target_tokens: Size to reach.
        folders: Names of the working folder.
    """

    def __init__(
        self,
        request: CompactionRequest,
        counter: TokenCounter,
        name: str,
        protect: Callable[[Sequence[Unit]], Sequence[Unit]] | None = None,
    ) -> None:
        settings, window = request.settings, request.window
        read = read_units(
            request.path,
            carryover=request.previous,
            counter=counter,
            settings=settings,
            window=window,
        )
        self.request, self.counter = request, counter
        self.units = protect(read.items) if protect else read.items
        self.tokens_before = read.tokens + request.overhead_tokens
        self.target_tokens = request.target_tokens or int(window * settings.target_share(window))
        self.folders = (str(request.cwd), str(request.cwd.resolve()))
        self._batch, self._timestamp = batch_id(request.path, f"{name} "), timestamp_now()
        self._known: dict[tuple[int, Fate], Made] = {}

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Positions of messages that stay together: a reply with its results, or one message."""
        starts = [
            unit.position
            for unit in self.units
            if unit.position == 0 or not isinstance(unit.message, ToolResultMessage)
        ]
        return tuple(range(*ends) for ends in pairwise((*starts, len(self.units))))

    def plan(self) -> "MessagePlan":
        """The plan to begin with: what is only for display goes.

        Raises:
            NothingToCompactError: The target is reached already.
        """
        if self.tokens_before <= self.target_tokens:
            raise NothingToCompactError("Nothing to compact: the context is small enough.")
        shown = (u for u in self.units if u.is_display_only and u.position and not u.is_protected)
        return MessagePlan(self, {unit.position: Gone() for unit in shown})

    def context_after(self, edits: Sequence[Entry]) -> tuple[ContextMessage, ...]:
        """What the model would see after `edits`."""
        path, role = (*self.request.path, *edits), self.request.settings.summary_role
        return build_context(path, summary_role=role, carryover=self.request.previous).messages

    def made(self, position: int, fate: Fate) -> Made:
        """What `fate` comes to for one message."""
        known = self._known.get((position, fate))
        if known is None:
            known = self._known[position, fate] = self._make(self.units[position], fate)
        return known

    def _make(self, unit: Unit, fate: Fate) -> Made:
        least: float = _LEAST_SAVING_TOKENS
        match fate:
            case Gone():  # a result goes with its call
                return Made(self._entry(unit, None, 0 if unit.is_display_only else 3), 0)
            case Words(text=text):
                tier, content, least = 3, self._said(unit, text), -inf
            case Lines(spans=spans) if spans and unit.output is not None:
                tier, content = 1, self._kept(unit, unit.output, spans)
            case Whole():
                tier, least = 0, 1
                content = without_repetition(unit, self._pointers.get(unit.position))
            case Lines():
                limit = self.request.settings.max_output_tokens
                tier, content = 1, two_ends(unit, limit, self.counter)
            case Line():
                is_outdated = unit.position in self._outdated
                tier, content = 2, one_line_of(unit, is_outdated=is_outdated, counter=self.counter)
        if content is None or self._stays(unit, tier):
            return Made(None, unit.tokens)
        edit = self._entry(unit, content, tier)
        message = edited_message(unit.message, edit)
        size = self.counter.count_message(message) if message else 0
        return Made(edit, size) if unit.tokens - size >= least else Made(None, unit.tokens)

    def _stays(self, unit: Unit, tier: EditTier) -> bool:
        """Whether code may not make this edit: it was made, or the model needs what it takes.

        Of protected messages outputs alone can be cut.
        """
        if tier == 3:
            return False
        if tier <= unit.edited_tier or (tier and unit.position in self._current):
            return True
        return unit.is_protected and (tier != 1 or unit.output is None)

    @cached_property
    def _pointers(self) -> Mapping[int, str]:
        return pointers_to_newer(self.units)

    @cached_property
    def _outdated(self) -> frozenset[int]:
        return outdated_positions(self.units, self.folders)

    @cached_property
    def _current(self) -> frozenset[int]:
        """The replies that change a file of which the summary in force shows how it was before."""
        summary = previous_summary(self.request.path, self.request.previous)
        shown = tuple(f"/{path}" for path in shown_paths(summary))
        return frozenset(
            unit.position
            for unit in self.units
            if shown and isinstance(unit.message, AssistantMessage)
            for action in map(action_of, unit.message.tool_calls)
            if action.kind in ("write", "edit") and f"/{action.path}".endswith(shown)
        )

    def _entry(self, unit: Unit, content: Content, tier: EditTier) -> ContextEditEntry:
        return ContextEditEntry(
            target_id=unit.entry_id,
            replacement=content,
            tier=tier,
            batch=self._batch,
            timestamp=self._timestamp,
        )

    def _said(self, unit: Unit, text: str) -> Content:
        message = unit.message
        if isinstance(message, AssistantMessage):
            calls = (
                left_out_whole(call, _ARGUMENT_TOKENS, unit.entry_id, self.counter)
                for call in message.tool_calls
            )
            return (TextContent(text=text), *calls)
        return "\n".join([text, *(r for r in pinned_sentences(message.text) if r not in text)])

    def _kept(self, unit: Unit, output: Output, spans: Sequence[tuple[int, int]]) -> Content:
        """Lines of a result, numbered where it shows a file; all of it if it has none of them."""
        view = file_view(output)
        lines, first = (view.lines, view.first) if view else (output.text.splitlines(), 1)
        kept = sorted(
            {n for a, b in spans for n in range(max(a, first), min(b + 1, first + len(lines)))}
        )
        if not kept:
            return output.text
        parts: list[str] = []
        for before, number in pairwise((first - 1, *kept, first + len(lines))):
            if number > before + 1:
                parts.append(omission_mark(line_count(number - before - 1)))
            if number < first + len(lines):
                line = lines[number - first]
                parts.append(f"{number}\t{line}" if view else line)
        return with_images("\n".join((*parts, recall_mark(unit.entry_id))), unit.message)


@dataclass(frozen=True)
class MessagePlan:
    """What becomes of each message of `conversation`; an immutable value.

    Args:
        conversation: The messages.
        fates: What becomes of those that are not `Whole`.
    """

    conversation: Conversation
    fates: Fates

    def fate(self, position: int) -> Fate:
        """What becomes of one message."""
        return self.fates.get(position, WHOLE)

    def size(self, position: int) -> int:
        """What is left of one message, in tokens."""
        return self.conversation.made(position, self.fate(position)).tokens

    def is_open(self, position: int) -> bool:
        """Whether something else may still become of a message."""
        unit, fate = self.conversation.units[position], self.fate(position)
        is_settled = isinstance(fate, Words | Gone) and not unit.is_display_only
        return not (is_settled or unit.is_protected)

    def taking(self, fates: Fates) -> "MessagePlan":
        """This plan with `fates`."""
        return replace(self, fates={**self.fates, **fates})

    def towards_target(self, offers: Iterable[tuple[int, Fate]]) -> "MessagePlan":
        """This plan with those of `offers` that save something, in order, up to the target."""
        taken: dict[int, Fate] = {}
        missing, made = self.missing_tokens, self.conversation.made
        for position, fate in offers:
            if missing <= 0:
                break
            now = taken.get(position, self.fate(position))
            saved = made(position, now).tokens - made(position, fate).tokens
            if saved >= (1 if isinstance(fate, Words) else _LEAST_SAVING_TOKENS):
                taken[position] = fate
                missing -= saved
        return self.taking(taken)

    @cached_property
    def freed(self) -> Mapping[int, int]:
        """The tokens that the edits of each tier free, about."""
        freed = Counter[int]()
        for unit in self.conversation.units:
            made = self.conversation.made(unit.position, self.fate(unit.position))
            if made.edit is not None:
                freed[made.edit.tier] += unit.tokens - made.tokens
        return freed

    @cached_property
    def missing_tokens(self) -> int:
        """How many tokens too large the next request would be, about; 0 where it is not."""
        conversation = self.conversation
        left = conversation.tokens_before - sum(self.freed.values())
        return max(left - conversation.target_tokens, 0)

    @cached_property
    def edits(self) -> tuple[ContextEditEntry, ...]:
        """What makes the plan come true, in the order of the messages."""
        positions = range(len(self.conversation.units))
        found = (self.conversation.made(at, self.fate(at)).edit for at in positions)
        return tuple(edit for edit in found if edit is not None)

    @cached_property
    def context(self) -> tuple[ContextMessage, ...]:
        """What the model would see."""
        return self.conversation.context_after(self.edits)

    @cached_property
    def used_tokens(self) -> int:
        """Size of the next request, counted anew."""
        messages = (item.message for item in self.context)
        overhead = self.conversation.request.overhead_tokens
        return overhead + self.conversation.counter.count_messages(messages)

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.used_tokens <= self.conversation.target_tokens

    def finished(
        self,
        statistics: Mapping[str, int],
        note: str = "",
        on_decisions: OnDecisions | None = None,
    ) -> StrategyPlan:
        """What a strategy gives back, once code has checked it.

        Args:
            statistics: What was done to how many messages; sizes are added.
            note: What the person should know besides.
            on_decisions: Told what became of which message.

        Raises:
            CompactionError: Nothing is gained, or what is left would not be sound.
        """
        if on_decisions is not None:
            on_decisions(list(self._decisions()))
        if not self.edits:
            raise NothingToCompactError("Nothing to compact: no older message can be shorter.")
        if problem := self._problem():
            raise CompactionError(f"Its plan failed the check: {problem}.")
        before, after = self.conversation.tokens_before, self.used_tokens
        protected = sum(unit.is_protected for unit in self.conversation.units)
        counts = {**statistics, "protected": protected, "before": before, "after": after}
        return StrategyPlan(self.edits, before, after, counts, note)

    def _decisions(self) -> Iterator[str]:
        """One line for each message: entry, role, size before and after, what was done."""
        conversation = self.conversation
        yield f"before {conversation.tokens_before:,} tokens, target {conversation.target_tokens:,}"
        for unit in conversation.units:
            tool = f" {unit.output.action.tool}" if unit.output is not None else ""
            named = f"{unit.entry_id} {unit.message.role}{tool} {unit.tokens:,}"
            fate = self.fate(unit.position)
            if conversation.made(unit.position, fate).edit is None:
                why = "protected" if unit.is_protected else "short enough, or the target is reached"
                yield f"{named} tokens kept: {why}"
            else:
                cut = f": cut, {fate.problem}" if isinstance(fate, Words) and fate.problem else ""
                done = cut or f": {_DONE[type(fate)]}"
                yield f"{named} -> {self.size(unit.position):,} tokens{done}"

    def _problem(self) -> str:
        """Why the edits must not be written, as a clause; empty if they may.

        Calls and results stay together, what is protected and what no edit names is as it was,
        and every rule of the person's that could be read still can.
        """
        conversation = self.conversation
        edited = {edit.target_id for edit in self.edits}
        if any(unit.is_protected and unit.entry_id in edited for unit in conversation.units):
            return "a protected message was changed"
        for exchange in conversation.exchanges:
            if len({isinstance(self.fate(position), Gone) for position in exchange}) > 1:
                return "a call and its result were parted"
        before, after = conversation.context_after(()), self.context
        if _untouched(before, edited) != _untouched(after, edited):
            return "messages that had to stay unchanged were changed"
        text_before, text_after = (
            escape_tags("\n".join(item.message.text for item in items)) for items in (before, after)
        )
        pins = (escape_tags(pin) for pin in ledger_of(conversation.request).pinned)
        if any(pin in text_before and pin not in text_after for pin in pins):
            return "one of your rules would be lost"
        if self.used_tokens >= conversation.tokens_before:
            return "it frees nothing"
        return ""


def is_spoken(unit: Unit) -> bool:
    """Whether a person or a model said it, rather than a tool or a feature."""
    is_message = isinstance(unit.message, UserMessage | AssistantMessage)
    return is_message and unit.output is None and not unit.is_display_only


def _untouched(items: Sequence[ContextMessage], edited: set[str]) -> list[tuple[object, ...]]:
    """What no edit names. Ids are left out: the context makes new ones where they repeat."""
    found: list[tuple[object, ...]] = []
    for item in items:
        message = item.message
        is_own = bool(item.entry_id) or message.text != OPENING_TEXT
        if item.entry_id not in edited and is_own:
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
            found.append((message.role, message.text, [(c.name, c.arguments) for c in calls]))
    return found
