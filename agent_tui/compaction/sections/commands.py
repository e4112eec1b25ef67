"""Shell commands: what they run on which targets, and failures that no later success resolved."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_tui.compaction.ledger.shell_files import programs_run, shell_changes
from agent_tui.compaction.sections.history import Done, HistoryEvent
from agent_tui.compaction.tiers.model import Output
from agent_tui.compaction.tiers.outputs import error_text, last_line, looks_like_error
from agent_tui.omissions import one_line

_COMMAND_CHARS = 200
_PREPARING = frozenset({"cd", "set", "export", "source", ".", "true", "unset", "pushd", "popd"})
_LOOKING = frozenset(
    {
        *("ls", "cat", "nl", "head", "tail", "grep", "egrep", "rg", "ag", "find", "fd", "tree"),
        *("wc", "pwd", "which", "type", "file", "stat", "du", "df", "sort", "uniq", "cut", "tr"),
        *("less", "more", "echo", "printf", "env", "date", "ps", "jq", "diff", "column", "awk"),
        *("sleep", "wait", "test", "[", "whoami", "hostname", "uname", "realpath"),
    }
)
_LOOKING_OF_GIT = frozenset(
    {"status", "log", "diff", "show", "grep", "blame", "branch", "remote", "ls-files", "rev-parse"}
)
_SHOWING = frozenset({"show", "list", "view", "ready"})
_ASKING = frozenset({"--version", "--help", "-V"})
_ACTING = re.compile(r"-(?:delete|ok|exec(?:dir)?)")
_TARGET = re.compile(r"[./:]|^-$|\s")
_INLINE = "-"
"""The target of a program that runs a text given on the command line."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """What a command runs: `words` from the program to the task (``npm run test``).

    `targets` are the arguments that look like files, folders and single tests, `values` the other
    values of options.
    """

    words: tuple[str, ...]
    targets: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()

    def with_targets(self, other: "CommandRun") -> "CommandRun":
        """This run, also on the targets of `other`; a run without targets covers all."""
        if not self.targets or not other.targets:
            return self if not self.targets else other
        return CommandRun(self.words, self.targets | other.targets, self.values | other.values)

    def covers(self, other: "CommandRun") -> bool:
        """Whether the success of this run shows that what failed in `other` now works.

        It does if the same task ran on the same targets or more; no targets means all. The last
        word identifies a task, however it was started (``uv run pytest``, ``npm run test``).
        """
        folders = {w for w in self.words[1:] if any(_reaches(w, to) for to in other.targets)}
        task = [word for word in self.words if word not in folders][-1:]
        if task != list(other.words[-1:]) or not self.values <= other.values:
            return False
        targets = self.targets | folders
        if not targets or "./..." in targets:
            return True
        return bool(other.targets) and all(
            any(_reaches(own, target) for own in targets) for target in other.targets
        )


@lru_cache(maxsize=1_024)
def runs_of(command: str) -> tuple[CommandRun, ...]:
    """What `command` runs, without programs that only prepare or show something."""
    programs = _acting(command) or programs_run(command)[:1]
    return tuple(_run(*one, has_text="<<" in command) for one in programs)


def _acting(command: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The programs in `command` that do more than prepare or show something."""
    programs = programs_run(command)
    return tuple(one for one in programs if one[0] not in _PREPARING and not _looks(*one))


def covers_all(done: tuple[CommandRun, ...], failed: tuple[CommandRun, ...]) -> bool:
    """Whether the success of `done` shows that everything in `failed` now works.

    A program may have run once on several targets, or once for each.
    """
    together: dict[tuple[str, ...], CommandRun] = {}
    for run in done:
        before = together.get(run.words)
        together[run.words] = run if before is None else before.with_targets(run)
    runs = (*done, *together.values())
    return all(any(run.covers(other) for run in runs) for other in failed)


def _run(name: str, arguments: Sequence[str], *, has_text: bool) -> CommandRun:
    words, targets, values = [re.sub(r"[\d.]+$", "", name) or name], set[str](), set[str]()
    before = ""
    for word in arguments:
        if _TARGET.search(word):
            targets.add(_INLINE if re.search(r"[\s;]|\)$", word) else word)
        elif before == "-m" and words[-1].startswith("python"):
            words.append(word)
        elif before.startswith("-") and "=" not in before:
            values.add(word)
        elif not word.startswith("-") and not word.isdigit():
            words.append(word)
        before = word
    if has_text and not arguments:
        targets.add(_INLINE)
    return CommandRun(
        tuple(words), frozenset(targets), frozenset(v for v in values if v[:1] != "-")
    )


def _reaches(own: str, target: str) -> bool:
    """Whether a run on `own` includes `target`, which may be a part of it."""
    whole = own.removesuffix("...").rstrip("/")
    return target in (own, whole) or target.startswith((f"{whole}/", f"{own}::"))


@lru_cache(maxsize=1_024)
def is_looking_around(command: str) -> bool:
    """Whether `command` only shows something: it changes and checks nothing."""
    touched = shell_changes(command).touches
    if touched.written or touched.edited:
        return False
    return all(name in _PREPARING or _looks(name, words) for name, words in programs_run(command))


def _looks(name: str, arguments: Sequence[str]) -> bool:
    plain = [word for word in arguments if not word.startswith("-")]
    if name == "xargs":
        return bool(plain) and _looks(plain[0], plain[1:])
    if name == "git":
        return not _LOOKING_OF_GIT.isdisjoint(plain[:2])
    if name == "sed":
        return any(re.fullmatch(r"-\w*n\w*", word) for word in arguments)
    if name in _LOOKING:
        return not any(map(_ACTING.match, arguments))
    shows = not _SHOWING.isdisjoint(plain[:2]) and name not in ("rm", "mv", "cp")
    return shows or not _ASKING.isdisjoint(arguments)


def without_folder(command: str) -> str:
    """`command` on one line, without the ``cd`` commands at its beginning."""
    return one_line(re.sub(r"^\s*(?:cd\s+[^&;\n]+(?:&&|;|\n)\s*)+", "", command), _COMMAND_CHARS)


def commands_run(events: Iterable[HistoryEvent]) -> tuple[str, ...]:
    """The distinct commands that did something, the most recent last."""
    found: dict[object, str] = {}
    for event in events:
        if isinstance(event, Done) and (command := event.output.action.command):
            if is_looking_around(command):
                continue
            shown = without_folder(command)
            key = shown if "<<" in command else _acting(command) or shown
            found.pop(key, None)
            found[key] = shown
    return tuple(dict.fromkeys(reversed(found.values())))[::-1]


_MOST = 12


@dataclass(frozen=True, slots=True)
class OpenError:
    """The runs that failed; `text` is one line with the command and its message."""

    runs: tuple[CommandRun, ...]
    text: str


def open_errors(events: Iterable[HistoryEvent], earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """Errors, oldest first, that no later success of the same program on the same target resolved.

    Args:
        events: The conversation.
        earlier: Errors passed on by a parent session, each as ``$ command => message``, oldest
            first; they are resolved in the same way.
    """
    found = _still_open(events, [OpenError(_runs_of_line(line), line) for line in earlier])
    return tuple(error.text for error in found[-_MOST:])


def _still_open(events: Iterable[HistoryEvent], earlier: Sequence[OpenError]) -> list[OpenError]:
    found = list(earlier)
    for event in events:
        if not isinstance(event, Done):
            continue
        runs = _runs_of(event.output)
        has_failed = _has_failed(event.output)
        if has_failed:
            message = error_text(event.output.text)
            if not message or _is_a_look(event.output):
                continue
            found = [error for error in found if error.runs != runs]
            text = f"{_label(event.output)} => {message}"
            found.append(OpenError(runs, text))
        else:
            found = [error for error in found if not covers_all(runs, error.runs)]
    return found


def _has_failed(output: Output) -> bool:
    if output.has_failed:
        return True
    return output.exit_code not in (None, 0) and looks_like_error(output.text)


def _is_a_look(output: Output) -> bool:
    """Whether `output` answers a lookup: no search match or a missing file is no error.

    What a shown file says of errors is none either; what the command itself says comes last.
    """
    command = output.action.command
    return bool(command) and is_looking_around(command) and "rror" not in last_line(output.text)


def _runs_of(output: Output) -> tuple[CommandRun, ...]:
    action = output.action
    if action.command:
        return runs_of(action.command)
    return (_call(action.tool, action.path),)


def _call(tool: str, path: str) -> CommandRun:
    return CommandRun((tool,), frozenset([path] if path else ()))


def _label(output: Output) -> str:
    action = output.action
    return (
        f"$ {without_folder(action.command)}" if action.command else f"{action.tool} {action.path}"
    )


def _runs_of_line(line: str) -> tuple[CommandRun, ...]:
    label = line.partition(" => ")[0]
    if label.startswith("$ "):
        return runs_of(label[2:])
    tool, _, path = label.partition(" ")
    return (_call(tool, path),)
