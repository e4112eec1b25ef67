"""What the options of grep, rg and diff say of the files they print lines of."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from agent_tui.permissions.shell.words import CommandPart
from agent_tui.tools.files.protected import is_secret_name

_GREP_LONGS = """
    regexp file max-count after-context before-context context include exclude exclude-from
    exclude-dir binary-files devices directories label
"""
_RG_LONGS = """
    regexp max-count after-context before-context context glob iglob type type-not sort sortr
    color colors max-depth max-columns max-filesize replace engine threads
"""
_DIFF_LONGS = "exclude width ignore-matching-lines label"
_NAMES_ONLY = frozenset(
    {"L", "l", "c", "q", "files-with-matches", "files-without-match", "count", "quiet", "files"}
)


@dataclass(frozen=True, slots=True)
class _Values:
    """The options of a program that have a value: letters, and long ones."""

    letters: str
    longs: tuple[str, ...]


_GREP = _Values("efmABCdD", tuple(_GREP_LONGS.split()))
_VALUES: Mapping[str, _Values] = MappingProxyType(
    {
        **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
        "rg": _Values("efmABCgtTrEdjM", tuple(_RG_LONGS.split())),
        "diff": _Values("UCIxWFLSXD", tuple(_DIFF_LONGS.split())),
    }
)


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    if part.name not in _VALUES:
        return None
    options, _ = _read(part)
    anywhere = {name for word in part.arguments for name in _names_in(word.value or "")}
    if part.name == "rg":
        return _rg_searches_hidden(options, anywhere)
    if part.name == "diff":
        is_quiet = any(name in ("q", "brief") for name, _ in options)
        return True if anywhere & {"r", "recursive"} and not is_quiet else None
    is_recursive = anywhere & set("rRd") or any(
        _may_mean(name, long)
        for name in anywhere
        for long in ("recursive", "dereference-recursive", "directories")
    )
    included = [value for name, value in options if _may_mean(name, "include")]
    is_harmless = not is_recursive or _prints_names(options) or _are_narrow(included)
    return None if is_harmless else True


def follows_links(part: CommandPart) -> bool:
    """Whether a search of whole folders goes where links lead."""
    anywhere = {name for word in part.arguments for name in _names_in(word.value or "")}
    match part.name:
        case "diff":
            return not any(_may_mean(name, "no-dereference") for name in anywhere)
        case "rg":
            return bool(anywhere & {"L", "follow"})
        case _:
            return "R" in anywhere or any(_may_mean(n, "dereference-recursive") for n in anywhere)


def searches_where_it_is(part: CommandPart) -> bool:
    """Whether grep or rg is given no file or folder to search."""
    options, others = _read(part)
    has_pattern = any(
        name in ("e", "f") or _may_mean(name, "regexp") or _may_mean(name, "file")
        for name, _ in options
    )
    return len(others) <= (0 if has_pattern else 1)


def prints_names_of_matches(part: CommandPart) -> bool:
    """Whether grep is told to print names or counts, whatever files it is given."""
    return part.name == "grep" and _prints_names(_read(part)[0])


def _rg_searches_hidden(options: Sequence[tuple[str, str]], anywhere: set[str]) -> bool | None:
    globs = [value for name, value in options if name in ("g", "glob", "iglob")]
    types = [value for name, value in options if name in ("t", "type")]
    told = [option for option in options if option[0] != "L"]  # follows links, other than grep's
    if _prints_names(told) or _are_narrow(globs) or (types and "all" not in types):
        return None
    # A glob that files must match takes in hidden ones, and so does the type "all".
    chosen = types or any(not glob.startswith("!") for glob in globs)
    return bool(chosen or anywhere & {"hidden", "unrestricted", "u"})


def _prints_names(options: Sequence[tuple[str, str]]) -> bool:
    return any(name in _NAMES_ONLY for name, _ in options)


def _names_in(value: str) -> set[str]:
    """The options a word may hold, were it not the value of another."""
    if value.startswith("--"):
        return {value[2:].partition("=")[0]}
    return set(value[1:].partition("e")[0]) if value.startswith("-") else set()


def _read(part: CommandPart) -> tuple[list[tuple[str, str]], list[str]]:
    """The options of `part` as the program reads them, with their values, and its other words."""
    known = _VALUES[part.name]
    options: list[tuple[str, str]] = []
    others: list[str] = []
    rest = [word.value or "" for word in part.arguments]
    while rest:
        word = rest.pop(0)
        if word == "--":
            return options, [*others, *rest]
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            takes_next = (
                not equals and name != "binary" and any(_may_mean(name, o) for o in known.longs)
            )
            options.append((name, rest.pop(0) if takes_next and rest else value))
        elif word.startswith("-") and len(word) > 1:
            letters = list(word[1:])
            while letters and letters[0] not in known.letters:
                options.append((letters.pop(0), ""))
            if letters:
                attached = "".join(letters[1:])
                options.append((letters[0], attached or (rest.pop(0) if rest else "")))
        else:
            others.append(word)
    return options, others


def _may_mean(name: str, option: str) -> bool:
    """Whether a long option, perhaps shortened, is `option`; no letter is."""
    return len(name) > 1 and option.startswith(name)


def _are_narrow(patterns: Sequence[str]) -> bool:
    """Whether every file pattern is like ``*.py``, and there is one."""
    return bool(patterns) and all(
        re.fullmatch(r"[\w./*-]*\*\.\w+", text)
        and not any(is_secret_name(text.replace("*", filled)) for filled in ("x", ""))
        for text in patterns
    )
