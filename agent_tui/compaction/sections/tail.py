"""The newest messages as they stay: what is shown elsewhere becomes one line."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, groupby, takewhile
from math import inf
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TypeAlias

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.plan import LiveConversation, LiveEntry
from agent_tui.compaction.sections.commands import (
    PassedRuns,
    has_several_results,
    is_check,
    is_commit,
    is_looking_around,
    message_of_commit,
    runs_of,
    shows_uncommitted,
)
from agent_tui.compaction.sections.failures import has_failed
from agent_tui.compaction.sections.file_states import COMMIT_LINE, MODE_LINE, FileState, ReadFile
from agent_tui.compaction.sections.file_views import (
    OLD_NAMES,
    FileView,
    edits_in,
    file_in_command,
    file_view,
    plain_lines,
    text_of_change,
)
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.person import equal_share
from agent_tui.compaction.sections.spent import find_spent, lines_used, names_in
from agent_tui.compaction.sections.state import STEP_NAMES, steps_in_plan
from agent_tui.compaction.tiers.describe import action_label, describe, outcome_line
from agent_tui.compaction.tiers.edits import EditMaker
from agent_tui.compaction.tiers.forms import (
    SLACK,
    keep_ends,
    left_out_mark,
    shorter_reply,
    with_images,
    without_long_texts,
    without_thinking,
)
from agent_tui.compaction.tiers.model import UNEDITED, Content, Unit
from agent_tui.compaction.tiers.units import newest_exchange
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.omissions import recall_mark, shorten_middle
from agent_tui.sessions.actions import Action, Output
from agent_tui.sessions.context import apply_edit
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.sessions.outputs import action_of, without_progress
from agent_tui.tokens import TokenCounter

_SHOWING = ("read", "write", "edit")
"""Actions whose output may show the file; some agents also show it after writes and edits."""

_LISTING = frozenset({"ls", "find", "glob", "grep", "search"})
_MESSAGES_SINCE = 20
"""What was not used of a list in so many messages is left out."""

_SHORT_ARGUMENT_TOKENS = 60
_LEAST_SAVING_TOKENS = 24
_LEAST_END_TOKENS = 60
_MARK_TOKENS = 40
_LEAST_OUTPUT_TOKENS = 200
_LONG_ARGUMENT_TOKENS, _LONG_NOTE_TOKENS = 400, 600
_LABEL_CHARS = 60
_LONG_LINE_CHARS, _LINE_ENDS_CHARS = 1_000, 240
"""A longer line in a command's output is generated text: its two ends are enough."""

_EDITED = "(lines edited since)"
_AS_WRITTEN = "(as written above)"
_STANDS = "(lines shown in {places})"
_OFFERED = "(the summary shows what is needed of {}) {}"
_Passage: TypeAlias = tuple[str, ...]
_PASSAGE_LINES = 5
"""Fewer lines can be equal by chance."""

_LEAST_RUN_LINES = 3
"""Of lines that a file is shown with, fewer take no more space than a mark."""

_CLOSING_CHARS = 3
"""A line without more characters, such as ``end`` or ``});``, says nothing alone."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The size of each live entry if it stays, and the edits that achieve it.

    `files` maps the id of an edited entry to the files that it now only refers to. `changes` are
    the files of the calls whose change stands elsewhere, by the call's id.
    """

    tokens: tuple[int, ...]
    edits: Mapping[str, ContextEditEntry]
    files: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    changes: Mapping[str, str] = field(default_factory=dict[str, str])

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
        self._facts = {unit.entry_id: _Facts(unit, folders) for unit in units}
        self._passages = _Passages()
        results = (unit.message for unit in units if isinstance(unit.message, ToolResultMessage))
        self._failed = {result.tool_call_id for result in results if result.is_error}
        self._edits = EditMaker(units, batch, counter)
        self._counter = counter

    @cached_property
    def _newest(self) -> int:
        """The position at which the newest exchange begins."""
        return newest_exchange([unit.message for unit in self._order])

    @cached_property
    def _committed(self) -> int:
        """The position of the newest commit; -1 if there is none."""
        commits = (u.position for u in self._order if u.output and is_commit(u.output))
        return max(commits, default=-1)

    def _pointer(self, unit: Unit, output: Output, passed: PassedRuns) -> str | None:
        """The line for an output that is repeated later, or of which only the result matters."""
        if (line := self._edits.pointers.get(unit.position)) is not None:
            return line
        command = output.action.command
        if unit.position < self._committed and shows_uncommitted(output):
            line = "(committed since)"
        elif is_commit(output) and (made := COMMIT_LINE.search(output.text)):
            line = MODE_LINE.sub("", output.text[made.start() :]).rstrip()
        elif is_check(command) and has_failed(output):
            is_solved = passed.cover(runs_of(command))
            return describe(output, unit.entry_id, "passed later") if is_solved else None
        elif is_check(command):
            line = outcome_line(output)
            if has_several_results(command) and unit.position > self._committed:
                line = without_progress(output.text).rstrip()
                return _with_recall(line, unit.entry_id) if line != output.text.rstrip() else None
        return f"{line} {recall_mark(unit.entry_id)}" if line else None

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
        elsewhere = _Elsewhere(shown, known, self._passages)
        for at in range(len(live.entries) - 1, -1, -1):
            if room < 0:
                break
            if (unit := self._units.get(live.entries[at].id)) is not None:
                is_offered = unit.entry_id in offered.get(self._facts[unit.entry_id].path, ())
                content, paths = self._content(unit, elsewhere, is_offered=is_offered)
                edit = self._edit(unit, content, 0) if content is not None else None
                if edit is not None:
                    edits[unit.entry_id], tokens[at] = edit
                    files[unit.entry_id] = paths
                if unit.output is None:
                    elsewhere.used |= self._facts[unit.entry_id].names
                elif is_check(command := unit.output.action.command):
                    elsewhere.passed.add(() if has_failed(unit.output) else runs_of(command))
                for call in self._facts[unit.entry_id].calls:
                    if call.id not in self._failed:
                        changes |= {call.id: call.path} if elsewhere.has_change(call) else {}
                        elsewhere.note_replaced(call)
                self._note_said(unit, content if edit else None, elsewhere.said, changes.keys())
            room -= tokens[at]
        return Tail(tuple(tokens), edits, files, changes)

    def leave_out_spent(self, live: LiveConversation, tail: Tail, room: int) -> Tail:
        """`tail` of `live` without exchanges of which nothing is needed; see `find_spent`.

        Only the newest messages that fill `room` are looked at.
        """
        sizes_from_end = accumulate(reversed(tail.tokens))
        near = sum(1 for _ in takewhile(lambda size: size <= room, sizes_from_end))
        near_ids = {entry.id for entry in live.entries[len(live.entries) - near :]}
        left = {id: str(edit.replacement) for id, edit in tail.edits.items()}
        before = [unit for unit in self._order[: self._newest] if unit.entry_id in near_ids]
        spent = [*find_spent(before, left, tail.changes, self._committed)]
        gone = {unit.entry_id: self._edits.entry(unit, None, 0) for unit in spent}
        sizes = zip(live.entries, tail.tokens, strict=True)
        tokens = tuple(0 if entry.id in gone else size for entry, size in sizes)
        return replace(tail, tokens=tokens, edits={**tail.edits, **gone})

    def _content(
        self, unit: Unit, elsewhere: "_Elsewhere", *, is_offered: bool
    ) -> tuple[Content, frozenset[str]]:
        """What replaces `unit` (None to keep it), and the files that show what is removed."""
        facts, message = self._facts[unit.entry_id], unit.message
        if unit.position >= self._newest:
            elsewhere = _Elsewhere({}, (), self._passages)
            if unit.output is None:
                return None, frozenset()
        elif unit.output is not None and (
            pointer := self._pointer(unit, unit.output, elsewhere.passed)
        ):
            return pointer, frozenset()
        if unit.output is not None:
            is_offered &= facts.view is not None and unit.position < self._newest
            if is_offered and not elsewhere.has_view(unit.output, facts):
                mark = _OFFERED.format(facts.path, recall_mark(unit.entry_id))
                return mark, frozenset({facts.path} & elsewhere.shown.keys())
            return _shorten_output(unit, unit.output, facts, elsewhere, self._newest)
        if isinstance(message, AssistantMessage):
            gone = {
                call.id: call.path
                for call in facts.calls
                if call.id not in self._failed or call.path in elsewhere.shown
                if elsewhere.has_change(call)
            }
            paths = frozenset(elsewhere.shown.keys() & gone.values())
            return self._parts(message, unit, gone.keys(), elsewhere.said), paths
        return None, frozenset()

    def _note_said(
        self, unit: Unit, content: Content, said: "_Said", changes: Collection[str]
    ) -> None:
        """Add to `said` what `unit` shows, or is left of it in `content`, without `changes`."""
        facts = self._facts[unit.entry_id]
        if unit.output is not None:
            left = content if isinstance(content, str) else unit.output.text
            said.add(left, _Place(f"{facts.label} below"))
        message = unit.message
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        calls = calls if content is None else _calls_in(content)
        for label, text in _texts_of((one for one in calls if one.id not in changes), facts):
            said.add(text, _Place(f"your call {label} below"))

    def verbatim(self, live: LiveConversation) -> frozenset[str]:
        """The entries of `live` that always stay unchanged: the newest exchange."""
        units = (self._units.get(entry.id) for entry in live.entries)
        return frozenset(u.entry_id for u in units if u is not None and u.position >= self._newest)

    def entries_as_written(self, live: LiveConversation, tail: Tail, cut: int) -> frozenset[str]:
        """The entries of `live` from `cut` on that the model sees as originally written."""
        entries = [entry.id for entry in live.entries[cut:] if entry.id not in tail.edits]
        edited = {u.entry_id for u in self._order if u.edited_tier != UNEDITED}
        return frozenset(entries) - edited

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
                tail = self._cut_middles(live, tail, first, last, room, whole)
        return tail

    def _without_repeats(self, tail: Tail, first: int, units: Sequence[Unit | None]) -> Tail:
        """`tail` with each passage of the outputs in `units`, from `first` on, only once.

        Of a view of a file and another output that shows the same lines, the view keeps them.
        """
        tokens, edits = list(tail.tokens), dict(tail.edits)
        said = _Said((), self._passages)
        outputs = [
            (file_view(unit.output) is None, -tail.tokens[at], at, unit, unit.output)
            for at, unit in enumerate(units, first)
            if unit is not None and unit.output is not None and unit.entry_id not in edits
        ]
        for *_, at, unit, output in sorted(outputs, key=lambda one: one[:3]):
            text, _ = said.without(output.text)
            text = _with_recall(text, unit.entry_id)
            if edit := self._edit(unit, with_images(text, unit.message), 0):
                edits[unit.entry_id], tokens[at] = edit
            said.add(output.text, _Place(self._facts[unit.entry_id].label))
        return replace(tail, tokens=tuple(tokens), edits=edits)

    def fill(
        self,
        live: LiveConversation,
        tail: Tail,
        first: int,
        last: int,
        room: int,
        whole: frozenset[str] = frozenset(),
    ) -> Tail | None:
        """`tail` with the entries `first` to `last` shortened to fit `room`, except `whole` ones.

        First, long texts that calls write or run become one line, and those of replies are cut to
        their two ends; then outputs are. None if that is not enough.
        """
        tail = self._cut_middles(live, tail, first, last, room, whole)
        return tail if sum(tail.tokens[first:last]) <= room else None

    def _cut_middles(
        self,
        live: LiveConversation,
        tail: Tail,
        first: int,
        last: int,
        room: int,
        whole: frozenset[str],
    ) -> Tail:
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

    def _parts(
        self, message: AssistantMessage, unit: Unit, gone: Set[str], said: "_Said"
    ) -> Content:
        """`message` without thinking and text shown elsewhere, and with replaced texts.

        Elsewhere is in a later call, or for the calls that are `gone`, in their file.
        """
        entry_id = unit.entry_id
        parts: list[TextContent | ToolCall] = []
        for part in without_thinking(message):
            if isinstance(part, ToolCall) and part.id in gone:
                part = self._without_written(part, entry_id)
            elif isinstance(part, ToolCall) and steps_in_plan(part.arguments):
                part = self._without_plan(part, entry_id)
            elif isinstance(part, ToolCall) and (texts := _texts_of_other(part)):
                if part.id not in self._failed:
                    part = self._without_body(part, unit)
                    texts = _texts_of_other(part)
                for whole in texts:
                    first, _, rest = whole.partition("\n")
                    left, _ = said.without(rest)
                    if left != rest:
                        part = _with_text(part, whole, _with_recall(f"{first}\n{left}", entry_id))
            elif isinstance(part, ToolCall) and part.id not in self._failed:
                limit = _SHORT_ARGUMENT_TOKENS
                part = without_long_texts(part, limit, entry_id, self._counter, names=OLD_NAMES)
            parts.append(part)
        return tuple(parts) if tuple(parts) != message.content else None

    def _without_written(self, call: ToolCall, entry_id: str) -> ToolCall:
        action = action_of(call)
        if not action.command:
            return without_long_texts(call, _SHORT_ARGUMENT_TOKENS, entry_id, self._counter)
        _, body = file_in_command(action.command) or ("", "")
        mark = left_out_mark(self._counter.count_text(body), entry_id)
        return _with_text(call, body, mark)

    def _without_plan(self, call: ToolCall, entry_id: str) -> ToolCall:
        """`call` with one line for the whole plan that it writes: the summary has the newest."""
        steps = steps_in_plan(call.arguments)
        tokens = self._counter.count_text(str(steps))
        if tokens <= _SHORT_ARGUMENT_TOKENS or not isinstance(steps[0], dict):
            return call
        text = left_out_mark(tokens, entry_id)
        line = {name: text if name in STEP_NAMES else value for name, value in steps[0].items()}
        arguments: JsonObject = {
            name: [line] if value == steps else value for name, value in call.arguments.items()
        }
        return call.model_copy(update={"arguments": arguments})

    def _without_body(self, call: ToolCall, unit: Unit) -> ToolCall:
        """`call` with the first line of a commit's message, or of a command committed since."""
        command = action_of(call).command
        text = message_of_commit(command) or (command if unit.position < self._committed else "")
        subject, _, body = text.partition("\n")
        tokens = self._counter.count_text(body)
        if not subject or tokens <= _SHORT_ARGUMENT_TOKENS:
            return call
        return _with_text(call, body, left_out_mark(tokens, unit.entry_id))

    def _edit(self, unit: Unit, content: Content, tier: int) -> tuple[ContextEditEntry, int] | None:
        """The edit that replaces `unit` with `content`, and its size.

        None if it saves hardly anything, unless it removes outdated lines.
        """
        is_needed = isinstance(content, str) and _EDITED in content
        least = -inf if is_needed else _LEAST_SAVING_TOKENS
        edit, tokens = self._edits.make(unit, content, tier, least)
        return (edit, tokens) if edit is not None else None


def _left_of(unit: Unit, edits: Mapping[str, ContextEditEntry]) -> Message | None:
    """The message of `unit` with its edit; None if that removes it."""
    edit = edits.get(unit.entry_id)
    return unit.message if edit is None else apply_edit(unit.message, edit)


def _with_text(call: ToolCall, old: str, new: str) -> ToolCall:
    """`call` with `old` replaced by `new` in its arguments."""
    if not old or old == new:
        return call
    arguments: JsonObject = {
        name: value.replace(old, new) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    return call.model_copy(update={"arguments": arguments})


def _shorten_output(
    unit: Unit, output: Output, facts: "_Facts", elsewhere: "_Elsewhere", newest: int
) -> tuple[Content, frozenset[str]]:
    """What replaces `output` (None to keep it), and the files that show what is removed."""
    path, text = facts.path, output.text
    if elsewhere.has_view(output, facts):
        where = f"{path} is shown in the summary" if path in elsewhere.shown else "edited since"
        return f"({where}) {recall_mark(unit.entry_id)}", frozenset({path} & elsewhere.shown.keys())
    if output.action.command and facts.view is None:
        shorten = str.rstrip if unit.position >= newest else _shorten_line
        text = "\n".join(map(shorten, text.split("\n")))
    command, tool = output.action.command, output.action.tool.lower()
    lists = is_looking_around(command) if command else tool in _LISTING
    if lists and facts.view is None and unit.position < newest - _MESSAGES_SINCE:
        text = lines_used(text, elsewhere.used)
    if output.action.kind in ("write", "edit"):
        own = _Said((), elsewhere.said.passages)
        own.add(text_of_change(output.action), _Place(""))
        text, _ = own.without(text, _AS_WRITTEN)
    text, found = elsewhere.said.without(text, lines=elsewhere.places_in_view(facts))
    if text == output.text:
        return None, found
    return _with_recall(text, unit.entry_id), found


def _with_recall(text: str, entry_id: str) -> str:
    """`text`, of which something is left out, with the id of the whole."""
    is_mark = text.rpartition("\n")[2].startswith((_AS_WRITTEN, _EDITED, _STANDS.partition("{")[0]))
    return f"{text}{' ' if is_mark else chr(10)}{recall_mark(entry_id)}"


def _shorten_line(line: str) -> str:
    """`line` without blanks at its end, and cut to its two ends if it is generated text."""
    if len(line) <= _LONG_LINE_CHARS:
        return line.rstrip()
    return shorten_middle(" ".join(line.split()), _LINE_ENDS_CHARS)


def _is_on_disk(output: Output, on_disk: ReadFile | None) -> bool:
    """Whether `output` shows lines of a file as the disk has them."""
    view = file_view(output)
    if view is None or on_disk is None or (text := on_disk(view.path)) is None:
        return False
    return "\n".join(view.lines) in text


class _Call:
    """What a call writes: the file at `path`, normalized, and the text; both may be empty."""

    def __init__(self, call: ToolCall, folders: Sequence[str]) -> None:
        action = action_of(call)
        path, self.text = file_in_command(action.command) or (action.path, text_of_change(action))
        self.id, self.path = call.id, normalise_path(path, folders) if path else ""
        edits = edits_in(action.arguments) if action.kind == "edit" else ()
        self.replaced = frozenset(line for old, _, _ in edits for line in old.split("\n"))
        self.lines = frozenset(filter(_says_something, self.text.split("\n")))


class _Facts:
    """What a message shows and writes of files, whatever else the context shows."""

    def __init__(self, unit: Unit, folders: Sequence[str]) -> None:
        self._unit, self._folders = unit, folders

    @cached_property
    def view(self) -> FileView | None:
        """The view of a file that the message is."""
        return file_view(self._unit.output) if self._unit.output is not None else None

    @property
    def command(self) -> str:
        """The command that the message is the output of; empty if it is none."""
        return self._unit.output.action.command if self._unit.output is not None else ""

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in its text, and in what its calls write, run or ask."""
        return names_in(_words_of(self._unit.message))

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines of the view."""
        return frozenset(self.view.lines) if self.view is not None else frozenset()

    @cached_property
    def path(self) -> str:
        """The normalized path of the file that the message is about; empty if there is none."""
        output = self._unit.output
        path = self.view.path.strip("'\"") if self.view else output.action.path if output else ""
        return normalise_path(path, self._folders)

    @cached_property
    def label(self) -> str:
        """What the output came of."""
        output = self._unit.output
        return _label(output.action, self.path) if output is not None else ""

    @cached_property
    def calls(self) -> tuple[_Call, ...]:
        """What the calls of the message write."""
        message = self._unit.message
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        return tuple(_Call(call, self._folders) for call in calls)


def _calls_in(content: Content) -> Iterator[ToolCall]:
    """The calls in what replaces a message."""
    parts = content if isinstance(content, tuple) else ()
    return (part for part in parts if isinstance(part, ToolCall))


def _texts_of(calls: Iterable[ToolCall], facts: _Facts) -> Iterator[tuple[str, str]]:
    """Label and text of what `calls` of a message write, run or send."""
    paths = {call.id: call.path for call in facts.calls}
    for call in calls:
        action = action_of(call)
        for text in _texts_of_other(call) or [text_of_change(action)]:
            yield _label(action, paths.get(call.id, "")), text


def _label(action: Action, path: str) -> str:
    """The action in a few words, with the normalized `path` of its file."""
    if action.command:
        return action_label(action, _LABEL_CHARS)
    return f"{action.tool} {path}".strip()


class _Passages:
    """The passages of texts, each text split once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Passage, ...]] = {}

    def of(self, text: str) -> tuple[_Passage, ...]:
        """Each run of `_PASSAGE_LINES` lines of `text` without line numbers, by its first line."""
        if (known := self._known.get(text)) is None:
            lines = [plain for _, plain in plain_lines(text)]
            starts = range(len(lines) - _PASSAGE_LINES + 1)
            known = tuple(tuple(lines[at : at + _PASSAGE_LINES]) for at in starts)
            self._known[text] = known
        return known


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a passage stands: in a message, or in the file at `path` in the summary."""

    name: str
    path: str = ""


_GONE = _Place(_EDITED)
"""The place of lines that were edited since."""

_NOWHERE: Mapping[str, _Place] = {}


class _Said:
    """The passages already in the context, and where."""

    def __init__(self, files: Iterable[ShownFile], passages: _Passages) -> None:
        self.passages = passages
        self._places: dict[_Passage, _Place] = {}
        for file in files:
            self.add(file.text, _Place(f"{file.path} above", file.path))

    def add(self, text: str, place: _Place) -> None:
        """Add `text`, which stands at `place`."""
        for passage in self.passages.of(text):
            self._places.setdefault(passage, place)

    def without(
        self, text: str, mark: str = _STANDS, lines: Mapping[str, _Place] = _NOWHERE
    ) -> tuple[str, frozenset[str]]:
        """`text` without what stands elsewhere, marked, and the files that have it.

        Args:
            text: The text.
            mark: What replaces a run of lines, with the `places` that have them.
            lines: Where single lines stand; `_GONE` for those that stand nowhere.
        """
        known = {
            at: place
            for at, forms in enumerate(plain_lines(text) if lines else ())
            if (place := lines.get(forms[1]) or lines.get(forms[0]))
        }
        for at, passage in enumerate(self.passages.of(text)):
            if (place := self._places.get(passage)) is not None:
                known.update((at + line, place) for line in range(len(passage)))
        if not known:
            return text, frozenset()
        parts: list[str] = []
        paths: set[str] = set()
        for is_known, run in _runs_of_known(text.split("\n"), known):
            places = dict.fromkeys(known[at] for at, _ in run if at in known)
            if not is_known or (_GONE not in places and len(run) < _LEAST_RUN_LINES):
                parts += [line for _, line in run]
                continue
            names = [place.name for place in places if place != _GONE]
            parts.append(mark.format(places=", ".join(names)) if names else _EDITED)
            paths.update(place.path for place in places if place.path)
        return "\n".join(parts), frozenset(paths)


def without_repeats(texts: Sequence[tuple[str, str, bool]]) -> list[str]:
    """The `texts`, oldest first, without passages that a later one has: its name stands there.

    Each has its name (empty if nothing may refer to it) and whether it must stay whole.
    """
    said = _Said((), _Passages())
    left: list[str] = []
    for name, text, is_whole in reversed(texts):
        left.append(text if is_whole else said.without(text)[0])
        said.add(text if name else "", _Place(name))
    return left[::-1]


def _runs_of_known(
    lines: Sequence[str], known: Mapping[int, _Place]
) -> Iterator[tuple[bool, list[tuple[int, str]]]]:
    """Runs of `lines` by whether they are `known`, with what says nothing between two of those."""
    between: list[tuple[int, str]] = []
    runs: list[tuple[bool, list[tuple[int, str]]]] = []
    for is_known, group in groupby(enumerate(lines), lambda line: line[0] in known):
        run = list(group)
        is_gap = not any(_says_something(plain_lines(line)[0][1]) for _, line in run)
        if is_known and runs and between:
            runs[-1][1].extend([*between, *run])
            between = []
        elif not is_known and is_gap and runs:
            between = run
        else:
            runs.append((is_known, run))
    yield from runs
    if between:
        yield False, between


def _says_something(line: str) -> bool:
    """Whether `line` is neither blank nor only closes a block."""
    return len(line.strip()) > _CLOSING_CHARS


class _Elsewhere:
    """What stands elsewhere than in a message.

    Args:
        shown: The files that the summary shows, by path.
        known: The files as they are now.
        passages: Splits texts.

    Attributes:
        said: The passages that stand in `shown` or behind the message.
        passed: What the checks behind the message ran that passed.
        used: The names that messages behind it have, apart from outputs.
    """

    def __init__(
        self, shown: Mapping[str, ShownFile], known: Iterable[FileState], passages: _Passages
    ) -> None:
        self.shown = shown
        self.said = _Said(shown.values(), passages)
        self.passed = PassedRuns()
        self.used: set[str] = set()
        self._files = {file.path: file for file in known}
        self._replaced: dict[str, frozenset[str]] = {}
        self._now: dict[str, frozenset[str]] = {}

    def has_view(self, output: Output, facts: _Facts) -> bool:
        """Whether all that an output shows of a file is shown of it, or no longer in the file.

        Of a file that was changed since, the summary shows what the work is about.
        """
        file = self.shown.get(facts.path)
        is_seen = file is not None and (file.is_whole or facts.path in self._replaced)
        if is_seen and (facts.view is not None or output.action.kind in _SHOWING):
            return not output.has_failed
        lines = frozenset(filter(_says_something, facts.lines))
        return bool(lines) and lines <= self.places_in_view(facts).keys()

    def has_change(self, call: _Call) -> bool:
        """Whether what is left in its file of the text that `call` writes is shown or committed.

        If the file was changed outside, git may have something else.
        """
        state, file = self._files.get(call.path), self.shown.get(call.path)
        if not call.text:
            return False
        if file is not None and file.is_whole:
            return True
        if state is None or not state.runs:
            return False
        if state.is_committed and not state.is_changed_outside:
            return True
        return call.lines & self._lines_now(call.path) <= self._lines_shown(call.path)

    def note_replaced(self, call: _Call) -> None:
        """Note the lines that `call` replaced in its file, for the messages before it."""
        self._replaced[call.path] = self._replaced.get(call.path, frozenset()) | call.replaced

    def places_in_view(self, facts: _Facts) -> Mapping[str, _Place]:
        """Where the lines stand that a message shows of a file; `_GONE` if they were edited.

        A command with several results may show lines of each file that it names.
        """
        if facts.view is None and (command := facts.command):
            named = (path for path in self._replaced if PurePosixPath(path).name in command)
            gone = (line for path in named for line in self._replaced[path] - self._lines_now(path))
            return {line: _GONE for line in gone if _says_something(line)}
        path, file = facts.path, self._files.get(facts.path)
        if facts.view is None or (file is None and path not in self.shown):
            return _NOWHERE
        place = _Place(f"{path} above", path)
        places = dict.fromkeys(facts.lines & self._lines_shown(path), place)
        if file is not None and file.is_changed:
            gone = facts.lines - self._lines_now(path) - {""}
            places |= dict.fromkeys(gone - places.keys(), _GONE)
        return places

    def _lines_now(self, path: str) -> frozenset[str]:
        """The lines that a known file has now."""
        if path not in self._now:
            file = self._files.get(path)
            self._now[path] = frozenset(file.text.split("\n") if file is not None else ())
        return self._now[path]

    def _lines_shown(self, path: str) -> frozenset[str]:
        """Those that the summary shows."""
        file = self.shown.get(path)
        if file is None:
            return frozenset()
        return self._lines_now(path) if file.is_whole else frozenset(file.text.split("\n"))


def _words_of(message: Message) -> str:
    """The text of `message`, and what its calls write, run or ask."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    values = (str(value) for call in calls for value in call.arguments.values())
    return "\n".join((message.text, *values))


def _texts_of_other(call: ToolCall) -> list[str]:
    """The command of `call`, or what it sends if it neither runs a command nor touches a file."""
    action = action_of(call)
    if action.command or action.kind != "other":
        return [action.command] if action.command else []
    return [text for text in call.arguments.values() if isinstance(text, str)]
