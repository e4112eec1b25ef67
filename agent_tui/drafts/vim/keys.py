"""From pressed keys to a command: counts, operators, motions and their letters."""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agent_tui.drafts.vim.motions import LETTER_MOTIONS, MOTIONS
from agent_tui.drafts.vim.objects import OBJECTS

_NAMED: Final = {
    "left": "h",
    "backspace": "h",
    "right": "l",
    "space": "l",
    "down": "j",
    "up": "k",
    "home": "0",
    "end": "$",
    "delete": "x",
    "ctrl+r": "\x12",
}
"""Keys that write no character, and the command each of them is."""

_SHORT: Final = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy"}
_SELECTED: Final = {"x": "d", "s": "c"}
_NORMAL: Final = frozenset("~JpPuiIaAoOvV.\x12")
_VISUAL: Final = frozenset("dcy~JpPovV")
_PARTS = re.compile(r"([1-9]\d{0,5})?(?:([dcy])([1-9]\d{0,5})?)?(.*)", re.DOTALL)

Unfinished: TypeAlias = Literal["unfinished"]


@dataclass(frozen=True, slots=True)
class Command:
    """What was asked for.

    Attributes:
        name: The key that says what is done; an operator; empty where the cursor only moves.
        target: Over what: a motion, an object such as ``iw``, or ``line``; empty for none.
        letter: What ``f``, ``t``, ``r`` and the like are for.
        count: How often; None where nothing was said.
    """

    name: str = ""
    target: str = ""
    letter: str = ""
    count: int | None = None


def character_of(key: str) -> str:
    """The character that stands for `key` in what `parse` takes; empty if it has none."""
    return key if len(key) == 1 else _NAMED.get(key, "")


def parse(keys: str, *, is_visual: bool) -> Command | Unfinished | None:
    """The command that `keys` are; ``unfinished`` if more must come, None if they are none.

    Args:
        keys: The characters of the keys that were pressed.
        is_visual: Whether something is selected that operators take.
    """
    found = _PARTS.fullmatch(keys)
    if found is None:
        return None
    before, operator, between, rest = found.groups(default="")
    count = int(before or 1) * int(between or 1) if before or between else None
    if is_visual and (operator or rest in _VISUAL or rest in _SELECTED):
        return Command(operator or _SELECTED.get(rest, rest), count=count)
    if not is_visual and not operator and rest in _SHORT:
        operator, rest = _SHORT[rest]
    if not operator and rest[:1] == "r":
        return Command("r", "", rest[1], count) if rest[1:] else "unfinished"
    if not operator and not is_visual and rest in _NORMAL:
        return Command(rest, count=count)
    takes_objects = bool(operator) or is_visual
    return _moved(Command(operator, "", "", count), rest, takes_objects=takes_objects)


def _moved(command: Command, keys: str, *, takes_objects: bool) -> Command | Unfinished | None:
    """`command` over what `keys` say."""
    name, count = command.name, command.count
    if keys in MOTIONS:
        return Command(name, keys, "", count)
    if name and keys == name:
        return Command(name, "line", "", count)
    if keys[:1] in LETTER_MOTIONS and keys[1:]:
        return Command(name, keys[0], keys[1], count)
    if takes_objects and keys[:1] in {"i", "a"} and keys[1:] in OBJECTS:
        return Command(name, keys, "", count)
    is_begun = keys in {"", "g", *LETTER_MOTIONS} or (takes_objects and keys in {"i", "a"})
    return "unfinished" if is_begun else None
