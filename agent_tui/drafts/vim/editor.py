"""The state of an editor with the keys of vi: mode, register, what can be undone and repeated."""

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from agent_tui.drafts.vim import edits
from agent_tui.drafts.vim.commands import OPERATORS, Command, parse
from agent_tui.drafts.vim.edits import Buffer, Extent, Register, whole_lines
from agent_tui.drafts.vim.extents import after_copying, between, plain, sized
from agent_tui.drafts.vim.lines import (
    END_OF_LINE,
    Goal,
    first_letter,
    found_in_line,
    goal_of,
    line_end,
    line_start,
    lines_away,
    on_a_letter,
    words_end,
)
from agent_tui.drafts.vim.objects import object_at

Mode: TypeAlias = Literal["insert", "normal", "visual", "visual line"]
Wish: TypeAlias = Literal["", "older", "newer"]
_MOST_UNDONE: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A command that can be repeated.

    Attributes:
        command: What was done.
        size: Over how much, where something was selected: characters, or lines; else None.
        of_lines: Whether whole lines were selected.
        inserted: What was typed behind it.
    """

    command: Command
    size: int | None = None
    of_lines: bool = False
    inserted: str = ""


class Vim:
    """Takes keys and changes a buffer.

    Attributes:
        mode: What keys mean now; in ``insert`` all but Esc are left to the text field.
        anchor: Where the selection began, in the visual modes.
        wish: Set by the last key: an earlier or later draft of the history.
    """

    def __init__(self) -> None:
        self.mode: Mode = "insert"
        self.anchor = 0
        self.wish: Wish = ""
        self._keys: list[str] = []
        self._register = Register()
        self._past: list[Buffer] = []
        self._future: list[Buffer] = []
        self._began = self._inserted_at = Buffer("")
        self._change: Change | None = None
        self._open: Change | None = None
        self._found = ("", "")
        self._column: int | None = None

    @property
    def pending(self) -> str:
        """What was typed of a command that is not whole yet."""
        return "".join(self._keys)

    def begin(self, buffer: Buffer, mode: Mode | None = None) -> None:
        """Another text: nothing of it can be undone; it is gone on in `mode`, or the present."""
        self._past, self._future = [], []
        self._keys.clear()
        self._open = None
        self._began = buffer
        self.mode = mode or ("normal" if self.mode.startswith("visual") else self.mode)

    def press(self, key: str, buffer: Buffer) -> Buffer | None:
        """Take a key.

        Args:
            key: The character, or the name of a key that writes none, such as ``escape``.
            buffer: The text as it is; in a visual mode its cursor is the moving end.

        Returns:
            The text as it is now; None where the key means nothing here.
        """
        self.wish = ""
        if self.mode == "insert":
            return self._leave_insert(buffer) if key == "escape" else None
        if key == "escape":
            return self._escape(buffer)
        command = parse((*self._keys, key), is_visual=self.mode != "normal")
        if command is None:
            was_begun = bool(self._keys)
            self._keys.clear()
            return buffer if was_begun or len(key) == 1 else None
        self._keys.append(key)
        if command == "unfinished":
            return buffer
        self._keys.clear()
        return self._run(command, self._settled(buffer))

    def selection(self, buffer: Buffer) -> Extent:
        """What is selected in a visual mode."""
        start, last = sorted((min(self.anchor, len(buffer.text)), buffer.cursor))
        if self.mode == "visual line":
            return whole_lines(buffer.text, start, last)
        return Extent(start, min(last + 1, len(buffer.text)))

    # Modes

    def _settled(self, buffer: Buffer) -> Buffer:
        return replace(buffer, cursor=on_a_letter(buffer.text, buffer.cursor))

    def _escape(self, buffer: Buffer) -> Buffer | None:
        was_busy = bool(self._keys) or self.mode != "normal"
        self._keys.clear()
        self.mode = "normal"
        return self._settled(buffer) if was_busy else None

    def _insert(self, before: Buffer, now: Buffer, change: Change | None) -> Buffer:
        """Go on in insert mode; `before` is what undoing it gives back."""
        self.mode = "insert"
        self._began, self._open = before, change
        self._inserted_at = now
        return now

    def _leave_insert(self, buffer: Buffer) -> Buffer:
        self.mode = "normal"
        self._column = None
        if buffer.text != self._began.text:
            self._remember(self._began)
        if self._open is not None:
            self._change = replace(
                self._open, inserted=_what_was_inserted(self._inserted_at, buffer)
            )
            self._open = None
        cursor = max(buffer.cursor - 1, line_start(buffer.text, buffer.cursor))
        return self._settled(replace(buffer, cursor=cursor))

    # Undoing

    def _remember(self, before: Buffer) -> None:
        self._past = [*self._past[1 - _MOST_UNDONE :], before]
        self._future = []

    def _undo(self, buffer: Buffer, count: int) -> Buffer:
        for _ in range(count):
            if not self._past:
                break
            self._future.append(buffer)
            buffer = self._past.pop()
        return self._settled(buffer)

    def _redo(self, buffer: Buffer, count: int) -> Buffer:
        for _ in range(count):
            if not self._future:
                break
            self._past.append(buffer)
            buffer = self._future.pop()
        return self._settled(buffer)

    # Commands

    def _run(self, command: Command, buffer: Buffer) -> Buffer:
        if self.mode != "normal":
            return self._run_visual(command, buffer)
        count = command.count or 1
        match command.name:
            case "":
                return self._move(command, buffer)
            case "u":
                return self._undo(buffer, count)
            case "ctrl+r":
                return self._redo(buffer, count)
            case ".":
                return self._repeat(buffer, command.count)
            case "v" | "V":
                self.mode = "visual" if command.name == "v" else "visual line"
                self.anchor = buffer.cursor
                return buffer
            case _:
                return self._changed(Change(plain(command)), buffer)

    def _changed(self, change: Change, buffer: Buffer) -> Buffer:
        """Do what can be repeated."""
        command, before = change.command, buffer
        if command.name in OPERATORS:
            extent = self._extent(change, buffer)
            if extent is None:
                return buffer
            made = self._operate(change, buffer, extent)
        else:
            made = self._do(change, buffer)
        if command.name != "y" and self.mode != "insert":
            self._change = change
            if made.text != before.text:
                self._remember(before)
        self._column = None
        return made

    def _do(self, change: Change, buffer: Buffer) -> Buffer:
        """A command without a motion."""
        text, at, count = buffer.text, buffer.cursor, change.command.count or 1
        match change.command.name:
            case "r":
                extent = Extent(at, at + count)
                if extent.end > line_end(text, at):
                    return buffer
                return edits.overwritten(buffer, extent, change.command.letter, extent.end - 1)
            case "~":
                end = min(at + count, line_end(text, at))
                return edits.turned_case(buffer, Extent(at, end), end)
            case "J":
                return edits.joined_lines(buffer, count)
            case "p" | "P":
                if not self._register.text and not self._register.lines:
                    return buffer
                before = change.command.name == "P"
                return edits.pasted(buffer, self._register, count, before=before)
            case _:
                return self._begin_insert(change, buffer)

    def _begin_insert(self, change: Change, buffer: Buffer) -> Buffer:
        text, at = buffer.text, buffer.cursor
        match change.command.name:
            case "a":
                now = replace(buffer, cursor=min(at + 1, line_end(text, at)))
            case "A":
                now = replace(buffer, cursor=line_end(text, at))
            case "I":
                start = first_letter(text, at)
                blank = not text[line_start(text, at) : line_end(text, at)].strip()
                now = replace(buffer, cursor=line_end(text, at) if blank else start)
            case "o":
                end = line_end(text, at)
                now = buffer.replaced(end, end, "\n", end + 1)
            case "O":
                start = line_start(text, at)
                now = buffer.replaced(start, start, "\n", start)
            case _:
                now = buffer
        return self._insert(buffer, now, change)

    def _operate(self, change: Change, buffer: Buffer, extent: Extent) -> Buffer:
        """Copy, cut or change an extent."""
        self._register = edits.copied(buffer, extent)
        match change.command.name:
            case "y":
                return replace(buffer, cursor=after_copying(buffer, extent))
            case "d":
                return edits.cut(buffer, extent)
            case _:
                now = buffer.replaced(extent.start, extent.end, "", extent.start)
                return self._insert(buffer, now, change)

    def _repeat(self, buffer: Buffer, count: int | None) -> Buffer:
        change = self._change
        if change is None:
            return buffer
        if count is not None:
            change = replace(change, command=replace(change.command, count=count))
        past = len(self._past)
        made = self._changed(change, buffer)
        if self.mode != "insert":
            return made
        at = made.cursor
        made = made.replaced(at, at, change.inserted, at + len(change.inserted))
        made = self._leave_insert(made)
        self._change = change
        del self._past[past + 1 :]
        return made

    # Where motions lead

    def _move(self, command: Command, buffer: Buffer) -> Buffer:
        """The cursor elsewhere; up and down beyond the text wish for another draft."""
        if command.motion in "jk" and command.motion:
            goal = self._up_or_down(command, buffer)
            if goal is None and self.mode == "normal":
                self.wish = "newer" if command.motion == "j" else "older"
            return buffer if goal is None else replace(buffer, cursor=goal.at)
        goal = self._goal(command, buffer)
        if goal is None:
            return buffer
        self._column = END_OF_LINE if command.motion == "$" else None
        return self._settled(replace(buffer, cursor=goal.at))

    def _up_or_down(self, command: Command, buffer: Buffer) -> Goal | None:
        column = self._column
        if column is None:
            column = buffer.cursor - line_start(buffer.text, buffer.cursor)
        count = command.count or 1
        count = count if command.motion == "j" else -count
        place = lines_away(buffer.text, buffer.cursor, count, column)
        if place is None:
            return None
        self._column = column
        return Goal(place, "lines")

    def _goal(self, command: Command, buffer: Buffer) -> Goal | None:
        """Where a motion leads; that of ``f`` and the like is kept for ``;`` and ``,``."""
        text, at, motion, letter = buffer.text, buffer.cursor, command.motion, command.letter
        if motion in ("j", "k"):
            return self._up_or_down(command, buffer)
        is_again = motion in (";", ",")
        if is_again:
            motion, letter = self._found
            motion = motion.swapcase() if command.motion == "," else motion
        elif motion in ("f", "F", "t", "T"):
            self._found = (motion, letter)
        else:
            return goal_of(text, at, motion, command.count)
        place: int | None = at if motion else None
        for number in range(command.count or 1):
            if place is not None:
                again = is_again or number > 0
                place = found_in_line(text, place, motion, letter, again=again)
        if place is None:
            return None
        return Goal(place, "inclusive" if motion in ("f", "t") else "exclusive")

    def _extent(self, change: Change, buffer: Buffer) -> Extent | None:
        """What an operator works on; None where its motion leads nowhere."""
        command, text, at = change.command, buffer.text, buffer.cursor
        if change.size is not None:
            return sized(text, at, change.size, of_lines=change.of_lines)
        if command.motion == "line":
            below = lines_away(text, at, (command.count or 1) - 1, 0)
            return whole_lines(text, at, at if below is None else below)
        if command.motion[0] in "ia" and len(command.motion) == 2:
            found = object_at(text, at, command.motion, command.count or 1)
            return None if found is None else Extent(*found)
        if command.name == "c" and command.motion in ("w", "W") and text[at : at + 1].strip():
            is_big = command.motion == "W"
            return Extent(at, words_end(text, at, command.count or 1, is_big=is_big) + 1)
        column, goal = self._column, self._goal(command, buffer)
        self._column = column
        if goal is None and command.name == "c" and command.motion in ("l", "w", "W"):
            return Extent(at, at)
        return None if goal is None else between(text, at, goal, command.motion)

    # Selections

    def _run_visual(self, command: Command, buffer: Buffer) -> Buffer:
        match command.name:
            case "" if len(command.motion) == 2 and command.motion[0] in "ia":
                return self._select_object(command, buffer)
            case "":
                return self._move(command, buffer)
            case "v" | "V":
                wanted: Mode = "visual" if command.name == "v" else "visual line"
                self.mode = "normal" if self.mode == wanted else wanted
                return buffer
            case "o":
                self.anchor, at = buffer.cursor, min(self.anchor, len(buffer.text))
                return self._settled(replace(buffer, cursor=at))
            case _:
                return self._take_selection(command, buffer)

    def _select_object(self, command: Command, buffer: Buffer) -> Buffer:
        found = object_at(buffer.text, buffer.cursor, command.motion, command.count or 1)
        if found is None or found[0] == found[1]:
            return buffer
        self.anchor = found[0]
        self.mode = "visual line" if found[2] else self.mode
        return self._settled(replace(buffer, cursor=found[1] - 1))

    def _take_selection(self, command: Command, buffer: Buffer) -> Buffer:
        """Do something with what is selected, and leave it."""
        name = {"x": "d", "X": "D", "s": "c", "S": "C"}.get(command.name, command.name)
        if name in ("D", "C", "Y"):
            self.mode, name = "visual line", name.lower()
        extent = self.selection(buffer)
        self.mode = "normal"
        self._column = None
        part = buffer.text[extent.start : extent.end]
        start = replace(buffer, cursor=extent.start)
        if name in OPERATORS:
            size = part.count("\n") + 1 if extent.lines else len(part)
            return self._changed(Change(Command(name), size, extent.lines), start)
        match name:
            case "r":
                made = edits.overwritten(buffer, extent, command.letter, extent.start)
            case "~":
                made = edits.turned_case(buffer, extent, extent.start)
            case "J":
                made = edits.joined_lines(start, part.count("\n") + 1)
            case _:
                made = self._paste_over(buffer, extent, command.count or 1)
        if made.text != buffer.text:
            self._remember(buffer)
        return made

    def _paste_over(self, buffer: Buffer, extent: Extent, count: int) -> Buffer:
        """Put the register in place of what is selected, which goes into the register."""
        register, self._register = self._register, edits.copied(buffer, extent)
        text = "\n".join([register.text] * count) if register.lines else register.text * count
        if register.lines and not extent.lines:
            text = f"\n{text}\n"
        made = buffer.replaced(extent.start, extent.end, text, extent.start)
        return self._settled(made)


def _what_was_inserted(began: Buffer, now: Buffer) -> str:
    """The text that was typed since insert mode began, where it is in one piece."""
    before, after = began.text[: began.cursor], began.text[began.cursor :]
    fits = len(now.text) >= len(before) + len(after)
    if fits and now.text.startswith(before) and now.text.endswith(after):
        return now.text[len(before) : len(now.text) - len(after)]
    return ""
