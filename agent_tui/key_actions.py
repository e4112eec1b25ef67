"""The actions of keys, with their names in ``[keys]`` of the settings, and their keys.

A key is written as the terminal library names it: ``ctrl+e``, ``alt+up``, ``f5``. This module is
loaded for the first paint.
"""

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

_MODIFIERS: Final = ("alt", "ctrl", "hyper", "meta", "shift", "super")
_WITH_MODIFIER: Final = frozenset(
    {"escape", "enter", "tab", "space", "backspace", "delete", "up", "down", "left", "right"}
)
"""Keys that write, move and choose when pressed alone."""
_ALONE: Final = frozenset(
    {"home", "end", "insert", "pageup", "pagedown", *(f"f{number}" for number in range(1, 25))}
)
_SAME_TO_A_TERMINAL: Final = MappingProxyType(
    {
        "ctrl+i": "tab",
        "ctrl+m": "enter",
        "ctrl+h": "backspace",
        "ctrl+left_square_bracket": "escape",
    }
)
_SHORT_NAMES: Final = MappingProxyType(
    {
        "solidus": "slash",
        "reverse_solidus": "backslash",
        "commercial_at": "at",
        "hyphen_minus": "minus",
        "plus_sign": "plus",
        "low_line": "underscore",
    }
)


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action with keys.

    Attributes:
        name: Its name in the settings.
        keys: The default keys.
        description: One line, for the palette and the settings.
        may_be_unbound: Whether it may have no key.
        alone: Keys it may have although they write, move or choose elsewhere.
    """

    name: str
    keys: tuple[str, ...]
    description: str
    may_be_unbound: bool = True
    alone: tuple[str, ...] = ()


_ACTIONS: Final = (
    KeyAction("submit", ("enter",), "Send the message", False, ("enter",)),
    KeyAction(
        "newline",
        ("shift+enter", "ctrl+j", "alt+enter", "ctrl+enter"),
        "Insert a newline",
        alone=("enter",),
    ),
    KeyAction(
        "history_older", ("up",), "Earlier prompt, from the first line", alone=("up", "down")
    ),
    KeyAction("history_newer", ("down",), "Later prompt, from the last line", alone=("up", "down")),
    KeyAction("history_search", ("ctrl+r",), "Search earlier prompts"),
    KeyAction("paste_image", ("ctrl+v",), "Attach the image on the clipboard"),
    KeyAction(
        "help",
        ("question_mark",),
        "List all commands and keys (empty prompt)",
        alone=("question_mark",),
    ),
    KeyAction("undo", ("ctrl+underscore", "super+z"), "Undo the last edit of the prompt"),
    KeyAction("word_left", ("alt+b",), "Move one word left"),
    KeyAction("word_right", ("alt+f",), "Move one word right"),
    KeyAction("interrupt", ("escape",), "Stop what is running", False, ("escape",)),
    KeyAction("clear_or_leave", ("ctrl+c",), "Clear the prompt, or stop; twice to quit", False),
    KeyAction("leave_if_empty", ("ctrl+d",), "Quit (empty prompt)"),
    KeyAction("quit", ("ctrl+q",), "Quit"),
    KeyAction("palette", ("ctrl+p",), "Find a command or action"),
    KeyAction("suspend", ("ctrl+z",), "Suspend; fg in the shell resumes"),
    KeyAction("permission_mode", ("shift+tab",), "Next permission mode"),
    KeyAction("toggle_details", ("ctrl+o",), "Expand or collapse tool output and summaries"),
    KeyAction("toggle_thinking", ("ctrl+t",), "Show or hide thinking"),
    KeyAction("external_editor", ("ctrl+g",), "Edit the prompt in $EDITOR"),
    KeyAction("background", ("ctrl+b",), "Move the running command to the background"),
    KeyAction("find", ("ctrl+f",), "Search the chat"),
    KeyAction("take_back_queue", ("alt+up",), "Move queued messages back to the prompt"),
    KeyAction("mouse", ("alt+m",), "Turn the mouse on or off"),
    KeyAction("page_up", ("pageup",), "Page up"),
    KeyAction("page_down", ("pagedown",), "Page down"),
    KeyAction("first_message", ("ctrl+home",), "Go to the first message"),
    KeyAction("last_message", ("ctrl+l", "ctrl+end"), "Go to the newest message"),
)
KEY_ACTIONS: Final[Mapping[str, KeyAction]] = MappingProxyType({one.name: one for one in _ACTIONS})


def _no_choices() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


@dataclass(frozen=True)
class KeyMap:
    """The keys of all actions.

    Attributes:
        chosen: Keys of the actions that the user changed; without `clashes`. Other actions lose
            default keys that are among them.
    """

    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=_no_choices)

    def keys(self, name: str) -> tuple[str, ...]:
        """The keys of an action; empty if it has none."""
        if name in self.chosen:
            return self.chosen[name]
        taken = {key for keys in self.chosen.values() for key in keys}
        return tuple(key for key in KEY_ACTIONS[name].keys if key not in taken)

    def action(self, key: str) -> str:
        """The name of the action of `key`, as the terminal sent it; empty for none."""
        sent = key.replace("\r", "enter")  # tmux sends shift+enter like this
        return self._names.get(sent, "")

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The actions' names by key; the first has a key that several have."""
        pairs = [(key, name) for name in KEY_ACTIONS for key in self.keys(name)]
        return dict(reversed(pairs))

    def first_key(self, name: str) -> str:
        """The first key of an action, as shown in texts; empty if it has none."""
        return next(map(format_key, self.keys(name)), "")

    def hint(self, name: str, what: str) -> str:
        """``ctrl+o opens it``, with the key of `name`; empty if it has none."""
        return f"{key} {what}" if (key := self.first_key(name)) else ""

    def all_shown(self, name: str) -> str:
        """All keys of an action, as shown in texts; ``—`` if it has none."""
        known = (format_key(key) for key in self.keys(name) if not key.startswith("super+"))
        return ", ".join(known) or "—"

    def clashes(self) -> Iterator[tuple[str, str]]:
        """The first invalid choice of each conflict, by the action's name, and why."""
        seen: dict[str, str] = {}
        for name, keys in self.chosen.items():
            for key in keys:
                if key == "ctrl+c" and name != "clear_or_leave":
                    yield name, "ctrl+c is reserved: it clears the prompt, stops and quits"
                elif key in seen and seen[key] != name:
                    yield name, f"{format_key(key)} is already bound to {seen[key]}"
                seen.setdefault(key, name)
            if not keys and not KEY_ACTIONS[name].may_be_unbound:
                yield name, "this action needs a key"
        for other, action in KEY_ACTIONS.items():
            if other not in self.chosen and not self.keys(other):
                key = action.keys[0]
                yield (
                    seen[key],
                    f"{format_key(key)} is bound to {other}; give {other} another key in [keys], "
                    'or "" for none',
                )


def normal_key(text: str, action: KeyAction) -> str:
    """Convert a key as the user wrote it to the form of terminal input.

    Raises:
        ValueError: It is not a key, or not one that `action` may have; the message says why.
    """
    *modifiers, key = re.split(r"\+(?=.)", text.strip())
    held = {one.strip().lower() for one in modifiers}
    if unknown := held.difference(_MODIFIERS):
        raise ValueError(f"{text}: {', '.join(sorted(unknown))} is not a modifier")
    name = _key_name(key)
    if len(name) == 1 and name.isupper() and held and "ctrl" not in held:
        held.add("shift")
    whole = "+".join([*sorted(held), name.lower() if len(name) == 1 else name])
    if same := _SAME_TO_A_TERMINAL.get(whole):
        raise ValueError(f"terminals cannot tell {text} from {same}")
    is_named = name in _WITH_MODIFIER or name in _ALONE
    is_free = name in _ALONE or held - {"shift"} or (held and is_named)
    if not is_free and whole not in action.alone:
        raise ValueError(f"{text} is needed for typing and choosing; put ctrl+ or alt+ before it")
    return whole


def format_key(key: str) -> str:
    """A key as shown in texts: ``esc``, ``ctrl+_``, ``?``."""
    *modifiers, name = key.split("+")
    shown = "esc" if name == "escape" else _CHARACTERS.get(name, name)
    return "+".join([*modifiers, shown])


def _key_name(key: str) -> str:
    if len(key) == 1:
        return key if key.isalnum() else _NAMES.get(key, key)
    name = key.lower()
    name = {"esc": "escape", "return": "enter", "del": "delete"}.get(name, name)
    if name not in _WITH_MODIFIER and name not in _ALONE and name not in _CHARACTERS:
        raise ValueError(f"there is no key named {key}")
    return name


def _name_of(character: str) -> str:
    name = unicodedata.name(character).lower().replace("-", "_").replace(" ", "_")
    return _SHORT_NAMES.get(name, name)


_NAMES: Final = {" ": "space"} | {one: _name_of(one) for one in string.punctuation}
_CHARACTERS: Final = {_name_of(one): one for one in string.punctuation}

_in_force = KeyMap()


def keys_in_force() -> KeyMap:
    """The keys of this program's screen, for texts that name a key."""
    return _in_force


def use_keys(keys: KeyMap) -> None:
    """Use `keys` in texts from now on; the screen calls this when it applies them."""
    global _in_force  # one terminal, one keyboard: the program has only one screen
    _in_force = keys
