"""The `apply_patch` tool: changes of several files in the V4A form, all or none."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agent_tui.messages import FileTouches, ToolDetails
from agent_tui.tools.base import (
    Intent,
    ToolArguments,
    ToolContext,
    ToolError,
    ToolOutput,
    in_thread,
)
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.file_change import FileChange, check_whole, combined_intent
from agent_tui.tools.files.patch import FilePatch, hunk_places, read_patch
from agent_tui.tools.files.text_files import decode, missing_file_error, read_bytes, why_unseen


class ApplyPatchArguments(ToolArguments):
    """Arguments of `apply_patch`."""

    patch: str = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ApplyPatchTool:
    """Adds, updates, moves and deletes text files, for models trained on this form."""

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
        """All files of the patch, and what would become of them as a diff."""
        changes, _ = _planned(arguments, context)
        names = ", ".join(context.shown(change.path) for change in changes)
        return combined_intent(f"patch {names}", changes)

    async def run(self, arguments: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
        """Write the files and remember what they hold now as seen."""
        return await in_thread(lambda: _apply(arguments, context))


def _apply(arguments: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
    changes, remarks = _planned(arguments, context)
    done: list[str] = []
    for change in changes:
        try:
            change.write(context)
        except ToolError as error:
            before = f" Already done: {'; '.join(done)}." if done else ""
            raise ToolError(f"{error}{before}") from error
        at = f", at {change.diff.lines}" if change.verb == "updated" and change.diff.lines else ""
        done.append(f"{change.verb} {context.shown(change.path)} ({change.diff.counts}{at})")
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


def _planned(
    arguments: ApplyPatchArguments, context: ToolContext
) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """Every change of the patch, worked out before any is made, and what was overlooked for it."""
    changes: dict[Path, FileChange] = {}
    remarks: list[str] = []
    for file in read_patch(arguments.patch):
        path = context.resolve(file.path)
        if path in changes:
            raise ToolError(f"The patch contains {context.shown(path)} twice. Merge its parts.")
        if file.action == "add":
            changes[path] = _added(file, path, context)
            continue
        change, overlooked = _updated(file, path, context)
        remarks.extend(overlooked)
        if file.move_to and (target := context.resolve(file.move_to)) != path:
            assert change.before is not None
            after = change.after
            changes[target] = _created(target, after or b"", context)
            change = _deleted(path, change.before, context)
        changes[path] = change
    return tuple(changes.values()), tuple(remarks)


def _added(file: FilePatch, path: Path, context: ToolContext) -> FileChange:
    text = "".join(f"{line}\n" for line in file.content)
    check_whole(text, "", f"The new file {context.shown(path)}")
    try:
        return _created(path, text.encode("utf-8"), context)
    except UnicodeEncodeError as error:
        raise ToolError("The patch contains a lone surrogate, which cannot be written.") from error


def _created(path: Path, content: bytes, context: ToolContext) -> FileChange:
    shown = context.shown(path)
    if path.exists():
        raise ToolError(f"{shown} exists. Update it, or delete it first.")
    file = decode(content)
    return FileChange(path, None, content, unified_diff("", file.text if file else "", shown))


def _deleted(path: Path, before: bytes, context: ToolContext) -> FileChange:
    file = decode(before)
    diff = unified_diff(file.text if file else "", "", context.shown(path))
    return FileChange(path, before, None, diff)


def _updated(
    patch: FilePatch, path: Path, context: ToolContext
) -> tuple[FileChange, tuple[str, ...]]:
    shown = context.shown(path)
    if path.is_dir():
        raise ToolError(f"{shown} is a folder.")
    if not path.exists():
        raise missing_file_error(path, context)
    before = read_bytes(path, context)
    unseen = why_unseen(path, before, context.files)
    if patch.action == "delete":
        if unseen:
            raise ToolError(f"{shown} {unseen}. Read it first.")
        return _deleted(path, before, context), ()
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
    raw_text = file.replaced([(place.start, place.end, place.new) for place in places])
    after = file.encoded(raw_text)
    if after == before and not patch.move_to:
        raise ToolError(f"The patch changes nothing in {shown}.")
    diff = unified_diff(file.text, raw_text.replace("\r\n", "\n"), shown)
    return FileChange(path, before, after, diff), remarks
