"""From pressed keys to a command: counts, operators, motions and their letters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agent_tui.drafts.vim.objects import OBJECTS

OPERATORS: Final = frozenset("dcy")
MOTIONS: Final = frozenset("hjklwWbBeE0^$G;,")
_WITH_LETTER: Final = frozenset("fFtT")
_ALIASES: Final = {
    "left": "h",
    "backspace": "h",
    "right": "l",
    " ": "l",
    "space": "l",
    "down": "j",
    "up": "k",
    "home": "0",
    "end": "$",
    "delete": "x",
}
_NORMAL: Final = frozenset("xXsSDCY~JpPuiIaAoOvV.") | {"ctrl+r"}
_VISUAL: Final = frozenset("dxcsy~JpPovV") | {"D", "X", "C", "S", "Y"}

Unfinished: TypeAlias = Literal["unfinished"]


@dataclass(frozen=True, slots=True)
class Command:
    """What was asked for.

    Attributes:
        name: The key that says what is done; an operator; empty where the cursor only moves.
        motion: Over what: a motion, an object such as ``iw``, or ``line``; empty for none.
        letter: What ``f``, ``t``, ``r`` and the like are for.
        count: How often; None where nothing was said.
    """

    name: str = ""
    motion: str = ""
    letter: str = ""
    count: int | None = None


def parse(keys: Sequence[str], *, is_visual: bool) -> Command | Unfinished | None:
    """The command that `keys` are; ``unfinished`` where more must come, None where they are none.

    Args:
        keys: What was pressed: characters, and names such as ``ctrl+r`` for keys without one.
        is_visual: Whether something is selected that operators take.
    """
    count, rest = _counted(
        [
            _ALIASES.get(key, key) if not _is_letter(keys, number) else key
            for number, key in enumerate(keys)
        ]
    )
    if not rest:
        return "unfinished"
    key = rest[0]
    if key == "r":
        return _with_letter(Command("r", "", "", count), rest[1:])
    if key in (_VISUAL if is_visual else _NORMAL):
        return Command(key, count=count) if len(rest) == 1 else None
    if is_visual and key in "ia":
        return _moved("", count, rest, takes_objects=True)
    if key in OPERATORS:
        times, target = _counted(rest[1:])
        both = None if count is None and times is None else (count or 1) * (times or 1)
        if not target:
            return "unfinished"
        if target == [key]:
            return Command(key, "line", "", both)
        return _moved(key, both, target, takes_objects=True)
    return _moved("", count, rest, takes_objects=False)


def _moved(
    name: str, count: int | None, rest: Sequence[str], *, takes_objects: bool
) -> Command | Unfinished | None:
    key = rest[0]
    if key in MOTIONS:
        return Command(name, key, "", count) if len(rest) == 1 else None
    if key in _WITH_LETTER:
        return _with_letter(Command(name, key, "", count), rest[1:])
    if key == "g" or (takes_objects and key in "ia"):
        follows = {"g"} if key == "g" else OBJECTS
        if len(rest) == 1:
            return "unfinished"
        return Command(name, key + rest[1], "", count) if rest[1] in follows else None
    return None


def _with_letter(command: Command, rest: Sequence[str]) -> Command | Unfinished | None:
    if not rest:
        return "unfinished"
    if len(rest) > 1 or len(rest[0]) != 1:
        return None
    return Command(command.name, command.motion, rest[0], command.count)


def _is_letter(keys: Sequence[str], number: int) -> bool:
    """Whether this key is what ``f``, ``t`` or ``r`` is for."""
    return number > 0 and keys[number - 1] in {*_WITH_LETTER, "r"}


def _counted(keys: Sequence[str]) -> tuple[int | None, list[str]]:
    """The number that `keys` begin with, and the rest; ``0`` alone is a motion."""
    digits = 0
    while digits < len(keys) and keys[digits].isdecimal() and (digits or keys[0] != "0"):
        digits += 1
    number = int("".join(keys[:digits])) if digits else None
    return (None if number is None else min(number, 100_000)), list(keys[digits:])
