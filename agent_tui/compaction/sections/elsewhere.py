"""What a message shows and writes, and which of it stands elsewhere in the context."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.commands import PassedRuns, paths_shown
from agent_tui.compaction.sections.file_states import FileState
from agent_tui.compaction.sections.file_views import (
    FileView,
    edits_in,
    file_in_command,
    file_view,
    folder_of,
    text_of_change,
    within,
)
from agent_tui.compaction.sections.files import ShownFile
from agent_tui.compaction.sections.passages import (
    GONE,
    NOWHERE,
    KnownPassages,
    Passages,
    Place,
    says_something,
)
from agent_tui.compaction.tiers.describe import action_label
from agent_tui.compaction.tiers.model import Unit
from agent_tui.messages import AssistantMessage, ToolCall
from agent_tui.sessions.actions import Output
from agent_tui.sessions.outputs import action_of

_SHOWING = ("read", "write", "edit")
"""Actions whose output may show the file; some agents also show it after writes and edits."""

_LABEL_CHARS = 60


class WrittenCall:
    """What a call writes: the file at `path`, normalized, and the text; both may be empty.

    `place` names the call.
    """

    def __init__(self, call: ToolCall, folders: Sequence[str]) -> None:
        action = action_of(call)
        path, self.text = file_in_command(action.command) or (action.path, text_of_change(action))
        self.id, self.path = call.id, normalise_path(path, folders) if path else ""
        is_of_file = self.path and not action.command
        label = f"{action.tool} {self.path}" if is_of_file else action_label(action, _LABEL_CHARS)
        self.place = Place(f"{label} below", files=frozenset({self.path} - {""}))
        edits = edits_in(action.arguments) if action.kind == "edit" else ()
        self.replaced = frozenset(line for old, _, _ in edits for line in old.split("\n"))
        self.lines = frozenset(filter(says_something, self.text.split("\n")))


class MessageFacts:
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
    def files(self) -> frozenset[str]:
        """The files that the output shows, and the command that shows them; empty if of none."""
        if (output := self._unit.output) is None:
            return frozenset()
        if self.view is not None or output.action.kind in _SHOWING:
            return frozenset({self.path} - {""})
        folder = folder_of(self.command)
        named = (within(folder, path) for path in paths_shown(self.command))
        paths = {normalise_path(path, self._folders) for path in named} - {""}
        return frozenset({*paths, self.command} if paths else ())

    @property
    def place(self) -> Place:
        """What stands in the output."""
        return Place(f"{self.label} below", files=self.files)

    @cached_property
    def label(self) -> str:
        """What the output came of."""
        if (output := self._unit.output) is None:
            return ""
        if output.action.command:
            return action_label(output.action, _LABEL_CHARS)
        return f"{output.action.tool} {self.path}".strip()

    @cached_property
    def calls(self) -> tuple[WrittenCall, ...]:
        """What the calls of the message write."""
        message = self._unit.message
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        return tuple(WrittenCall(call, self._folders) for call in calls)


class Elsewhere:
    """What stands elsewhere than in a message.

    Args:
        shown: The files that the summary shows, by path.
        known: The files as they are now.
        passages: Splits texts.

    Attributes:
        said: The passages that stand in `shown` or behind the message, in calls and results.
        passed: What the checks behind the message ran that passed.
    """

    def __init__(
        self, shown: Mapping[str, ShownFile], known: Iterable[FileState], passages: Passages
    ) -> None:
        self.shown = shown
        self.said = KnownPassages(shown.values(), passages)
        self.passed = PassedRuns()
        self._files = {file.path: file for file in known}
        self._replaced: dict[str, frozenset[str]] = {}
        self._now: dict[str, frozenset[str]] = {}

    def has_view(self, output: Output, facts: MessageFacts) -> bool:
        """Whether all that an output shows of a file is shown of it, or no longer in the file.

        Of a file that was changed since, the summary shows what the work is about.
        """
        file = self.shown.get(facts.path)
        is_seen = file is not None and (file.is_whole or facts.path in self._replaced)
        if is_seen and (facts.view is not None or output.action.kind in _SHOWING):
            return not output.has_failed
        lines = frozenset(filter(says_something, facts.lines))
        return bool(lines) and lines <= self.places_in_view(facts).keys()

    def file_with(self, facts: MessageFacts) -> ShownFile | None:
        """The file of a message as it is shown; None if it is not, or shows no line of its view."""
        file = self.shown.get(facts.path)
        lines = filter(says_something, facts.lines)
        has_any = facts.view is None or not self._lines_shown(facts.path).isdisjoint(lines)
        return file if file is not None and (file.is_whole or has_any) else None

    def has_change(self, call: WrittenCall) -> bool:
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

    def has_later_change(self, call: WrittenCall) -> bool:
        """Whether its file was changed behind the message of `call`."""
        return bool(call.text) and call.path in self._replaced

    def lines_of_none(self, call: WrittenCall) -> list[str]:
        """The lines that `call` would have added and that its file does not have now."""
        known = call.replaced | self._lines_now(call.path)
        lines = (line for line in call.text.split("\n") if line not in known)
        return [line.strip() for line in lines if says_something(line)]

    def note_replaced(self, call: WrittenCall) -> None:
        """Note the lines that `call` replaced in its file, for the messages before it."""
        self._replaced[call.path] = self._replaced.get(call.path, frozenset()) | call.replaced

    def places_in_view(self, facts: MessageFacts) -> Mapping[str, Place]:
        """Where the lines stand that a message shows of a file; `GONE` if they were edited.

        A command with several results may show lines of each file that it names.
        """
        if facts.view is None and (command := facts.command):
            named = (path for path in self._replaced if PurePosixPath(path).name in command)
            gone = (line for path in named for line in self._replaced[path] - self._lines_now(path))
            return {line: GONE for line in gone if says_something(line)}
        path, file = facts.path, self._files.get(facts.path)
        if facts.view is None or (file is None and path not in self.shown):
            return NOWHERE
        place = Place(f"{path} above", path, frozenset((path,)))
        places = dict.fromkeys(facts.lines & self._lines_shown(path), place)
        if file is not None and file.is_changed:
            gone = facts.lines - self._lines_now(path) - {""}
            places |= dict.fromkeys(gone - places.keys(), GONE)
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
