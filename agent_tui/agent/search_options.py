"""What the options of grep, rg and diff say of the files they print lines of."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from agent_tui.agent.shell_words import CommandPart
from agent_tui.tools.protected import is_secret_name

_GREP_VALUES = "efmABCdD"
_RG_VALUES = "efmABCgtTrEdjM"
_DIFF_VALUES = "UCIxWFLSXD"
_LONG_VALUE_NAMES = """
    regexp file max-count after-context before-context context include exclude exclude-from
    exclude-dir binary-files devices directories label glob iglob type type-not sort sortr color
    colors max-depth max-columns max-filesize replace engine threads encoding width
    ignore-matching-lines
"""
_LONG_VALUES = frozenset(_LONG_VALUE_NAMES.split())
_NAMES_ONLY = frozenset(
    {"L", "l", "c", "q", "files-with-matches", "files-without-match", "count", "quiet", "files"}
)


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    anywhere = {name for word in part.arguments for name in _names_in(word.value or "")}
    match part.name:
        case "grep" | "egrep" | "fgrep":
            options = _options(part, _GREP_VALUES)
            is_recursive = anywhere & set("rRd") or any(
                name[:1] in ("r", "d") and len(name) > 1 for name in anywhere
            )
            narrow = [value for name, value in options if _may_mean(name, "include")]
            return (
                True
                if is_recursive and not (_prints_names(options) or _are_narrow(narrow))
                else None
            )
        case "rg":
            return _rg_searches_hidden(_options(part, _RG_VALUES), anywhere)
        case "diff":
            options = _options(part, _DIFF_VALUES)
            is_quiet = any(name in ("q", "brief") for name, _ in options)
            return True if anywhere & {"r", "recursive"} and not is_quiet else None
        case _:
            return None


def prints_names_of_matches(part: CommandPart) -> bool:
    """Whether grep is told to print names or counts, whatever files it is given."""
    return part.name == "grep" and _prints_names(_options(part, _GREP_VALUES))


def _rg_searches_hidden(options: Sequence[tuple[str, str]], anywhere: set[str]) -> bool | None:
    globs = [value for name, value in options if name in ("g", "glob", "iglob")]
    types = [value for name, value in options if name in ("t", "type")]
    if _prints_names(options) or _are_narrow(globs) or (types and "all" not in types):
        return None
    # A glob that files must match takes in hidden ones, and so does the type "all".
    chosen = types or any(not glob.startswith("!") for glob in globs)
    return bool(chosen or anywhere & {"hidden", "unrestricted", "u", "."})


def _prints_names(options: Sequence[tuple[str, str]]) -> bool:
    return any(name in _NAMES_ONLY for name, _ in options)


def _names_in(value: str) -> set[str]:
    """The options a word may hold, if it is not the value of another."""
    if value.startswith("--"):
        return {value[2:].partition("=")[0]}
    if not value.startswith("-"):
        return set()
    return {value[1:2], *re.sub(r"(?<=[efm]).*", "", value[1:])}


def _options(part: CommandPart, letters_with_value: str) -> list[tuple[str, str]]:
    """The options of `part` as the program reads them, each with its value or an empty text."""
    return list(_read_options([w.value or "" for w in part.arguments], letters_with_value))


def _read_options(values: Sequence[str], with_value: str) -> Iterator[tuple[str, str]]:
    is_value = False
    for word, after in pairwise((*values, "")):
        if is_value:
            is_value = False
            continue
        if word == "--":
            return
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            is_value = not equals and any(_may_mean(name, known) for known in _LONG_VALUES)
            yield name, after if is_value else value
        elif word.startswith("-"):
            for index, letter in enumerate(word[1:], 2):
                rest = word[index:]
                if letter in with_value:
                    is_value = not rest
                    yield letter, rest or after
                    break
                yield letter, ""


def _may_mean(name: str, option: str) -> bool:
    """Whether a long option, perhaps shortened, is `option`."""
    return bool(name) and option.startswith(name)


def _are_narrow(patterns: Sequence[str]) -> bool:
    """Whether every file pattern is like ``*.py``, and there is one."""
    return bool(patterns) and all(
        re.fullmatch(r"[\w./*-]*\*\.\w+", text)
        and not any(is_secret_name(text.replace("*", filled)) for filled in ("x", ""))
        for text in patterns
    )
