"""The `why` tool: who asked for lines of a file, the reason, and what they replaced."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from agent_tui.errors import UsageError
from agent_tui.features.why.line_history.answers import FOR_MODEL, AnswerWriter, alike
from agent_tui.features.why.line_history.file_sessions import FileSessions
from agent_tui.features.why.line_history.project import FileHistory, read_file_history
from agent_tui.features.why.line_history.why import (
    LineAnswer,
    LinePlace,
    explain_lines,
    read_present,
)
from agent_tui.features.why.part import StoredSessions
from agent_tui.messages import ToolDetails
from agent_tui.safe_paths import real_path
from agent_tui.safe_text import printable_line
from agent_tui.secret_text import mask_secrets
from agent_tui.tools.base import Intent, ToolArguments, ToolContext, ToolError, ToolOutput
from agent_tui.tools.git.blame import Blame
from agent_tui.tools.processes.keeper import ProcessKeeper
from agent_tui.tools.registry import OfferedTool, ToolHost, offer_tool
from agent_tui.tools.shorten import keep_head, size_bytes

MOST_BYTES = 4_000
"""Of one answer: about 1,000 tokens, several changes with their reasons."""

_NOTE_BYTES = 160
"""Bytes reserved for notes about what was left out."""

_SUMMARY_CHARS = 32

_LAST_LINE = 999_999_999
_BEST_FIRST = ("recorded", "ambiguous", "unknown", "unrecorded", "earlier")


class WhyArguments(ToolArguments):
    """Arguments of `why`: `line` alone, `line` to `last`, or the whole file."""

    path: str = Field(min_length=1)
    line: int = Field(default=0, ge=0)
    last: int = Field(default=0, ge=0)


@dataclass(frozen=True, slots=True)
class WhyTool:
    """Answers from the sessions of the project; ``agent-tui why`` and ``/why`` do the same.

    Attributes:
        keeper: Starts git.
        is_trusted: Whether git may run in a folder.
    """

    keeper: ProcessKeeper
    is_trusted: Callable[[Path], bool]
    name: str = "why"
    description: str = (
        "Who asked for lines of a file and why.\n"
        "Before changing or removing code whose purpose is unclear."
    )
    arguments_type: type[WhyArguments] = WhyArguments

    def intent(self, arguments: WhyArguments, context: ToolContext) -> Intent:
        """Reads the file, and what sessions and git say about it.

        Raises:
            ToolError: The last line is before the first, or no file can have this name.
        """
        if arguments.last and not 1 <= arguments.line <= arguments.last:
            raise ToolError(f"last {arguments.last} is before line {arguments.line}.")
        path = context.resolve(arguments.path)
        title = f"why {context.display_name(path)}"
        if arguments.line:
            title += f":{arguments.line}"
        if arguments.last > arguments.line:
            title += f"-{arguments.last}"
        return Intent(title=title, access="read", paths=(path,))

    async def run(self, arguments: WhyArguments, context: ToolContext) -> ToolOutput:
        """The answers, at most 4,000 bytes; lines that have the same one share it."""
        path = context.resolve(arguments.path)
        last = arguments.last or arguments.line or _LAST_LINE
        place = LinePlace(path, arguments.line or 1, last)

        history = context.history
        sessions = FileSessions(
            context.use(StoredSessions).store,
            history.sessions(),
            reaches_others=history.reaches_others,
        )

        def read() -> tuple[str, FileHistory]:
            return read_present(path), read_file_history(sessions, path)

        try:
            present, file = await asyncio.to_thread(read)
            blame = None
            if await asyncio.to_thread(self.is_trusted, path.parent):
                blame = Blame(self.keeper, path, context.environ)
            answers = await explain_lines(file, place, present, blame)
        except UsageError as error:
            raise ToolError(str(error)) from error
        return _output(answers, context)


def make_tool(host: ToolHost) -> OfferedTool:
    """The tool, as it is offered."""
    return offer_tool(WhyTool(host.keeper, host.is_trusted), is_seldom=True)


def _output(answers: Sequence[LineAnswer], context: ToolContext) -> ToolOutput:
    """The answers that fit, those that name a change first."""
    groups = alike(answers)
    groups.sort(key=lambda group: _BEST_FIRST.index(group[0].status))
    writer = AnswerWriter(real_path(context.cwd), FOR_MODEL)
    room = min(MOST_BYTES, context.limits.max_bytes) - _NOTE_BYTES
    blocks: list[str] = []
    left = 0
    for group in groups:
        block = mask_secrets("\n".join(filter(None, writer.lines(group))), context.secrets)
        if not blocks:
            block = keep_head(block, max_lines=context.limits.max_lines, max_bytes=room).text
        room -= size_bytes(block) + 2
        if room < 0 and blocks:
            left += len(group)
        else:
            blocks.append(block)
    if left:
        lines = "1 more line has" if left == 1 else f"{left:,} more lines have"
        blocks.append(f"({lines} other answers: ask about fewer lines.)")
    if unread := len(answers[0].unread):
        blocks.append(f"(Sessions that name the file but cannot be read: {unread:,}.)")
    summary = mask_secrets(_summary(groups), context.secrets)
    return ToolOutput("\n\n".join(blocks), ToolDetails(summary=summary, truncated=left > 0))


def _summary(groups: Sequence[Sequence[LineAnswer]]) -> str:
    """What was asked, if that is the answer for all lines; else how many are known."""
    first = groups[0][0]
    if len(groups) == 1 and first.status == "recorded" and first.changes[0].asked:
        return f"asked: {printable_line(first.changes[0].asked, _SUMMARY_CHARS)}"
    known = sum(len(group) for group in groups if group[0].status == "recorded")
    count = sum(map(len, groups))
    return f"{known:,} of {count:,} line{'s' * (count != 1)} known"
