"""The form that each message of a conversation gets: the plan that all strategies make."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import TypeAlias

from agent_tui.compaction.conversation import ledger_of
from agent_tui.compaction.ledger.pinned import find_rules
from agent_tui.compaction.outcome import Outcome
from agent_tui.compaction.plan import previous_summary
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.file_views import file_view
from agent_tui.compaction.sections.files import paths_shown_in
from agent_tui.compaction.strategies.base import OnDecisions
from agent_tui.compaction.tiers.describe import line_count, outdated_positions
from agent_tui.compaction.tiers.edits import EditMaker, MadeEdit
from agent_tui.compaction.tiers.forms import (
    one_line_of,
    two_ends,
    with_images,
    without_long_texts,
    without_repetition,
)
from agent_tui.compaction.tiers.model import Content, EditTier, Unit
from agent_tui.compaction.tiers.units import batch_id, read_units
from agent_tui.compaction.transcript import escape_tags
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.safe_paths import real_path
from agent_tui.sessions.actions import Output
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import ContextEditEntry, Entry
from agent_tui.sessions.outputs import action_of
from agent_tui.sessions.replay.normalise import OPENING_TEXT, ContextMessage
from agent_tui.tokens import TokenCounter

_LEAST_SAVING_TOKENS = 16
"""An omission must save at least one line in the session file; shorter wordings were paid for."""

_ARGUMENT_TOKENS = 60
"""Longer arguments of a call are left out if its reply gets another wording."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Unchanged, but without thinking, and without output that a later message repeats."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Parts of a result: first and last line numbers, or empty for its two ends."""

    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class OneLine:
    """One line for a result; a reply keeps its calls without their long arguments."""


@dataclass(frozen=True, slots=True)
class Words:
    """`text` replaces the message; its calls stay, and the user's rules word for word.

    `problem` says why no model wrote it; empty if one did.
    """

    text: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """Removed from the context."""


Fate: TypeAlias = Whole | Lines | OneLine | Words | Gone
"""The form that one message gets."""

Fates: TypeAlias = Mapping[int, Fate]
"""Forms of messages by position; the others are `Whole`."""

WHOLE = Whole()
_DONE: Mapping[type[Fate], str] = {
    Whole: "without what is seen elsewhere",
    Lines: "cut in the middle",
    OneLine: "metadata only",
    Words: "fewer words",
    Gone: "left out",
}


class ConversationUnits:
    """The messages of a request that can be changed, and each one's form after a fate.

    Args:
        request: The conversation to shorten.
        counter: Counts tokens.
        name: The strategy's name.
        protect: Marks the messages that stay; None to use the tiers' marks.

    Attributes:
        units: The messages, oldest first.
        tokens_before: Size of the next request now.
        target_tokens: Size to reach.
        folders: Paths of the working folder.
    """

    def __init__(
        self,
        request: CompactionRequest,
        counter: TokenCounter,
        name: str,
        protect: Callable[[Sequence[Unit]], Sequence[Unit]] | None = None,
    ) -> None:
        settings, window = request.settings, request.sizes.window
        read = read_units(
            request.path,
            carryover=request.previous,
            counter=counter,
            settings=settings,
            window=window,
        )
        self.request, self.counter = request, counter
        self.units = protect(read.items) if protect else read.items
        self.tokens_before = read.tokens + request.sizes.overhead
        self.target_tokens = request.sizes.target or settings.target_tokens(window)
        self.folders = (str(request.cwd), str(real_path(request.cwd)))
        self._edits = EditMaker(self.units, batch_id(request.path, f"{name} "), counter)
        self._known: dict[tuple[int, Fate], MadeEdit] = {}

    @cached_property
    def exchanges(self) -> tuple[range, ...]:
        """Positions of messages that belong together: a reply with its results, or one message."""
        starts = [
            unit.position
            for unit in self.units
            if unit.position == 0 or not isinstance(unit.message, ToolResultMessage)
        ]
        return tuple(range(*ends) for ends in pairwise((*starts, len(self.units))))

    def plan(self) -> "MessagePlan":
        """The initial plan, which removes messages that are only for display.

        Raises:
            NothingToCompactError: The target is reached already.
        """
        if self.tokens_before <= self.target_tokens:
            raise NothingToCompactError("Nothing to compact: the context is small enough.")
        shown = (u for u in self.units if u.is_display_only and u.position and not u.is_protected)
        return MessagePlan(self, {unit.position: Gone() for unit in shown})

    def context_after(self, edits: Sequence[Entry]) -> tuple[ContextMessage, ...]:
        """The context that the model would see after `edits`."""
        path, role = (*self.request.path, *edits), self.request.settings.summary_role
        return build_context(path, summary_role=role, carryover=self.request.previous).messages

    def make(self, position: int, fate: Fate) -> MadeEdit:
        """The edit and size of one message with `fate`; cached."""
        known = self._known.get((position, fate))
        if known is None:
            known = self._known[position, fate] = self._make(self.units[position], fate)
        return known

    def _make(self, unit: Unit, fate: Fate) -> MadeEdit:
        least: float = _LEAST_SAVING_TOKENS
        match fate:
            case Gone():  # a result goes with its call
                return MadeEdit(self._edits.entry(unit, None, 0 if unit.is_display_only else 3), 0)
            case Words(text=text):
                tier, content, least = 3, self._with_rules(unit, text), -inf
            case Lines(spans=spans) if spans and unit.output is not None:
                tier, content = 1, self._keep_lines(unit, unit.output, spans)
            case Whole():
                tier, least = 0, 1
                content = without_repetition(unit, self._edits.pointers.get(unit.position))
            case Lines():
                limit = self.request.settings.max_output_tokens
                tier, content = 1, two_ends(unit, limit, self.counter)
            case OneLine():
                is_outdated = unit.position in self._outdated
                tier, content = 2, one_line_of(unit, is_outdated=is_outdated, counter=self.counter)
        if content is None or self._stays(unit, tier):
            return MadeEdit(None, unit.tokens)
        return self._edits.make(unit, content, tier, least)

    def _stays(self, unit: Unit, tier: EditTier) -> bool:
        """Whether this edit is ruled out: it was made already, or the model needs the text.

        Of protected messages, only outputs can be cut.
        """
        if tier == 3:
            return False
        if tier <= unit.edited_tier or (tier and unit.position in self._current):
            return True
        return unit.is_protected and (tier != 1 or unit.output is None)

    @cached_property
    def _outdated(self) -> frozenset[int]:
        return outdated_positions(self.units, self.folders)

    @cached_property
    def _current(self) -> frozenset[int]:
        """Replies that change a file which the current summary shows in its earlier state."""
        summary = previous_summary(self.request.path, self.request.previous)
        shown = tuple(f"/{path}" for path in paths_shown_in(summary))
        return frozenset(
            unit.position
            for unit in self.units
            if shown and isinstance(unit.message, AssistantMessage)
            for action in map(action_of, unit.message.tool_calls)
            if action.kind in ("write", "edit") and f"/{action.path}".endswith(shown)
        )

    def _with_rules(self, unit: Unit, text: str) -> Content:
        message = unit.message
        if isinstance(message, AssistantMessage):
            calls = (
                without_long_texts(call, _ARGUMENT_TOKENS, unit.entry_id, self.counter)
                for call in message.tool_calls
            )
            return (TextContent(text=text), *calls)
        return "\n".join([text, *(r for r in find_rules(message.text) if r not in text)])

    def _keep_lines(self, unit: Unit, output: Output, spans: Sequence[tuple[int, int]]) -> Content:
        """The given lines of a result, numbered if it shows a file; all of it if none match."""
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
    """The form that each message of `conversation` gets; an immutable value.

    Args:
        conversation: The messages.
        fates: The forms of those that are not `Whole`.
    """

    conversation: ConversationUnits
    fates: Fates

    def fate(self, position: int) -> Fate:
        """The form that one message gets."""
        return self.fates.get(position, WHOLE)

    def size(self, position: int) -> int:
        """The tokens left of one message."""
        return self.conversation.make(position, self.fate(position)).tokens

    def is_open(self, position: int) -> bool:
        """Whether the form of a message may still change."""
        unit, fate = self.conversation.units[position], self.fate(position)
        is_settled = isinstance(fate, Words | Gone) and not unit.is_display_only
        return not (is_settled or unit.is_protected)

    def taking(self, fates: Fates) -> "MessagePlan":
        """This plan with `fates`."""
        return replace(self, fates={**self.fates, **fates})

    def towards_target(self, offers: Iterable[tuple[int, Fate]]) -> "MessagePlan":
        """This plan with those `offers` that save something, in order, until the target is met."""
        taken: dict[int, Fate] = {}
        missing, made = self.missing_tokens, self.conversation.make
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
        """The approximate tokens that the edits of each tier free."""
        freed = Counter[int]()
        for unit in self.conversation.units:
            made = self.conversation.make(unit.position, self.fate(unit.position))
            if made.edit is not None:
                freed[made.edit.tier] += unit.tokens - made.tokens
        return freed

    @cached_property
    def missing_tokens(self) -> int:
        """The approximate tokens by which the next request exceeds the target; 0 if it does not."""
        conversation = self.conversation
        left = conversation.tokens_before - sum(self.freed.values())
        return max(left - conversation.target_tokens, 0)

    @cached_property
    def edits(self) -> tuple[ContextEditEntry, ...]:
        """The edits that carry out the plan, in the order of the messages."""
        positions = range(len(self.conversation.units))
        found = (self.conversation.make(at, self.fate(at)).edit for at in positions)
        return tuple(edit for edit in found if edit is not None)

    @cached_property
    def context(self) -> tuple[ContextMessage, ...]:
        """The context that the model would see."""
        return self.conversation.context_after(self.edits)

    @cached_property
    def used_tokens(self) -> int:
        """Size of the next request, counted again."""
        messages = (item.message for item in self.context)
        overhead = self.conversation.request.sizes.overhead
        return overhead + self.conversation.counter.count_messages(messages)

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.used_tokens <= self.conversation.target_tokens

    def finish(
        self,
        statistics: Mapping[str, int],
        note: str = "",
        on_decisions: OnDecisions | None = None,
    ) -> Outcome:
        """Check the plan and return it as a strategy's result.

        Args:
            statistics: Counts of changed messages; sizes are added.
            note: An additional note for the user.
            on_decisions: Takes each message's new form.

        Raises:
            CompactionError: Nothing is saved, or the result would be invalid.
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
        return Outcome(self.edits, before, after, counts, note)

    def _decisions(self) -> Iterator[str]:
        """One line per message: entry, role, size before and after, and its form."""
        conversation = self.conversation
        yield f"before {conversation.tokens_before:,} tokens, target {conversation.target_tokens:,}"
        for unit in conversation.units:
            tool = f" {unit.output.action.tool}" if unit.output is not None else ""
            named = f"{unit.entry_id} {unit.message.role}{tool} {unit.tokens:,}"
            fate = self.fate(unit.position)
            if conversation.make(unit.position, fate).edit is None:
                why = "protected" if unit.is_protected else "short enough, or the target is reached"
                yield f"{named} tokens kept: {why}"
            else:
                cut = f": cut, {fate.problem}" if isinstance(fate, Words) and fate.problem else ""
                done = cut or f": {_DONE[type(fate)]}"
                yield f"{named} -> {self.size(unit.position):,} tokens{done}"

    def _problem(self) -> str:
        """Why the edits must not be written, as a clause; empty if they may.

        Calls and results must stay together, protected and unedited messages must be unchanged, and
        every user rule that was readable must still be.
        """
        conversation = self.conversation
        edited = {edit.target_id for edit in self.edits}
        if any(unit.is_protected and unit.entry_id in edited for unit in conversation.units):
            return "a protected message was changed"
        for exchange in conversation.exchanges:
            if len({isinstance(self.fate(position), Gone) for position in exchange}) > 1:
                return "a call and its result were parted"
        before, after = conversation.context_after(()), self.context
        if _messages_without_edit(before, edited) != _messages_without_edit(after, edited):
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
    """Whether a user or a model wrote it, rather than a tool or a feature."""
    is_message = isinstance(unit.message, UserMessage | AssistantMessage)
    return is_message and unit.output is None and not unit.is_display_only


def _messages_without_edit(
    items: Sequence[ContextMessage], edited: set[str]
) -> list[tuple[object, ...]]:
    """The messages without an edit. Ids are left out, as the context renames repeated ones."""
    found: list[tuple[object, ...]] = []
    for item in items:
        message = item.message
        is_own = bool(item.entry_id) or message.text != OPENING_TEXT
        if item.entry_id not in edited and is_own:
            calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
            found.append((message.role, message.text, [(c.name, c.arguments) for c in calls]))
    return found
