"""The `find` tool: files by glob, most recently changed first."""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agent_tui.messages import ToolDetails
from agent_tui.tools.base import (
    Intent,
    ToolArguments,
    ToolContext,
    ToolError,
    ToolOutput,
    in_thread,
)
from agent_tui.tools.files.text_files import missing_file_error
from agent_tui.tools.files.walk import glob_spec, walk_files
from agent_tui.tools.shorten import keep_head

_SEARCH_TIME_S = 30.0


class FindArguments(ToolArguments):
    """Arguments of `find`. A pattern without a slash matches names at any depth."""

    pattern: str = Field(min_length=1, description="glob, e.g. *.py or src/**/test_*")
    path: str = "."
    limit: int = Field(default=200, ge=1, le=2_000)


@dataclass(frozen=True, slots=True)
class FindTool:
    """Finds files by name; what ``.gitignore`` names is left out."""

    name: str = "find"
    arguments_type: type[FindArguments] = FindArguments

    def intent(self, arguments: FindArguments, context: ToolContext) -> Intent:
        """Reads the folders below one path."""
        path = context.resolve(arguments.path)
        title = f"find {arguments.pattern} in {context.shown(path)}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: FindArguments, context: ToolContext) -> ToolOutput:
        """Paths of the files that match."""
        is_cancelled = threading.Event()
        try:
            return await in_thread(lambda: _find(arguments, context, is_cancelled))
        finally:
            is_cancelled.set()


def _find(
    arguments: FindArguments, context: ToolContext, is_cancelled: threading.Event
) -> ToolOutput:
    folder = context.resolve(arguments.path)
    if not folder.exists():
        raise missing_file_error(folder, context)
    if not folder.is_dir():
        raise ToolError(f"{context.shown(folder)} is a file. Give a folder.")
    workspace = context.cwd.resolve()
    inside = folder.is_relative_to(workspace)
    root = workspace if inside else folder
    below = folder.relative_to(root).as_posix()
    matched, is_complete = _matching(arguments.pattern, root, below, is_cancelled)
    if not matched:
        unfinished = "" if is_complete else f" within {_SEARCH_TIME_S:.0f} s; give a smaller folder"
        return ToolOutput(f"No files match{unfinished}.", ToolDetails(summary="no files"))
    matched.sort(key=lambda pair: (-pair[0], pair[1]))
    names = [name if inside else str(root / name) for _, name in matched[: arguments.limit]]
    limits = context.limits
    kept = keep_head("\n".join(names), max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    left = len(matched) - (kept.text.count("\n") + 1)
    note = f"\n[{left} more; narrow the pattern]" if left else ""
    if not is_complete:
        note += f"\n[stopped after {_SEARCH_TIME_S:.0f} s; give a smaller folder]"
    details = ToolDetails(summary=f"{len(matched)} files", truncated=bool(note))
    return ToolOutput(kept.text + note, details)


def _matching(
    pattern: str, root: Path, below: str, is_cancelled: threading.Event
) -> tuple[list[tuple[float, str]], bool]:
    """(Modification time, path relative to `root`) of each match; whether all was searched."""
    deadline = time.monotonic() + _SEARCH_TIME_S
    skipped = 0 if below == "." else len(below) + 1
    try:
        spec = glob_spec(pattern)
    except ValueError as error:
        raise ToolError(f"pattern is not a glob: {error}") from error
    matched: list[tuple[float, str]] = []
    for file in walk_files(root, below, deadline=deadline):
        if is_cancelled.is_set():
            return matched, False
        if spec.match_file(file.relative[skipped:]) or spec.match_file(file.relative):
            try:
                changed = file.entry.stat(follow_symlinks=False).st_mtime
            except OSError:
                continue
            matched.append((changed, file.relative))
    return matched, time.monotonic() <= deadline
