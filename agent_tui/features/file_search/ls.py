"""The `ls` tool: lists a folder."""

import asyncio
import os
from dataclasses import dataclass

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import ToolDetails
from agent_tui.safe_paths import scan_folder, show_name
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.text_files import resolve_existing
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
from agent_tui.tools.shorten import keep_head

_MAX_ENTRIES = 500


class LsArguments(ToolArguments):
    """Arguments of `ls`."""

    path: str = "."
    limit: int = Field(default=_MAX_ENTRIES, ge=1)


@dataclass(frozen=True, slots=True)
class LsTool:
    """Lists one folder, hidden files included, folders first."""

    name: str = "ls"
    description: str = "List a folder."
    arguments_type: type[LsArguments] = LsArguments

    def intent(self, arguments: LsArguments, context: ToolContext) -> Intent:
        """Read access to one folder."""
        path = context.resolve(arguments.path, to_read=True)
        return Intent(title=f"ls {context.display_name(path)}", access="read", paths=(path,))

    async def run(self, arguments: LsArguments, context: ToolContext) -> ToolOutput:
        """Names with ``/`` for folders, sizes for files, targets for links."""
        return await asyncio.to_thread(_list, arguments, context)


def _list(arguments: LsArguments, context: ToolContext) -> ToolOutput:
    path = resolve_existing(arguments.path, context)
    shown = context.display_name(path)
    if not path.is_dir():
        raise ToolError(f"{shown} is a file. Use read to see it.")
    try:
        with scan_folder(path) as (folder, found):
            found.sort(key=lambda entry: not entry.is_dir())
            limit = min(arguments.limit, _MAX_ENTRIES)
            listing = "\n".join(_line(entry, folder) for entry in found[:limit])
    except OSError as error:
        raise ToolError(f"{shown} cannot be listed: {error.strerror}.") from error
    if not found:
        return ToolOutput(f"{shown} is empty.", ToolDetails(summary="empty"))
    limits = context.limits
    kept = keep_head(listing, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    listed = kept.text.count("\n") + 1
    left = len(found) - listed
    note = f"\n[{left} more entries; use find with a pattern]" if left else ""
    summary = f"{len(found)} entries"
    return ToolOutput(kept.text + note, ToolDetails(summary=summary, truncated=left > 0))


def _line(entry: os.DirEntry[str], folder: int) -> str:
    name = show_name(entry.name)
    try:
        if entry.is_symlink():
            return f"{name} -> {show_name(os.readlink(entry.name, dir_fd=folder))}"
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        return f"{name} ({_size(entry.stat(follow_symlinks=False).st_size)})"
    except OSError:
        return name


def _size(count: int) -> str:
    """A size in bytes for people, in powers of 1,000."""
    for unit, factor in (("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def make_ls(host: ToolHost) -> OfferedTool:
    """The tool."""
    del host
    return offer_tool(LsTool(), before="job")
