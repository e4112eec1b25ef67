"""The `grep` tool: searches text in files by regular expression."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Literal

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.features.file_search.ripgrep import (
    RipgrepOutput,
    path_of_file,
    run_ripgrep,
    split_file_path,
)
from agent_tui.messages import ToolDetails
from agent_tui.regular_files import open_in
from agent_tui.safe_paths import open_folder
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.protected import PLAIN_SECRET_GLOBS, SECRET_GLOBS
from agent_tui.tools.files.text_files import resolve_existing
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.processes.keeper_process import MOST_FILES
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
from agent_tui.tools.shorten import MAX_OUTPUT_BYTES, cut_line, keep_head

_SEARCH_TIME_S = 30.0
_MAX_LISTED_BYTES = 100_000_000
_MAX_READ_BYTES = 20 * MAX_OUTPUT_BYTES
_MAX_LINE_CHARS = 500
_MATCH = re.compile(r"\d+:")
_COUNTED = re.compile(r"(.*)(:\d+)")
_OUTPUTS = {"lines": (), "files": ("--files-with-matches",), "counts": ("--count",)}


class GrepArguments(ToolArguments):
    """Arguments of `grep`."""

    pattern: str = Field(min_length=1, description="regular expression")
    path: str = "."
    glob: str = Field(default="", description="only files like *.py")
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=200, description="lines around a match")
    limit: int = Field(default=200, ge=1, le=2_000, description="most matches")
    output: Literal["lines", "files", "counts"] = "lines"
    multiline: bool = False


@dataclass(frozen=True, slots=True)
class GrepTool:
    """Searches text files; skips binary, ignored and denied files and those with secrets."""

    keeper: ProcessKeeper
    name: str = "grep"
    description: str = "Search file contents.\nRespects .gitignore."
    arguments_type: type[GrepArguments] = GrepArguments

    def intent(self, arguments: GrepArguments, context: ToolContext) -> Intent:
        """Read access to the files below one path."""
        path = context.resolve(arguments.path, to_read=True)
        title = f"grep {arguments.pattern} in {context.display_name(path)}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        """Matching lines with their numbers, grouped by file.

        ripgrep opens files by their names, and would follow a link that a command puts in the place
        of one. So it only finds which files match, and then searches these as we opened them.
        """
        target = resolve_existing(arguments.path, context)
        is_folder = target.is_dir()
        root = target if is_folder else target.parent
        try:
            with open_folder(root) as folder:
                if is_folder:
                    names, is_complete = await self._list_matching(arguments, target, context)
                else:
                    open_in(folder, target).close()
                    names, is_complete = [target.name], True
                is_held = await asyncio.to_thread(context.held_in, target)
                files = _Files(root, folder, is_held)
                found = await self._search(arguments, files, names, context)
        except OSError as error:
            shown = context.display_name(target)
            raise ToolError(f"{shown} cannot be searched: {error.strerror}.") from error
        is_complete &= found.is_complete
        return _output(found.lines, arguments, context, is_complete=is_complete)

    async def _list_matching(
        self, arguments: GrepArguments, folder: Path, context: ToolContext
    ) -> tuple[list[str], bool]:
        """The files in `folder` that seem to match, by their paths in it, and whether that is all.

        Raises:
            ToolError: The search failed.
        """
        found = await run_ripgrep(
            self.keeper,
            [*_matching(arguments), "--files-with-matches", "--null", "--no-messages"],
            (arguments.pattern, str(folder)),
            context.environ,
            time_s=_SEARCH_TIME_S,
            most_bytes=_MAX_LISTED_BYTES,
        )
        start = os.fsencode(folder / "_")[:-1]
        paths = [path for path in found.printed.split(b"\0")[:-1] if path.startswith(start)]
        if not paths and _has_failed(found):
            raise _failure(found)
        names = sorted((path[len(start) :] for path in paths), key=lambda name: name.split(b"/"))
        return list(map(os.fsdecode, names)), found.is_complete

    async def _search(
        self, arguments: GrepArguments, files: "_Files", names: list[str], context: ToolContext
    ) -> "_Found":
        """The output for those of `names` that may be read, until there is enough of it.

        Raises:
            ToolError: The search failed.
        """
        options = [*_matching(arguments), *_printing(arguments)]
        ends_at = time.monotonic() + _SEARCH_TIME_S
        lines: list[str] = []
        count = size = 0
        for start in range(0, len(names), MOST_FILES):
            with ExitStack() as stack:
                batch = names[start : start + MOST_FILES]
                opened = await asyncio.to_thread(files.open, batch, stack)
                if not opened:
                    continue
                operands = map(path_of_file, range(len(opened)))
                found = await run_ripgrep(
                    self.keeper,
                    options,
                    (arguments.pattern, *operands),
                    context.environ,
                    time_s=max(ends_at - time.monotonic(), 0),
                    most_bytes=_MAX_READ_BYTES - size,
                    files=[file.fileno() for _, file in opened],
                )
            printed = _name_files(found, [path for path, _ in opened])
            size += len(found.printed)
            count += len(matches := [line for line in printed if _is_match(line, arguments)])
            if not matches and _has_failed(found):
                raise _failure(found)
            lines += printed
            if not found.is_complete or count > arguments.limit:
                return _Found(lines, found.is_complete)
        return _Found(lines, is_complete=True)


@dataclass(frozen=True, slots=True)
class _Found:
    """ripgrep's lines, with absolute paths. `is_complete` is false if it was stopped early."""

    lines: list[str]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Files:
    """Opens files below `root`, whose handle is `folder`, unless they are to be skipped."""

    root: Path
    folder: int
    is_held: Callable[[Path], bool]

    def open(self, names: list[str], stack: ExitStack) -> list[tuple[Path, IO[bytes]]]:
        """The regular files with no link on the way from `root`, open until `stack` is closed."""
        opened: list[tuple[Path, IO[bytes]]] = []
        for below, here in groupby(names, os.path.dirname):
            with suppress(OSError), open_folder(Path(below), around=self.folder) as folder:
                for path in (self.root / name for name in here):
                    if not self.is_held(path):
                        with suppress(OSError):
                            opened.append((path, stack.enter_context(open_in(folder, path))))
        return opened


def _matching(arguments: GrepArguments) -> list[str]:
    """Options for what matches, and in which files."""
    options = ["--engine=auto"]
    if arguments.ignore_case:
        options.append("--ignore-case")
    if arguments.multiline:
        options += ["--multiline", "--multiline-dotall"]
    options += _only(arguments.glob)
    return [*options, *(f"--glob=!{glob}" for glob in (*SECRET_GLOBS, *PLAIN_SECRET_GLOBS))]


def _printing(arguments: GrepArguments) -> list[str]:
    """Options for what is printed of the matches."""
    options = ["--heading", "--with-filename", "--line-number", "--sort=path"]
    options += [f"--max-columns={_MAX_LINE_CHARS}", "--max-columns-preview"]
    return [*options, f"--context={arguments.context}", *_OUTPUTS[arguments.output]]


def _has_failed(found: RipgrepOutput) -> bool:
    return found.exit_code not in (None, 0, 1)


def _failure(found: RipgrepOutput) -> ToolError:
    problem = found.printed.decode("utf-8", "replace").strip()
    if not problem:
        return ToolError("The search failed: some files or folders cannot be read.")
    return ToolError(
        f"The search failed: {problem}\nTo search for special characters literally, put a "
        "backslash before each."
    )


def _name_files(found: RipgrepOutput, paths: list[Path]) -> list[str]:
    """The whole lines of the output, with `paths` for those of the open files."""
    lines = found.printed.decode("utf-8", "replace").split("\n")
    named: list[str] = []
    for line in lines if found.is_complete else lines[:-1]:
        file = split_file_path(line)
        if file is not None and file[0] < len(paths):
            named += ["", f"{paths[file[0]]}{file[1]}"]
        elif line:
            named.append(line)
    return named


def _is_match(line: str, arguments: GrepArguments) -> bool:
    """Whether `line` counts against the limit."""
    if arguments.output == "lines":
        return _MATCH.match(line) is not None
    return line.startswith(os.sep)


def _only(glob: str) -> list[str]:
    """Options to search only files of `glob`. A glob without folders never adds ignored files."""
    names = glob.removeprefix("**/")
    if "/" in names or names.startswith("!"):
        return [f"--glob={glob}"]
    return [f"--type-add=wanted:{names}", "--type=wanted"] if names else []


def _output(
    printed: list[str], arguments: GrepArguments, context: ToolContext, *, is_complete: bool
) -> ToolOutput:
    if arguments.output == "lines":
        unit, (lines, count, has_more) = "match", _limit_matches(printed, arguments.limit, context)
    else:
        unit, (lines, count, has_more) = "file", _files(printed, arguments.limit, context)
    stopped = "" if is_complete else f"stopped after {_SEARCH_TIME_S:.0f} s or much output"
    if not count:
        text = f"No matches ({stopped}; narrow the search)." if stopped else "No matches."
        return ToolOutput(text, ToolDetails(summary="no matches"))
    limits = context.limits
    text = "\n".join(lines).strip("\n")
    kept = keep_head(text, max_lines=limits.max_lines, max_bytes=limits.max_bytes)
    units = f"{unit}es" if unit == "match" else f"{unit}s"
    notes = [f"first {arguments.limit} {units}"] if has_more else []
    notes += [stopped] if stopped else []
    notes += ["output cut"] if kept.is_cut else []
    note = f"\n[{'; '.join(notes)}; narrow the search]" if notes else ""
    more = "+" if notes else ""
    summary = f"{count}{more} {unit if count == 1 and not notes else units}"
    return ToolOutput(kept.text + note, ToolDetails(summary=summary, truncated=bool(notes)))


def _files(lines: list[str], limit: int, context: ToolContext) -> tuple[list[str], int, bool]:
    """The files found, with counts if requested; how many; whether more came."""
    found = [line for line in lines if line.startswith(os.sep)]
    shown: list[str] = []
    display_name = context.make_namer()
    for line in found[:limit]:
        counted = _COUNTED.fullmatch(line)
        path, count = (counted[1], counted[2]) if counted else (line, "")
        shown.append(f"{display_name(Path(path))}{count}")
    return shown, len(shown), len(found) > limit


def _limit_matches(
    lines: list[str], limit: int, context: ToolContext
) -> tuple[list[str], int, bool]:
    """The lines up to the last allowed match, with short paths; matches; whether more came."""
    kept: list[str] = []
    count = 0
    line_chars = min(_MAX_LINE_CHARS, context.limits.max_line_chars)
    display_name = context.make_namer()
    for line in lines:
        if line.startswith(os.sep):
            kept.append(display_name(Path(line)))
            continue
        if _MATCH.match(line):
            if count == limit:
                while kept and not _MATCH.match(kept[-1]):
                    kept.pop()
                return kept, count, True
            count += 1
        kept.append(cut_line(line, line_chars))
    return kept, count, False


def make_grep(host: ToolHost) -> OfferedTool:
    """The tool for `host`."""
    return offer_tool(GrepTool(host.keeper), before="job")
