"""What words may come to that only the run will tell: variables that are set in sight, braces.

A guess may be wrong, so it never makes anything allowed: it shows protected files that a command
names in a roundabout way (``$HOME/.ssh/id_rsa``, ``d=~/.ss; cat ${d}h/id_rsa``, ``.{e,x}nv``).
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from agent_tui.permissions.shell.quoting import ansi_c_text

_MAX_GUESSES = 32
_MAX_VALUES = 8
"""Of one variable."""
_MAX_STEPS = 200
_MAX_CHARS = 1_024
_VARIABLE = re.compile(
    r"\$(?:(_|[A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+=?%#/^,@]|:(?=\s*\d))([^{}$`]*))?\})"
)
_HERE = re.compile(
    r"\$\(\s*(?:pwd(?: -[LP])?|git rev-parse --show-toplevel)\s*\)|`\s*pwd\s*`|^~\+(?=/|$)"
)
_PRINTED = re.compile(r"(?:\$\(|`)\s*(echo|printf)\s+([^()`|;&<>]*)[)`]")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PROCESS = re.compile(r"\$(?:\$|PPID\b|BASHPID\b|\{(?:PPID|BASHPID)\})")
_BRACES = re.compile(r"(?<!\$)\{([^{}]*,[^{}]*)\}")
_UNKNOWN = re.compile(r"[$`]|\(")
_QUOTES = re.compile(r"[\"'\\]")
_PRINTF_SETS = re.compile(r"\bprintf\s+-v\s+(\w+)\s+([^;&|\n]*)")
_SELECTS = re.compile(r"\bselect\s+(\w+)\s+in\s+([^;\n]*)")
_READ = re.compile(r"\b(?:read|mapfile|readarray)\s+(?:-\w+\s+)*([A-Za-z_]\w*)")
_FED_ENDS = re.compile(r"(?:\\[n0]|[\s'\"()])+")
_FED = re.compile(
    r"<<<\s*([^;&|\n]*)|\b(?:echo|printf)[\"']?\s+([^;&|\n]*)\||<<-?\s*['\"]?(\w+)['\"]?.*?\n(.*?)\n\s*\3",
    re.DOTALL,
)


def set_by_builtins(command: str) -> Iterator[tuple[str, str]]:
    """Names and the source of what ``printf -v``, ``read`` and ``select`` may put into them."""
    for name, arguments in _PRINTF_SETS.findall(command):
        yield name, _formatted(arguments)
    for name, words in _SELECTS.findall(command):
        yield from ((name, word) for word in words.split())
    readers = dict.fromkeys(_READ.findall(command))
    if readers:
        fed = [found[1] or found[2] or found[4] or "" for found in _FED.finditer(command)]
        words = [word for text in fed for word in _FED_ENDS.split(text) if word][:_MAX_GUESSES]
        yield from ((name, word) for name in readers for word in words)


class WordGuesser:
    """Guesses words by the environment and by what a command sets."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, ...]] = {"PWD": (".",)}

    def note_all(self, assigned: Sequence[tuple[str, str]]) -> None:
        """Take in names and the source of what is assigned to them.

        What cannot be guessed but begins as an option counts without its variables.
        """
        for name, source in (*assigned, *assigned):  # in whatever order: one may hold another
            option = _QUOTES.sub("", _VARIABLE.sub("", source))
            guesses = self(source) or ((option,) if option.startswith("-") else ())
            known = (*self._values_of(name), *guesses)
            self._values[name] = tuple(dict.fromkeys(known))[:_MAX_VALUES]

    def __call__(self, source: str) -> tuple[str, ...]:
        """What a word written as `source` may come to; none where that cannot be guessed."""
        if len(source) > _MAX_CHARS:
            return ()
        guesses: dict[str, None] = {}
        pending = [_without_the_certain(source)]
        for _ in range(_MAX_STEPS):
            if not pending or len(guesses) >= _MAX_GUESSES:
                break
            text = pending.pop()
            if found := _VARIABLE.search(text) or _BRACES.search(text):
                head, tail = text[: found.start()], text[found.end() :]
                pending += [f"{head}{piece}{tail}" for piece in self._pieces(found)]
            elif not _UNKNOWN.search(text):
                guesses[_QUOTES.sub("", text)] = None
        return tuple(guesses)

    def _pieces(self, found: re.Match[str]) -> Iterable[str]:
        """What may stand in place of a variable, or of braces."""
        if found.re is _BRACES:
            return found[1].split(",")
        values = self._values_of(found[1] or found[2])
        operator, operand = (found[3] or "").lstrip(":") or found[3], found[4] or ""
        if operator and operator in "-=+":
            return (*values, operand)
        return dict.fromkeys(_changed(value, operator or "", operand) for value in values)

    def _values_of(self, name: str) -> tuple[str, ...]:
        if name not in self._values:
            value = os.environ.get(name, "")
            self._values[name] = (value,) if value else ()
        return self._values[name]


def _without_the_certain(source: str) -> str:
    """`source` with what needs no variables put in: this folder, quoted and printed text."""
    text = _PROCESS.sub("self", _HERE.sub(".", source))
    text = _ANSI_C.sub(lambda found: ansi_c_text(found[1]), text)
    return _PRINTED.sub(
        lambda found: _echoed(found[2]) if found[1] == "echo" else _formatted(found[2]), text
    )


def _echoed(arguments: str) -> str:
    """What ``echo`` prints of its words: with their escapes put in, as ``-e`` has it."""
    return ansi_c_text(re.sub(r"^(?:\s*-[neE]+\s)+", "", arguments).strip().strip("'\""))


def _formatted(arguments: str) -> str:
    """What ``printf`` makes of its words, where its format only puts them in."""
    shape, *values = [
        _QUOTES.sub("", word) if "\\" not in word else word for word in arguments.split()
    ] or [""]
    for value in values:
        shape = re.sub(r"%[sbq]", lambda _found, value=value: value, shape, count=1)
    return ansi_c_text(shape.strip("'\""))


def _changed(value: str, operator: str, operand: str) -> str:
    """The value of ``${name OPERATOR OPERAND}``; as it is where that is not plain text."""
    match operator:
        case "%" if not operand.startswith("%"):
            return value.removesuffix(operand)
        case "#" if not operand.startswith("#"):
            return value.removeprefix(operand)
        case "," | "^":
            return value.lower() if operator == "," else value.upper()
        case "/":
            old, _, new = operand.lstrip("/").partition("/")
            return value.replace(old, new) if old else value
        case ":":
            start, _, length = operand.strip().partition(":")
            at = int(start) if start.isdigit() else 0
            return value[at : at + int(length)] if length.isdigit() else value[at:]
        case _:
            return value
