"""The `edit` tool: exact replacements in one file, all or none."""

from dataclasses import dataclass
from itertools import pairwise

from pydantic import Field, model_validator

from agent_tui.messages import FileTouches, JsonObject, ToolDetails
from agent_tui.tools.base import (
    Intent,
    ToolArguments,
    ToolContext,
    ToolError,
    ToolOutput,
    in_thread,
)
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.file_change import FileChange
from agent_tui.tools.files.nearest import describe_nearest
from agent_tui.tools.files.text_files import (
    TextFile,
    check_seen,
    decode,
    missing_file_error,
    read_bytes,
)
from agent_tui.tools.files.whole_text import check_whole

_MOST_LINES_NAMED = 10


class Replacement(ToolArguments):
    """One change: `old` must be in the file exactly once, unless `all` is set."""

    old: str = Field(description="exact text, unique in the file")
    new: str
    all: bool = Field(default=False, description="replace every occurrence")


class EditArguments(ToolArguments):
    """Arguments of `edit`. A single change may stand beside `path` instead of in `edits`."""

    path: str = Field(min_length=1)
    edits: tuple[Replacement, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _gather_single_edit(cls, given: JsonObject) -> JsonObject:
        if "edits" in given or "old" not in given:
            return given
        single = {key: given[key] for key in ("old", "new", "all") if key in given}
        rest = {key: value for key, value in given.items() if key not in single}
        return {**rest, "edits": [single]}


@dataclass(frozen=True, slots=True)
class EditTool:
    """Changes files the model has read, keeping encoding, byte order mark and line endings."""

    name: str = "edit"
    arguments_type: type[EditArguments] = EditArguments

    def intent(self, arguments: EditArguments, context: ToolContext) -> Intent:
        """The target, and the change as a diff."""
        change, _places = _planned(arguments, context)
        return change.intent(f"edit {context.shown(change.path)} ({change.diff.counts})")

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        """Write the edited file and remember its new content as seen."""
        return await in_thread(lambda: _edit(arguments, context))


def _edit(arguments: EditArguments, context: ToolContext) -> ToolOutput:
    change, count = _planned(arguments, context)
    change.write(context)
    places = "1 place" if count == 1 else f"{count} places"
    details = ToolDetails(
        summary=change.diff.counts,
        diff=change.diff.text,
        files=FileTouches(edited=(str(change.path),)),
    )
    shown = context.shown(change.path)
    return ToolOutput(f"Edited {shown}: {places}, {change.diff.counts} lines.", details)


def _planned(arguments: EditArguments, context: ToolContext) -> tuple[FileChange, int]:
    """The edited file, and in how many places it is another."""
    path = context.resolve(arguments.path)
    shown = context.shown(path)
    if path.is_dir():
        raise ToolError(f"{shown} is a folder.")
    if not path.exists():
        raise missing_file_error(path, context)
    before = read_bytes(path, shown)
    check_seen(path, before, context.files, shown)
    file = decode(before)
    if file is None:
        raise ToolError(f"{shown} is not a text file.")
    spans = _spans(file, arguments.edits, shown)
    raw_text = file.replaced(spans)
    after = file.encoded(raw_text)
    if after == before:
        raise ToolError("The edits change nothing.")
    diff = unified_diff(file.text, raw_text.replace("\r\n", "\n"), shown)
    return FileChange(path, before, after, diff), len(spans)


def _spans(
    file: TextFile, edits: tuple[Replacement, ...], shown: str
) -> list[tuple[int, int, str]]:
    """Where each edit applies in the file as it is, in order; all are found before any counts.

    Raises:
        ToolError: naming the edit that is missing, ambiguous, empty or in another's way.
    """
    text = file.text
    spans: list[tuple[int, int, str]] = []
    for number, edit in enumerate(edits, start=1):
        name = f"edits[{number - 1}]" if len(edits) > 1 else "old"
        old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
        if not old:
            raise ToolError(f"{name}: old is empty. Use write to fill an empty file.")
        if old == new:
            raise ToolError(f"{name}: old and new are the same.")
        places = _occurrences(text, old)
        if not places:
            raise ToolError(f"{name} is not in {shown}. {describe_nearest(text, old)}")
        check_whole(new, text, f"{name}.new" if len(edits) > 1 else "new")
        if len(places) > 1 and not edit.all:
            lines = [str(text.count("\n", 0, at) + 1) for at in places[:_MOST_LINES_NAMED]]
            more = ", ..." if len(places) > _MOST_LINES_NAMED else ""
            raise ToolError(
                f"{name} is in {shown} {len(places)} times, at lines {', '.join(lines)}{more}. "
                "Give more of the surrounding text, or all=true for every one."
            )
        spans.extend((at, at + len(old), new) for at in places)
    spans.sort(key=lambda span: span[0])
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            line = text.count("\n", 0, start) + 1
            raise ToolError(f"Two edits overlap at line {line}. Join them into one.")
    return spans


def _occurrences(text: str, old: str) -> list[int]:
    places: list[int] = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places
