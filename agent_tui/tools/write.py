"""The `write` tool: a whole file, new or replaced in one step."""

import asyncio
from dataclasses import dataclass

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import FileTouches, ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.diffs import unified_diff
from agent_tui.tools.files.text_files import (
    FileChange,
    check_whole,
    decode,
    intent_for,
    read_bytes,
    why_unseen,
)


class WriteArguments(ToolArguments):
    """Arguments of `write`; `content` is written as given."""

    path: str = Field(min_length=1)
    content: str


@dataclass(frozen=True, slots=True)
class WriteTool:
    """Creates or replaces files; an existing one must have been read in its current version."""

    name: str = "write"
    description: str = (
        "Create a file, or replace all of one you have read.\nPrefer edit for changes."
    )
    arguments_type: type[WriteArguments] = WriteArguments

    def intent(self, arguments: WriteArguments, context: ToolContext) -> Intent:
        """The target file, and the change as a diff."""
        change = _plan_write(arguments, context)
        verb = "create" if change.before is None else "overwrite"
        return intent_for(f"{verb} {context.display_name(change.path)}", change)

    async def run(self, arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        """Write the file and remember its new content as seen."""
        return await asyncio.to_thread(_write, arguments, context)


def _plan_write(arguments: WriteArguments, context: ToolContext) -> FileChange:
    path = context.resolve(arguments.path)
    shown = context.display_name(path)
    if path.is_dir():
        raise ToolError(f"{shown} is a folder.")
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise ToolError(
                    f"{context.display_name(parent)} is a file, so {shown} cannot exist."
                )
            break
    try:
        after = arguments.content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError("content contains a lone surrogate, which cannot be written.") from error
    before = read_bytes(path, context) if path.exists() else None
    if before and (unseen := why_unseen(path, before, context.files)):
        raise ToolError(f"{shown} {unseen}. Read it first.")
    old = decode(before) if before is not None else None
    old_text = "" if old is None else old.raw_text
    check_whole(arguments.content, old_text, "content")
    return FileChange(path, before, after, unified_diff(old_text, arguments.content, shown))


def _write(arguments: WriteArguments, context: ToolContext) -> ToolOutput:
    change = _plan_write(arguments, context)
    change.write(context)
    verb = "Created" if change.before is None else "Replaced"
    count = len(arguments.content.removesuffix("\n").split("\n")) if arguments.content else 0
    details = ToolDetails(
        summary=f"{verb.lower()}, {change.diff.counts}",
        diff=change.diff.text,
        files=FileTouches(written=(str(change.path),)),
    )
    return ToolOutput(f"{verb} {context.display_name(change.path)} ({count} lines).", details)
