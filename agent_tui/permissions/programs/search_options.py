"""What the options of grep, rg and diff say of the files they print lines of."""

import re
from collections.abc import Sequence

from agent_tui.permissions.shell.words import CommandPart
from agent_tui.tools.files.protected import is_secret_name

_GREPS = ("grep", "egrep", "fgrep")
_LETTERS_WITH_VALUE = {"rg": "efABCmdgtTjMEr", "diff": "xXUCIWSFL"}
_GREPS_LETTERS_WITH_VALUE = "efABCmdD"
_NAMES_WITH_VALUE = re.compile(
    r"--(?:re(?!c)|file|fro|exc|inc|max|con|af|be|lab|gl|igl|ty|ig.*-m|wi|bin.*-|dev|dir|enc|so|thr)"
    r"[^=]*"
)
"""Options whose value is the next word, or may be: too many do no harm here."""
_RECURSIVE = re.compile(r"-[^-]*[rRd].*|--(?:r|deref|dir).*", re.DOTALL)
_FOLLOWS = re.compile(r"-[^-e]*[RL].*|--(?:deref|fol).*", re.DOTALL)
_RG_TAKES_HIDDEN = re.compile(
    r"-[^-e]*[u.].*|--(?:hid|unr).*|(?:-g|-t|--(?:gl|igl|ty)[\w-]*[ =])[^!].*", re.DOTALL
)
_PLAIN_TYPE = re.compile(
    r"(?:-t ?|--type[ =])(?:py|rust|js|ts|go|java|c|cpp|md|html|css|ruby|php)"
    r"|(?:-g ?|--glob[ =])!.*"
)
"""What brings in no hidden file that may hold keys."""
_PRINTS_NAMES = re.compile(
    r"-[rRnliwEFHhoscqvI]*[lcq][rRnliwEFHhoscqvI]*|--(?:files-with\w*|count|quiet|brief|files)"
)
_WITH_PATTERN = re.compile(r"-[^-]*[ef].*|--(?:reg|file=).*", re.DOTALL)
_NARROW = re.compile(r"(?:--include[= ]|-g ?|--glob[= ])([\w./*-]*\*\.\w+)")


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    options = _options(part)
    bare = [option.partition(" ")[0] for option in options]
    if part.name not in (*_GREPS, "rg", "diff") or _any(_PRINTS_NAMES, bare):
        return None
    if part.name == "rg":
        others = [option for option in options if not _PLAIN_TYPE.fullmatch(option)]
        return None if _is_narrow(options) else _any(_RG_TAKES_HIDDEN, others)
    if not _any(_RECURSIVE, bare) or (part.name in _GREPS and _is_narrow(options)):
        return None
    return True


def follows_links(part: CommandPart) -> bool:
    """Whether a search of whole folders goes where links lead."""
    values = _values(part)
    return (part.name == "diff" and "--no-dereference" not in values) or _any(_FOLLOWS, values)


def searches_where_it_is(part: CommandPart) -> bool:
    """Whether grep or rg is given no file or folder to search."""
    values = _values(part)
    options = _options(part)
    told = " ".join(options).split(" ")
    others = [value for value in values if value != "--" and value not in told]
    return len(others) <= (0 if _any(_WITH_PATTERN, options) else 1)


def prints_names_of_matches(part: CommandPart) -> bool:
    """Whether grep is told to print names or counts, whatever files it is given."""
    return part.name == "grep" and _any(_PRINTS_NAMES, _options(part))


def _values(part: CommandPart) -> list[str]:
    return [word.value or "" for word in part.arguments]


def _options(part: CommandPart) -> list[str]:
    """The options of `part`, each with the value in the next word: ``-e x``."""
    rest, found = _values(part), list[str]()
    letters = _LETTERS_WITH_VALUE.get(part.name, _GREPS_LETTERS_WITH_VALUE)
    while rest and rest[0] != "--":
        option = rest.pop(0)
        is_open = re.fullmatch(rf"-[^-]*[{letters}]", option) or _NAMES_WITH_VALUE.fullmatch(option)
        if option.startswith("-"):
            found.append(f"{option} {rest.pop(0)}" if rest and is_open else option)
    return found


def _any(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    return any(map(pattern.fullmatch, values))


def _is_narrow(options: Sequence[str]) -> bool:
    """Whether only files like ``*.py`` are searched, none of which holds keys by its name."""
    given = [option for option in options if option.startswith(("--include", "-g", "--glob"))]
    found = [_NARROW.fullmatch(option) for option in given]
    return bool(found) and all(
        match and not any(is_secret_name(match[1].replace("*", part)) for part in ("x", ""))
        for match in found
    )
