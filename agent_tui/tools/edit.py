"""The `edit` tool: replacements in one file, all or none."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise

from pydantic import Field, model_validator

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, JsonObject, ToolDetails
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

_MOST_LINES_NAMED = 10


class Replacement(ToolArguments):
    """One change: `old` must be in the file just once, unless `all` is set."""

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
    """Changes text files, keeping encoding, byte order mark and line endings."""

    name: str = "edit"
    description: str = (
        "Replace exact text in a file you have read.\n"
        "Give several edits at once; each is matched against the original file, and all apply"
        " or none."
    )
    arguments_type: type[EditArguments] = EditArguments

    def intent(self, arguments: EditArguments, context: ToolContext) -> Intent:
        """The target file, and the change as a diff."""
        change = _plan_edits(arguments, context).change
        title = f"edit {context.display_name(change.path)} ({change.diff.counts})"
        return intent_for(title, change)

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        """Write the edited file and remember its new content as seen."""
        return await asyncio.to_thread(_edit, arguments, context)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The edited file, how many places change, and remarks for the model."""

    change: FileChange
    places: int
    remarks: tuple[str, ...]


def _edit(arguments: EditArguments, context: ToolContext) -> ToolOutput:
    plan = _plan_edits(arguments, context)
    change = plan.change
    change.write(context)
    places = "1 place" if plan.places == 1 else f"{plan.places} places"
    details = ToolDetails(
        summary=change.diff.counts,
        diff=change.diff.text,
        files=FileTouches(edited=(str(change.path),)),
    )
    at = f", at {change.diff.lines}" if change.diff.lines else ""
    end = "" if at.endswith("...") else "."
    done = (
        f"Edited {context.display_name(change.path)}: {places}, {change.diff.counts} lines{at}{end}"
    )
    return ToolOutput("\n".join([done, *plan.remarks]), details)


def _plan_edits(arguments: EditArguments, context: ToolContext) -> _Plan:
    path, before = read_for_change(arguments.path, context)
    shown = context.display_name(path)
    file = decode(before)
    if file is None:
        raise ToolError(f"{shown} is not a text file.")
    unseen = why_unseen(path, before, context.files)
    places, remarks = _places(file.text, arguments.edits, shown, unseen)
    if unseen and path in context.files.seen:  # otherwise a command has shown it
        remarks = (f"({shown} {unseen}; the text around it may not be what you expect.)",)
    raw_text = file.replace_spans([(place.start, place.end, place.new) for place in places])
    after = file.encode(raw_text)
    if after == before:
        raise ToolError("The edits change nothing.")
    diff = unified_diff(file.text, raw_text.replace("\r\n", "\n"), shown)
    return _Plan(FileChange(path, before, after, diff), len(places), remarks)


def _places(
    text: str, edits: tuple[Replacement, ...], shown: str, unseen: str
) -> tuple[list[TextSpan], tuple[str, ...]]:
    """Where each edit applies in the unchanged file, in order, and the differences ignored.

    All are found before any is applied. If the model has not seen the file as it is (`unseen` says
    why), only a text that is there to the letter is accepted.

    Raises:
        ToolError: An edit is missing, ambiguous, empty or overlaps another; names it.
    """
    places: list[TextSpan] = []
    remarks: list[str] = []
    for number, edit in enumerate(edits):
        name = f"edits[{number}]" if len(edits) > 1 else "old"
        old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
        if not old:
            raise ToolError(f"{name}: old is empty. Use write to fill an empty file.")
        if old == new:
            raise ToolError(f"{name}: old and new are the same.")
        there = find_places(text, old, new)
        since = f"{shown} {unseen}. " if unseen else ""
        if not there.found:
            raise ToolError(f"{since}{name} is not in {shown}. {describe_miss(text, old)}")
        if unseen and there.but_for:
            raise ToolError(f"{since}{name} is only in it ignoring {there.but_for}. Read it first.")
        check_whole(new, text, f"{name}.new" if len(edits) > 1 else "new")
        lines = _lines_of(text, there.found)
        but_for = f", ignoring {there.but_for}" if there.but_for else ""
        if len(there.found) > 1 and not edit.all:
            raise ToolError(
                f"{since}{name} occurs {len(there.found)} times in {shown}{but_for}, at lines "
                f"{lines}. Give more surrounding text, or all=true to replace every one."
            )
        if but_for:
            remarks.append(f"({name} was found at line {lines}{but_for}; the file keeps its own.)")
        places.extend(there.found)
    places.sort(key=lambda place: place.start)
    for one, other in pairwise(places):
        if other.start < one.end:
            line = text.count("\n", 0, other.start) + 1
            raise ToolError(f"Two edits overlap at line {line}. Merge them into one.")
    return places, tuple(remarks)


def _lines_of(text: str, places: tuple[TextSpan, ...]) -> str:
    """The numbers of the first few lines where they begin."""
    lines = [str(text.count("\n", 0, place.start) + 1) for place in places[:_MOST_LINES_NAMED]]
    return ", ".join(lines) + (", ..." if len(places) > _MOST_LINES_NAMED else "")
