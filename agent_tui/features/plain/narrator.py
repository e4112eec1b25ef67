"""Events of the agent and its tools as lines, where `event_lines` has no sentence."""

from typing import TypeAlias, assert_never

from agent_tui import events
from agent_tui.attachments import without_attachments
from agent_tui.commands.attached_files import describe_attached
from agent_tui.commands.command_output import CommandOutput, command_output, excerpt, excerpt_lines
from agent_tui.commands.event_lines import (
    RepeatFilter,
    RetryLines,
    event_line,
    plan_steps,
    turn_end_line,
)
from agent_tui.features.plain.voice import WAITING, LineWriter, Progress, Voice, diff_words
from agent_tui.messages import Todo, ToolResultMessage
from agent_tui.safe_text import printable_line, safe_output

ToolEvent: TypeAlias = (
    events.ToolStarted
    | events.ToolOutputDelta
    | events.ToolFinished
    | events.BashStarted
    | events.BashFinished
    | events.ApprovalRequested
    | events.ApprovalResolved
)

_OUTCOME_CHARS = 120


class ToolNarrator:
    """Writes a line for each call, and the output of the user's own commands.

    Args:
        voice: Writes the lines.
        progress: Receives what runs.
    """

    def __init__(self, voice: Voice, progress: Progress) -> None:
        self._voice = voice
        self._progress = progress
        self._titles: dict[str, str] = {}
        self._shown_diffs: set[str] = set()
        self._output_chars = 0
        self._own_command = ""
        self._own_output = ""

    def forget(self) -> None:
        """Forget the calls of the last activity as another begins."""
        self._titles.clear()
        self._shown_diffs.clear()

    def tell(self, event: ToolEvent) -> None:
        """Write the lines for `event`."""
        match event:
            case events.ToolStarted(call_id, name, _, title):
                self._titles[call_id] = title
                self._output_chars = 0
                self._progress.doing(f"Running {name}: {printable_line(title)}")
            case events.BashStarted(call_id):
                self._own_command, self._own_output = call_id, ""
                self._progress.doing("Running your command.")
            case events.ToolOutputDelta():
                self._output(event)
            case events.ToolFinished():
                self._end_tool(event)
            case events.BashFinished():
                self._end_bash(event)
            case events.ApprovalRequested(request):
                self._voice.end()
                if request.body_kind == "diff":
                    self._shown_diffs.add(request.call_id)
            case events.ApprovalResolved():
                pass
            case _:
                assert_never(event)

    def _output(self, event: events.ToolOutputDelta) -> None:
        """Write the user's command output as it arrives; of a tool's only count it."""
        if event.call_id == self._own_command:
            *lines, self._own_output = (self._own_output + event.text).split("\n")
            self._voice.say(*map(safe_output, lines))
            return
        self._output_chars += len(event.text)
        title = printable_line(self._titles.get(event.call_id, "a tool"))
        self._progress.doing(f"Running {title}: {self._output_chars:,} characters of output")

    def _end_tool(self, event: events.ToolFinished) -> None:
        message, details = event.message, event.message.tool_details
        title = self._titles.pop(event.call_id, "")
        if details.todos is None or message.is_error:  # a plan has its own event
            printed = command_output(message)
            self._voice.say(_tool_line(message, title, printed))
            if printed is not None:
                found = excerpt(printed.text, lines=printed.lines, has_failed=message.is_error)
                self._voice.say(*(f"    {line}" for line in excerpt_lines(found)))
        if details.diff and event.call_id not in self._shown_diffs:
            self._voice.say(*(f"    {line}" for line in diff_words(details.diff)))
        self._progress.doing(WAITING)

    def _end_bash(self, event: events.BashFinished) -> None:
        message = event.message
        if self._own_output:
            self._voice.say(safe_output(self._own_output))
        self._own_command = self._own_output = ""
        if message.cancelled:
            self._voice.say("Stopped.")
        elif message.jobs:
            self._voice.say(f"It runs in the background: job {message.jobs[0].id}.")
        elif message.exit_code is None:
            self._voice.say(message.output)
        elif message.exit_code:
            self._voice.say(f"The command exited with code {message.exit_code}.")


def _tool_line(message: ToolResultMessage, title: str, printed: CommandOutput | None) -> str:
    """A tool call and its result: its summary, else the first line of its output."""
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


ME = "agent-tui:"


class Narrator:
    """Writes events in order.

    Args:
        lines: Receives the text.
        progress: Decides on lines about long work.
    """

    def __init__(self, lines: LineWriter, progress: Progress) -> None:
        self._lines = lines
        self._progress = progress
        self._voice = Voice(lines, progress)
        self._tools = ToolNarrator(self._voice, progress)
        self._typed = ""
        self._thought_chars = 0
        self._told_todos: tuple[Todo, ...] = ()
        self._retries = RetryLines()
        self._once = RepeatFilter()
        self.shows_thinking = False

    def begin(self, typed: str = "") -> None:
        """Prepare for an activity; `typed` is already visible on the terminal."""
        self._typed = typed
        self._tools.forget()
        self._progress.note_line()

    def note_input(self) -> None:
        """Note that the user typed something, which delays the next line about long work."""
        self._progress.note_line()

    def end(self) -> None:
        """Finish after the activity has ended, however it did."""
        self._voice.end()
        self._progress.doing("")

    def tick(self) -> None:
        """Report on work that takes long."""
        if not self._voice.is_speaking and (text := self._progress.due()):
            self._lines.line(text)

    def tell(self, event: events.AgentEvent) -> None:
        """Write the lines for `event`."""
        for one in self._once.of(event):
            self._tell(one)

    def _tell(self, event: events.AgentEvent) -> None:
        match event:
            case events.TurnStarted() | events.ReplyStarted():
                self._progress.doing(WAITING)
                self._thought_chars = 0
            case events.UserMessageAdded():
                self._user_message(event)
            case events.TextDelta():
                self._voice.speak(ME, event.text)
            case events.ThinkingDelta():
                self._think(event.text)
            case events.ToolCallDelta():
                self._progress.doing(f"Preparing {event.name}: {event.argument_chars:,} characters")
            case events.ReplyFinished():
                self._voice.end()
            case events.ReplyDiscarded():
                self._voice.end()
                self._say(event_line(event))
            case (
                events.ToolStarted()
                | events.ToolOutputDelta()
                | events.ToolFinished()
                | events.BashStarted()
            ):
                self._tools.tell(event)
            case events.BashFinished() | events.ApprovalRequested() | events.ApprovalResolved():
                self._tools.tell(event)
            case events.FormOpened():
                self._voice.end()
            case events.FormClosed():
                self.note_input()
            case events.TodosChanged():
                self._plan(event.todos)
            case events.CompactionProgress():
                self._progress.doing(
                    _progress_text(f"Compacting: {event.phase}", event.summary_chars)
                )
            case events.BranchSummaryProgress():
                self._progress.doing(
                    _progress_text(f"Summarising: {event.phase}", event.summary_chars)
                )
            case events.ScopeProgress():
                self._progress.doing(
                    _progress_text(f"Summarising: {event.phase}", event.summary_chars)
                )
            case events.TurnFinished():
                self._say(turn_end_line(event))
            case events.RetryScheduled():
                self._say(self._retries.line(event))
            case _:
                self._say(event_line(event))

    def _say(self, text: str) -> None:
        if text:
            self._voice.say(text)

    def _user_message(self, event: events.UserMessageAdded) -> None:
        text = without_attachments(event.text)
        if text != self._typed:
            self._voice.say(f"You: {text}")
        if attached := describe_attached(event.text):
            self._voice.say(*(f"Attached: {file}" for file in attached))
        self._typed = ""

    def _plan(self, todos: tuple[Todo, ...]) -> None:
        if todos and todos != self._told_todos:
            self._voice.say(_plan_line(todos))
            if [todo.text for todo in todos] != [todo.text for todo in self._told_todos]:
                self._voice.say(*(f"    {line}" for line in plan_steps(todos)))
        self._told_todos = todos

    def _think(self, text: str) -> None:
        self._thought_chars += len(text)
        self._progress.doing(_progress_text("Thinking", self._thought_chars))
        if self.shows_thinking:
            self._voice.speak("Thinking:", text)


def _plan_line(todos: tuple[Todo, ...]) -> str:
    """The model's plan in one line: its progress and the present step."""
    done = sum(todo.status == "completed" for todo in todos)
    now = next((todo.text for todo in todos if todo.status == "in_progress"), "")
    now = f" Now: {printable_line(now)}." if now else ""
    return f"Plan: {done} of {len(todos)} done.{now}"


def _progress_text(what: str, chars: int) -> str:
    return f"{what}: {chars:,} characters" if chars else f"{what}."
