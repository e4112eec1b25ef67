"""The `apply_patch` tool: changes to several files in the V4A format, all or none."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, ToolDetails
from agent_tui.tools.base import Intent, ToolContext, ToolOutput
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.text_files import (
    FileChange,
    check_whole,
    decode,
    intent_for,
    read_for_change,
    why_unseen,
)
from agent_tui.tools.patch_format import ApplyPatchArguments, FilePatch, hunk_places, read_patch
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool


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


def make_apply_patch(host: ToolHost) -> OfferedTool:
    """The tool."""
    del host
    return offer_tool(ApplyPatchTool(), before="write")
