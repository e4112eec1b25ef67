"""Shell commands: what program they run on what, and whether they only look around."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_tui.compaction.sections.history import Done, Event
from agent_tui.compaction.shorten import one_line

_COMMAND_CHARS = 200
_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_LEADING = re.compile(
    r"^(?:cd\s+\S+|set\s+[-+]\w+(?:\s+\w+)*|export\s+\S+|source\s+\S+|\.\s+\S+|true)$"
)
_WRAPPERS = re.compile(
    r"^(?:\w+=\S*\s+|sudo\s+|time\s+|nohup\s+|command\s+|env\s+"
    r"|timeout\s+(?:-\S+\s+(?:\d\S*\s+(?=\d))?)*\S+\s+"
    r"|uv\s+run\s+|poetry\s+run\s+|pipenv\s+run\s+|npx\s+(?:-\S+\s+)*|bunx\s+|pnpm\s+exec\s+"
    r"|bundle\s+exec\s+|python[\d.]*\s+-m\s+|\S*/bin/python[\d.]*\s+-m\s+)"
)
_LOOKING_PROGRAMS = frozenset(
    {
        *("ls", "cat", "nl", "head", "tail", "grep", "egrep", "rg", "ag", "find", "fd", "tree"),
        *("wc", "pwd", "which", "type", "file", "stat", "du", "df", "sort", "uniq", "cut", "tr"),
        *("less", "more", "echo", "printf", "env", "date", "ps", "jq", "diff", "column", "awk"),
        *("sleep", "wait", "test", "[", "whoami", "hostname", "uname", "realpath"),
    }
)
_LOOKING = re.compile(
    r"^(?:sed\s+(?:-n|-\w*n\w*)\b|git\s+(?:-\S+\s+\S+\s+)?(?:status|log|diff|show|grep|blame|branch"
    r"|remote|ls-files|rev-parse|config\s+--get|stash\s+list)\b"
    r"|(?!(?:rm|mv|cp|ln|touch|mkdir|chmod|docker|podman)\b)(?:[\w./]+\s+){1,2}(?:show|list|ls|view"
    r"|ready)\b|\S+(?:\s+[\w-]+)?\s+(?:--version|--help|-V)$)"
)
_SHOWN_PART = re.compile(
    r"(?:\s*2>&1)?(?:\s*\|\s*(?:tail|head|grep|cat)\b(?:[^|'\"]|'[^']*'|\"[^\"]*\")*)*\s*$"
)
"""What only chooses how much of the output is seen."""

_RUNNERS = frozenset(
    {
        *("make", "just", "task", "rake", "npm", "pnpm", "yarn", "bun", "cargo", "go", "mix"),
        *("gradle", "gradlew", "mvn", "mvnw", "dotnet", "swift", "bazel", "ninja", "meson", "git"),
    }
)
"""Programs that do quite another thing for another word."""

_INTERPRETERS = frozenset(
    {"python", "python3", "node", "ruby", "perl", "bash", "sh", "php", "deno", "bun", "tsx"}
)
_INLINE = frozenset({"-c", "-e", "--eval"})
"""Options behind which a program's text stands, not what it is run on."""

_TARGET = re.compile(r"[./:]")
_MOST_WORDS = 12
_HEREDOC = re.compile(r"<<-?\s*['\"]?\w")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_ACTS = re.compile(r"\s-(?:delete|exec(?:dir)?\s+(?!grep|cat|head|wc|ls|file)|ok)\b")
_REDIRECTED = re.compile(r"(?<![<>&\d])>{1,2}\s*(?!/dev/null|&)[\w./~$\"'-]")


@dataclass(frozen=True, slots=True)
class Run:
    """A program that does something, and what it is run on.

    `task` are the arguments that name neither an option nor a file (``test`` of ``npm test``),
    `targets` those that look like files, folders and single tests.
    """

    program: str
    task: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()

    def covers(self, other: "Run") -> bool:
        """Whether a success of this says that what failed in `other` works now.

        It does when the same program did the same to the same targets or more: without targets
        to all there are. An interpreter without a target ran a text of its own.
        """
        if self.program != other.program:
            return False
        folders = self.task - other.task
        if self.program in _RUNNERS and self.task != other.task:
            return False
        if not all(any(_reaches(f, target) for target in other.targets) for f in folders):
            return False
        targets = self.targets | folders
        if self.program in _INTERPRETERS and not targets:
            return not other.targets
        if not targets or "./..." in targets:
            return True
        return bool(other.targets) and all(
            any(_reaches(own, target) for own in targets) for target in other.targets
        )


@lru_cache(maxsize=1_024)
def runs_of(command: str) -> tuple[Run, ...]:
    """What `command` runs, without folders gone to, variables set and wrappers around it."""
    return tuple(_run(part) for part in _parts(command) or [command])


def covers_all(done: tuple[Run, ...], failed: tuple[Run, ...]) -> bool:
    """Whether the success of `done` says that all of `failed` works now."""
    return all(any(run.covers(other) for run in done) for other in failed)


def _reaches(own: str, target: str) -> bool:
    """Whether what is run on `own` is run on `target`, which may be a part of it."""
    whole = own.removesuffix("...").rstrip("/")
    return target in (own, whole) or target.startswith((f"{whole}/", f"{own}::"))


def _run(part: str) -> Run:
    words = part.split("|")[0].split()
    inline = next((at for at, word in enumerate(words) if word in _INLINE), len(words))
    words = words[: inline if words[:1] and _program(words) in _INTERPRETERS else None]
    kept = [word.strip("'\"") for word in words[1:] if not _is_option(word)][:_MOST_WORDS]
    return Run(
        program=_program(words),
        task=frozenset(word for word in kept if not _TARGET.search(word)),
        targets=frozenset(word for word in kept if _TARGET.search(word)),
    )


def _program(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


@lru_cache(maxsize=1_024)
def is_looking_around(command: str) -> bool:
    """Whether `command` only shows something: it changes nothing and checks nothing."""
    plain = _QUOTED.sub("''", command)
    if _HEREDOC.search(command) or _REDIRECTED.search(plain):
        return False
    return all(_is_looking_part(part) for part in _parts(plain))


def without_folder(command: str) -> str:
    """`command` without the changes of folder it begins with, as one line."""
    return one_line(re.sub(r"^\s*(?:cd\s+[^&;\n]+(?:&&|;|\n)\s*)+", "", command), _COMMAND_CHARS)


def commands_run(events: Iterable[Event]) -> tuple[str, ...]:
    """The distinct commands that did something, the one run last at the end."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, Done) and (command := event.output.action.command):
            if is_looking_around(command):
                continue
            line = without_folder(command)
            key = _SHOWN_PART.sub("", line)
            found.pop(key, None)
            found[key] = line
    return tuple(found.values())


def _parts(command: str) -> list[str]:
    head = _HEREDOC.split(command, maxsplit=1)[0]
    parts = [part.strip() for part in _SEPARATOR.split(head) if part.strip()]
    telling = [part for part in parts if not _LEADING.match(part)] or parts[:1]
    return [_unwrapped(part) for part in telling]


def _unwrapped(part: str) -> str:
    while found := _WRAPPERS.match(part):
        part = part[found.end() :]
    return part


def _is_looking_part(part: str) -> bool:
    pieces = (re.sub(r"^\s*xargs(?:\s+-\S+)*\s+", "", piece).strip() for piece in part.split("|"))
    return all(
        bool(_LOOKING.match(piece))
        or (piece.split()[0].rpartition("/")[2] in _LOOKING_PROGRAMS and not _ACTS.search(piece))
        for piece in pieces
        if piece
    )


def _is_option(word: str) -> bool:
    return word.startswith(("-", ">", "<", "2>", "&", "|")) or word.isdigit()
