"""What the options of grep, rg and diff say of the files they print lines of."""

import re

from agent_tui.permissions.shell.words import CommandPart, Word
from agent_tui.tools.files.protected import is_secret_name

_GREPS = ("grep", "egrep", "fgrep")
_RECURSIVE = re.compile(r"-[^-]*[rRd].*|--(?:r|deref|dir).*", re.DOTALL)
_FOLLOWS = re.compile(r"-[^-e]*[RL].*|--(?:deref|fol).*", re.DOTALL)
_PLAIN_FOR_RG = re.compile(r"-[nilwcFSsoHNABCem]*\d*|(?:-t|--type=)(?:py|rust|js|ts|go)|--glob=!.*")
"""Options with which rg leaves hidden files out."""
_GIVES_PATTERN = re.compile(r"-[^-]*[ef]")
"""Options whose value, the next word, is what to look for."""
_NARROW = re.compile(r"--include[= ]?([\w./*-]*\*\.\w+)")


def searches_hidden_files(part: CommandPart) -> bool | None:
    """Whether `part` prints lines of whole folders, hidden files too; None if it prints none."""
    options = _options(part)
    if part.name == "rg":
        return not all(map(_PLAIN_FOR_RG.fullmatch, options))
    if part.name in _GREPS:
        return True if any(map(_RECURSIVE.match, options)) and not _is_narrow(options) else None
    return True if part.name == "diff" and any(map(_RECURSIVE.match, options)) else None


def follows_links(part: CommandPart) -> bool:
    """Whether a search of whole folders goes where links lead."""
    return part.name == "diff" or any(map(_FOLLOWS.match, _options(part)))


def searched_words(part: CommandPart) -> list[Word]:
    """The words that may name what is searched: without options and what to look for."""
    words: list[Word] = []
    before, is_given = "", False
    for word in part.arguments:
        value = word.value or ""
        if _GIVES_PATTERN.fullmatch(before):
            is_given = True
        elif not value.startswith("-"):
            words.append(word)
        before = value
    return words if is_given or part.name == "diff" else words[1:]


def _options(part: CommandPart) -> list[str]:
    values = (word.value or "" for word in part.arguments)
    return [value for value in values if value.startswith("-")]


def _is_narrow(options: list[str]) -> bool:
    """Whether only files like ``*.py`` are searched, none of which holds keys by its name."""
    if any(map(_GIVES_PATTERN.fullmatch, options)):
        return False
    found = [_NARROW.fullmatch(option) for option in options if option.startswith("--inc")]
    return bool(found) and all(
        match and not any(is_secret_name(match[1].replace("*", part)) for part in ("x", ""))
        for match in found
    )
