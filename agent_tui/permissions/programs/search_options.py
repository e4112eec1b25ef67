"""What the options of grep, rg and diff say of the files they print lines of."""

import re
from collections.abc import Sequence

from agent_tui.permissions.shell.words import CommandPart
from agent_tui.tools.files.protected import is_secret_name

_GREPS = ("grep", "egrep", "fgrep")
_RECURSIVE = re.compile(r"-[^-]*[rRd].*|--(?:r|deref|dir).*")
_FOLLOWS = re.compile(r"-[^-e]*[RL].*|--(?:deref|fol).*")
_RG_TAKES_HIDDEN = re.compile(r"-[^-e]*[ugt.].*|--(?:hid|unr|gl|igl|ty).*")
_PRINTS_NAMES = re.compile(
    r"-[rRnliwEFHhoscqvI]*[lcq][rRnliwEFHhoscqvI]*|--(?:files-with\w*|count|quiet|brief|files)"
)
_WITH_PATTERN = re.compile(r"-[^-]*[ef].*|--(?:reg|file=).*")
_NARROW = re.compile(r"(?:--include=|-g|--glob=)?['\"]?([\w./*-]*\*\.\w+)['\"]?")


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    values = _values(part)
    if part.name not in (*_GREPS, "rg", "diff") or _any(_PRINTS_NAMES, values):
        return None
    if part.name == "rg":
        return None if _is_narrow(values, ("-g", "--glob")) else _any(_RG_TAKES_HIDDEN, values)
    if not _any(_RECURSIVE, values) or (part.name in _GREPS and _is_narrow(values, ("--include",))):
        return None
    return True


def follows_links(part: CommandPart) -> bool:
    """Whether a search of whole folders goes where links lead."""
    return part.name == "diff" or _any(_FOLLOWS, _values(part))


def searches_where_it_is(part: CommandPart) -> bool:
    """Whether grep or rg is given no file or folder to search."""
    values = _values(part)
    others = [value for value in values if not value.startswith("-")]
    return len(others) <= (0 if _any(_WITH_PATTERN, values) else 1)


def prints_names_of_matches(part: CommandPart) -> bool:
    """Whether grep is told to print names or counts, whatever files it is given."""
    return part.name == "grep" and _any(_PRINTS_NAMES, _values(part))


def _values(part: CommandPart) -> list[str]:
    return [word.value or "" for word in part.arguments]


def _any(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    return any(map(pattern.fullmatch, values))


def _is_narrow(values: Sequence[str], options: Sequence[str]) -> bool:
    """Whether only files like ``*.py`` are searched, none of which holds keys by its name."""
    given = [
        (value if "=" in value or value not in options else after)
        for value, after in zip(values, (*values[1:], ""), strict=True)
        if value.startswith(tuple(options))
    ]
    found = [_NARROW.fullmatch(value) for value in given]
    return bool(found) and all(
        match and not any(is_secret_name(match[1].replace("*", part)) for part in ("x", ""))
        for match in found
    )
