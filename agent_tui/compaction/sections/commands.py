"""Shell commands: what program they run on what, and whether they only look around."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_tui.compaction.sections.history import Done, Event
from agent_tui.compaction.shorten import one_line

_COMMAND_CHARS = 200
_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_LEADING = re.compile(
    r"^(?:cd\s+\S+|set\s+[-+]\w+(?:\s+\w+)*|export\s+\S+|source\s+\S+|\.\s+\S+|true)$"
)
_WRAPPERS = re.compile(
    r"^(?:\w+=\S*\s+|sudo\s+|time\s+|nohup\s+|command\s+|env\s+|timeout\s+(?:-\S+\s+(?:\d\S*\s+(?=\d))?)*\S+\s+"
    r"|uv\s+run\s+|poetry\s+run\s+|pipenv\s+run\s+|npx\s+(?:-\S+\s+)*|bunx\s+|pnpm\s+exec\s+"
    r"|bundle\s+exec\s+|python[\d.]*\s+-m\s+|\S*/bin/python[\d.]*\s+-m\s+)"
)
_LOOKING_PROGRAMS = frozenset(
    {
        *("ls", "cat", "nl", "head", "tail", "grep", "egrep", "rg", "ag", "find", "fd", "tree"),
        *("wc", "pwd", "which", "type", "file", "stat", "du", "df", "sort", "uniq", "cut", "tr"),
        *("less", "more", "echo", "printf", "env", "date", "ps", "jq", "diff", "column", "awk"),
        *("sleep", "wait", "xargs", "test", "[", "whoami", "hostname", "uname", "realpath"),
    }
)
_LOOKING = re.compile(
    r"^(?:sed\s+(?:-n|-\w*n\w*)\b|git\s+(?:-\S+\s+\S+\s+)?(?:status|log|diff|show|grep|blame|branch"
    r"|remote|ls-files|rev-parse|config\s+--get|stash\s+list)\b"
    r"|(?:\S+\s+){1,2}(?:show|list|ls|view|ready|--version|--help|-h|-V)\b)"
)
_SHOWN_PART = re.compile(r"(?:\s*2>&1)?(?:\s*\|\s*(?:tail|head|grep|cat)\b[^|]*)*\s*$")
"""What only chooses how much of the output is seen."""

_INTERPRETERS = frozenset(
    {"python", "python3", "node", "ruby", "perl", "bash", "sh", "php", "deno", "bun"}
)
_TARGET = re.compile(r"[./:]")
_MOST_WORDS = 12
_HEREDOC = re.compile(r"<<-?\s*['\"]?\w")
_REDIRECTED = re.compile(r"(?<![<>&\d])>{1,2}\s*(?!/dev/null|&)[\w./~$\"'-]")


@dataclass(frozen=True, slots=True)
class Run:
    """The first program of a command that does something, and what it is run on.

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
        if self.program != other.program or not self.task <= other.task:
            return False
        is_all = not self.targets or any(target.endswith("...") for target in self.targets)
        if is_all and self.program not in _INTERPRETERS:
            return True
        return self.targets >= other.targets and bool(self.targets) == bool(other.targets)


def run_of(command: str) -> Run:
    """What `command` runs, without folders gone to, variables set and wrappers around it."""
    part = next(iter(_parts(command)), command)
    words = part.split("|")[0].split()
    kept = [word.strip("'\"") for word in words[1:] if not _is_option(word)][:_MOST_WORDS]
    return Run(
        program=words[0].rpartition("/")[2] if words else "",
        task=frozenset(word for word in kept if not _TARGET.search(word)),
        targets=frozenset(word for word in kept if _TARGET.search(word)),
    )


def is_looking_around(command: str) -> bool:
    """Whether `command` only shows something: it changes nothing and checks nothing."""
    if _HEREDOC.search(command) or _REDIRECTED.search(command):
        return False
    return all(_is_looking_part(part) for part in _parts(command))


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
    return all(
        bool(_LOOKING.match(piece)) or piece.split()[0].rpartition("/")[2] in _LOOKING_PROGRAMS
        for piece in (one.strip() for one in part.split("|"))
        if piece
    )


def _is_option(word: str) -> bool:
    return word.startswith(("-", ">", "<", "2>", "&", "|")) or word.isdigit()
