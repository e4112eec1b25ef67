"""The `find` tool: files by glob, most recently changed first."""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import ToolDetails
from agent_tui.safe_paths import real_path
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.ripgrep import RipgrepOutput, run_ripgrep
from agent_tui.tools.files.text_files import resolve_existing
from agent_tui.tools.files.walk import glob_spec
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.shorten import keep_head

_SEARCH_TIME_S = 30.0
_MAX_PATTERN_CHARS = 4_096
_MAX_LISTED_BYTES = 100_000_000


class FindArguments(ToolArguments):
    """Arguments of `find`. A pattern without a slash matches names at any depth."""

    pattern: str = Field(min_length=1, description="glob, e.g. *.py or src/**/test_*")
    path: str = "."
    limit: int = Field(default=200, ge=1, le=2_000)


@dataclass(frozen=True, slots=True)
class FindTool:
    """Finds files by name; leaves out what ``.gitignore`` names."""

    keeper: ProcessKeeper
    name: str = "find"
    description: str = "Find files by glob, newest first.\nRespects .gitignore."
    arguments_type: type[FindArguments] = FindArguments

    def intent(self, arguments: FindArguments, context: ToolContext) -> Intent:
        """Read access to the folders below one path."""
        path = context.resolve(arguments.path)
        title = f"find {arguments.pattern} in {context.display_name(path)}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: FindArguments, context: ToolContext) -> ToolOutput:
        """The paths of the matching files."""
        folder = resolve_existing(arguments.path, context)
        if not folder.is_dir():
            raise ToolError(f"{context.display_name(folder)} is a file. Give a folder.")
        spec = _spec(arguments.pattern)
        listed = await run_ripgrep(
            self.keeper,
            ("--files", "--null", "--no-messages"),
            (str(folder),),
            context.environ,
            time_s=_SEARCH_TIME_S,
            most_bytes=_MAX_LISTED_BYTES,
        )
        return await asyncio.to_thread(
            _format_matches, listed, spec, folder, arguments.limit, context
        )


def _format_matches(
    listed: RipgrepOutput, spec: GitIgnoreSpec, folder: Path, limit: int, context: ToolContext
) -> ToolOutput:
    matched = _matching(listed, spec, folder, real_path(context.cwd))
    is_complete = listed.is_complete
    if not matched:
        within = "" if is_complete else f" within {_SEARCH_TIME_S:.0f} s; give a smaller folder"
        return ToolOutput(f"No files match{within}.", ToolDetails(summary="no files"))
    matched.sort(key=lambda pair: (-pair[0], pair[1]))
    names = [context.display_name(Path(path)) for _, path in matched[:limit]]
    limits = context.limits
    kept = keep_head("\n".join(names), max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    left = len(matched) - (kept.text.count("\n") + 1)
    note = f"\n[{left} more; narrow the pattern]" if left else ""
    if not is_complete:
        note += f"\n[stopped after {_SEARCH_TIME_S:.0f} s; give a smaller folder]"
    details = ToolDetails(summary=f"{len(matched)} files", truncated=bool(note))
    return ToolOutput(kept.text + note, details)


def _matching(
    listed: RipgrepOutput, spec: GitIgnoreSpec, folder: Path, workspace: Path
) -> list[tuple[float, str]]:
    """(Modification time, absolute path) of each listed file that matches below `folder`.

    Inside the workspace the pattern may also match the path relative to the workspace.
    """
    starts = {len(f"{folder}/")}
    if folder.is_relative_to(workspace):
        starts.add(len(f"{workspace}/"))
    matched: list[tuple[float, str]] = []
    for path in os.fsdecode(listed.printed).split("\0")[:-1]:
        if any(spec.match_file(path[start:]) for start in starts):
            with suppress(OSError):
                matched.append((os.lstat(path).st_mtime, path))
    return matched


def _spec(pattern: str) -> GitIgnoreSpec:
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ToolError(f"pattern is longer than {_MAX_PATTERN_CHARS:,} characters.")
    try:
        return glob_spec(pattern)
    except ValueError as error:
        raise ToolError(f"pattern is not a glob: {error}") from error
