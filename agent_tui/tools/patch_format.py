"""Patches of several files in the V4A format: what one says, and where its hunks belong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.tools.base import ToolArguments
from agent_tui.tools.files.matching import TextSpan, describe_miss, find_places

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_LINE_NUMBERS = re.compile(r"^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
"""What other diff formats put after ``@@``; V4A does not, but models still write it."""

Action: TypeAlias = Literal["add", "update", "delete"]
_ACTIONS: Final[dict[str, Action]] = {"Add": "add", "Update": "update", "Delete": "delete"}


@dataclass(slots=True)
class Hunk:
    """Lines to be replaced. `headers` are lines above them, outermost first."""

    headers: list[str] = field(default_factory=list[str])
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    is_at_end: bool = False


@dataclass(slots=True)
class FilePatch:
    """The patch of one file. `content` is for a new file."""

    action: Action
    path: str
    move_to: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    content: list[str] = field(default_factory=list[str])


class ApplyPatchArguments(ToolArguments):
    """Arguments of `apply_patch`."""

    patch: str = Field(min_length=1)


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """Parse the files of a patch, in order.

    Raises:
        ToolError: A line is not in the format; the text names it.
    """
    lines = text.replace("\r\n", "\n").strip("\n").split("\n")
    if lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise ToolError(f"A patch begins with the line {_BEGIN!r} and ends with {_END!r}.")
    files: list[FilePatch] = []
    for number, line in enumerate(lines[1:-1], start=2):
        if found := _FILE.fullmatch(line.rstrip()):
            files.append(FilePatch(_ACTIONS[found[1]], found[2].strip()))
        elif not files or not _take(line, files[-1]):
            raise ToolError(f"Line {number} of the patch is not valid: {line[:200]!r}.")
    if not files:
        raise ToolError("The patch has no file. Give *** Update File: PATH, then its hunks.")
    return tuple(files)


def _take(line: str, file: FilePatch) -> bool:
    """Add a line of the patch to `file`; false if it is not valid there."""
    if file.action == "add":
        file.content.append(line[1:])
        return line.startswith("+")
    if file.action == "delete":
        return not line.strip()
    if (moved := _MOVE.fullmatch(line.rstrip())) and not file.hunks:
        file.move_to = moved[1].strip()
        return True
    if line.startswith("@@"):
        _take_header(_LINE_NUMBERS.sub("", line.removeprefix("@@").strip()), file)
        return True
    if not file.hunks:
        file.hunks.append(Hunk())
    hunk = file.hunks[-1]
    if line.rstrip() == _END_OF_FILE:
        hunk.is_at_end = True
        return True
    sign, body = line[:1] or " ", line[1:]
    if sign in " -":
        hunk.old.append(body)
    if sign in " +":
        hunk.new.append(body)
    return sign in " -+"


def _take_header(header: str, file: FilePatch) -> None:
    """Begin a hunk with a header; a header right after another refines it."""
    last = file.hunks[-1] if file.hunks else None
    if last is None or last.old or last.new:
        file.hunks.append(last := Hunk())
    if header:
        last.headers.append(header)


def hunk_places(text: str, file: FilePatch, shown: str) -> tuple[list[TextSpan], tuple[str, ...]]:
    """Where the hunks of an update belong in `text`, in order, and what differences were ignored.

    Each is searched for after the one before it and below its headers. One without headers must
    match exactly one place, as the first of several may not be the intended one.

    Raises:
        ToolError: A hunk has no place, or too many; the text names it.
    """
    places: list[TextSpan] = []
    remarks: list[str] = []
    done = 0
    for number, hunk in enumerate(file.hunks, start=1):
        name = f"hunk {number}" if len(file.hunks) > 1 else "the hunk"
        place, but_for = _place(text, hunk, done, f"{name} of {shown}")
        if but_for:
            line = text.count("\n", 0, place.start) + 1
            remarks.append(f"({name} of {shown} was found at line {line}, ignoring {but_for}.)")
        places.append(place)
        done = place.end
    return places, tuple(remarks)


def _place(text: str, hunk: Hunk, done: int, name: str) -> tuple[TextSpan, str]:
    start = done
    for header in hunk.headers:
        start = _below(text, header, start, name)
    if not hunk.old:
        at = start if hunk.headers else len(text)
        missing_end = "\n" if at == len(text) and text and not text.endswith("\n") else ""
        return TextSpan(at, at, missing_end + "".join(f"{line}\n" for line in hunk.new)), ""
    there = list(_line_places(text, hunk, start))
    if not there:
        old = "\n".join(hunk.old)
        raise ToolError(f"{name} is not in the file. {describe_miss(text[start:], old)}")
    if hunk.is_at_end:
        return there[-1]
    if len(there) > 1 and not hunk.headers:
        lines = ", ".join(str(text.count("\n", 0, place.start) + 1) for place, _ in there[:10])
        raise ToolError(
            f"{name} matches {len(there)} places, at lines {lines}. Give more lines around it, or "
            "the line of its function or class after @@."
        )
    return there[0]


def _below(text: str, header: str, start: int, name: str) -> int:
    """The offset after the line that equals `header`, from `start` on."""
    for found in re.compile(r"[^\n]*\n?").finditer(text, start):
        if found[0].strip() == header and found[0]:
            return found.end()
    for found in re.compile(r"[^\n]*\n?").finditer(text, start):
        if header in found[0]:
            return found.end()
    raise ToolError(f"The line {header[:200]!r} after @@ in {name} is not in the file.")


def _line_places(text: str, hunk: Hunk, start: int) -> Iterator[tuple[TextSpan, str]]:
    """Where the old lines of `hunk` are whole lines of `text`, from the offset `start` on.

    Both are compared with a line end before and after, so that only whole lines match.
    """
    added = "" if text.endswith("\n") else "\n"
    within = f"\n{text[start:]}{added}"
    old = "".join(f"\n{line}" for line in hunk.old) + "\n"
    new = "".join(f"\n{line}" for line in hunk.new) + "\n"
    there = find_places(within, old, new)
    for place in there.found:
        end = start + place.end - 1
        body = place.new.removeprefix("\n")
        if end > len(text):
            yield TextSpan(start + place.start, len(text), body.removesuffix("\n")), there.but_for
        else:
            yield TextSpan(start + place.start, end, body), there.but_for
