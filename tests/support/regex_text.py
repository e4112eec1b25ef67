"""Texts that match a pattern of `re`, drawn at random."""

import importlib
import string
from random import Random
from typing import Any

_parser: Any = importlib.import_module("re._parser")
_MOST_REPEATED = 60
_WORD = string.ascii_letters + string.digits + "_"
_OTHERS = f"{_WORD} ;"
_CLASSES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_WORD": _WORD,
    "CATEGORY_SPACE": " \t",
    "CATEGORY_NOT_SPACE": _WORD + "-.",
}


def draw_match(pattern: str, chance: Random) -> str:
    """A text that `pattern` matches, but for what it looks ahead and behind for."""
    return "".join(_draw(node, chance) for node in _parser.parse(pattern))


def _draw(node: Any, chance: Random) -> str:
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return chr(value)
        case "ANY":
            return chance.choice(_WORD)
        case "NOT_LITERAL":
            return chance.choice([char for char in _WORD if ord(char) != value])
        case "IN":
            return chance.choice(_members(value))
        case "SUBPATTERN":
            return "".join(_draw(each, chance) for each in value[3])
        case "ATOMIC_GROUP":
            return "".join(_draw(each, chance) for each in value)
        case "BRANCH":
            return "".join(_draw(each, chance) for each in chance.choice(value[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, part = value
            times = chance.randint(least, max(least, min(most, _MOST_REPEATED)))
            return "".join(_draw(each, chance) for _ in range(times) for each in part)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return ""
        case _:
            raise ValueError(f"{kind} is not known here")


def _members(parts: Any) -> str:
    chars = ""
    for kind, value in parts:
        match str(kind):
            case "LITERAL":
                chars += chr(value)
            case "RANGE":
                chars += "".join(map(chr, range(value[0], value[1] + 1)))
            case "CATEGORY":
                chars += _CLASSES[str(value)]
            case "NEGATE":
                return "".join(sorted(set(_OTHERS) - set(_members(parts[1:]))))
            case other:
                raise ValueError(f"{other} is not known here")
    return chars
