"""Calls that failed: their errors, what followed, and which of them are still open."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from agent_tui.compaction.ledger.files import files_of, normalise_path
from agent_tui.compaction.sections.commands import (
    CommandRun,
    covers_all,
    is_looking_around,
    reaches,
    runs_of,
    without_folder,
)
from agent_tui.compaction.sections.file_views import edits_in
from agent_tui.compaction.sections.history import Done, HistoryEvent, Replied
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
    test_counts,
)
from agent_tui.sessions.shell_files import programs_run
from agent_tui.tokens import TokenCounter

MOST_OPEN = 12
_MOST = 60
_MOST_LINES = 4
_END_LINES = 4
"""Of the text of a refused command, so many lines stay at each end."""

_MOST_STEPS, _MOST_NOTED_STEPS = 3, 200
_LABEL_CHARS = 140
_LINE_CHARS = 240
_SAID_CHARS = 240
_STEP_CHARS = 110
_CODE_CHARS = 90
_LOOKED_AT_CHARS = 20_000
_FILE_NAME = re.compile(r"(?<![\w.-])[\w-][\w.-]*\.\w+")
_NAMED_CHARS = 40
"""A failure counts as named by notes that have so many characters of its error."""

_NOTE = re.compile(r"\n(?=[-*#\d]|\s*\n)")
"""Between two points of notes."""

_TOKEN = re.compile(r"[\w$][\w$./:-]*[\w$]")
_DECISIVE = re.compile(r"[^\W\d].*\d|_|[a-z][A-Z]|::|:\d")
_QUOTED = re.compile(r"(?<!\w)(['\"`])([^'\"`\n]{3,60})\1")
_LONG_WORD = re.compile(r"[^\W\d]{4,}")


@dataclass(slots=True)
class _Tracked:
    """A failure while the events after it are read; `names` are names of files in its `output`."""

    failure: Failure
    runs: tuple[CommandRun, ...]
    names: frozenset[str] = frozenset()
    steps: list[str] = field(default_factory=list[str])
    output: str = ""

    @property
    def is_open(self) -> bool:
        return self.failure.ending == "open"

    def update(self, **values: object) -> None:
        self.failure = self.failure.model_copy(update=values)

    def is_solved_by(self, command: str, runs: tuple[CommandRun, ...]) -> bool:
        """Whether the success of `command` shows that what failed now works.

        It also does if the failed command itself said to run `command`: ``git push`` does.
        """
        is_advice = any(_is_similar(runs, [run]) for run in self.runs) and any(
            " ".join((name, *arguments)) in self.output
            for name, arguments in programs_run(command)
            if arguments
        )
        return is_advice or covers_all(runs, self.runs)

    def concerns(self, path: str) -> bool:
        """Whether the command or its error names the file at `path`."""
        named = (target.removeprefix("./") for run in self.runs for target in run.targets)
        is_inside = any(t in (".", "...") or reaches(t, path) for t in named)
        return PurePosixPath(path).name in self.names or is_inside


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
        self._found = [_Tracked(one, _runs_of_label(one.label), _names(one)) for one in earlier]
        self._unexplained: list[_Tracked] = []

    def read(self, events: Iterable[HistoryEvent]) -> tuple[Failure, ...]:
        """The failures after `events`, oldest first."""
        for event in events:
            if isinstance(event, Done):
                self._read(event)
            elif isinstance(event, Replied):
                for one in self._unexplained:
                    one.update(said=one_line(event.text, _SAID_CHARS))
                self._unexplained = []
        return tuple(one.failure for one in self._found)

    def _read(self, event: Done) -> None:
        output = event.output
        is_text = output.ending == "declined" and "\n" in output.action.command
        if output.ending == "cancelled" or (output.said and not is_text):
            return
        runs = self._runs_of(output)
        if not has_failed(output) and not output.ending and not output.refusal:
            for one in self._found if output.exit_code in (None, 0) else ():
                if one.is_open and one.is_solved_by(output.action.command, runs):
                    label = self._label(output)
                    later = label if label != one.failure.label else ""
                    one.update(ending="passed", steps=_shown_steps(one.steps), later=later)
            self._note_step(event, runs)
        elif lines := _lines_of(output):
            self._add(event, runs, lines)

    def _add(self, event: Done, runs: tuple[CommandRun, ...], lines: tuple[str, ...]) -> None:
        output = event.output
        before = next((one for one in reversed(self._found) if one.runs == runs), None)
        times, steps = 1, list[str]()
        if before is not None and before.is_open:
            if before.failure.lines == lines:
                self._found.remove(before)
                times, steps = before.failure.times + 1, before.steps
            else:
                before.update(ending="failed", steps=_shown_steps(before.steps))
        failure = Failure(
            label=self._label(output),
            lines=lines,
            entry_id=event.entry_id,
            times=times,
            ending=_ending_of(output),
        )
        said = output.text[-_LOOKED_AT_CHARS:]
        new = _Tracked(failure, runs, _names(failure, said), steps, said)
        self._found = [*self._found[1 - _MOST :], new]
        self._unexplained.append(new)

    def _note_step(self, event: Done, runs: tuple[CommandRun, ...]) -> None:
        """Note for each open failure what `event` changed or ran."""
        changed = [normalise_path(path, self._folders) for path in files_of(event).modified]
        command = event.output.action.command
        step = _step(event, changed) if changed or _acts(command) else ""
        for one in self._found if step else ():
            if not one.is_open:
                continue
            if since := [path for path in changed if path and one.concerns(path)]:
                one.update(since=tuple(dict.fromkeys((*one.failure.since, *since))))
            if len(one.steps) < _MOST_NOTED_STEPS:
                one.steps.append(step)
            if command and not one.failure.later and _is_similar(runs, one.runs):
                one.update(later=self._label(event.output))

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
    return lines_of_open(FailureReader(folders, map(failure_of_line, earlier)).read(events))


def lines_of_open(failures: Iterable[Failure]) -> tuple[str, ...]:
    """The open ones of `failures`, each as ``$ command => message``."""
    found = [one for one in failures if one.ending == "open" and not one.since]
    lines = (f"{one.label} => {error_text(chr(10).join(one.lines))}" for one in found)
    return tuple(lines)[-MOST_OPEN:]


def failure_of_line(line: str) -> Failure:
    """The failure that a line of `lines_of_open` describes."""
    label, _, message = line.partition(" => ")
    return Failure(label=label, lines=(message,))


def failures_that_fit(
    failures: Sequence[Failure],
    *,
    notes: str,
    elsewhere: str,
    room_tokens: int,
    counter: TokenCounter,
) -> list[str]:
    """A few lines for each failure that fits, the newest first.

    Open and repeated ones have priority, then commands, then calls of other tools.

    Args:
        failures: Oldest first.
        notes: A model's notes; a failure that they name is left out.
        elsewhere: Text that is in the context anyway; replies that it has are not repeated.
        room_tokens: Limit of all together.
        counter: Counts their tokens.
    """
    noted, known = [_plain(note) for note in _NOTE.split(notes)], _plain(elsewhere)
    taken: dict[int, list[str]] = {}
    places = [at for at, one in enumerate(failures) if not _is_named(one, noted)]
    for at in sorted(places, key=lambda at: (_rank(failures[at]), -at)):
        lines = list(_lines(failures[at], known))
        tokens = counter.count_text("\n".join(lines)) + 1
        if tokens <= room_tokens:
            taken[at] = lines
            room_tokens -= tokens
    return [line for at in sorted(taken, reverse=True) for line in taken[at]]


def has_failed(output: Output) -> bool:
    """Whether the action failed, as its program, its error or its count of tests says.

    An exit code alone may be an answer: that lines differ, or that a check is still running.
    """
    if output.exit_code not in (None, 0) and output.text.strip():
        return looks_like_error(output.text) or is_test(output.action.command)
    return output.has_failed or (is_test(output.action.command) and fails_tests(output.text))


def _rank(failure: Failure) -> int:
    if failure.ending in ("open", "refused", "declined") and not failure.since:
        return 0
    return 1 if failure.times > 1 else 2 if failure.label.startswith("$ ") else 3


def _lines(failure: Failure, known: str) -> Iterator[str]:
    times = f" failed {failure.times} times" if failure.times > 1 else ""
    since = ", ".join(PurePosixPath(path).name for path in failure.since[-_MOST_STEPS:])
    as_run = failure.later.removeprefix("$ ")
    match failure.ending:
        case "passed":
            then = (
                f"passed later as `{one_line(as_run, _LABEL_CHARS)}`" if as_run else "passed later"
            )
        case "failed":
            then = "failed in another way later"
        case "declined":
            then = "refused by the user"
        case "refused":
            then = "refused"
        case "open":
            then = f"not tried again since {since} changed" if since else "open"
    mark = f" {recall_mark(failure.entry_id)}" if failure.entry_id else ""
    if not failure.label.startswith("$ ") and failure.ending in ("passed", "failed"):
        tool, _, path = failure.label.partition(" ")
        what = f"{tool} {PurePosixPath(path).name}".strip()
        yield f"- {what}{times}: {then}{mark} {one_line(' '.join(failure.lines), _CODE_CHARS)}"
        return
    yield f"- {one_line(failure.label, _LABEL_CHARS)}{times}: {then}{mark}"
    yield from (f"  {line}" for line in failure.lines if line)
    if failure.said and _plain(failure.said).rstrip("…") not in known:
        yield f"  you replied: {failure.said}"
    if failure.steps:
        what = "until then" if failure.ending == "passed" else "tried"
        yield f"  {what}: {'; '.join(failure.steps)}"
    if failure.later and failure.ending == "open":
        yield f"  a similar command later: {failure.later}"


def _is_named(failure: Failure, notes: Iterable[str]) -> bool:
    """Whether one of `notes` tells of `failure`, in its own words or in those of the error.

    It has a long piece of the error, or two of its decisive tokens, such as an exception class, the
    id of a test or the place in a file; or one of them, or most words of a line, beside the name of
    what was run or of its target.
    """
    command = _plain(failure.label.removeprefix("$ "))
    lines = [line for line in map(_plain, failure.lines) if line]
    places = [(line, word.start()) for line in lines for word in re.finditer(r"\S+", line)]
    parts = [line[at : at + _NAMED_CHARS] for line, at in places]
    parts = [part for part in parts if len(part) == _NAMED_CHARS] or ([] if lines else [command])
    decisive = {token for line in lines for token in _decisive_tokens(line)}
    decisive = {token for token in decisive if token not in command}
    words = [set(map(str.lower, _LONG_WORD.findall(line))) for line in lines]
    runs = _runs_of_label(failure.label)
    subjects = {run.words[-1] for run in runs}
    subjects |= {PurePosixPath(target).name for run in runs for target in run.targets} - {""}

    def tells(note: str) -> bool:
        if any(part in note for part in parts):
            return True
        found = sum(token in note for token in decisive)
        if found > 1 or not any(subject in note for subject in subjects):
            return found > 1
        said = set(map(str.lower, _LONG_WORD.findall(note)))
        told = (3 * len(line & said) >= 2 * len(line) for line in words if len(line) > 1)
        return found > 0 or any(told)

    return any(map(tells, notes))


def _decisive_tokens(line: str) -> Iterator[str]:
    """What tells the error in `line` from others, without the paths of files."""
    for token in (*_TOKEN.findall(line), *(text for _, text in _QUOTED.findall(line))):
        if (_DECISIVE.search(token) or f"'{token}'" in line) and not (
            "/" in token and ":" not in token
        ):
            yield token.rpartition("::")[2]


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


def _ending_of(output: Output) -> Literal["open", "declined", "refused"]:
    if output.ending == "declined":
        return "declined"
    return "refused" if output.refusal else "open"


def _names(failure: Failure, output: str = "") -> frozenset[str]:
    texts = (failure.label, *failure.lines, output)
    return frozenset(name for text in texts for name in _FILE_NAME.findall(text))


def _acts(command: str) -> bool:
    return bool(command) and not is_looking_around(command) and not is_test(command)


def _is_similar(done: Sequence[CommandRun], failed: Sequence[CommandRun]) -> bool:
    """Whether all that failed ran again, with other options or on other targets."""
    return bool(failed) and all(
        any(run.words[: len(one.words)] == one.words for run in done) for one in failed
    )


def _step(event: Done, changed: Sequence[str]) -> str:
    action = event.output.action
    if action.command:
        return f"$ {one_line(without_folder(action.command), _STEP_CHARS)}"
    name = PurePosixPath(next(iter(changed), action.path)).name
    edits = [change for old, new, _ in edits_in(action.arguments) if (change := _change(old, new))]
    return f"{action.tool} {name}{f': {edits[0]}' if edits else ''}"


def _change(old: str, new: str) -> str:
    """The beginning of the lines that an edit removed, and of those that it added."""
    before, after = ([line.strip() for line in text.split("\n")] for text in (old, new))
    gone = [line for line in before if line and line not in after]
    came = [line for line in after if line and line not in before]
    if not gone and not came:
        return ""
    shown = (one_line(" ⏎ ".join(lines), _CODE_CHARS) for lines in (gone, came))
    return " -> ".join(f"`{text}`" if text else "nothing" for text in shown)


def _shown_steps(steps: Sequence[str]) -> tuple[str, ...]:
    """The first and the last of `steps`."""
    distinct = list(dict.fromkeys(steps))
    if len(distinct) <= _MOST_STEPS:
        return tuple(distinct)
    first = _MOST_STEPS - 1
    return (*distinct[:first], "…", distinct[-1])


def _runs_of_label(label: str) -> tuple[CommandRun, ...]:
    if label.startswith("$ "):
        return runs_of(label[2:])
    tool, _, path = label.partition(" ")
    return (_call(tool, path),)


def _call(tool: str, path: str) -> CommandRun:
    return CommandRun((tool,), frozenset([path] if path else ()))
