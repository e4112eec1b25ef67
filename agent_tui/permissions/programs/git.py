"""Which git commands only read."""

import re
from collections.abc import Sequence

_HARMLESS_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_READER_NAMES = """
    status log diff show whatchanged cherry diff-tree diff-index diff-files range-diff shortlog
    blame annotate ls-files ls-tree cat-file rev-parse rev-list describe merge-base grep
    for-each-ref show-ref name-rev count-objects check-ignore check-attr show-branch var version
"""
_READERS = frozenset(_READER_NAMES.split())
_PAIRS = frozenset(
    {
        *("stash list", "stash show", "remote get-url", "worktree list"),
        *("submodule status", "reflog show", "reflog exists", "notes list", "notes show"),
        *("bisect log", "config -l", "config --list", "config --get", "config --get-all"),
        *("config --get-regexp", "config list", "config get"),
    }
)
_ALONE = frozenset({"remote", "remote -v", "reflog"})
"""Commands that only read if nothing follows."""
_DOES_MORE = re.compile(
    r"--(?:o|ou\w*|ext[\w-]*|textc\w*|no-i[\w-]*|show-s[\w-]*|open[\w-]*|filt\w*|batch[\w-]*|stdin|cont(?!ains|ext)\w*"
    r"|pathspec-from[\w-]*|exec[\w-]*|file|unset[\w-]*|add|replace[\w-]*|edit|help|parseopt|remerge[\w-]*|diff-m[\w-]*|unt(?!il)\w*"
    r"|no-ex[\w-]*|exclude-[fp][\w-]*)(?:=.*)?"
    r"|-[a-zA-Z]*O.*|-[foX].*|.*%[-+ ]?(?:G|\(\*?(?:signature|if|describe)).*",
    re.DOTALL,
)
"""Options with which a looking verb writes a file, starts a program or reads a list of files;
placeholders for which it starts other programs."""
_LISTS = re.compile(
    r"-[avrniql0-9]+|--(?:list|contains|no-contains|merged|no-merged|points-at|all|remotes|sort"
    r"|format|color|no-color|column|no-column|verbose|ignore-case|abbrev|omit-empty|show-current)"
    r"(?:=.*)?"
)
_TAKES_PATTERNS = re.compile(
    r"-\w*l\w*|--(?:list|contains|no-contains|merged|no-merged|points-at)(?:=.*)?"
)


def git_only_reads(arguments: Sequence[str]) -> bool:
    """Whether ``git`` with `arguments` changes nothing and runs no program it is given."""
    rest = _without_globals(arguments)
    if rest in (["--version"], ["--exec-path"], ["--help"]):
        return True
    if not rest or any(map(_DOES_MORE.fullmatch, rest[1:])):
        return False
    verb, others = rest[0], rest[1:]
    if verb in ("branch", "tag"):
        options = [other for other in others if other.startswith("-")]
        names_patterns = (
            any(map(_TAKES_PATTERNS.fullmatch, options)) and verb + options[0] != "branch-l"
        )
        return all(map(_LISTS.fullmatch, options)) and (names_patterns or options == list(others))
    if verb == "symbolic-ref":
        return len([other for other in others if not other.startswith("-")]) == 1 and not (
            {"-d", "--delete", "-m"} & set(others)
        )
    return bool(
        verb in _READERS
        or " ".join(rest) in _ALONE
        or (verb == "reflog" and others[0].startswith("-"))
        or " ".join(rest[:2]) in _PAIRS
        or (verb == "config" and len(others) == 1 and re.fullmatch(r"\w[\w-]*\..+", others[0]))
    )


def git_folders(arguments: Sequence[str | None]) -> list[str]:
    """The folders ``git -C`` names before the verb."""
    found: list[str] = []
    index = 0
    while index + 1 < len(arguments):
        option, value = arguments[index], arguments[index + 1]
        if option is None or not option.startswith("-"):
            break
        if option == "-C":
            found += [value] if value else []
            index += 1
        index += 1
    return found


def _without_globals(arguments: Sequence[str]) -> list[str]:
    rest = list(arguments)
    while rest:
        if rest[0] in _HARMLESS_GLOBALS:
            del rest[0]
        elif rest[0] == "-C" and len(rest) > 1:
            del rest[:2]
        else:
            break
    return rest
