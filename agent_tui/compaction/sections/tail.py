"""The newest messages as they stay: what is shown elsewhere becomes one line."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.plan import LiveConversation, LiveEntry
from agent_tui.compaction.sections.files import (
    OLD_NAMES,
    FileState,
    ReadFile,
    ShownFile,
    file_in_command,
    file_view,
    plain_lines,
    text_of_change,
)
from agent_tui.compaction.sections.person import equal_share
from agent_tui.compaction.tiers.forms import (
    SLACK,
    keep_ends,
    left_out_mark,
    pointers_to_newer,
    shorter_reply,
    with_images,
    without_long_texts,
    without_thinking,
)
from agent_tui.compaction.tiers.model import UNEDITED, Content, Unit
from agent_tui.compaction.tiers.units import newest_exchange
from agent_tui.file_outline import outline
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.omissions import omission_mark, recall_mark, shorten_middle
from agent_tui.sessions.actions import Output
from agent_tui.sessions.context import apply_edit
from agent_tui.sessions.entries import ContextEditEntry, timestamp_now
from agent_tui.sessions.outputs import action_of
from agent_tui.tokens import TokenCounter

_SHOWING = ("read", "write", "edit")
"""Actions whose output may show the file; some agents also show it after writes and edits."""

_SHORT_ARGUMENT_TOKENS = 60
_LEAST_SAVING_TOKENS = 24
_LEAST_END_TOKENS = 60
_MARK_TOKENS = 40
_LEAST_OUTPUT_TOKENS = 200
_LONG_ARGUMENT_TOKENS, _LONG_NOTE_TOKENS = 400, 600
_LONG_LINE_CHARS = 1_000
"""A longer line in a command's output is generated text: its two ends are enough."""

_EDITED = "(lines edited since)"
_Passage: TypeAlias = tuple[str, ...]
_PASSAGE_LINES = 5
"""Fewer lines can be equal by chance."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The size of each live entry if it stays, and the edits that achieve it.

    `files` maps the id of an edited entry to the files that it now only refers to.
    """

    tokens: tuple[int, ...]
    edits: Mapping[str, ContextEditEntry]
    files: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def files_to_show(self, entries: Iterable[LiveEntry]) -> frozenset[str]:
        """The files that must be shown if `entries` stay."""
        return frozenset(path for one in entries for path in self.files.get(one.id, ()))


class TailEditor:
    """Makes edits of messages that stay. All edits have the same batch.

    Args:
        units: The messages of the context that can be changed.
        batch: The batch id of the edits.
        counter: Counts their tokens.
    """

    def __init__(self, units: Sequence[Unit], batch: str, counter: TokenCounter) -> None:
        self._units = {unit.entry_id: unit for unit in units}
        self._order = units
        results = (unit.message for unit in units if isinstance(unit.message, ToolResultMessage))
        self._failed = {result.tool_call_id for result in results if result.is_error}
        self._batch = batch
        self._counter = counter
        self._timestamp = timestamp_now()

    def lines_for_what_stands_elsewhere(
        self,
        live: LiveConversation,
        shown: Mapping[str, ShownFile],
        folders: Sequence[str],
        room: int,
        known: Iterable[FileState] = (),
        written: Set[str] = frozenset(),
    ) -> Tail:
        """The edits of the newest messages of `live`, as many as fill `room` tokens.

        One line replaces a view of a file that has a newer view, an output that is repeated later,
        views and changes whose present lines are `shown` of their file, lines of views that a
        `known` file no longer has, and changes whose lines are in a file that is committed. Of a
        whole text in one of the `written` files, its outline stays. Thinking is removed from all
        but the newest reply. In the newest exchange only text that repeats its own call is
        replaced.
        """
        pointers = pointers_to_newer(self._order)
        newest = newest_exchange([unit.message for unit in self._order])
        tokens = list(live.tokens)
        edits: dict[str, ContextEditEntry] = {}
        files: dict[str, frozenset[str]] = {}
        said = _Said(shown.values())
        now = {f.path: frozenset(f.text.split("\n")) for f in known if f.is_changed}
        done = {f.path: now[f.path] for f in known if f.path in now and f.is_committed}
        for at in range(len(live.entries) - 1, -1, -1):
            if room < 0:
                break
            if (unit := self._units.get(live.entries[at].id)) is not None:
                is_newest = unit.position >= newest
                named = {} if is_newest else _files_named(unit, shown, now, folders)
                paths = frozenset(file.path for file in named.values())
                if unit.output is not None:
                    elsewhere = _Said(()) if is_newest else said
                    pointer = None if is_newest else pointers.get(unit.position)
                    lines = _lines_gone(unit.output, {} if is_newest else now, folders)
                    content, found = _line(
                        unit, unit.output, pointer, paths, elsewhere, lines, is_newest=is_newest
                    )
                    paths |= found
                elif isinstance(unit.message, AssistantMessage) and not is_newest:
                    calls = unit.message.tool_calls
                    gone = {call.id for call in calls if _is_in(call, done, folders)} | named.keys()
                    whole = {c.id for c in calls if _writes(c) and _is_in(c, now, folders, written)}
                    content = self._parts(unit.message, unit.entry_id, gone, whole, said)
                else:
                    content = None
                edit = self._edit(unit, content, 0) if content is not None else None
                if edit is not None:
                    edits[unit.entry_id], tokens[at] = edit
                    files[unit.entry_id] = paths
                if unit.output is not None:
                    said.add(content if edit and isinstance(content, str) else unit.output.text)
                for text in _texts(unit.message) if not named else ():
                    said.add(text)
            room -= tokens[at]
        return Tail(tuple(tokens), edits, files)

    def verbatim(self, live: LiveConversation) -> frozenset[str]:
        """The entries of `live` that always stay unchanged: the newest exchange."""
        newest = newest_exchange([unit.message for unit in self._order])
        units = (self._units.get(entry.id) for entry in live.entries)
        return frozenset(u.entry_id for u in units if u is not None and u.position >= newest)

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
        said = _Said(())
        outputs = [
            (file_view(unit.output) is None, -tail.tokens[at], at, unit, unit.output)
            for at, unit in enumerate(units, first)
            if unit is not None and unit.output is not None and unit.entry_id not in edits
        ]
        for *_, at, unit, output in sorted(outputs, key=lambda one: one[:3]):
            text, _ = said.without(output.text, _stands_mark)
            text = _with_recall(text, unit.entry_id)
            if edit := self._edit(unit, with_images(text, unit.message), 0):
                edits[unit.entry_id], tokens[at] = edit
            said.add(output.text)
        return Tail(tuple(tokens), edits, tail.files)

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
            if unit is not None and isinstance(unit.message, AssistantMessage):
                most = (_LONG_ARGUMENT_TOKENS, _LONG_NOTE_TOKENS)
                parts = shorter_reply(unit, unit.message, *most, self._counter, spared=("other",))
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
            edit = edits.get(unit.entry_id)
            made = edit.replacement if edit is not None else None
            text = made if isinstance(made, str) else unit.output.text
            size = self._counter.count_text(text)
            cut = keep_ends(
                text, tokens=size, end_tokens=ends, entry_id=unit.entry_id, counter=self._counter
            )
            if edit := self._edit(unit, cut, 1):
                edits[unit.entry_id], tokens[at] = edit
        return Tail(tuple(tokens), edits, tail.files)

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
        self,
        message: AssistantMessage,
        entry_id: str,
        gone: Set[str],
        outlined: Set[str],
        said: "_Said",
    ) -> Content:
        """`message` without thinking and text shown elsewhere, and with replaced texts.

        Elsewhere is in a later call, or for the calls that are `gone` or `outlined`, in their file.
        """
        parts: list[TextContent | ToolCall] = []
        for part in without_thinking(message):
            if isinstance(part, ToolCall) and part.id in gone:
                part = self._without_written(part, entry_id)
            elif isinstance(part, ToolCall) and part.id in outlined:
                part = self._outlined(part, entry_id)
            elif isinstance(part, ToolCall) and (texts := _texts_of_other(part)):
                for whole in texts:
                    first, _, rest = whole.partition("\n")
                    left, _ = said.without(rest, _stands_mark)
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

    def _outlined(self, call: ToolCall, entry_id: str) -> ToolCall:
        """`call` with the outline of the file that it writes, on one line, in place of its text."""
        action = action_of(call)
        path, text = file_in_command(action.command) or (action.path, text_of_change(action))
        lines = text.split("\n")
        titles = "; ".join(outline(path, 1, lines, frozenset(range(1, len(lines) + 1))))
        mark = omission_mark(f"{self._counter.count_text(text):,} tokens")
        return _with_text(call, text, f"{mark} {titles} {recall_mark(entry_id)}")

    def _edit(self, unit: Unit, content: Content, tier: int) -> tuple[ContextEditEntry, int] | None:
        """The edit that replaces `unit` with `content`, and its size.

        None if it saves hardly anything, unless it removes outdated lines.
        """
        edit = ContextEditEntry(
            target_id=unit.entry_id,
            replacement=content,
            tier=max(tier, unit.edited_tier, 0),
            batch=self._batch,
            timestamp=self._timestamp,
        )
        message = apply_edit(unit.message, edit)
        size = self._counter.count_message(message) if message else 0
        saves = unit.tokens - size >= _LEAST_SAVING_TOKENS
        is_needed = isinstance(content, str) and _EDITED in content
        return (edit, size) if saves or is_needed else None


def _with_text(call: ToolCall, old: str, new: str) -> ToolCall:
    """`call` with `old` replaced by `new` in its arguments."""
    if not old or old == new:
        return call
    arguments: JsonObject = {
        name: value.replace(old, new) if isinstance(value, str) else value
        for name, value in call.arguments.items()
    }
    return call.model_copy(update={"arguments": arguments})


def _line(
    unit: Unit,
    output: Output,
    pointer: str | None,
    paths: frozenset[str],
    said: "_Said",
    gone: frozenset[str],
    *,
    is_newest: bool,
) -> tuple[Content, frozenset[str]]:
    """What replaces `output` (None to keep it), and the files that show what is removed.

    `gone` are the lines of the file it shows that were edited since.
    """
    recall = recall_mark(unit.entry_id)
    if paths or pointer:
        return (f"({', '.join(paths)} is shown above) {recall}" if paths else pointer), paths
    text = output.text
    if output.action.command and not is_newest:
        text = "\n".join(map(_shorten_line, text.split("\n")))
    own = _Said(())
    if output.action.kind in ("write", "edit"):
        own.add(text_of_change(output.action))
    text, _ = own.without(text, lambda _: "(as written above)")
    text, found = said.without(text, _stands_mark)
    text = _without_edited(text, gone) if gone else text
    if text == output.text:
        return None, found
    return _with_recall(text, unit.entry_id), found


def _lines_gone(
    output: Output, files: Mapping[str, frozenset[str]], folders: Sequence[str]
) -> frozenset[str]:
    """The lines that `output` shows of one of `files`, by path, and that it no longer has."""
    view = file_view(output)
    now = files.get(_path_viewed(output, folders)) if view is not None else None
    return (
        frozenset(view.lines) - now - {""} if view is not None and now is not None else frozenset()
    )


def _path_viewed(output: Output, folders: Sequence[str]) -> str:
    """The file that `output` shows; empty if it shows none."""
    view = file_view(output)
    return normalise_path(view.path.strip("'\""), folders) if view is not None else ""


def _without_edited(text: str, gone: frozenset[str]) -> str:
    """`text`, a view of a file, with a mark in place of the lines in `gone`."""
    parts: list[str] = []
    for is_gone, run in groupby(plain_lines(text), lambda forms: not gone.isdisjoint(forms)):
        parts += [_EDITED] if is_gone else [line for line, _ in run]
    return "\n".join(parts)


def _with_recall(text: str, entry_id: str) -> str:
    """`text`, of which something is left out, with the id of the whole."""
    gap = " " if text.endswith((" elsewhere)", " above)")) else "\n"
    return f"{text}{gap}{recall_mark(entry_id)}"


def _shorten_line(line: str) -> str:
    """`line` cut to its two ends if it is generated text."""
    if len(line) <= _LONG_LINE_CHARS:
        return line
    return shorten_middle(" ".join(line.split()), _LONG_LINE_CHARS // 2)


def _is_on_disk(output: Output, on_disk: ReadFile | None) -> bool:
    """Whether `output` shows lines of a file as the disk has them."""
    view = file_view(output)
    if view is None or on_disk is None or (text := on_disk(view.path)) is None:
        return False
    return "\n".join(view.lines) in text


def _stands_mark(files: Collection[str]) -> str:
    """The note on where left-out lines can be found."""
    named = f"of {', '.join(sorted(files))} shown above" if files else "shown elsewhere"
    return f"(lines {named})"


def _files_named(
    unit: Unit,
    shown: Mapping[str, ShownFile],
    now: Mapping[str, frozenset[str]],
    folders: Sequence[str],
) -> dict[str, ShownFile]:
    """The files, by call, that `unit` shows or changes and that are shown with all its lines.

    Lines that the file no longer has `now` count for nothing.
    """
    if (output := unit.output) is not None:
        action = output.action
        view = file_view(output) if action.command else None
        file = shown.get(normalise_path(view.path if view else action.path, folders))
        if file is None or output.has_failed:
            return {}
        if view is not None:
            present = frozenset(view.lines) - _lines_gone(output, now, folders)
            return {"": file} if file.shows(present) else {}
        is_read = action.kind == "read" and file.holds(output.text)
        return {"": file} if is_read or (file.is_whole and action.kind in _SHOWING) else {}
    named: dict[str, ShownFile] = {}
    calls = unit.message.tool_calls if isinstance(unit.message, AssistantMessage) else ()
    for call in calls:
        action = action_of(call)
        path, text = file_in_command(action.command) or (action.path, text_of_change(action))
        file = shown.get(normalise_path(path, folders)) if path else None
        if file is None or (action.command and not file.shows(text.split("\n"))):
            continue
        if (action.command or action.kind in ("write", "edit")) and file.holds(text):
            named[call.id] = file
    return named


def _writes(call: ToolCall) -> bool:
    """Whether `call` writes a whole file."""
    action = action_of(call)
    return action.kind == "write" or bool(file_in_command(action.command))


def _is_in(
    call: ToolCall,
    files: Mapping[str, frozenset[str]],
    folders: Sequence[str],
    wanted: Set[str] | None = None,
) -> bool:
    """Whether all that `call` wrote is in the lines of its file, if that is a `wanted` one."""
    action = action_of(call)
    path, text = file_in_command(action.command) or (action.path, text_of_change(action))
    name = normalise_path(path, folders) if path and text else ""
    lines = files.get(name) if wanted is None or name in wanted else None
    return lines is not None and lines.issuperset(text.split("\n"))


class _Said:
    """The passages already in the context, and where: in a file shown or in a message."""

    def __init__(self, files: Iterable[ShownFile]) -> None:
        self._places: dict[_Passage, str] = {}
        for file in files:
            self.add(file.text, file.path)

    def add(self, text: str, path: str = "") -> None:
        """Add `text`, from the file at `path` or from a message."""
        for _, passage in _passages(text):
            self._places.setdefault(passage, path)

    def without(
        self, text: str, mark: Callable[[Collection[str]], str]
    ) -> tuple[str, frozenset[str]]:
        """`text` without known passages, and the files that have them.

        Each is replaced by the `mark` for its files.
        """
        known: dict[int, str] = {}
        for at, passage in _passages(text):
            if (path := self._places.get(passage)) is not None:
                known.update((at + line, path) for line in range(len(passage)))
        lines: list[str] = []
        for is_known, run in groupby(enumerate(text.split("\n")), lambda line: line[0] in known):
            if is_known:
                lines.append(mark({known[at] for at, _ in run} - {""}))
            else:
                lines += [line for _, line in run]
        return "\n".join(lines), frozenset(known.values()) - {""}


def _passages(text: str) -> Iterator[tuple[int, _Passage]]:
    """Each run of `_PASSAGE_LINES` lines of `text` without line numbers, and its start."""
    lines = [plain for _, plain in plain_lines(text)]
    for at in range(len(lines) - _PASSAGE_LINES + 1):
        yield at, tuple(lines[at : at + _PASSAGE_LINES])


def _texts(message: Message) -> list[str]:
    """The texts that the calls of `message` write, run or send."""
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return [
        text
        for call in calls
        for text in (_texts_of_other(call) or [text_of_change(action_of(call))])
    ]


def _texts_of_other(call: ToolCall) -> list[str]:
    """The command of `call`, or what it sends if it neither runs a command nor touches a file."""
    action = action_of(call)
    if action.command or action.kind != "other":
        return [action.command] if action.command else []
    return [text for text in call.arguments.values() if isinstance(text, str)]
