"""Shell commands: what they run on which targets, and whether they only show something."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import TypeAlias

from agent_tui.omissions import one_line
from agent_tui.sessions.actions import Output
from agent_tui.sessions.outputs import is_test
from agent_tui.sessions.shell_files import (
    changes_only_named,
    pipelines_run,
    programs_run,
    shell_changes,
)

_COMMAND_CHARS, _RAN_CHARS = 200, 140
_IN_FOLDER = re.compile(r"^\s*(?:cd\s+[^&;\n]+(?:&&|;|\n)\s*)+")

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
_OF_WORKING_TREE = frozenset({"status", "diff"})
_SHOWING = frozenset({"show", "list", "view", "ready"})
_ASKING = frozenset({"--version", "--help", "-V"})
_ACTING = re.compile(r"-(?:delete|ok|exec(?:dir)?)")
_TARGET = re.compile(r"[./:]|^-$|\s")
_COMMITS = re.compile(r"\bgit\s+(?:-[cC]\s+\S+\s+)*commit\b(?!.*--dry-run)")
_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n")
_VIEWED = re.compile(r"\s*(?:2>&1\s*)?(?:\|\s*(?:head|tail)\b.*)?$", re.DOTALL)
_PATH = re.compile(r"^[^\s|*?(){}\\]*[./][^\s|*?(){}\\]*$")
_WITHIN = re.compile(r"/|::")
_FLAGS = re.compile(r"-[qsvx]+")
"""Quiet, silent, verbose, stop at the first failure: most programs give these no value."""

_MOST_LEVELS = 100
"""Looked up are so many folders of a target, outermost first: each takes the time of its length."""

_EVERYWHERE = "./..."
"""The target of Go's tools that includes all others."""

_INLINE = "-"
"""The target of a program that runs a text given on the command line."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """What a command runs: `words` from the program to the task (``npm run test``).

    `targets` are the arguments that look like files, folders and single tests, `values` the other
    values of options. Those that `may_be_operands` follow a flag that usually takes no value.
    `as_run` is all of it.
    """

    words: tuple[str, ...]
    targets: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    as_run: str = field(default="", compare=False)
    may_be_operands: frozenset[str] = field(default=frozenset(), compare=False)

    def covers(self, other: "CommandRun") -> bool:
        """Whether the success of this run shows that what failed in `other` now works.

        It does if the same task ran on the same targets or more; no targets means all. The last
        word identifies a task, however it was started (``uv run pytest``, ``npm run test``). A word
        may be a folder, and so may what follows a flag: ``pytest -q tests``.
        """
        may_be = (*self.words[1:], *self.may_be_operands - other.values)
        folders = {w for w in may_be if any(reaches(w, to) for to in other.targets)}
        task = [word for word in self.words if word not in folders][-1:]
        is_same = other.words[-1:] in (self.words[-1:], tuple(task))
        if not is_same or not self.values - folders <= other.values:
            return False
        targets = self.targets | folders
        if not targets or _EVERYWHERE in targets:
            return True
        return bool(other.targets) and all(
            any(reaches(own, target) for own in targets) for target in other.targets
        )

    def is_same_program(self, other: "CommandRun") -> bool:
        """Whether one's words end the other's, without targets, or both begin alike."""
        words = self.words[:1] + tuple(w for w in self.words[1:] if w not in other.targets)
        least = min(len(words), len(other.words))
        return words[0] == other.words[0] or words[-least:] == other.words[-least:]


Runs: TypeAlias = tuple[CommandRun, ...]
"""What one command runs."""


@lru_cache(maxsize=1_024)
def runs_of(command: str) -> Runs:
    """What `command` runs, without programs that only prepare or show something."""
    programs = _acting(command) or programs_run(command)[:1]
    if commits(command):  # staging is part of it
        programs = [one for one in programs if one[0] != "git" or one[1][:1] != ("add",)]
    return tuple(_run(*one, has_text="<<" in command) for one in programs)


def _acting(command: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The programs in `command` that do more than prepare or show something."""
    programs = programs_run(command)
    return tuple(one for one in programs if one[0] not in _PREPARING and not _looks(*one))


class PassedRuns:
    """The runs that passed; looking up what they cover takes no longer if they are many."""

    def __init__(self) -> None:
        self._found: defaultdict[tuple[str, str], dict[CommandRun, None]] = defaultdict(dict)

    def add(self, runs: Runs) -> None:
        """Add what one command ran."""
        for run in runs:
            reached = (*run.targets, *run.words[1:], *run.values)
            places = {*reached, *map(_folder, reached)}
            for place in places if run.targets else places.union(run.words[-1:]):
                for value in {min(run.values, default=""), ""}:
                    self._found[place, value][run] = None

    def cover(self, failed: Runs) -> bool:
        """Whether everything in `failed` now works, as `CommandRun.covers` says of each target."""
        return bool(failed) and all(
            any(run.covers(one) for run in self._near(one))
            for many in failed
            for one in ([replace(many, targets=frozenset([to])) for to in many.targets] or [many])
        )

    def _near(self, failed: CommandRun) -> Iterator[CommandRun]:
        """The runs on everything, or on what the target of `failed` is part of."""
        target = next(iter(failed.targets), "")
        ends = islice(_WITHIN.finditer(target), _MOST_LEVELS)
        within = (target[: at.start()] for at in ends)
        for place in (*failed.words[-1:], _EVERYWHERE, target, *within):
            for value in ("", *failed.values):
                yield from self._found.get((place, value), ())


def how_passed(failed: Runs, later: Runs) -> str:
    """How `later`, whose success shows that `failed` works, did: a clause.

    Only the same program on the same target passed later. It may be started by another, and be told
    in a part of its words (``npm test``).
    """
    shown = [run for run in later if any(map(run.covers, failed))] or later
    ran = f"`{one_line(' && '.join(run.as_run for run in shown), _RAN_CHARS)}`"
    if {run.as_run for run in failed} <= {run.as_run for run in shown}:
        return "passed later"
    if not all(any(run.is_same_program(old) for old in failed) for run in shown):
        return f"not run again, but {ran} passed since"
    if {run.targets for run in shown} != {run.targets for run in failed}:
        return f"passed later within {ran}"
    is_alike = {run.words for run in shown} == {run.words for run in failed}
    return f"passed later {'with other options:' if is_alike else 'as'} {ran}"


def _run(name: str, arguments: Sequence[str], *, has_text: bool) -> CommandRun:
    words, targets, values = [re.sub(r"[\d.]+$", "", name) or name], set[str](), set[str]()
    before = ""
    for word in arguments:
        if _TARGET.search(word) and not word.startswith("--"):
            targets.add(_INLINE if re.search(r"[\s;]|\)$", word) else word)
        elif before == "-m" and words[-1].startswith("python"):
            words[-1] = word
        elif before.startswith("-") and "=" not in before:
            values.add(word)
        elif not word.startswith("-") and not word.isdigit():
            words.append(word)
        before = word
    if has_text and not arguments:
        targets.add(_INLINE)
    options = frozenset(value for value in values if value[:1] != "-")
    as_run = " ".join((name, *arguments))
    flagged = {word for before, word in pairwise(arguments) if _FLAGS.fullmatch(before)}
    return CommandRun(tuple(words), frozenset(targets), options, as_run, options & flagged)


def reaches(own: str, target: str) -> bool:
    """Whether a run on `own` includes `target`, which may be a part of it."""
    whole = _folder(own)
    return target in (own, whole) or target.startswith((f"{whole}/", f"{own}::"))


def _folder(target: str) -> str:
    return target.removesuffix("...").rstrip("/")


@lru_cache(maxsize=1_024)
def is_looking_around(command: str) -> bool:
    """Whether `command` only shows something: it changes and checks nothing."""
    touched = shell_changes(command).touches
    if touched.written or touched.edited:
        return False
    return all(name in _PREPARING or _looks(name, words) for name, words in programs_run(command))


def may_change_others(command: str) -> bool:
    """Whether `command` may change other files than those of which its text shows it."""
    acting = (one for one in _acting(command) if one[0] != "git" and not is_test(command))
    return not all(changes_only_named(*one) for one in acting)


@lru_cache(maxsize=1_024)
def is_check(command: str) -> bool:
    """Whether `command` runs tests or checks, rather than only naming one."""
    return is_test(command) and not is_looking_around(command)


def has_several_results(command: str) -> bool:
    """Whether more than one pipeline in `command` may print something."""
    printing = (
        any(one[0] not in _PREPARING and not changes_only_named(*one) for one in pipeline)
        for pipeline in pipelines_run(command)
    )
    return sum(printing) > 1


@lru_cache(maxsize=1_024)
def hides_exit_code(command: str) -> bool:
    """Whether the exit code of `command` is that of a program that only shows: ``make | tail``."""
    programs = programs_run(command)
    is_shown = bool(programs) and (programs[-1][0] in _PREPARING or _looks(*programs[-1]))
    return is_shown and not is_looking_around(command)


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


def paths_shown(command: str) -> list[str]:
    """What looks like paths in a `command` that only shows something."""
    programs = programs_run(command) if is_looking_around(command) else ()
    words = (word for name, words in programs if name not in _PREPARING for word in words)
    return [word for word in words if _PATH.search(word) and not word.startswith("-")]


def shows_uncommitted(output: Output) -> bool:
    """Whether `output` is git's, on what was not committed then: nothing of it is in a later state.

    A comparison with another commit is not: its arguments are no files that git names.
    """
    command = output.action.command
    programs = programs_run(command) if is_looking_around(command) else ()
    asked = [words for name, words in programs if name == "git"]
    plain = [word for words in asked for word in words if not word.startswith("-")]
    kinds = _OF_WORKING_TREE.intersection(plain)
    return bool(kinds) and all(word in kinds or word in output.text for word in plain)


def without_folder(command: str) -> str:
    """`command` on one line, without the ``cd`` commands at its beginning."""
    return one_line(_IN_FOLDER.sub("", command), _COMMAND_CHARS)


def without_view(command: str) -> str:
    """`command` without what says how much of its output is shown."""
    return _VIEWED.split(command)[0]


def commits(command: str) -> bool:
    """Whether `command` commits something."""
    return bool(_COMMITS.search(command))


def is_commit(output: Output) -> bool:
    """Whether `output` is that of a command that committed something."""
    has_failed = output.has_failed or output.exit_code not in (None, 0)
    return not has_failed and commits(output.action.command)


def message_of_commit(command: str) -> str:
    """The message that `command` commits with, if a here-document has it; else empty."""
    commit = _COMMITS.search(command)
    mark = _HERE.search(command, commit.end()) if commit else None
    return command[mark.end() :].partition(f"\n{mark[1]}")[0].strip() if mark else ""
