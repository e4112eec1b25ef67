"""The newest messages as they stay: what is shown elsewhere becomes one line."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from math import inf
from types import MappingProxyType

from agent_tui.compaction.plan import LiveConversation, LiveEntry
from agent_tui.compaction.sections.elsewhere import Elsewhere
from agent_tui.compaction.sections.file_states import FileState, ReadFile
from agent_tui.compaction.sections.file_views import file_view
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.less import MessageShortener, with_recall
from agent_tui.compaction.sections.passages import EDITED, KnownPassages, Place
from agent_tui.compaction.sections.person import equal_share
from agent_tui.compaction.sections.spent import find_spent
from agent_tui.compaction.tiers.edits import EditMaker
from agent_tui.compaction.tiers.forms import (
    SLACK,
    keep_ends,
    shorter_reply,
    with_images,
    without_thinking,
)
from agent_tui.compaction.tiers.model import UNEDITED, Content, Unit
from agent_tui.messages import AssistantMessage, Message
from agent_tui.omissions import recall_mark
from agent_tui.sessions.actions import Output
from agent_tui.sessions.context import apply_edit
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.tokens import TokenCounter

_LEAST_SAVING_TOKENS = 24
_LEAST_END_TOKENS = 60
_MARK_TOKENS = 40
_LEAST_OUTPUT_TOKENS = 200
_LONG_ARGUMENT_TOKENS, _LONG_NOTE_TOKENS = 400, 600


@dataclass(frozen=True, slots=True)
class Tail:
    """The size of each live entry if it stays, and the edits that achieve it.

    `files` maps the id of an edited entry to the files that it now only refers to. `changes` are
    the files of the calls whose change stands elsewhere, by the call's id. `more` are the texts of
    results, by entry, that fit in their place if there is space.
    """

    tokens: tuple[int, ...]
    edits: Mapping[str, ContextEditEntry]
    files: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    changes: Mapping[str, str] = field(default_factory=dict[str, str])
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def files_to_show(self, entries: Iterable[LiveEntry]) -> frozenset[str]:
        """The files that must be shown if `entries` stay."""
        return frozenset(path for one in entries for path in self.files.get(one.id, ()))


class TailEditor:
    """Makes edits of messages that stay. All edits have the same batch.

    Args:
        units: The messages of the context that can be changed.
        batch: The batch id of the edits.
        counter: Counts their tokens.
        folders: Paths of the working folder.
    """

    def __init__(
        self, units: Sequence[Unit], batch: str, counter: TokenCounter, folders: Sequence[str]
    ) -> None:
        self._units = {unit.entry_id: unit for unit in units}
        self._order = units
        self._less = MessageShortener(units, counter, folders)
        self._edits = EditMaker(units, batch, counter)
        self._counter = counter

    def lines_for_what_stands_elsewhere(
        self,
        live: LiveConversation,
        shown: Mapping[str, ShownFile],
        room: int,
        known: Iterable[FileState] = (),
        offered: Mapping[str, Set[str]] = MappingProxyType({}),
    ) -> Tail:
        """The edits of the newest messages of `live`, as many as fill `room` tokens.

        One line replaces a view of a file that has a newer view, an output that is repeated later
        or is finished, lines of views that are `shown` of their file or that a `known` file no
        longer has, and the text of a change if what is left of it is shown or committed. So it does
        for the views in `offered`, by path: of those files, a model chose what is shown. Thinking
        is removed from all but the newest reply. In the newest exchange only text that repeats its
        own call is replaced, and blanks at the ends of lines.
        """
        tokens = list(live.tokens)
        edits: dict[str, ContextEditEntry] = {}
        files: dict[str, frozenset[str]] = {}
        changes: dict[str, str] = {}
        more: dict[str, str] = {}
        elsewhere = Elsewhere(shown, known, self._less.passages)
        for at in range(len(live.entries) - 1, -1, -1):
            if room < 0:
                break
            if (unit := self._units.get(live.entries[at].id)) is not None:
                is_offered = unit.entry_id in offered.get(self._less.facts[unit.entry_id].path, ())
                less = self._less.content(unit, elsewhere, is_offered=is_offered)
                edit = self._edit(unit, less.content, 0) if less.content is not None else None
                if edit is not None:
                    edits[unit.entry_id], tokens[at] = edit
                    files[unit.entry_id] = less.paths
                    more |= {unit.entry_id: less.more} if less.more else {}
                changes |= self._less.note(unit, less.content if edit else None, elsewhere)
            room -= tokens[at]
        return Tail(tuple(tokens), edits, files, changes, more)

    def leave_out_spent(self, live: LiveConversation, tail: Tail, room: int) -> Tail:
        """`tail` of `live` without exchanges of which nothing is needed; see `find_spent`.

        Only the newest messages that fill `room` are looked at.
        """
        sizes_from_end = accumulate(reversed(tail.tokens))
        near = sum(1 for _ in takewhile(lambda size: size <= room, sizes_from_end))
        near_ids = {entry.id for entry in live.entries[len(live.entries) - near :]}
        left = {id: str(edit.replacement) for id, edit in tail.edits.items()}
        before = [unit for unit in self._order[: self._less.newest] if unit.entry_id in near_ids]
        spent = [*find_spent(before, left, tail.changes, self._less.committed)]
        gone = {unit.entry_id: self._edits.entry(unit, None, 0) for unit in spent}
        sizes = zip(live.entries, tail.tokens, strict=True)
        tokens = tuple(0 if entry.id in gone else size for entry, size in sizes)
        return replace(tail, tokens=tokens, edits={**tail.edits, **gone})

    def restore(self, live: LiveConversation, tail: Tail, first: int, room: int, most: int) -> Tail:
        """`tail` with the results from entry `first` on of which there is `more`, small ones first.

        Each may take `most` tokens, and all together `room`. A passage of two stands in the newer.
        """
        tokens, edits, more = list(tail.tokens), dict(tail.edits), dict(tail.more)
        near = [at for at in range(first, len(tokens)) if tokens[at]]
        found = [(at, more[id]) for at in near if (id := live.entries[at].id) in more]
        sizes = {at: self._counter.count_text(text) - tokens[at] for at, text in found}
        fits = accumulate(sorted(size for size in sizes.values() if size < most))
        count = sum(1 for _ in takewhile(lambda size: size <= room, fits))
        back = sorted(sorted(sizes, key=lambda at: (sizes[at], -at))[:count], reverse=True)
        said = KnownPassages((), self._less.passages)
        for at in back:
            unit = self._units[live.entries[at].id]
            text = more.pop(unit.entry_id)
            edit, tokens[at] = self._edits.make(unit, self._once(unit, text, said, " below"), 0, 1)
            del edits[unit.entry_id]
            edits |= {unit.entry_id: edit} if edit is not None else {}
        return replace(tail, tokens=tuple(tokens), edits=edits, more=more)

    def verbatim(self, live: LiveConversation) -> frozenset[str]:
        """The entries of `live` that always stay unchanged: the newest exchange."""
        units = (self._units.get(entry.id) for entry in live.entries)
        return frozenset(
            u.entry_id for u in units if u is not None and u.position >= self._less.newest
        )

    def entries_as_written(self, live: LiveConversation, tail: Tail, cut: int) -> frozenset[str]:
        """The entries of `live` from `cut` on whose text and calls the model sees as written."""
        edited = {u.entry_id for u in self._order if u.edited_tier != UNEDITED}
        shorter = {id for id, edit in tail.edits.items() if not self._is_as_written(id, edit)}
        return frozenset(entry.id for entry in live.entries[cut:]) - edited - shorter

    def _is_as_written(self, entry_id: str, edit: ContextEditEntry) -> bool:
        """Whether `edit` removes nothing but thinking."""
        message = self._units[entry_id].message
        is_reply = isinstance(message, AssistantMessage)
        return is_reply and edit.replacement == without_thinking(message)

    def shorten_newest(
        self, live: LiveConversation, tail: Tail, first: int, room: int, on_disk: ReadFile | None
    ) -> Tail:
        """`tail` with the entries from `first` on, which the model has not answered, in `room`.

        What can be had again goes first: lines that another output has, then the middle of files
        that the disk has as they were shown, then the middle of other outputs. The rest stays, even
        if it exceeds `room`.
        """
        last = len(live.entries)
        units = [self._units.get(entry.id) for entry in live.entries[first:]]
        if sum(tail.tokens[first:]) > room:
            tail = self._without_repeats(tail, first, units)
        elsewhere = frozenset(
            unit.entry_id
            for unit in units
            if unit and unit.output and not _is_on_disk(unit.output, on_disk)
        )
        for whole in (elsewhere, frozenset[str]()):
            if sum(tail.tokens[first:]) > room:
                tail = self.fill(live, tail, first, last, room, whole)
        return tail

    def _without_repeats(self, tail: Tail, first: int, units: Sequence[Unit | None]) -> Tail:
        """`tail` with each passage of the outputs in `units`, from `first` on, only once.

        Of a view of a file and another output that shows the same lines, the view keeps them.
        """
        tokens, edits = list(tail.tokens), dict(tail.edits)
        said = KnownPassages((), self._less.passages)
        outputs = [
            (file_view(unit.output) is None, -tail.tokens[at], at, unit, unit.output)
            for at, unit in enumerate(units, first)
            if unit is not None and unit.output is not None and unit.entry_id not in edits
        ]
        for *_, at, unit, output in sorted(outputs, key=lambda one: one[:3]):
            if edit := self._edit(unit, self._once(unit, output.text, said), 0):
                edits[unit.entry_id], tokens[at] = edit
        return replace(tail, tokens=tuple(tokens), edits=edits)

    def _once(self, unit: Unit, text: str, said: KnownPassages, where: str = "") -> Content:
        """The `text` of an output without passages that were `said`; its own are then said, too."""
        facts = self._less.facts[unit.entry_id]
        left, _ = said.without(text, files=facts.files)
        said.add(text, Place(f"{facts.label}{where}", files=facts.files))
        is_marked = left == text or recall_mark(unit.entry_id) in left
        return with_images(left if is_marked else with_recall(left, unit.entry_id), unit.message)

    def fill(
        self,
        live: LiveConversation,
        tail: Tail,
        first: int,
        last: int,
        room: int,
        whole: frozenset[str] = frozenset(),
    ) -> Tail:
        """`tail` with the entries `first` to `last` shortened to `room`, except `whole` ones.

        First, long texts that calls write or run become one line, and those of replies are cut to
        their two ends; then outputs are. What is left may be larger than `room`.
        """
        tokens, edits = list(tail.tokens), dict(tail.edits)
        for at in range(first, last):
            unit = self._units.get(live.entries[at].id)
            if unit is not None and isinstance(left := _left_of(unit, edits), AssistantMessage):
                most = (_LONG_ARGUMENT_TOKENS, _LONG_NOTE_TOKENS)
                parts = shorter_reply(unit, left, *most, self._counter, spared=("other",))
                if parts is not None and (edit := self._edit(unit, parts, 1)):
                    edits[unit.entry_id], tokens[at] = edit
        long = [at for at in range(first, last) if self._can_be_cut(live, tail, at, whole)]
        fixed = sum(tokens[first:last]) - sum(tokens[at] for at in long)
        share = equal_share([tokens[at] for at in long], room - fixed)
        for at in long:
            unit = self._units[live.entries[at].id]
            if tokens[at] <= share or unit.output is None:
                continue
            left = max(share, _LEAST_OUTPUT_TOKENS) - _MARK_TOKENS
            ends = max(int(left / (2 * SLACK)), _LEAST_END_TOKENS)
            text = message.text if (message := _left_of(unit, edits)) else unit.output.text
            size = self._counter.count_text(text)
            cut = keep_ends(
                text, tokens=size, end_tokens=ends, entry_id=unit.entry_id, counter=self._counter
            )
            if edit := self._edit(unit, cut, 1):
                edits[unit.entry_id], tokens[at] = edit
        return replace(tail, tokens=tuple(tokens), edits=edits)

    def _can_be_cut(
        self, live: LiveConversation, tail: Tail, at: int, whole: frozenset[str]
    ) -> bool:
        entry_id = live.entries[at].id
        if entry_id in whole:
            return False
        unit = self._units.get(entry_id)
        is_output = unit is not None and unit.output is not None
        return is_output and tail.tokens[at] > _LEAST_OUTPUT_TOKENS

    def _edit(self, unit: Unit, content: Content, tier: int) -> tuple[ContextEditEntry, int] | None:
        """The edit that replaces `unit` with `content`, and its size.

        None if it saves hardly anything, unless it removes outdated lines, or thinking, whose
        signature is larger than its text.
        """
        message = unit.message
        thinks = isinstance(message, AssistantMessage) and message.content != without_thinking(
            message
        )
        is_needed = thinks or (isinstance(content, str) and EDITED in content)
        least = -inf if is_needed else _LEAST_SAVING_TOKENS
        edit, tokens = self._edits.make(unit, content, tier, least)
        return (edit, tokens) if edit is not None else None


def _left_of(unit: Unit, edits: Mapping[str, ContextEditEntry]) -> Message | None:
    """The message of `unit` with its edit; None if that removes it."""
    edit = edits.get(unit.entry_id)
    return unit.message if edit is None else apply_edit(unit.message, edit)


def _is_on_disk(output: Output, on_disk: ReadFile | None) -> bool:
    """Whether `output` shows lines of a file as the disk has them."""
    view = file_view(output)
    if view is None or on_disk is None or (text := on_disk(view.path)) is None:
        return False
    return "\n".join(view.lines) in text
