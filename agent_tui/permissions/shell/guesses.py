"""What words may come to that only the run will tell: variables that are set in sight, braces.

A guess may be wrong, so it never makes anything allowed: it shows protected files that a command
names in a roundabout way (``$HOME/.ssh/id_rsa``, ``d=~/.ss; cat ${d}h/id_rsa``, ``.{e,x}nv``).
"""

import os
import re
from collections.abc import Iterable, Sequence

_MAX_GUESSES = 32
_MAX_VALUES = 8
"""Of one variable."""
_MAX_STEPS = 200
_MAX_CHARS = 4_096
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?([-+=?%#/^,@])([^{}$`]*))?\})")
_HERE = re.compile(r"\$\(\s*(?:pwd(?: -[LP])?|git rev-parse --show-toplevel)\s*\)|`\s*pwd\s*`")
_BRACES = re.compile(r"(?<!\$)\{([^{}]*,[^{}]*)\}")
_UNKNOWN = re.compile(r"[$`]|\(")
_QUOTES = re.compile(r"[\"'\\]")


class WordGuesser:
    """Guesses words by the environment and by what a command sets."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, ...]] = {"PWD": (".",)}

    def note_all(self, assigned: Sequence[tuple[str, str]]) -> None:
        """Take in names and the source of what is assigned to them."""
        for name, source in (*assigned, *assigned):  # in whatever order: one may hold another
            known = (*self._values_of(name), *self(source))
            self._values[name] = tuple(dict.fromkeys(known))[:_MAX_VALUES]

    def __call__(self, source: str) -> tuple[str, ...]:
        """What a word written as `source` may come to; none where that cannot be guessed."""
        if len(source) > _MAX_CHARS:
            return ()
        guesses: dict[str, None] = {}
        pending = [_HERE.sub(".", source)]
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
        return (*values, found[4]) if found[3] in ("-", "=", "+") else values

    def _values_of(self, name: str) -> tuple[str, ...]:
        if name not in self._values:
            value = os.environ.get(name, "")
            self._values[name] = (value,) if value else ()
        return self._values[name]
