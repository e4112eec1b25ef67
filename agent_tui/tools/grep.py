"""The `grep` tool: searches text in files by regular expression."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from agent_tui.errors import ToolError
from agent_tui.messages import ToolDetails
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolOutput
from agent_tui.tools.files.protected import PLAIN_SECRET_GLOBS, SECRET_GLOBS
from agent_tui.tools.files.ripgrep import RipgrepOutput, run_ripgrep
from agent_tui.tools.files.text_files import resolve_existing
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.shorten import MAX_OUTPUT_BYTES, cut_line, keep_head

_SEARCH_TIME_S = 30.0
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
        path = context.resolve(arguments.path)
        title = f"grep {arguments.pattern} in {context.display_name(path)}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
        """Matching lines with their numbers, grouped by file."""
        target = resolve_existing(arguments.path, context)
        found = await run_ripgrep(
            self.keeper,
            _options(arguments),
            (arguments.pattern, str(target)),
            context.environ,
            time_s=_SEARCH_TIME_S,
            most_bytes=_MAX_READ_BYTES,
        )
        return _output(found, arguments, context)


def _options(arguments: GrepArguments) -> list[str]:
    options = ["--heading", "--with-filename", "--line-number", "--sort=path", "--engine=auto"]
    options += [f"--max-columns={_MAX_LINE_CHARS}", "--max-columns-preview"]
    options += [f"--context={arguments.context}"]
    if arguments.ignore_case:
        options.append("--ignore-case")
    if arguments.multiline:
        options += ["--multiline", "--multiline-dotall"]
    options += _OUTPUTS[arguments.output]
    options += _only(arguments.glob)
    return [*options, *(f"--glob=!{glob}" for glob in (*SECRET_GLOBS, *PLAIN_SECRET_GLOBS))]


def _only(glob: str) -> list[str]:
    """Options to search only files of `glob`. A glob without folders never adds ignored files."""
    names = glob.removeprefix("**/")
    if "/" in names or names.startswith("!"):
        return [f"--glob={glob}"]
    return [f"--type-add=wanted:{names}", "--type=wanted"] if names else []


def _output(found: RipgrepOutput, arguments: GrepArguments, context: ToolContext) -> ToolOutput:
    text = found.printed.decode("utf-8", "replace")
    printed = text.split("\n")
    printed = printed if found.is_complete else printed[:-1]
    printed = list(_without(printed, context.held_in(context.resolve(arguments.path))))
    if found.exit_code not in (None, 0, 1) and not any(map(_MATCH.match, printed)):
        problem = text.strip()
        raise ToolError(
            f"The search failed: {problem}\nTo search for special characters literally, put a "
            "backslash before each."
        )
    if arguments.output == "lines":
        unit, (lines, count, has_more) = "match", _limit_matches(printed, arguments.limit, context)
    else:
        unit, (lines, count, has_more) = "file", _files(printed, arguments.limit, context)
    stopped = "" if found.is_complete else f"stopped after {_SEARCH_TIME_S:.0f} s or much output"
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


def _without(lines: list[str], is_held: Callable[[Path], bool]) -> Iterator[str]:
    """The lines without those of files to skip."""
    is_left_out = False
    for line in lines:
        if line.startswith(os.sep):
            counted = _COUNTED.fullmatch(line)
            is_left_out = is_held(Path(line)) or (counted is not None and is_held(Path(counted[1])))
        if not is_left_out:
            yield line


def _files(lines: list[str], limit: int, context: ToolContext) -> tuple[list[str], int, bool]:
    """The files found, with counts if requested; how many; whether more came."""
    found = [line for line in lines if line.startswith(os.sep)]
    shown: list[str] = []
    for line in found[:limit]:
        counted = _COUNTED.fullmatch(line)
        path, count = (counted[1], counted[2]) if counted else (line, "")
        shown.append(f"{context.display_name(Path(path))}{count}")
    return shown, len(shown), len(found) > limit


def _limit_matches(
    lines: list[str], limit: int, context: ToolContext
) -> tuple[list[str], int, bool]:
    """The lines up to the last allowed match, with short paths; matches; whether more came."""
    kept: list[str] = []
    count = 0
    line_chars = min(_MAX_LINE_CHARS, context.limits.max_line_chars)
    for line in lines:
        if line.startswith(os.sep):
            kept.append(context.display_name(Path(line)))
            continue
        if _MATCH.match(line):
            if count == limit:
                while kept and not _MATCH.match(kept[-1]):
                    kept.pop()
                return kept, count, True
            count += 1
        kept.append(cut_line(line, line_chars))
    return kept, count, False
