"""Events of the agent as lines: what takes more than a sentence of `event_lines` is told here."""

from agent_tui.attachments import without_attachments
from agent_tui.commands.event_lines import RetryLines, event_line, plan_steps, turn_end_line
from agent_tui.commands.said_once import SaidOnce
from agent_tui.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BashFinished,
    BashStarted,
    BranchSummaryProgress,
    CompactionProgress,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    ScopeProgress,
    TextDelta,
    ThinkingDelta,
    TodosChanged,
    ToolCallDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
)
from agent_tui.messages import Todo
from agent_tui.plain.lines import LineWriter
from agent_tui.plain.progress import WAITING, Progress
from agent_tui.plain.tool_narrator import ToolNarrator
from agent_tui.plain.voice import Voice
from agent_tui.safe_text import printable_line

ME = "agent-tui:"


class Narrator:
    """Tells events in order.

    Args:
        lines: Where to.
        progress: What is said of long work.
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
        self._once = SaidOnce()
        self.shows_thinking = False

    @property
    def last_output(self) -> str:
        """What the last tool or command printed."""
        return self._tools.last_output

    def begin(self, typed: str = "") -> None:
        """An activity is about to run; `typed` stands on the terminal already."""
        self._typed = typed
        self._tools.forget()
        self._progress.spoken()

    def heard(self) -> None:
        """The person has said something: they need not be told at once that work goes on."""
        self._progress.spoken()

    def end(self) -> None:
        """Nothing runs any more, however it ended."""
        self._voice.end()
        self._progress.doing("")

    def tick(self) -> None:
        """Say what goes on if it goes on for long."""
        if not self._voice.is_speaking and (text := self._progress.due()):
            self._lines.line(text)

    def tell(self, event: AgentEvent) -> None:
        """Write what `event` says."""
        for one in self._once.of(event):
            self._tell(one)

    def _tell(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted() | ReplyStarted():
                self._progress.doing(WAITING)
                self._thought_chars = 0
            case UserMessageAdded():
                self._user_message(event)
            case TextDelta():
                self._voice.speak(ME, event.text)
            case ThinkingDelta():
                self._think(event.text)
            case ToolCallDelta():
                self._progress.doing(f"Preparing {event.name}: {event.argument_chars:,} characters")
            case ReplyFinished():
                self._voice.end()
            case ReplyDiscarded():
                self._voice.end()
                self._say(event_line(event))
            case ToolStarted() | ToolOutputDelta() | ToolFinished() | BashStarted():
                self._tools.tell(event)
            case BashFinished() | ApprovalRequested() | ApprovalResolved():
                self._tools.tell(event)
            case TodosChanged():
                self._plan(event.todos)
            case CompactionProgress():
                self._progress.doing(_counted(f"Compacting: {event.phase}", event.summary_chars))
            case BranchSummaryProgress():
                self._progress.doing(_counted(f"Summarising: {event.phase}", event.summary_chars))
            case ScopeProgress():
                self._progress.doing(_counted(f"Summarising: {event.phase}", event.summary_chars))
            case TurnFinished():
                self._say(turn_end_line(event))
            case RetryScheduled():
                self._say(self._retries.line(event))
            case _:
                self._say(event_line(event))

    def _say(self, text: str) -> None:
        if text:
            self._voice.say(text)

    def _user_message(self, event: UserMessageAdded) -> None:
        text = without_attachments(event.text)
        if text != self._typed:
            self._voice.say(f"You: {text}")
        self._typed = ""

    def _plan(self, todos: tuple[Todo, ...]) -> None:
        if todos and todos != self._told_todos:
            self._voice.say(_plan_line(todos))
            if [todo.text for todo in todos] != [todo.text for todo in self._told_todos]:
                self._voice.say(*(f"    {line}" for line in plan_steps(todos)))
        self._told_todos = todos

    def _think(self, text: str) -> None:
        self._thought_chars += len(text)
        self._progress.doing(_counted("Thinking", self._thought_chars))
        if self.shows_thinking:
            self._voice.speak("Thinking:", text)


def _plan_line(todos: tuple[Todo, ...]) -> str:
    """The model's plan in one line: how far it is, and what is done now."""
    done = sum(todo.status == "completed" for todo in todos)
    now = next((todo.text for todo in todos if todo.status == "in_progress"), "")
    now = f" Now: {printable_line(now)}." if now else ""
    return f"Plan: {done} of {len(todos)} done.{now}"


def _counted(what: str, chars: int) -> str:
    return f"{what}: {chars:,} characters" if chars else f"{what}."
