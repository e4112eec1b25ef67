"""What tools and the person's own commands do, as lines."""

from typing import TypeAlias, assert_never

from agent_tui.commands.command_output import (
    CommandOutput,
    command_output,
    excerpt,
    excerpt_lines,
)
from agent_tui.events import (
    ApprovalRequested,
    ApprovalResolved,
    BashFinished,
    BashStarted,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from agent_tui.messages import ToolResultMessage
from agent_tui.plain.diff_words import diff_words
from agent_tui.plain.progress import WAITING, Progress
from agent_tui.plain.voice import Voice
from agent_tui.safe_text import printable_line, safe_output

ToolEvent: TypeAlias = (
    ToolStarted
    | ToolOutputDelta
    | ToolFinished
    | BashStarted
    | BashFinished
    | ApprovalRequested
    | ApprovalResolved
)

_OUTCOME_CHARS = 120


class ToolNarrator:
    """A line for each call, and the output of what the person runs.

    Args:
        voice: Says it.
        progress: Learns what runs.
    """

    def __init__(self, voice: Voice, progress: Progress) -> None:
        self._voice = voice
        self._progress = progress
        self._titles: dict[str, str] = {}
        self._shown_diffs: set[str] = set()
        self._output_chars = 0
        self._own_command = ""
        self._own_output = ""
        self.last_output = ""
        """What the last tool or command printed."""

    def forget(self) -> None:
        """Another activity begins: no call of the last one is open."""
        self._titles.clear()
        self._shown_diffs.clear()

    def tell(self, event: ToolEvent) -> None:
        """Write what `event` says."""
        match event:
            case ToolStarted(call_id, name, _, title):
                self._titles[call_id] = title
                self._output_chars = 0
                self._progress.doing(f"Running {name}: {printable_line(title)}")
            case BashStarted(call_id):
                self._own_command, self._own_output = call_id, ""
                self._progress.doing("Running your command.")
            case ToolOutputDelta():
                self._output(event)
            case ToolFinished():
                self._end_tool(event)
            case BashFinished():
                self._end_bash(event)
            case ApprovalRequested(request):
                self._voice.end()
                if request.body_kind == "diff":
                    self._shown_diffs.add(request.call_id)
            case ApprovalResolved():
                pass
            case _:
                assert_never(event)

    def _output(self, event: ToolOutputDelta) -> None:
        """Lines of the person's own command as they come; of a tool only how much there is."""
        if event.call_id == self._own_command:
            *lines, self._own_output = (self._own_output + event.text).split("\n")
            self._voice.say(*map(safe_output, lines))
            return
        self._output_chars += len(event.text)
        title = printable_line(self._titles.get(event.call_id, "a tool"))
        self._progress.doing(f"Running {title}: {self._output_chars:,} characters of output")

    def _end_tool(self, event: ToolFinished) -> None:
        message, details = event.message, event.message.tool_details
        title = self._titles.pop(event.call_id, "")
        self.last_output = message.text
        if details.todos is None or message.is_error:  # a plan is told by an event of its own
            printed = command_output(message)
            self._voice.say(_tool_line(message, title, printed))
            if printed is not None:
                found = excerpt(printed.text, lines=printed.lines, has_failed=message.is_error)
                self._voice.say(*(f"    {line}" for line in excerpt_lines(found)))
        if details.diff and event.call_id not in self._shown_diffs:
            self._voice.say(*(f"    {line}" for line in diff_words(details.diff)))
        self._progress.doing(WAITING)

    def _end_bash(self, event: BashFinished) -> None:
        message = event.message
        self.last_output = message.output
        if self._own_output:
            self._voice.say(safe_output(self._own_output))
        self._own_command = self._own_output = ""
        if message.cancelled:
            self._voice.say("Stopped.")
        elif message.exit_code is None:
            self._voice.say(message.output)
        elif message.exit_code:
            self._voice.say(f"The command exited with code {message.exit_code}.")


def _tool_line(message: ToolResultMessage, title: str, printed: CommandOutput | None) -> str:
    """A tool call and what it came to: in its own words, else in the first line of its output."""
    name, subject = message.tool_name, printable_line(title)
    subject = subject.removeprefix(f"{name} ")
    match message.tool_details.ending:
        case "declined":
            return f"Tool {name}, not run: {subject}."
        case "cancelled":
            return f"Tool {name}, cancelled: {subject}."
        case "":
            pass
    first_line = message.text.strip().partition("\n")[0]
    outcome = printed.result if printed is not None else message.tool_details.summary
    outcome = outcome.replace(" · ", ", ") or printable_line(first_line, _OUTCOME_CHARS) or "done"
    told = f": {outcome.rstrip('.')}" if outcome not in subject else ""
    return f"Tool {name}{' failed' if message.is_error else ''}: {subject}{told}."
