"""What turns one of the newest messages into less: what stands elsewhere becomes a line."""

from collections.abc import Sequence, Set
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from pydantic import JsonValue

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
from agent_tui.compaction.sections.elsewhere import Elsewhere, MessageFacts, WrittenCall
from agent_tui.compaction.sections.failures import has_failed
from agent_tui.compaction.sections.file_states import COMMIT_LINE, MODE_LINE
from agent_tui.compaction.sections.file_views import (
    OLD_NAMES,
    file_in_command,
    path_of_match,
    text_of_change,
)
from agent_tui.compaction.sections.passages import (
    EDITED,
    STANDS,
    KnownPassages,
    Passages,
    Place,
    says_something,
)
from agent_tui.compaction.sections.state import STEP_NAMES, steps_in_plan
from agent_tui.compaction.tiers.describe import describe, line_count, outcome_line
from agent_tui.compaction.tiers.forms import (
    left_out_mark,
    pointers_to_newer,
    replace_values,
    without_long_texts,
    without_thinking,
)
from agent_tui.compaction.tiers.json_reply import read_fields
from agent_tui.compaction.tiers.model import Content, Unit
from agent_tui.compaction.tiers.units import newest_exchange
from agent_tui.messages import (
    AssistantMessage,
    JsonObject,
    TextContent,
    ToolCall,
    ToolResultMessage,
    texts_in,
)
from agent_tui.omissions import one_line, recall_mark, shorten_middle
from agent_tui.sessions.actions import Output
from agent_tui.sessions.outputs import action_of, without_progress
from agent_tui.tokens import TokenCounter

_LISTING = frozenset({"ls", "find", "glob", "grep", "search"})
_SHORT_ARGUMENT_TOKENS, _LONG_OUTPUT_TOKENS = 60, 150
_LONG_LINE_CHARS, _LINE_ENDS_CHARS = 1_000, 240
"""A longer line in a command's output is generated text: its two ends are enough."""

_REFUSED_CHARS = 140
_WRITTEN_SINCE = "(written later)"
_AS_WRITTEN = "(as written above)"
_OFFERED = "(the summary shows what is needed of {}) {}"


class Less(NamedTuple):
    """What is left of a message.

    Args:
        content: What replaces it; None to keep it.
        paths: The files that show what is removed.
        more: What could also be left of a result that was needed for work done since; may be empty.
    """

    content: Content
    paths: frozenset[str] = frozenset()
    more: str = ""


class MessageShortener:
    """Finds what is left of each message.

    Args:
        units: The messages of the context that can be changed.
        counter: Counts their tokens.
        folders: Paths of the working folder.
    """

    def __init__(
        self, units: Sequence[Unit], counter: TokenCounter, folders: Sequence[str]
    ) -> None:
        self._units, self._counter = units, counter
        self.facts = {unit.entry_id: MessageFacts(unit, folders) for unit in units}
        self.passages = Passages()
        results = (unit.message for unit in units if isinstance(unit.message, ToolResultMessage))
        self._failed = {result.tool_call_id for result in results if result.is_error}

    @cached_property
    def newest(self) -> int:
        """The position at which the newest exchange begins."""
        return newest_exchange([unit.message for unit in self._units])

    @cached_property
    def committed(self) -> int:
        """The position of the newest commit; -1 if there is none."""
        commits = (u.position for u in self._units if u.output and is_commit(u.output))
        return max(commits, default=-1)

    @cached_property
    def _pointers(self) -> dict[int, str]:
        return pointers_to_newer(self._units)

    def _pointer(self, unit: Unit, output: Output, passed: PassedRuns) -> str | None:
        """The line for an output that is repeated later, or of which only the result matters."""
        if (line := self._pointers.get(unit.position)) is not None:
            return line
        command = output.action.command
        if unit.position < self.committed and shows_uncommitted(output):
            line = "(committed since)"
        elif is_commit(output) and (made := COMMIT_LINE.search(output.text)):
            line = MODE_LINE.sub("", output.text[made.start() :]).rstrip()
        elif is_check(command) and has_failed(output):
            is_solved = passed.cover(runs_of(command))
            return describe(output, unit.entry_id, "passed later") if is_solved else None
        elif is_check(command):
            line = outcome_line(output)
            if has_several_results(command) and unit.position > self.committed:
                line = without_progress(output.text).rstrip()
                return with_recall(line, unit.entry_id) if line != output.text.rstrip() else None
        return f"{line} {recall_mark(unit.entry_id)}" if line else None

    def content(self, unit: Unit, elsewhere: Elsewhere, *, is_offered: bool) -> Less:
        """What is left of `unit`."""
        facts, message = self.facts[unit.entry_id], unit.message
        if unit.position >= self.newest:
            elsewhere = Elsewhere({}, (), self.passages)
            if unit.output is None:
                return Less(None)
        elif unit.output is not None and (
            pointer := self._pointer(unit, unit.output, elsewhere.passed)
        ):
            return Less(pointer)
        if unit.output is not None:
            is_offered &= facts.view is not None and unit.position < self.newest
            if is_offered and not elsewhere.has_view(unit.output, facts):
                mark = _OFFERED.format(facts.path, recall_mark(unit.entry_id))
                return Less(mark, frozenset({facts.path} & elsewhere.shown.keys()))
            return self._shorten_output(unit, unit.output, elsewhere)
        if isinstance(message, AssistantMessage):
            gone = {
                call.id: call.path
                for call in facts.calls
                if call.id not in self._failed or call.path in elsewhere.shown
                if elsewhere.has_change(call)
            }
            parts, paths = self._parts(message, unit, gone.keys(), elsewhere)
            return Less(parts, paths | (elsewhere.shown.keys() & gone.values()))
        return Less(None)

    def note(self, unit: Unit, content: Content, elsewhere: Elsewhere) -> dict[str, str]:
        """Add to `elsewhere` what `unit` shows, or is left of it in `content` if that is not None.

        Returns: the files of its calls whose change stands elsewhere, by the call's id.
        """
        facts, changes = self.facts[unit.entry_id], dict[str, str]()
        if (output := unit.output) is not None and is_check(output.action.command):
            elsewhere.passed.add(() if has_failed(output) else runs_of(output.action.command))
        message = unit.message
        left = content if isinstance(content, tuple) else getattr(message, "content", ())
        calls = {part.id: part for part in left if isinstance(part, ToolCall)}
        for call in facts.calls:
            if call.id not in self._failed:
                changes |= {call.id: call.path} if elsewhere.has_change(call) else {}
                elsewhere.note_replaced(call)
            for text in texts_in(calls[call.id].arguments):
                elsewhere.said.add(text, call.place)
        if output is not None:
            left = content if isinstance(content, str) else output.text
            elsewhere.said.add(left, facts.place)
        return changes

    def _shorten_output(self, unit: Unit, output: Output, elsewhere: Elsewhere) -> Less:
        """What is left of `output`."""
        facts, entry_id, text = self.facts[unit.entry_id], unit.entry_id, output.text
        command, tool = output.action.command, output.action.tool.lower()
        line, shown = "", frozenset[str]()
        if elsewhere.has_view(output, facts):
            file = elsewhere.file_with(facts)
            shown = frozenset((file.path,) if file is not None else ())
            line = f"({file.where if file is not None else 'edited since'})"
        kind, arguments = output.action.kind, output.action.arguments
        is_change = kind in ("write", "edit")
        written = [text_of_change(output.action)] if is_change else [*texts_in(arguments)]
        if facts.view is None and (command or kind == "other"):
            is_newest = unit.position >= self.newest
            lines = (
                line.rstrip() if is_newest else _shorten_line(line, "\n".join(written))
                for line in text.split("\n")
            )
            text = "\n".join(lines)
        lists = is_looking_around(command) if command else tool in _LISTING
        of_call = KnownPassages((), elsewhere.said.passages)
        for one in written:
            of_call.add(one, Place(""))
        text, _ = of_call.without(text, _AS_WRITTEN)
        places = elsewhere.places_in_view(facts)
        text, found = elsewhere.said.without(text, lines=places, files=facts.files)
        if lists and facts.view is None and unit.position < self.newest:
            text = _by_file(text)
        is_past = unit.position < self.committed and not output.said
        if not line and is_past and self._counter.count_text(text) > _LONG_OUTPUT_TOKENS:
            came = "" if facts.view is not None else f"; {outcome_line(output)}"
            line = line_count(output.text.rstrip("\n").count("\n") + 1) + came
        text = with_recall(text, entry_id) if text != output.text else text
        if line:
            own = filter(says_something, set(text.split("\n")) & set(output.text.split("\n")))
            more = text if any(own) and not is_change else ""
            return Less(f"{line} {recall_mark(entry_id)}", shown | found, more)
        return Less(text if text != output.text else None, found)

    def _parts(
        self, message: AssistantMessage, unit: Unit, gone: Set[str], elsewhere: Elsewhere
    ) -> tuple[Content, frozenset[str]]:
        """`message` without thinking, replaced texts, and what calls that are `gone` wrote.

        A text that is said elsewhere becomes a line, too, and its files are returned.
        """
        calls = {call.id: call for call in self.facts[unit.entry_id].calls}
        parts: list[TextContent | ToolCall] = []
        paths: set[str] = set()

        def replace_said(value: JsonValue, _: str) -> JsonValue:
            line, files = elsewhere.said.line_for(value) if isinstance(value, str) else ("", ())
            paths.update(files)
            return f"{line} {recall_mark(unit.entry_id)}" if line else value

        for part in without_thinking(message):
            if isinstance(part, ToolCall):
                is_gone = part.id in gone
                part = self._shorten_call(part, unit, calls[part.id], elsewhere, is_gone=is_gone)
                part = replace_values(part, replace_said)
            parts.append(part)
        return (tuple(parts) if tuple(parts) != message.content else None), frozenset(paths)

    def _shorten_call(
        self,
        call: ToolCall,
        unit: Unit,
        wrote: WrittenCall,
        elsewhere: Elsewhere,
        *,
        is_gone: bool,
    ) -> ToolCall:
        """`call` without texts that are not needed; what it `wrote` may be gone."""
        is_failed = call.id in self._failed
        is_over = is_gone or elsewhere.has_later_change(wrote)
        if is_failed and is_over and not action_of(call).command:
            return self._without_refused(call, unit.entry_id, elsewhere.lines_of_none(wrote))
        if is_gone:
            return self._without_written(call, unit.entry_id)
        if steps_in_plan(call.arguments):
            return self._without_plan(call, unit.entry_id)
        return call if is_failed else self._without_body(call, unit)

    def _without_written(self, call: ToolCall, entry_id: str) -> ToolCall:
        action = action_of(call)
        if not action.command:
            return without_long_texts(call, _SHORT_ARGUMENT_TOKENS, entry_id, self._counter)
        _, body = file_in_command(action.command) or ("", "")
        mark = left_out_mark(self._counter.count_text(body), entry_id)
        return _with_text(call, body, mark)

    def _without_refused(self, call: ToolCall, entry_id: str, lines: Sequence[str]) -> ToolCall:
        """`call`, which changed no file, with the beginning of `lines` that only it has."""
        limit, counter = _SHORT_ARGUMENT_TOKENS, self._counter
        told = one_line(" ⏎ ".join(lines), _REFUSED_CHARS) if lines else _WRITTEN_SINCE
        call = without_long_texts(call, limit, entry_id, counter, names=OLD_NAMES)
        return without_long_texts(call, limit, entry_id, counter, told=f"{told} ")

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
        """`call` without texts that it replaced in a file.

        Of a commit's message, or of a command committed since, the first line stays.
        """
        action, limit, entry_id = action_of(call), _SHORT_ARGUMENT_TOKENS, unit.entry_id
        command = action.command
        if not command and action.kind != "other":
            return without_long_texts(call, limit, entry_id, self._counter, names=OLD_NAMES)
        text = message_of_commit(command) or (command if unit.position < self.committed else "")
        subject, _, body = text.partition("\n")
        tokens = self._counter.count_text(body)
        if not subject or tokens <= limit:
            return call
        return _with_text(call, body, left_out_mark(tokens, entry_id))


def _with_text(call: ToolCall, old: str, new: str) -> ToolCall:
    """`call` with `old` replaced by `new` in its arguments."""
    return replace_values(
        call, lambda value, _: value.replace(old, new) if old and isinstance(value, str) else value
    )


def with_recall(text: str, entry_id: str) -> str:
    """`text`, of which something is left out, with the id of the whole."""
    is_mark = text.rpartition("\n")[2].startswith((_AS_WRITTEN, EDITED, STANDS.partition("{")[0]))
    return f"{text}{' ' if is_mark else chr(10)}{recall_mark(entry_id)}"


def _by_file(text: str) -> str:
    """`text` with the path of several found lines in a row once, above them."""
    lines: list[str] = []
    for path, group in groupby(text.split("\n"), path_of_match):
        found = [*group]
        is_shorter = path and len(found) > 1
        lines += [f"{path}:", *(line[len(path) + 1 :] for line in found)] if is_shorter else found
    return "\n".join(lines)


def _shorten_line(line: str, written: str) -> str:
    """`line` without blanks at its end, and the two ends of one that is generated text.

    Of JSON, what people read is left, without what its call has `written`.
    """
    if len(line) <= _LONG_LINE_CHARS:
        return line.rstrip()
    ends = shorten_middle(" ".join(line.split()), _LINE_ENDS_CHARS)
    return read_fields(line.strip(), written) or ends
