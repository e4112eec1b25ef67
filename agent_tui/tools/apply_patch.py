"""The `apply_patch` tool: changes to several files in the V4A format, all or none."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.matching import TextSpan, describe_miss, find_places
from agent_tui.tools.files.text_files import (
    FileChange,
    check_whole,
    decode,
    intent_for,
    read_for_change,
    why_unseen,
)

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


@dataclass(frozen=True, slots=True)
class ApplyPatchTool:
    """Adds, updates, moves and deletes text files, for models trained on this format."""

    name: str = "apply_patch"
    description: str = (
        "Change files with a patch: *** Begin Patch, then for each file *** Add File: PATH "
        "with +lines, *** Delete File: PATH, or *** Update File: PATH (*** Move to: PATH) "
        "with hunks, then *** End Patch.\n"
        "A hunk begins with @@, or @@ and the line of its function or class; its lines begin "
        "with a space (unchanged), - or +. Give three lines around each change. All of it "
        "applies, or none."
    )
    arguments_type: type[ApplyPatchArguments] = ApplyPatchArguments

    def intent(self, arguments: ApplyPatchArguments, context: ToolContext) -> Intent:
        """All files of the patch, and the changes as a diff."""
        changes, _ = _plan_changes(arguments, context)
        names = ", ".join(context.display_name(change.path) for change in changes)
        return intent_for(f"patch {names}", *changes)

    async def run(self, arguments: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
        """Write the files and remember their new content as seen."""
        return await asyncio.to_thread(_apply, arguments, context)


def _apply(arguments: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
    changes, remarks = _plan_changes(arguments, context)
    done: list[str] = []
    for change in changes:
        try:
            change.write(context)
        except ToolError as error:
            before = f" Already done: {'; '.join(done)}." if done else ""
            raise ToolError(f"{error}{before}") from error
        at = f", at {change.diff.lines}" if change.verb == "updated" and change.diff.lines else ""
        done.append(f"{change.verb} {context.display_name(change.path)} ({change.diff.counts}{at})")
    details = ToolDetails(
        summary=_counts(changes),
        diff="".join(change.diff.text for change in changes),
        files=FileTouches(
            written=tuple(str(change.path) for change in changes if change.before is None),
            edited=tuple(str(change.path) for change in changes if change.before is not None),
        ),
    )
    return ToolOutput("\n".join([f"Done: {'; '.join(done)}.", *remarks]), details)


def _counts(changes: tuple[FileChange, ...]) -> str:
    added = sum(change.diff.added for change in changes)
    return f"+{added} -{sum(change.diff.removed for change in changes)}"


def _plan_changes(
    arguments: ApplyPatchArguments, context: ToolContext
) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """Plan every change of the patch, and list the differences ignored to place its hunks."""
    changes: dict[Path, FileChange] = {}
    remarks: list[str] = []
    for file in read_patch(arguments.patch):
        path = context.resolve(file.path)
        if path in changes:
            raise ToolError(
                f"The patch contains {context.display_name(path)} twice. Merge its parts."
            )
        if file.action == "add":
            changes[path] = _plan_addition(file, path, context)
            continue
        change, overlooked = _plan_update(file, path, context)
        remarks.extend(overlooked)
        if file.move_to and (target := context.resolve(file.move_to)) != path:
            assert change.before is not None
            after = change.after
            changes[target] = _plan_creation(target, after or b"", context)
            change = _plan_deletion(path, change.before, context)
        changes[path] = change
    return tuple(changes.values()), tuple(remarks)


def _plan_addition(file: FilePatch, path: Path, context: ToolContext) -> FileChange:
    text = "".join(f"{line}\n" for line in file.content)
    check_whole(text, "", f"The new file {context.display_name(path)}")
    try:
        return _plan_creation(path, text.encode("utf-8"), context)
    except UnicodeEncodeError as error:
        raise ToolError("The patch contains a lone surrogate, which cannot be written.") from error


def _plan_creation(path: Path, content: bytes, context: ToolContext) -> FileChange:
    shown = context.display_name(path)
    if path.exists():
        raise ToolError(f"{shown} exists. Update it, or delete it first.")
    file = decode(content)
    return FileChange(path, None, content, unified_diff("", file.text if file else "", shown))


def _plan_deletion(path: Path, before: bytes, context: ToolContext) -> FileChange:
    file = decode(before)
    diff = unified_diff(file.text if file else "", "", context.display_name(path))
    return FileChange(path, before, None, diff)


def _plan_update(
    patch: FilePatch, path: Path, context: ToolContext
) -> tuple[FileChange, tuple[str, ...]]:
    _, before = read_for_change(patch.path, context)
    shown = context.display_name(path)
    unseen = why_unseen(path, before, context.files)
    if patch.action == "delete":
        if unseen:
            raise ToolError(f"{shown} {unseen}. Read it first.")
        return _plan_deletion(path, before, context), ()
    file = decode(before)
    if file is None:
        raise ToolError(f"{shown} is not a text file.")
    places, remarks = hunk_places(file.text, patch, shown)
    if unseen and remarks:
        raise ToolError(
            f"{shown} {unseen}, and the patch does not match it exactly. Read it first."
        )
    if unseen:
        remarks = (f"({shown} {unseen}; the text around the change may not be what you expect.)",)
    for place in places:
        check_whole(place.new, file.text, f"The patch of {shown}")
    raw_text = file.replace_spans([(place.start, place.end, place.new) for place in places])
    after = file.encode(raw_text)
    if after == before and not patch.move_to:
        raise ToolError(f"The patch changes nothing in {shown}.")
    diff = unified_diff(file.text, raw_text.replace("\r\n", "\n"), shown)
    return FileChange(path, before, after, diff), remarks


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
