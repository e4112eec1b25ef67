"""Calls that failed: their errors, what followed, and which of them are still open."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from agent_tui.compaction.ledger.files import files_of, normalise_path
from agent_tui.compaction.sections.commands import (
    CommandRun,
    PassedRuns,
    hides_exit_code,
    how_passed,
    is_commit,
    is_looking_around,
    reaches,
    runs_of,
    without_folder,
    without_view,
)
from agent_tui.compaction.sections.file_states import TO_COMMITTED, FileState
from agent_tui.compaction.sections.file_views import edits_in, text_of_change
from agent_tui.compaction.sections.history import Done, HistoryEvent, Replied
from agent_tui.compaction.sections.passages import says_something
from agent_tui.compaction.sections.task import is_document
from agent_tui.omissions import one_line, recall_mark
from agent_tui.sessions.actions import Output
from agent_tui.sessions.entries import Failure
from agent_tui.sessions.outputs import (
    error_lines,
    error_text,
    fails_tests,
    is_test,
    last_line,
    looks_like_error,
    names_error,
    reports_error,
    test_counts,
    warning_lines,
    without_place,
)
from agent_tui.sessions.shell_files import shell_changes
from agent_tui.tokens import TokenCounter

MOST_OPEN = 12
_MOST = 60
_MOST_LINES = 4
_END_LINES = 4
"""Of the text of a refused command, so many lines stay at each end."""

_MOST_STEPS, _MOST_NOTED_STEPS, _MOST_LOOKED = 3, 200, 2
_LABEL_CHARS, _BRIEF_LABEL_CHARS = 140, 90
_LINE_CHARS = 240
_SAID_CHARS = 240
_STEP_CHARS = 110
_CODE_CHARS = 70
_LOOKED_AT_CHARS = 20_000
_FILE_NAME = re.compile(r"(?<![\w.-])[\w-][\w.-]*\.\w+")

_NAMED_SHARE = 2 / 3
"""Notes name a failure if one of them has so many of the words of its message."""

_FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) ([^\s:]+)::", re.MULTILINE)
"""The file of a failed test in pytest's summary."""

_FAILED_COUNT = re.compile(r"\b([2-9]|[1-9]\d+) (?:\w+ ){0,2}(?:failed|failures?|failing)\b")
_BRIEF_LINES = 2
_NOTE = re.compile(r"\n(?=[-*#\d]|\s*\n)")
"""Between two points of notes."""

_WORDS, _QUOTED_WORDS = 6, 3
"""So many words in a row are no chance, and so many of a quotation."""

_QUOTED, _GAP = re.compile('[`"]([^`"]+)[`"]'), re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\])\s*")
_WORD = re.compile(r"[^\W\d]\w{3,}")
_DECISIVE = re.compile(r"\d|_|[a-z][A-Z]")

_COMMITTED = "the files that it names were changed and committed since"
_ENDINGS = {
    "failed": "failed in another way later",
    "declined": "refused by the user",
    "warned": "passed, but warned",
}
_EXPLAINED = frozenset({"settled", "warned"})


@dataclass(slots=True)
class _Tracked:
    """A failure while the events after it are read; `names` are names of files in its output.

    `failed_tests` are its runs on the files of the failed tests that its lines name, if any.

    Of the `steps` since, those that changed such a file are `near`.
    """

    failure: Failure
    runs: tuple[CommandRun, ...]
    names: frozenset[str] = frozenset()
    steps: list[str] = field(default_factory=list[str])
    near: set[str] = field(default_factory=set[str])
    failed_tests: tuple[CommandRun, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        if named := frozenset(_FAILED_TEST.findall("\n".join(self.failure.lines))):
            self.failed_tests = tuple(replace(run, targets=named) for run in self.runs)

    @property
    def is_open(self) -> bool:
        return self.failure.ending == "open"

    def is_only_about(self, names: Set[str]) -> bool:
        """Whether the message names files, and all of them are among `names`."""
        if not self.is_open or not names:
            return False
        named = set(_FILE_NAME.findall("\n".join(_decisive_lines(self.failure))))
        return bool(named) and named <= names

    def settle(self, why: str, steps: Sequence[str]) -> None:
        """End the failure, though nothing ran again, for the clause `why`."""
        self.update(ending="settled", later=why, steps=tuple(steps))

    def update(self, **values: object) -> None:
        self.failure = self.failure.model_copy(update=values)


@dataclass(slots=True)
class _Made:
    """A step, and whether git has it or threw it away; `changed` are the files it changed."""

    event: Done
    changed: Sequence[str]
    is_committed: bool = False
    is_undone: bool = False

    @property
    def is_prose(self) -> bool:
        """Whether it changed only text for people: documents, or a file such as ``CHANGELOG``."""
        paths = map(PurePosixPath, self.changed)
        texts = [is_document(str(p)) or (p.name.isupper() and not p.suffix) for p in paths]
        return bool(texts) and all(texts)

    def now(self, step: str, lines: Mapping[str, Set[str]]) -> str:
        """`step`, told as this one, as far as the `lines` of its file have it; else empty."""
        path = next(iter(self.changed), "")
        if self.is_undone or path not in lines:
            return "" if self.is_undone else step
        left = _step(self.event, self.changed, lines[path])
        return left and f"{left}{step.removeprefix(_step(self.event, self.changed))}"


class FailureReader:
    """Follows the failures of a conversation.

    A failure is open until the same program succeeds on the same target, or on more. Until then,
    what is done counts as done about it. If the same run fails with another error, that is the next
    failure.
    """

    def __init__(self, folders: Sequence[str], earlier: Iterable[Failure] = ()) -> None:
        """Continue from what a parent session passed on.

        Args:
            folders: Paths of the working folder.
            earlier: Failures, oldest first.
        """
        self._folders = folders
        self._found = [
            _Tracked(one, _runs_of_label(one.label), _names(one), list(one.steps))
            for one in earlier
        ]
        self._unexplained: list[_Tracked] = []
        self._looked: list[str] = []
        self._made: dict[str, _Made] = {}
        self._refused: dict[str, Output] = {}

    def read(
        self, events: Iterable[HistoryEvent], files: Sequence[FileState] = ()
    ) -> tuple[Failure, ...]:
        """The failures after `events`, oldest first.

        Args:
            events: The conversation.
            files: The files after it, of which is told what still stands.
        """
        for event in events:
            if isinstance(event, Done):
                self._read(event)
            elif isinstance(event, Replied):
                for one in self._unexplained:
                    one.update(said=one_line(event.text, _SAID_CHARS))
                self._unexplained = []
        changed = (file for file in files if file.is_changed)
        lines = {file.path: {*map(str.strip, file.text.split("\n"))} for file in changed}
        committed = {file.path for file in files if file.is_committed}
        for one in self._found:
            if one.is_open and one.failure.since and committed.issuperset(one.failure.since):
                one.settle(_COMMITTED, _shown_steps(_telling(one.steps, one.failure), one.failure))
            elif one.is_open and (telling := _telling(one.steps, one.failure)):
                one.update(steps=_shown_steps(telling, one.failure))
            elif one.failure.ending == "passed":
                now = [self._made[s].now(s, lines) if s in self._made else s for s in one.steps]
                prose = {step for step, made in self._made.items() if made.is_prose}
                one.update(steps=_curing_steps(one, now, prose))
            elif refused := self._refused.get(one.failure.entry_id):
                one.update(lines=_only_in(refused, lines.get(self._path_of(refused), set())))
        return tuple(one.failure for one in self._found)

    def _read(self, event: Done) -> None:
        output = event.output
        is_text = output.ending == "declined" and "\n" in output.action.command
        if output.ending == "declined" and output.action.kind in ("edit", "write"):
            self._refused[event.entry_id] = output
            label = f"{output.action.tool} {PurePosixPath(output.action.path).name}"
            new = Failure(label=label, lines=("",), entry_id=event.entry_id, ending="declined")
            self._track(_Tracked(new, ()))
            return
        if output.ending == "cancelled" or (output.said and not is_text):
            return
        self._note_undone(output)
        runs = self._runs_of(output)
        if output.job:
            self._note_step(event, runs)
        elif not has_failed(output) and not output.ending and not output.refusal:
            label, passed = self._label(output), PassedRuns()
            passed.add(runs if output.exit_code in (None, 0) else ())
            for one in self._found:
                is_cured = one.is_open and passed.cover(one.runs)
                if not (is_cured or (one.is_open and passed.cover(one.failed_tests))):
                    continue
                is_same = without_view(label) == without_view(one.failure.label)
                is_hidden = not is_same and hides_exit_code(without_view(output.action.command))
                counts = is_test(one.failure.label.removeprefix("$ ")) and test_counts(output.text)
                if is_hidden and not counts:
                    continue
                if is_cured:
                    later = "" if is_same else how_passed(one.runs, runs)
                    one.update(ending="passed", later=later)
                else:
                    one.update(later=label)
            self._note_step(event, runs)
            self._note_warnings(event, runs)
        elif lines := _lines_of(output):
            self._add(event, runs, lines)

    def _add(self, event: Done, runs: tuple[CommandRun, ...], lines: tuple[str, ...]) -> None:
        output = event.output
        before = next((one for one in reversed(self._found) if one.runs == runs), None)
        label, ending = self._label(output), _ending_of(output)
        failure = Failure(label=label, lines=lines, entry_id=event.entry_id, ending=ending)
        steps = list[str]()
        if before is not None and before.is_open:
            tried = _shown_steps(before.steps, before.failure)
            if _messages(before.failure) == _messages(failure):
                self._found.remove(before)
                times, steps = before.failure.times + 1, before.steps
                failure = failure.model_copy(update={"times": times, "steps": tried})
            else:
                before.update(ending="failed", steps=tried)
        said = output.text[-_LOOKED_AT_CHARS:]
        new = _Tracked(failure, runs, _names(failure, said), steps)
        self._track(new)
        self._unexplained.append(new)

    def _note_warnings(self, event: Done, runs: tuple[CommandRun, ...]) -> None:
        """Note what a command that does something warned of; the same without a warning ends it."""
        command, lines = event.output.action.command, warning_lines(event.output.text, _MOST_LINES)
        ends = (one.runs == runs and one.failure.ending == "warned" for one in self._found)
        self._found = [one for one, is_over in zip(self._found, ends, strict=True) if not is_over]
        if lines and command and not is_looking_around(command) and not is_test(command):
            label, id = self._label(event.output), event.entry_id
            new = Failure(label=label, lines=tuple(lines), entry_id=id, ending="warned")
            self._track(_Tracked(new, runs))

    def _track(self, new: _Tracked) -> None:
        """Add `new`; of too many, the oldest are dropped."""
        self._found = [*self._found[1 - _MOST :], new]

    def _note_step(self, event: Done, runs: tuple[CommandRun, ...]) -> None:
        """Note for each open failure what `event` changed or ran."""
        changed = [normalise_path(path, self._folders) for path in files_of(event).modified]
        gone = [normalise_path(path, self._folders) for path in files_of(event).removed]
        command = event.output.action.command
        is_check = is_looking_around(command) or is_test(command)
        step = _step(event, changed) if changed or not is_check else ""
        touched = (*files_of(event).read, *changed, *(to for run in runs for to in run.targets))
        names = [name for path in touched if _FILE_NAME.fullmatch(name := PurePosixPath(path).name)]
        if not step:
            self._looked = [*dict.fromkeys((*self._looked, *names))]
        elif looked := [one for one in self._looked if one not in names][-_MOST_LOOKED:]:
            step += f" (after reading {', '.join(looked)})" if changed else ""
        if step:
            self._looked = []
            self._made[step] = _Made(event, changed)
        names_gone = {PurePosixPath(path).name for path in gone} - {""}
        about = [one for one in self._found if one.is_only_about(names_gone)]
        made = (path for one in self._made.values() for path in one.changed) if about else ()
        if names_gone <= {PurePosixPath(path).name for path in made}:
            self._found = [one for one in self._found if one not in about]
        for one in self._found if step else ():
            if not one.is_open:
                continue
            since = [path for path in changed if path and PurePosixPath(path).name in one.names]
            known = dict.fromkeys((*one.failure.since, *since))
            one.update(since=tuple(p for p in known if not any(reaches(to, p) for to in gone)))
            one.near.update([step] if since else ())
            if len(one.steps) < _MOST_NOTED_STEPS:
                one.steps.append(step)
        for one in about:
            one.settle(f"{', '.join(sorted(names_gone))} was removed since", one.steps[-1:])

    def _note_undone(self, output: Output) -> None:
        """Note which steps git threw away: what was not committed, or all before a reset."""
        for made in self._made.values() if is_commit(output) else ():
            made.is_committed = True
        for path, by in shell_changes(output.action.command).restored:
            root = normalise_path(path, self._folders)
            is_all = bool(root) or "reset" in by.split()
            for made in self._made.values() if is_all or TO_COMMITTED.match(by) else ():
                is_inside = any(not root or reaches(root, path) for path in made.changed)
                is_last = TO_COMMITTED.match(by) and made.is_committed
                made.is_undone |= is_inside and not is_last

    def _runs_of(self, output: Output) -> tuple[CommandRun, ...]:
        action = output.action
        return runs_of(action.command) or (_call(action.tool, self._path_of(output)),)

    def _label(self, output: Output) -> str:
        action = output.action
        if action.command:
            return f"$ {without_folder(action.command)}"
        return f"{action.tool} {self._path_of(output)}".strip()

    def _path_of(self, output: Output) -> str:
        path = output.action.path
        return normalise_path(path, self._folders) or path


def open_errors(
    events: Iterable[HistoryEvent], earlier: Sequence[str] = (), folders: Sequence[str] = ("/",)
) -> tuple[str, ...]:
    """The failures that are still open, oldest first, each as ``$ command => message``.

    Args:
        events: The conversation.
        earlier: Those passed on by a parent session, oldest first; they are resolved in the same
            way.
        folders: Paths of the working folder.
    """
    parts = (line.partition(" => ") for line in earlier)
    known = (Failure(label=label, lines=(message,)) for label, _, message in parts)
    failures = FailureReader(folders, known).read(events)
    found = [one for one in failures if one.ending == "open" and not one.since]
    lines = (f"{one.label} => {error_text(chr(10).join(one.lines))}" for one in found)
    return tuple(lines)[-MOST_OPEN:]


def failures_that_fit(
    failures: Sequence[Failure],
    *,
    notes: str,
    elsewhere: str,
    room_tokens: int,
    counter: TokenCounter,
    is_brief: bool = False,
) -> list[str]:
    """A few lines for each failure that fits, the newest first.

    Open and repeated ones have priority, then commands, then calls of other tools.

    Args:
        failures: Oldest first.
        notes: A model's notes; of a failure that they name, at most what was tried is told.
        elsewhere: Text that is in the context anyway; replies that it has are not repeated.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
        is_brief: Whether each has only what names its error, and what was done about it.
    """
    noted, known = [" ".join(note.split()) for note in _NOTE.split(notes)], _plain(elsewhere)
    taken, told = dict[int, list[str]](), set[str]()
    ranks = {at: (_is_named(one, noted), _rank(one)) for at, one in enumerate(failures)}
    for at in sorted(ranks, key=lambda at: (ranks[at], -at)):
        is_named, failure = ranks[at][0], failures[at]
        shown = _shorten(failure, told, is_named=is_named) if is_brief else failure
        if shown is None or (is_named and not is_brief):
            continue
        lines = list(_lines(shown, known))
        tokens = counter.count_text("\n".join(lines)) + 1
        if tokens <= room_tokens:
            taken[at] = lines
            told.update(map(without_place, shown.lines))
            room_tokens -= tokens
    return [line for at in sorted(taken, reverse=True) for line in taken[at]]


def _shorten(failure: Failure, told: Set[str], *, is_named: bool) -> Failure | None:
    """What of `failure` neither the notes nor the messages in `told` have; None if nothing is left.

    If the notes name it, that is what was tried, below the beginning of its message. A failed edit
    that soon passed taught nothing, and of what passed once the notes tell what it taught.
    """
    is_told = is_named and failure.times == 1
    if is_slip(failure) or (failure.ending == "passed" and is_told):
        return None
    lines = [line for line in _decisive_lines(failure) if without_place(line) not in told]
    if not failure.steps and (is_named or (any(failure.lines) and not lines)):
        return None
    if is_named and failure.ending not in _EXPLAINED:
        lines = [one_line(without_place(line), _CODE_CHARS) for line in lines[:1]]
    label = one_line(failure.label, _BRIEF_LABEL_CHARS)
    return failure.model_copy(update={"label": label, "lines": tuple(lines), "said": ""})


def is_slip(failure: Failure) -> bool:
    """Whether `failure` is a call of a tool, such as an edit, that passed later."""
    return failure.ending == "passed" and not failure.label.startswith("$ ")


def has_failed(output: Output) -> bool:
    """Whether the action failed, as its program, its error or its count of tests says.

    An exit code alone may be an answer: that lines differ, or that a check is still running. If the
    command hides that of its program, the count of tests or the form of the lines tells: of
    ``pytest && grep x``, the code is that of grep.
    """
    command, text = output.action.command, output.text
    is_hidden = hides_exit_code(command)
    if output.exit_code and is_hidden and is_test(command) and test_counts(text):
        return fails_tests(text) or reports_error(text)
    if output.exit_code not in (None, 0) and text.strip():
        return looks_like_error(text) or is_test(command) or any(map(names_error, text.split("\n")))
    if output.has_failed or (is_test(command) and fails_tests(text)):
        return True
    return is_hidden and not test_counts(text) and reports_error(text)


def _rank(failure: Failure) -> int:
    if failure.ending in ("open", "refused", "declined") and not (failure.since or failure.later):
        return 0
    return 1 if failure.times > 1 else 2 if failure.label.startswith("$ ") else 3


def _lines(failure: Failure, known: str) -> Iterator[str]:
    then = _outcome(failure)
    times = f" failed {failure.times} times" if failure.times > 1 else ""
    mark = f" {recall_mark(failure.entry_id)}" if failure.entry_id else ""
    if not failure.label.startswith("$ ") and failure.ending in ("passed", "failed"):
        tool, _, path = failure.label.partition(" ")
        what = f"{tool} {PurePosixPath(path).name}".strip()
        yield f"- {what}{times}: {then}{mark} {one_line(' '.join(failure.lines), _CODE_CHARS)}"
        return
    yield f"- {one_line(failure.label, _LABEL_CHARS)}{times}: {then}{mark}"
    is_over = failure.ending in ("passed", "failed")
    is_brief = is_over and is_test(failure.label.removeprefix("$ "))
    yield from (
        f"  {one}" for one in (_decisive_lines(failure) if is_brief else failure.lines) if one
    )
    if failure.said and not is_over and _plain(failure.said).rstrip("…") not in known:
        yield f"  you replied: {failure.said}"
    if failure.steps:
        is_solved = failure.ending == "passed"
        yield f"  {'until then' if is_solved else 'tried'}: {'; '.join(failure.steps)}"


def _outcome(failure: Failure) -> str:
    """How `failure` ended."""
    if failure.ending in ("passed", "settled"):  # earlier versions kept the command alone
        return "passed later" if failure.later[:2] in ("", "$ ") else failure.later
    since = ", ".join(PurePosixPath(path).name for path in failure.since[-_MOST_STEPS:])
    if failure.ending == "open" and failure.later:
        as_run = one_line(failure.later.removeprefix("$ "), _LABEL_CHARS)
        return f"the tests named here passed later as `{as_run}`"
    if failure.ending == "open" and since:
        return f"not tried again since {since} changed"
    return _ENDINGS.get(failure.ending, failure.ending)


def _is_named(failure: Failure, notes: Iterable[str]) -> bool:
    """Whether one of `notes` has a message of `failure`: most of its words.

    Plain words count only beside the name of what was run or of its target, an error code, or an
    identifier. The place of the error and the name of the command alone name nothing. A number of
    failed tests identifies their run, and so do words in a row, or quoted ones with gaps.
    """
    command = failure.label.removeprefix("$ ")
    runs = _runs_of_label(failure.label)
    subjects = {run.words[-1] for run in runs if run.words}
    subjects |= {PurePosixPath(target).name for run in runs for target in run.targets} - {""}
    texts = (messages := _messages(failure)) or [command]
    counts = _FAILED_COUNT.findall("\n".join(failure.lines)) if is_test(command) else []

    def has(note: str) -> bool:
        if any(_quotes(note, text) for text in messages):
            return True
        if any(count in counts for count in _FAILED_COUNT.findall(note)):
            return True
        said = set(map(str.lower, _WORD.findall(note)))
        is_sure = any(subject in note for subject in subjects)
        for words in map(set, map(_WORD.findall, texts)):
            found = [word for word in words if word.lower() in said]
            is_most = len(found) >= max(_NAMED_SHARE * len(words), 1)
            if is_most and (is_sure or any(map(_DECISIVE.search, found))):
                return True
        return False

    return any(map(has, notes))


def _quotes(note: str, message: str) -> bool:
    """Whether `note` has some words in a row of `message`, or quotes it, perhaps with gaps."""
    note, message = note.casefold(), _plain(message).casefold()
    words, quoted = message.split(), map(_GAP.split, _QUOTED.findall(note))
    runs = (" ".join(words[at : at + _WORDS]) for at in range(len(words) - _WORDS + 1))
    parts = ([part for part in one if part] for one in quoted)
    long = (one for one in parts if len(" ".join(one).split()) >= _QUOTED_WORDS)
    return any(run in note for run in runs) or any(
        re.search(".*".join(map(re.escape, one)), message) for one in long
    )


def _decisive_lines(failure: Failure) -> list[str]:
    """The lines that name the error of `failure`, else those that mention one.

    Of a command that the user refused they are its first ones. If it did not pass, all explain it.
    """
    if failure.ending in _EXPLAINED:
        return [*failure.lines]
    if failure.ending == "declined":
        return [*failure.lines[:_BRIEF_LINES]]
    naming = list(filter(names_error, failure.lines))
    return error_lines("\n".join(naming or failure.lines), _BRIEF_LINES)


def _messages(failure: Failure) -> list[str]:
    """The decisive lines without the places, which change from run to run."""
    return list(map(without_place, _decisive_lines(failure)))


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def _lines_of(output: Output) -> tuple[str, ...]:
    """The lines of the error, word for word; none for lookups and what was interrupted.

    No search match or a missing file is no error. What a shown file says of errors is none either;
    what the command itself says comes last.
    """
    if output.ending == "declined":  # what it would have written is nowhere else
        lines = list(filter(str.strip, output.action.command.split("\n")))
        if len(lines) > 2 * _END_LINES:
            lines = [*lines[:_END_LINES], "[...]", *lines[-_END_LINES:]]
        return tuple(lines) if len(lines) > 1 else ("",)
    if output.refusal:
        return (one_line(output.text, _LINE_CHARS),)
    command = output.action.command
    is_look = bool(command) and is_looking_around(command) and "rror" not in last_line(output.text)
    if is_look or output.action.kind == "read":
        return ()
    lines = error_lines(output.text, _MOST_LINES, around=1)
    if is_test(command) and (counts := test_counts(output.text)) and counts not in lines:
        lines.append(counts)
    return tuple(line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…" for line in lines)


def _only_in(output: Output, now: Set[str]) -> tuple[str]:
    """One line with what only a refused change would have written; empty if it wrote nothing."""
    text, edits = text_of_change(output.action), edits_in(output.action.arguments)
    known = {*now, *(line.strip() for old, _, _ in edits for line in old.split("\n"))}
    lines = [line for line in map(str.strip, text.split("\n")) if line not in known]
    if only := " ⏎ ".join(filter(says_something, lines)):
        return (f"would have written: {one_line(only, _BRIEF_LABEL_CHARS)}",)
    return ("written later" if text else "",)


def _ending_of(output: Output) -> Literal["open", "declined", "refused"]:
    if output.ending == "declined":
        return "declined"
    return "refused" if output.refusal else "open"


def _names(failure: Failure, output: str = "") -> frozenset[str]:
    texts = (failure.label, *failure.lines, output)
    return frozenset(name for text in texts for name in _FILE_NAME.findall(text))


def _step(event: Done, changed: Sequence[str], now: Set[str] | None = None) -> str:
    """What `event` did; of an edit, only what it changed that is so in the lines `now`, if any."""
    action = event.output.action
    if action.command:
        return f"$ {one_line(without_folder(action.command), _STEP_CHARS)}"
    name = PurePosixPath(next(iter(changed), action.path)).name
    made = edits_in(action.arguments)
    edits = [change for old, new, _ in made if (change := _change(old, new, now))]
    if made and not edits and now is not None:
        return ""
    return f"{action.tool} {name}{f': {edits[0]}' if edits else ''}"


def _change(old: str, new: str, now: Set[str] | None) -> str:
    """The beginning of the lines that an edit removed, and of those that it added."""
    before, after = ([line.strip() for line in text.split("\n")] for text in (old, new))
    gone = [line for line in before if line and line not in after]
    came = [line for line in after if line and line not in before]
    if now is not None:
        stands = [line for line in came if line in now and re.search(r"\w", line)]
        gone = [line for line in gone if line not in now and (stands or not came)]
        came = stands
    if not gone and not came:
        return ""
    shown = (one_line(" ⏎ ".join(lines), _CODE_CHARS) for lines in (gone, came))
    return " -> ".join(f"`{text}`" if text else "nothing" for text in shown)


def _shown_steps(steps: Sequence[str], failure: Failure) -> tuple[str, ...]:
    """Of `steps` those that name what the error of `failure` names, then the last and first."""
    distinct = list(dict.fromkeys(steps))
    telling = [distinct.index(step) for step in _telling(distinct, failure)]
    numbers = range(len(distinct))
    order = dict.fromkeys((*telling[1 - _MOST_STEPS :], *numbers[-1:], *numbers))
    places = sorted([*order][:_MOST_STEPS])
    gaps = (("…",) * (at - before > 1) for before, at in pairwise([-1, *places]))
    shown = zip(gaps, places, strict=True)
    return tuple(step for gap, at in shown for step in (*gap, distinct[at]))


def _curing_steps(one: _Tracked, now: Sequence[str], prose: Set[str]) -> tuple[str, ...]:
    """Of the steps until `one` passed, those about what its error names, and the last.

    `now` is each as far as it still stands, else empty. A step in `prose` is the last if all are.
    """
    telling = _telling(one.steps, one.failure)
    steps = [*zip(one.steps, now, strict=True)]
    cures = [left for step, left in steps if step in one.near or step in telling]
    last = [left for step, left in steps if step not in prose][-1:] or now[-1:]
    return _shown_steps([left for left in (*cures, *last) if left], one.failure)


def _telling(steps: Sequence[str], failure: Failure) -> list[str]:
    """Those of `steps` that have an identifier or a quoted word of the error of `failure`."""
    text = " ".join(_messages(failure))
    names = {word for word in _WORD.findall(text) if _DECISIVE.search(word) or f"'{word}'" in text}
    return [step for step in steps if any(name in step for name in names)]


def _runs_of_label(label: str) -> tuple[CommandRun, ...]:
    if label.startswith("$ "):
        return runs_of(label[2:])
    tool, _, path = label.partition(" ")
    return (_call(tool, path),)


def _call(tool: str, path: str) -> CommandRun:
    return CommandRun((tool,), frozenset([path] if path else ()))
