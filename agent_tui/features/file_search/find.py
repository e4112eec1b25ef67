"""The `find` tool: files by glob, most recently changed first."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.features.file_search.globs import glob_spec
from agent_tui.features.file_search.ripgrep import RipgrepOutput, run_ripgrep
from agent_tui.messages import ToolDetails
from agent_tui.safe_paths import open_folder, real_path
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.text_files import resolve_existing
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
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
        path = context.resolve(arguments.path, to_read=True)
        title = f"find {arguments.pattern} in {context.display_name(path)}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: FindArguments, context: ToolContext) -> ToolOutput:
        """The paths of the matching files."""
        folder = resolve_existing(arguments.path, context)
        if not folder.is_dir():
            raise ToolError(f"{context.display_name(folder)} is a file. Give a folder.")
        spec = _spec(arguments.pattern)
        try:
            with open_folder(folder) as opened:
                listed = await run_ripgrep(
                    self.keeper,
                    ("--files", "--null", "--no-messages"),
                    (str(folder),),
                    context.environ,
                    time_s=_SEARCH_TIME_S,
                    most_bytes=_MAX_LISTED_BYTES,
                )
                named = _matching(listed, spec, folder, real_path(context.cwd))
                matched = await asyncio.to_thread(_find_times, named, folder, opened)
        except OSError as error:
            shown = context.display_name(folder)
            raise ToolError(f"{shown} cannot be searched: {error.strerror}.") from error
        return _format_matches(matched, arguments.limit, context, is_complete=listed.is_complete)


def _format_matches(
    matched: list[tuple[float, str]], limit: int, context: ToolContext, *, is_complete: bool
) -> ToolOutput:
    if not matched:
        within = "" if is_complete else f" within {_SEARCH_TIME_S:.0f} s; give a smaller folder"
        return ToolOutput(f"No files match{within}.", ToolDetails(summary="no files"))
    matched.sort(key=lambda pair: (-pair[0], pair[1]))
    display_name = context.make_namer()
    names = [display_name(Path(path)) for _, path in matched[:limit]]
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
) -> Iterator[str]:
    """The absolute path of each listed file that matches below `folder`.

    Inside the workspace the pattern may also match the path relative to the workspace.
    """
    starts = {len(f"{folder}/")}
    if folder.is_relative_to(workspace):
        starts.add(len(f"{workspace}/"))
    for path in os.fsdecode(listed.printed).split("\0")[:-1]:
        if any(spec.match_file(path[start:]) for start in starts):
            yield path


def _find_times(paths: Iterable[str], folder: Path, opened: int) -> list[tuple[float, str]]:
    """(Modification time, path) of each of `paths` that is in `folder`, with no link on the way.

    ripgrep opens folders by their names: it lists another one if a command puts a link there.

    Args:
        paths: Absolute paths.
        folder: The folder that was judged.
        opened: A handle of it.
    """
    names: defaultdict[Path, list[str]] = defaultdict(list)
    for path in paths:
        parent, name = os.path.split(path)
        names[Path(parent)].append(name)
    found: list[tuple[float, str]] = []
    for parent, here in names.items():
        below = parent.relative_to(folder)
        with suppress(OSError), open_folder(below, around=opened) as handle:
            for name in here:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    found.append((status.st_mtime, str(parent / name)))
    return found


def _spec(pattern: str) -> GitIgnoreSpec:
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ToolError(f"pattern is longer than {_MAX_PATTERN_CHARS:,} characters.")
    try:
        return glob_spec(pattern)
    except ValueError as error:
        raise ToolError(f"pattern is not a glob: {error}") from error


def make_find(host: ToolHost) -> OfferedTool:
    """The tool for `host`."""
    return offer_tool(FindTool(host.keeper), before="job")
