"""The keys of vi as commands, and an editor's mode, register and undo, without a screen."""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from agent_tui.features.vim.motions import (
    END_OF_LINE,
    LETTER_MOTIONS,
    MOTIONS,
    OBJECTS,
    Buffer,
    Extent,
    MotionGoal,
    extent_to,
    find_in_line,
    first_letter,
    goal_of,
    line_end,
    line_start,
    lines_away,
    object_at,
    whole_lines,
    words_end,
)

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
"""Keys without a character, and the command of each."""

_SHORT: Final = {"x": "dl", "X": "dh", "D": "d$", "C": "c$", "s": "cl", "S": "cc", "Y": "yy"}
_SELECTED: Final = {"x": "d", "s": "c"}
_NORMAL: Final = frozenset("~JpPuiIaAoOvV.\x12")
_VISUAL: Final = frozenset("dcy~JpPovV")
_PARTS = re.compile(r"([1-9]\d{0,5})?(?:([dcy])([1-9]\d{0,5})?)?(.*)", re.DOTALL)

Unfinished: TypeAlias = Literal["unfinished"]


@dataclass(frozen=True, slots=True)
class VimCommand:
    """A parsed command.

    Attributes:
        name: The key of the action or operator; empty if the cursor only moves.
        target: A motion, an object such as ``iw``, or ``line``; empty for none.
        letter: The character for ``f``, ``t``, ``r`` and the like.
        count: Number of repetitions; None if not given.
    """

    name: str = ""
    target: str = ""
    letter: str = ""
    count: int | None = None


def character_of(key: str) -> str:
    """The character for `key` in the input of `parse`; empty if it has none."""
    return key if len(key) == 1 else _NAMED.get(key, "")


def parse(keys: str, *, is_visual: bool) -> VimCommand | Unfinished | None:
    """Parse `keys` as a command; ``unfinished`` if more keys must follow, None if invalid.

    Args:
        keys: The characters of the pressed keys.
        is_visual: Whether there is a selection for operators.
    """
    found = _PARTS.fullmatch(keys)
    if found is None:
        return None
    before, operator, between, rest = found.groups(default="")
    count = int(before or 1) * int(between or 1) if before or between else None
    if is_visual and (operator or rest in _VISUAL or rest in _SELECTED):
        return VimCommand(operator or _SELECTED.get(rest, rest), count=count)
    if not is_visual and not operator and rest in _SHORT:
        operator, rest = _SHORT[rest]
    if not operator and rest[:1] == "r":
        return VimCommand("r", "", rest[1], count) if rest[1:] else "unfinished"
    if not operator and not is_visual and rest in _NORMAL:
        return VimCommand(rest, count=count)
    takes_objects = bool(operator) or is_visual
    return _with_target(VimCommand(operator, "", "", count), rest, takes_objects=takes_objects)


def _with_target(
    command: VimCommand, keys: str, *, takes_objects: bool
) -> VimCommand | Unfinished | None:
    """`command` with the target that `keys` name."""
    name, count = command.name, command.count
    if keys in MOTIONS:
        return VimCommand(name, keys, "", count)
    if name and keys == name:
        return VimCommand(name, "line", "", count)
    if keys[:1] in LETTER_MOTIONS and keys[1:]:
        return VimCommand(name, keys[0], keys[1], count)
    if takes_objects and keys[:1] in {"i", "a"} and keys[1:] in OBJECTS:
        return VimCommand(name, keys, "", count)
    is_begun = keys in {"", "g", *LETTER_MOTIONS} or (takes_objects and keys in {"i", "a"})
    return "unfinished" if is_begun else None


Wish: TypeAlias = Literal["", "older", "newer"]
Mode: TypeAlias = Literal["insert", "normal", "visual", "visual line"]
_MOST_UNDONE: Final = 200
_MOST_PASTED: Final = 1_000_000
"""Characters; a count that would paste more is cut."""


@dataclass(frozen=True, slots=True)
class Register:
    """The text that was cut or copied last."""

    text: str = ""
    lines: bool = False


class Vim:
    """Takes keys and changes a buffer.

    Attributes:
        mode: The present mode; in ``insert`` the text field handles all keys but Esc.
        anchor: The start of the selection in visual modes.
        wish: A request of the last key for an earlier or later draft of the history.
        pending: The typed part of an incomplete command.
    """

    def __init__(self) -> None:
        self.mode: Mode = "insert"
        self.anchor = 0
        self.wish: Wish = ""
        self.pending = ""
        self._register = Register()
        self._past: list[Buffer] = []
        self._future: list[Buffer] = []
        self._before_insert = self._inserted_at = Buffer("")
        self._change: tuple[VimCommand, str] | None = None
        self._open: VimCommand | None = None
        self._found = ("", "")
        self._column: int | None = None

    @property
    def is_writing(self) -> bool:
        """Whether keys write text."""
        return self.mode == "insert"

    def begin(self, buffer: Buffer, mode: Mode | None = None) -> None:
        """Switch to another text with an empty undo history, in `mode` or the present one."""
        self._past, self._future = [], []
        self.pending = ""
        self._open = None
        self._before_insert = buffer
        self.mode = mode or ("normal" if self.mode.startswith("visual") else self.mode)

    def press(self, key: str, buffer: Buffer) -> Buffer | None:
        """Handle a key.

        Args:
            key: The character, or the name of a key without one, such as ``escape``.
            buffer: The present text; in a visual mode its cursor is the moving end.

        Returns:
            The text afterwards; None if the key has no meaning here.
        """
        self.wish = ""
        if self.is_writing:
            return self._leave_insert(buffer) if key == "escape" else None
        began, self.pending = self.pending, ""
        if key == "escape":
            was_busy = bool(began) or self.mode != "normal"
            self.mode = "normal"
            return buffer.at(buffer.cursor) if was_busy else None
        character = character_of(key)
        command = parse(began + character, is_visual=self.mode != "normal") if character else None
        if command is None:
            return buffer if began or len(key) == 1 else None
        if command == "unfinished":
            self.pending = began + character
            return buffer
        return self._run(command, buffer.at(buffer.cursor))

    def selection(self, buffer: Buffer) -> Extent:
        """The selection in a visual mode."""
        start, last = sorted((min(self.anchor, len(buffer.text)), buffer.cursor))
        if self.mode == "visual line":
            return whole_lines(buffer.text, start, last)
        return Extent(start, min(last + 1, len(buffer.text)))

    def _run(self, command: VimCommand, buffer: Buffer) -> Buffer:
        is_visual = self.mode != "normal"
        match command.name:
            case "" if command.target[0] in "ia":
                return self._select_object(command, buffer)
            case "":
                return self._move(command, buffer)
            case "v" | "V":
                wanted: Mode = "visual" if command.name == "v" else "visual line"
                self.anchor = self.anchor if is_visual else buffer.cursor
                self.mode = "normal" if self.mode == wanted else wanted
                return buffer
            case "o" if is_visual:
                self.anchor, at = buffer.cursor, min(self.anchor, len(buffer.text))
                return buffer.at(at)
            case "u":
                return self._travel(buffer, self._past, self._future, command.count or 1)
            case "\x12":
                return self._travel(buffer, self._future, self._past, command.count or 1)
            case ".":
                return self._repeat(buffer, command.count)
            case _:
                return self._edit(command, buffer)

    # Undoing and repeating

    def _remember(self, before: Buffer) -> None:
        self._past = [*self._past[1 - _MOST_UNDONE :], before]
        self._future = []

    def _travel(
        self, buffer: Buffer, back: list[Buffer], forth: list[Buffer], count: int
    ) -> Buffer:
        for _ in range(min(count, len(back))):
            forth.append(buffer)
            buffer = back.pop()
        return buffer.at(buffer.cursor)

    def _repeat(self, buffer: Buffer, count: int | None) -> Buffer:
        if self._change is None:
            return buffer
        command, inserted = self._change
        made = self._edit(replace(command, count=count or command.count), buffer)
        if not self.is_writing:
            return made
        made = made.replace_range(made.cursor, made.cursor, inserted, made.cursor + len(inserted))
        return self._leave_insert(made)

    # Insert mode

    def _insert(self, before: Buffer, now: Buffer) -> Buffer:
        """Continue in insert mode; `before` is what undoing it restores."""
        self.mode = "insert"
        self._before_insert, self._inserted_at = before, now
        return now

    def _leave_insert(self, buffer: Buffer) -> Buffer:
        self.mode = "normal"
        if buffer.text != self._before_insert.text:
            self._remember(self._before_insert)
        if self._open is not None:
            self._change = self._open, _what_was_inserted(self._inserted_at, buffer)
            self._open = None
        return buffer.at(max(buffer.cursor - 1, line_start(buffer.text, buffer.cursor)))

    # Changes

    def _edit(self, command: VimCommand, buffer: Buffer) -> Buffer:
        """Continue in insert mode; undo restores `before`."""
        is_visual = self.mode != "normal"
        extent = self.selection(buffer) if is_visual else self._extent(command, buffer)
        if extent is None:
            return buffer
        self.mode = "normal"
        made = self._apply(command, buffer, extent, is_visual=is_visual)
        self._column = None
        can_repeat = not is_visual and command.name != "y"
        if self.is_writing:
            self._open = command if can_repeat else None
        else:
            self._change = (command, "") if can_repeat else self._change
            if made.text != buffer.text:
                self._remember(buffer)
        return made

    def _apply(
        self, command: VimCommand, buffer: Buffer, extent: Extent, *, is_visual: bool
    ) -> Buffer:
        text, start, end = buffer.text, extent.start, extent.end
        match command.name:
            case "d" | "c" | "y":
                began = replace(buffer, cursor=start) if is_visual else buffer
                return self._operate(command.name, began, extent)
            case "r":
                new = "".join(old if old == "\n" else command.letter for old in text[start:end])
                return buffer.replace_range(start, end, new, start if is_visual else end - 1)
            case "~":
                made = buffer.replace_range(start, end, text[start:end].swapcase(), start)
                return made if is_visual else made.at(end)
            case "J":
                lines = text.count("\n", start, end) + 1 if is_visual else command.count or 2
                return _join_lines(buffer.at(start), lines)
            case "p" | "P" if is_visual:
                return self._paste_over(buffer, extent, command.count or 1)
            case "p" | "P":
                return self._put(buffer, command.count or 1, before=command.name == "P")
            case "o":
                return self._insert(buffer, buffer.replace_range(end, end, "\n", end + 1))
            case "O":
                return self._insert(buffer, buffer.replace_range(start, start, "\n", start))
            case _:
                return self._insert(buffer, replace(buffer, cursor=end))

    def _extent(self, command: VimCommand, buffer: Buffer) -> Extent | None:
        """The range of a command in normal mode; None if it is not possible here.

        For inserting commands, `end` is the position. A motion without a goal stops an operator.
        """
        text, at, count = buffer.text, buffer.cursor, command.count or 1
        match command.name:
            case "d" | "c" | "y":
                return self._target(command, buffer)
            case "r" | "~":
                end = min(at + count, line_end(text, at))
                return None if command.name == "r" and end < at + count else Extent(at, end)
            case "p" | "P" if not (self._register.text or self._register.lines):
                return None
            case "a":
                return Extent(at, min(at + 1, line_end(text, at)))
            case "I" if text[line_start(text, at) : line_end(text, at)].strip():
                return Extent(at, first_letter(text, at))
            case "A" | "I" | "o" | "O":
                return whole_lines(text, at, at)
            case _:
                return Extent(at, at)

    def _target(self, command: VimCommand, buffer: Buffer) -> Extent | None:
        text, at, target = buffer.text, buffer.cursor, command.target
        count = command.count or 1
        if target == "line":
            return whole_lines(text, at, lines_away(text, at, count - 1))
        if target[0] in "ia":
            return object_at(text, at, target, count)
        if command.name == "c" and target in ("w", "W") and text[at : at + 1].strip():
            return Extent(at, words_end(text, at, count, is_big=target == "W"))
        goal = self._goal(command, buffer)
        if goal is None:
            return Extent(at, at) if command.name == "c" and target in "lwW" else None
        return extent_to(text, at, goal, target)

    def _operate(self, name: str, buffer: Buffer, extent: Extent) -> Buffer:
        """Copy, cut or change an extent."""
        text, start, end = buffer.text, extent.start, extent.end
        self._register = Register(text[start:end], extent.lines)
        if name == "y":
            if not extent.lines:
                return replace(buffer, cursor=start)
            rows = text.count("\n", start, buffer.cursor)
            column = buffer.cursor - line_start(text, buffer.cursor)
            return replace(buffer, cursor=lines_away(text, buffer.cursor, -rows, column))
        if name == "c":
            return self._insert(buffer, buffer.replace_range(start, end, "", start))
        if not extent.lines:
            return buffer.replace_range(start, end, "", start).at(start)
        if end < len(text):
            end += 1
        elif start > 0:
            start -= 1
        left = buffer.replace_range(start, end, "", start)
        return replace(left, cursor=first_letter(left.text, min(extent.start, len(left.text))))

    def _put(self, buffer: Buffer, count: int, *, before: bool) -> Buffer:
        text, at, new = buffer.text, buffer.cursor, self._paste(count)
        if self._register.lines:
            place = line_start(text, at) if before else line_end(text, at)
            made = buffer.replace_range(place, place, f"{new}\n" if before else f"\n{new}", place)
            return replace(made, cursor=first_letter(made.text, place + (not before)))
        place = at if before else min(at + 1, line_end(text, at))
        end = place if "\n" in new else max(place + len(new) - 1, place)
        return buffer.replace_range(place, place, new, end).at(end)

    def _paste_over(self, buffer: Buffer, extent: Extent, count: int) -> Buffer:
        """Replace the selection with the register, and put the selection into the register."""
        register, new = self._register, self._paste(count)
        self._register = Register(buffer.text[extent.start : extent.end], extent.lines)
        if register.lines and not extent.lines:
            new = f"\n{new}\n"
        return buffer.replace_range(extent.start, extent.end, new, extent.start).at(extent.start)

    def _paste(self, count: int) -> str:
        text = self._register.text
        times = max(1, min(count, _MOST_PASTED // max(len(text), 1)))
        return ("\n" if self._register.lines else "").join([text] * times)

    # Where motions lead

    def _move(self, command: VimCommand, buffer: Buffer) -> Buffer:
        """Move the cursor; up and down beyond the text request another draft."""
        goal = self._goal(command, buffer)
        if command.target in "jk":
            if goal is None and self.mode == "normal":
                self.wish = "newer" if command.target == "j" else "older"
        elif goal is not None:
            self._column = END_OF_LINE if command.target == "$" else None
        return buffer if goal is None else buffer.at(goal.at)

    def _goal(self, command: VimCommand, buffer: Buffer) -> MotionGoal | None:
        """The goal of a motion; that of ``f`` and the like is stored for ``;`` and ``,``."""
        text, at, motion = buffer.text, buffer.cursor, command.target
        if motion in ("j", "k"):
            if self._column is None:
                self._column = at - line_start(text, at)
            count = command.count or 1
            place = lines_away(text, at, count if motion == "j" else -count, self._column)
            return (
                None
                if line_start(text, place) == line_start(text, at)
                else MotionGoal(place, "lines")
            )
        is_again = motion in (";", ",")
        if not is_again and not command.letter:
            return goal_of(text, at, motion, command.count)
        if command.letter:
            self._found = (motion, command.letter)
        how, letter = self._found
        how = how.swapcase() if motion == "," else how
        place: int | None = at if how else None
        for number in range(command.count or 1):
            if place is None:
                return None
            place = find_in_line(text, place, how, letter, again=is_again or number > 0)
        if place is None:
            return None
        return MotionGoal(place, "inclusive" if how in ("f", "t") else "exclusive")

    def _select_object(self, command: VimCommand, buffer: Buffer) -> Buffer:
        found = object_at(buffer.text, buffer.cursor, command.target, command.count or 1)
        if found is None or found.start == found.end:
            return buffer
        self.anchor = found.start
        self.mode = "visual line" if found.lines else self.mode
        return buffer.at(found.end - 1)


def _join_lines(buffer: Buffer, count: int) -> Buffer:
    """Join `count` lines from the cursor's line on, with blanks between them."""
    for _ in range(max(count - 1, 1)):
        text = buffer.text
        end = line_end(text, buffer.cursor)
        if end == len(text):
            break
        below = text[end + 1 : line_end(text, end + 1)].lstrip()
        start = line_end(text, end + 1) - len(below)
        is_bare = not below or below.startswith(")") or end == 0 or text[end - 1].isspace()
        buffer = buffer.replace_range(end, start, "" if is_bare else " ", end)
    return buffer.at(buffer.cursor)


def _what_was_inserted(began: Buffer, now: Buffer) -> str:
    """The text typed since insert mode began, if it is in one piece."""
    before, after = began.text[: began.cursor], began.text[began.cursor :]
    fits = len(now.text) >= len(before) + len(after)
    if fits and now.text.startswith(before) and now.text.endswith(after):
        return now.text[len(before) : len(now.text) - len(after)]
    return ""
