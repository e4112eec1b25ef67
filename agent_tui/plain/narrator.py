"""The one place where events of the agent become lines."""

from typing import assert_never

from agent_tui.attachments import without_attachments
from agent_tui.commands.context import warning_text
from agent_tui.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BashFinished,
    BashStarted,
    BranchSummaryProgress,
    CompactionFailed,
    CompactionFinished,
    CompactionProgress,
    CompactionStarted,
    ContextChanged,
    ContextWarning,
    JobEnded,
    JobStarted,
    LoopAdvanced,
    ModelChanged,
    Notice,
    PlanHandedOver,
    QueueChanged,
    ReplyDiscarded,
    ReplyFinished,
    ReplyStarted,
    RetryScheduled,
    ScopeEntered,
    ScopeLeft,
    ScopeProgress,
    SessionChanged,
    TextDelta,
    TextPinned,
    ThinkingDelta,
    TodosChanged,
    ToolCallDelta,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
    TotalsChanged,
    TurnFinished,
    TurnStarted,
    UserMessageAdded,
    WentBack,
)
from agent_tui.messages import Todo
from agent_tui.plain.lines import LineWriter
from agent_tui.plain.progress import WAITING, Progress
from agent_tui.plain.tool_narrator import ToolNarrator
from agent_tui.plain.voice import Voice
from agent_tui.safe_text import printable_line
from agent_tui.sessions.replay.changes import MADE_WITHOUT_MODEL
from agent_tui.sessions.replay.jobs import ended_line
from agent_tui.sessions.replay.pins import pinned_line

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
        self._shown_error = ""
        self.shows_thinking = False

    @property
    def last_output(self) -> str:
        """What the last tool or command printed."""
        return self._tools.last_output

    def begin(self, typed: str = "") -> None:
        """An activity is about to run; `typed` stands on the terminal already."""
        self._typed = typed
        self._shown_error = ""
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
                self._end_reply(event)
            case ReplyDiscarded():
                self._voice.end()
            case ToolStarted() | ToolOutputDelta() | ToolFinished() | BashStarted():
                self._tools.tell(event)
            case BashFinished() | ApprovalRequested() | ApprovalResolved():
                self._tools.tell(event)
            case RetryScheduled():
                again = f"Trying again in {event.delay_s:.0f} seconds"
                self._voice.say(
                    f"{event.reason} {again} ({event.attempt} of {event.max_attempts})."
                )
            case ContextWarning():
                self._warn(event)
            case TodosChanged():
                self._plan(event.todos)
            case TextPinned():
                self._voice.say(f"{pinned_line(event.pin, is_changed=event.is_changed)}.")
            case JobEnded():
                self._voice.say(ended_line(event.job))
            case CompactionStarted():
                self._voice.say(f"Compacting {event.tokens_before:,} tokens.")
            case CompactionProgress():
                self._progress.doing(_counted(f"Compacting: {event.phase}", event.summary_chars))
            case CompactionFinished():
                self._voice.say(_compaction_line(event))
            case CompactionFailed():
                self._voice.say(event.message)
            case BranchSummaryProgress():
                self._progress.doing(_counted(f"Summing up: {event.phase}", event.summary_chars))
            case LoopAdvanced():
                self._voice.say(f"Round {event.number} of {event.count}.")
            case ScopeEntered():
                self._voice.say(f"Begins: {event.label}.")
            case ScopeProgress():
                self._progress.doing(_counted(f"Summing up: {event.phase}", event.summary_chars))
            case ScopeLeft():
                self._voice.say(f"Ends: {event.label}.")
            case SessionChanged():
                self._session(event)
            case WentBack():
                self._voice.say("Back at an earlier place of this session.")
            case Notice():
                self._voice.say(event.text)
            case TurnFinished():
                self._finish(event)
            case QueueChanged() | ContextChanged() | TotalsChanged() | ModelChanged():
                pass
            case JobStarted() | PlanHandedOver():
                pass  # the result of the call says it, or the question
            case _:
                assert_never(event)

    def _user_message(self, event: UserMessageAdded) -> None:
        text = without_attachments(event.text)
        if text != self._typed:
            self._voice.say(f"You: {text}")
        self._typed = ""

    def _warn(self, event: ContextWarning) -> None:
        if event.level == "warn" or not event.compacts_at:
            self._voice.say(warning_text(event))

    def _plan(self, todos: tuple[Todo, ...]) -> None:
        if todos and todos != self._told_todos:
            self._voice.say(_plan_line(todos))
        self._told_todos = todos

    def _think(self, text: str) -> None:
        self._thought_chars += len(text)
        self._progress.doing(_counted("Thinking", self._thought_chars))
        if self.shows_thinking:
            self._voice.speak("Thinking:", text)

    def _end_reply(self, event: ReplyFinished) -> None:
        self._voice.end()
        self._shown_error = event.message.error_message or ""
        if self._shown_error:
            self._voice.say(f"Error: {self._shown_error}")

    def _session(self, event: SessionChanged) -> None:
        match event.reason:
            case "new":
                self._voice.say("A new session has begun; the one before stays as it is.")
            case "compacted":
                self._voice.say("It goes on in a new session file. /uncompact takes that back.")
            case "forked":
                self._voice.say("It goes on in a copy of the session.")
            case "resumed" | "renamed":
                pass
            case _:
                assert_never(event.reason)

    def _finish(self, event: TurnFinished) -> None:
        again = " /retry goes on." if event.can_continue else ""
        match event.outcome:
            case "error" if event.error == self._shown_error:
                if again:
                    self._voice.say(again.strip())
            case "error":
                self._voice.say(f"Error: {event.error}{again}")
            case "limit":
                self._voice.say(f"Stopped. {event.error}{again}")
            case "length":
                self._voice.say(f"The reply was cut off at the model's limit.{again}")
            case "aborted":
                self._voice.say(f"Stopped. What came so far is kept.{again}")
            case "done":
                pass
            case _:
                assert_never(event.outcome)


def _plan_line(todos: tuple[Todo, ...]) -> str:
    """The model's plan in one line: how far it is, and what is done now."""
    done = sum(todo.status == "completed" for todo in todos)
    now = next((todo.text for todo in todos if todo.status == "in_progress"), "")
    now = f" Now: {printable_line(now)}." if now else ""
    return f"Plan: {done} of {len(todos)} done.{now}"


def _compaction_line(event: CompactionFinished) -> str:
    """What a compaction did to the size of the context, and what is to be known about it."""
    note = event.note or (f"The summary was {MADE_WITHOUT_MODEL}." if event.is_fallback else "")
    sizes = f"{event.tokens_before:,} tokens before, {event.tokens_after:,} after."
    return f"The context was compacted: {sizes} {note}".strip()


def _counted(what: str, chars: int) -> str:
    return f"{what}: {chars:,} characters" if chars else f"{what}."
