"""What one call does to the text of a file, forward and back, as far as the call itself says."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from agent_tui.errors import ToolError
from agent_tui.messages import JsonObject, ToolSpec
from agent_tui.tools.base import UnderstoodCall
from agent_tui.tools.edit import EditArguments, Replacement
from agent_tui.tools.files.diffs import after_diff, before_diff
from agent_tui.tools.files.matching import TextSpan, find_places
from agent_tui.tools.foreign_calls import translate_call
from agent_tui.tools.patch_format import (
    ApplyPatchArguments,
    FilePatch,
    Hunk,
    hunk_places,
    read_patch,
)
from agent_tui.tools.read import ReadArguments
from agent_tui.tools.schema import compact_schema
from agent_tui.tools.write import WriteArguments


class TextEdit(Protocol):
    """A change of a text that applies exactly or not at all."""

    def forward(self, before: str) -> str | None:
        """The text after the change of `before`; None if it does not apply there."""
        ...

    def back(self, after: str) -> str | None:
        """The text that the change turned into `after`; None if that cannot be told."""
        ...

    def may_write(self, line: str) -> bool:
        """Whether the change can have written `line`, which has no line end."""
        ...


@dataclass(frozen=True, slots=True)
class NoEdit:
    """A change of which nothing is known."""

    def forward(self, before: str) -> str | None:
        """Unknown."""
        del before

    def back(self, after: str) -> str | None:
        """Unknown."""
        del after

    def may_write(self, line: str) -> bool:
        """It may have written anything."""
        del line
        return True


@dataclass(frozen=True, slots=True)
class DiffEdit:
    """A unified diff, whose hunks must be at the lines that it names, or have just one place."""

    diff: str

    def forward(self, before: str) -> str | None:
        """The text after the change of `before`."""
        return after_diff(before, self.diff, is_exact=True)

    def back(self, after: str) -> str | None:
        """The text before the change."""
        return before_diff(after, self.diff, is_exact=True)

    def may_write(self, line: str) -> bool:
        """Whether the diff adds `line`."""
        return f"\n+{line}\n" in self.diff.replace("\r\n", "\n")


@dataclass(frozen=True, slots=True)
class SeenText:
    """No change, but the whole text."""

    text: str

    def forward(self, before: str) -> str | None:
        """The text, if it is the one."""
        return before if before == self.text else None

    def back(self, after: str) -> str | None:
        """The text, if it is the one."""
        return after if after == self.text else None

    def may_write(self, line: str) -> bool:
        """It writes nothing."""
        del line
        return False


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A whole text in place of whatever was there."""

    text: str

    def forward(self, before: str) -> str | None:
        """The text."""
        del before
        return self.text

    def back(self, after: str) -> str | None:
        """Unknown: the call does not say what was there."""
        del after

    def may_write(self, line: str) -> bool:
        """Whether the text has `line`."""
        return line in self.text.split("\n")


@dataclass(frozen=True, slots=True)
class Replacements:
    """Texts that occur just once, or everywhere, and what replaces them."""

    edits: tuple[Replacement, ...]

    def forward(self, before: str) -> str | None:
        """The text after the change of `before`."""
        places: list[TextSpan] = []
        for edit in self.edits:
            there = find_places(before, edit.old, edit.new) if edit.old else None
            if there is None or there.but_for or not there.found:
                return None
            if len(there.found) > 1 and not edit.all:
                return None
            places += there.found
        return _replaced(before, places)

    def back(self, after: str) -> str | None:
        """The text before the change, if each new text has just one place in `after`."""
        if not all(edit.new and _has_one_place(after, edit.new) for edit in self.edits):
            return None
        turned = tuple(Replacement(old=edit.new, new=edit.old) for edit in self.edits)
        before = Replacements(turned).forward(after)
        return before if before is not None and self.forward(before) == after else None

    def may_write(self, line: str) -> bool:
        """Whether a new text has `line`, or can have been joined with others to it."""
        return any(_may_join(edit.new.split("\n"), line) for edit in self.edits)


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """The part of a patch about one file that is updated."""

    patch: FilePatch

    def forward(self, before: str) -> str | None:
        """The text after the change of `before`."""
        try:
            places, ignored = hunk_places(before, self.patch, self.patch.path)
        except ToolError:
            return None
        return None if ignored else _replaced(before, list(places))

    def back(self, after: str) -> str | None:
        """The text before the change, if its hunks have one place each in `after`."""
        hunks = [Hunk(list(h.headers), h.new, h.old, h.is_at_end) for h in self.patch.hunks]
        written = ["".join(f"\n{line}" for line in (*hunk.old, "")) for hunk in hunks]
        within = "\n" + after.removesuffix("\n") + "\n"
        if not all(hunk.old for hunk in hunks):
            return None
        if not all(_has_one_place(within, text) for text in written):
            return None
        before = PatchedFile(FilePatch("update", self.patch.path, hunks=hunks)).forward(after)
        return before if before is not None and self.forward(before) == after else None

    def may_write(self, line: str) -> bool:
        """Whether a hunk has `line` afterwards."""
        return any(line in hunk.new for hunk in self.patch.hunks)


def _has_one_place(text: str, sought: str) -> bool:
    """Whether `sought` is in `text` at just one place; places may overlap."""
    place = text.find(sought)
    return place >= 0 and text.find(sought, place + 1) < 0


def _may_join(new: list[str], line: str) -> bool:
    """Whether `line` is one of the lines `new`, of which the first and the last are pieces."""
    if len(new) == 1:
        return new[0] in line
    return line in new[1:-1] or line.endswith(new[0]) or line.startswith(new[-1])


def _replaced(text: str, places: list[TextSpan]) -> str | None:
    places = sorted(places, key=lambda place: place.start)
    if any(other.start < one.end for one, other in pairwise(places)):
        return None
    for place in reversed(places):
        text = text[: place.start] + place.new + text[place.end :]
    return text


@dataclass(frozen=True, slots=True)
class CalledEdit:
    """What a call says about one file.

    Attributes:
        path: The file as the call names it.
        edit: The change.
        is_new: Whether the call requires that there was no file.
        is_gone: Whether there is no file afterwards.
        moved_from: The file's former path, if the call moved it.
    """

    path: str
    edit: TextEdit = field(default_factory=NoEdit)
    is_new: bool = False
    is_gone: bool = False
    moved_from: str = ""


def _spec(name: str, parameters: JsonObject) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=parameters)


class CallReader:
    """Reads calls of any agent's tools that change files or run commands."""

    def __init__(self) -> None:
        self._specs = (
            _spec("edit", compact_schema(EditArguments)),
            _spec("write", compact_schema(WriteArguments)),
            _spec("apply_patch", compact_schema(ApplyPatchArguments)),
            _spec("bash", {"properties": {"command": {"type": "string"}}}),
            _spec("read", compact_schema(ReadArguments)),
        )

    def command_of(self, name: str, arguments: JsonObject, cwd: Path) -> str:
        """The shell command that a call runs; empty if it runs none."""
        call = self._understood(name, arguments, cwd)
        command = call.arguments.get("command") if call.name == "bash" else None
        return command if isinstance(command, str) else ""

    def read_whole(self, name: str, arguments: JsonObject, cwd: Path) -> str:
        """The file that a call asks for from its first line to its last; empty for none."""
        call = self._understood(name, arguments, cwd)
        path = call.arguments.get("path")
        is_whole = call.name == "read" and not call.remark and set(call.arguments) == {"path"}
        return path if is_whole and isinstance(path, str) else ""

    def edits_of(self, name: str, arguments: JsonObject, cwd: Path) -> tuple[CalledEdit, ...]:
        """The changes that a call makes if it succeeds; none for a command."""
        call = self._understood(name, arguments, cwd)
        reader = _READERS.get(call.name)
        try:
            return reader(call.arguments) if reader is not None else ()
        except (ValidationError, ToolError):
            path = call.arguments.get("path")
            is_one = reader is not None and isinstance(path, str)
            return (CalledEdit(path),) if is_one and isinstance(path, str) else ()

    def _understood(self, name: str, arguments: JsonObject, cwd: Path) -> UnderstoodCall:
        return translate_call(name, arguments, self._specs, cwd)


def _of_edit(arguments: JsonObject) -> tuple[CalledEdit, ...]:
    given = EditArguments.model_validate(arguments)
    edits = (
        edit.model_copy(
            update={
                "old": edit.old.replace("\r\n", "\n"),
                "new": edit.new.replace("\r\n", "\n"),
            }
        )
        for edit in given.edits
    )
    return (CalledEdit(given.path, Replacements(tuple(edits))),)


def _of_write(arguments: JsonObject) -> tuple[CalledEdit, ...]:
    given = WriteArguments.model_validate(arguments)
    return (CalledEdit(given.path, WrittenText(given.content.replace("\r\n", "\n"))),)


def _of_patch(arguments: JsonObject) -> tuple[CalledEdit, ...]:
    edits: list[CalledEdit] = []
    for file in read_patch(ApplyPatchArguments.model_validate(arguments).patch):
        if file.action == "add":
            text = "".join(f"{line}\n" for line in file.content)
            edits.append(CalledEdit(file.path, WrittenText(text), is_new=True))
        elif file.action == "delete":
            edits.append(CalledEdit(file.path, WrittenText(""), is_gone=True))
        elif file.move_to and file.move_to != file.path:
            edits.append(CalledEdit(file.move_to, PatchedFile(file), moved_from=file.path))
        else:
            edits.append(CalledEdit(file.path, PatchedFile(file)))
    return tuple(edits)


_READERS: dict[str, Callable[[JsonObject], tuple[CalledEdit, ...]]] = {
    "edit": _of_edit,
    "write": _of_write,
    "apply_patch": _of_patch,
}
