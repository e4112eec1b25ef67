"""Patches in the V4A form: reading one, and finding where its hunks belong."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from agent_tui.errors import ToolError
from agent_tui.tools.files.matching import Place, describe_miss, find_places

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_END_OF_FILE = "*** End of File"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = re.compile(r"\*\*\* Move to: (.+)")
_LINE_NUMBERS = re.compile(r"^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
"""What other diffs have behind ``@@``; V4A has none, and models still write them."""

Action: TypeAlias = Literal["add", "update", "delete"]
_ACTIONS: Final[dict[str, Action]] = {"Add": "add", "Update": "update", "Delete": "delete"}


@dataclass(slots=True)
class Hunk:
    """Lines to be replaced. `headers` are lines above them, from the outermost inwards."""

    headers: list[str] = field(default_factory=list[str])
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    is_at_end: bool = False


@dataclass(slots=True)
class FilePatch:
    """What is to become of one file. `content` is that of a new one."""

    action: Action
    path: str
    move_to: str = ""
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    content: list[str] = field(default_factory=list[str])


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch, in order.

    Raises:
        ToolError: naming the line that is not in the form.
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
    """Put a line of the patch where it belongs; false where it belongs nowhere."""
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
    """A header begins a hunk; right below another it leads further inwards."""
    last = file.hunks[-1] if file.hunks else None
    if last is None or last.old or last.new:
        file.hunks.append(last := Hunk())
    if header:
        last.headers.append(header)


def hunk_places(text: str, file: FilePatch, shown: str) -> tuple[list[Place], tuple[str, ...]]:
    """Where the hunks of an update belong in `text`, in order, and what was overlooked for that.

    Each is sought below the one before it and below its headers. One without headers must fit
    one place only: the first of several may not be the one that is meant.

    Raises:
        ToolError: naming the hunk that has no place, or too many.
    """
    places: list[Place] = []
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


def _place(text: str, hunk: Hunk, done: int, name: str) -> tuple[Place, str]:
    start = done
    for header in hunk.headers:
        start = _below(text, header, start, name)
    if not hunk.old:
        at = start if hunk.headers else len(text)
        missing_end = "\n" if at == len(text) and text and not text.endswith("\n") else ""
        return Place(at, at, missing_end + "".join(f"{line}\n" for line in hunk.new)), ""
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
    """The offset behind the line that is `header`, from `start` on."""
    for found in re.compile(r"[^\n]*\n?").finditer(text, start):
        if found[0].strip() == header and found[0]:
            return found.end()
    for found in re.compile(r"[^\n]*\n?").finditer(text, start):
        if header in found[0]:
            return found.end()
    raise ToolError(f"The line {header[:200]!r} after @@ in {name} is not in the file.")


def _line_places(text: str, hunk: Hunk, start: int) -> Iterator[tuple[Place, str]]:
    """Where the old lines of `hunk` are whole lines of `text`, from the offset `start` on.

    Text and lines are sought with a line end before and behind them, so that only whole lines
    are found.
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
            yield Place(start + place.start, len(text), body.removesuffix("\n")), there.but_for
        else:
            yield Place(start + place.start, end, body), there.but_for
