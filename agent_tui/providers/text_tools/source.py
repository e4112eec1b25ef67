"""Reading JSON and Python literals out of a model's text, as forgivingly as is safe."""

import math
import re
from collections.abc import Callable
from typing import Final

from pydantic import JsonValue

from agent_tui.messages import JsonObject
from agent_tui.text import repair_text

_WORK_PER_CHAR = 12
_SPARE_WORK = 20_000
_MAX_DEPTH = 24
_MAX_NUMBER_CHARS = 40

_SPACE = re.compile(r"\s*+")
_COMMA_SPACE = re.compile(r"[\s,;]*+")
_NUMBER = re.compile(r"[+-]?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?")
_WORD = re.compile(r"[A-Za-z_]\w*+")
# Not possessive around alternatives: Python before 3.11.5 gets that wrong.
_STRING_ENDS: Final = {
    quote: re.compile(rf"(?s:(?:[^\\{quote[0]}]++|\\.|{quote[0]}(?!{quote[1:]}))*){quote}")
    if len(quote) == 3
    else re.compile(rf"(?s:(?:[^\\{quote}]++|\\.)*){quote}")
    for quote in ('"""', "'''", '"', "'")
}
_ESCAPE = re.compile(
    r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)", re.S
)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_ESCAPED_AS_THEMSELVES = "\"'\\/"
_LITERALS: Final[dict[str, JsonValue]] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}


class UnreadableError(Exception):
    """What stands there is not what was looked for."""


class CutOffError(UnreadableError):
    """The text ends before the thing does."""


class Source:
    """A text and a bound on the work of looking through it.

    Every look-up that may fail late is paid for by the characters it saw, so that no text, be
    it made for the purpose, takes more than time in proportion to its length.

    Values are read by a grammar of our own and not by a repairing library: those complete what
    was cut, and a file written from half of its content is worse than a call that is not run.
    Forgiven are Python's quotes and words, trailing commas, raw line ends inside strings and
    backslashes that escape nothing.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._work_left = _WORK_PER_CHAR * len(text) + _SPARE_WORK

    def spend(self, chars: int) -> None:
        """Pay for having looked at `chars` characters.

        Raises:
            UnreadableError: too much was looked at already.
        """
        self._work_left -= chars
        if self._work_left < 0:
            raise UnreadableError("too much work")

    def skip_space(self, at: int, *, commas: bool = False) -> int:
        """Where the next thing is; with `commas` those and semicolons are passed too."""
        match = (_COMMA_SPACE if commas else _SPACE).match(self.text, at)
        end = match.end() if match else at
        self.spend(end - at + 1)
        return end

    def find(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        """The first match from `at` on, paid for."""
        match = pattern.search(self.text, at)
        self.spend((match.end() if match else len(self.text)) - at)
        return match

    def value(self, at: int, *, closer: str = "\0", depth: int = 0) -> tuple[JsonValue, int]:
        """The value that begins at `at`, and its end.

        Args:
            at: Where it begins.
            closer: A closing tag that ends all open lists and objects: the model was done, it
                only miscounted its brackets.
            depth: How deep it is inside of others.

        Raises:
            UnreadableError: there is no value, or it is not finished (`CutOffError`).
        """
        self.spend(1)
        if depth > _MAX_DEPTH:
            raise UnreadableError("nested too deeply")
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at + 1, closer, depth)
        if first == "[":
            return self._list(at + 1, closer, depth)
        if first and first in "\"'":
            return self.string(at)
        if first and first in "+-0123456789":
            return self._number(at)
        return self._literal(at)

    def string(self, at: int) -> tuple[str, int]:
        """The text in quotes that begins at `at`, and its end.

        Raises:
            UnreadableError: there is none, or it is not finished (`CutOffError`).
        """
        quote = self.text[at : at + 3]
        if quote not in ('"""', "'''"):
            quote = quote[:1]
        if quote not in _STRING_ENDS:
            raise CutOffError if not quote else UnreadableError
        begin = at + len(quote)
        match = _STRING_ENDS[quote].match(self.text, begin)
        self.spend((match.end() if match else len(self.text)) - at)
        if match is None:
            raise CutOffError("the quotes are never closed")
        return _unescaped(self.text[begin : match.end() - len(quote)]), match.end()

    def _object(self, at: int, closer: str, depth: int) -> tuple[JsonObject, int]:
        members: JsonObject = {}

        def member(at: int) -> int:
            key, at = self.string(at)
            at = self.skip_space(at)
            self._expect(":", at)
            value, at = self.value(self.skip_space(at + 1), closer=closer, depth=depth + 1)
            members[key] = value
            return at

        return members, self._members(at, "}", closer, member)

    def _list(self, at: int, closer: str, depth: int) -> tuple[list[JsonValue], int]:
        items: list[JsonValue] = []

        def item(at: int) -> int:
            value, at = self.value(at, closer=closer, depth=depth + 1)
            items.append(value)
            return at

        return items, self._members(at, "]", closer, item)

    def _members(self, at: int, end: str, closer: str, read: Callable[[int], int]) -> int:
        """Read what stands between brackets, with commas between, up to after the last one."""
        is_first = True
        while True:
            at = self.skip_space(at)
            if self.text.startswith(end, at):
                return at + 1
            if not is_first:
                if self.text.startswith(closer, at):
                    return at
                self._expect(",", at)
                at = self.skip_space(at + 1)
                if self.text.startswith(end, at):
                    return at + 1
            at = read(at)
            is_first = False

    def _expect(self, character: str, at: int) -> None:
        if at >= len(self.text):
            raise CutOffError
        if self.text[at] != character:
            raise UnreadableError(f"{character} expected")

    def _number(self, at: int) -> tuple[JsonValue, int]:
        match = _NUMBER.match(self.text, at)
        if match is None or match.end() - at > _MAX_NUMBER_CHARS:
            raise CutOffError if at + 1 >= len(self.text) else UnreadableError
        try:
            return int(match[0]), match.end()
        except ValueError:
            number = float(match[0])
        if not math.isfinite(number):
            raise UnreadableError("not a number JSON knows")
        return number, match.end()

    def _literal(self, at: int) -> tuple[JsonValue, int]:
        match = _WORD.match(self.text, at)
        if match is None or match[0] not in _LITERALS:
            end = match.end() if match else at
            raise CutOffError if end >= len(self.text) else UnreadableError
        return _LITERALS[match[0]], match.end()


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return repair_text(text)
    return repair_text(_ESCAPE.sub(_unescaped_one, text))


def _unescaped_one(match: re.Match[str]) -> str:
    """What an escape means; one that means nothing, as in a pattern, keeps its backslash."""
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code in _ESCAPED_AS_THEMSELVES:
        return code
    return _ESCAPED.get(code, match[0])
