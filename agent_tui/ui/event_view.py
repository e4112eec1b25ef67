"""The one place where events of the agent become something on the screen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from agent_tui.agent.mentions import without_attachments
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
    LoopAdvanced,
    ModelChanged,
    Notice,
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
from agent_tui.ui.activity_line import ActivityLine, ActivityState
from agent_tui.ui.approval_panel import ApprovalPanel
from agent_tui.ui.compaction_blocks import finished_block
from agent_tui.ui.history_blocks import REPLY_MARKS, bash_block, blocks_of, finished_tool
from agent_tui.ui.plan_view import PlanView
from agent_tui.ui.queue_view import QueueView
from agent_tui.ui.scope_blocks import entered_block, left_blocks
from agent_tui.ui.transcript import (
    BashBlock,
    BlockId,
    NoticeBlock,
    ToolBlock,
    Transcript,
    UserBlock,
    WelcomeBlock,
)

if TYPE_CHECKING:
    from agent_tui.agent.runtime import AgentRuntime


@dataclass(frozen=True, slots=True)
class ViewParts:
    """The widgets that events change, and what is called for the rest.

    `status_changed` redraws the status bar, `noticed` is told of every event once it is shown,
    `welcome` makes the first block of an empty chat, `edit_again` puts an earlier message into
    the prompt.
    """

    chat: Transcript
    activity: ActivityLine
    approval: ApprovalPanel
    queue: QueueView
    plan: PlanView
    status_changed: Callable[[], None]
    noticed: Callable[[AgentEvent], None]
    welcome: Callable[[], WelcomeBlock]
    edit_again: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Running:
    place: BlockId
    block: ToolBlock | BashBlock
    started_at: float


class EventView:
    """Shows events in order.

    Args:
        parts: What is changed.
        runtime: Read when another session was opened.
        clock: Monotonic seconds, the activity line's.
    """

    def __init__(
        self, parts: ViewParts, runtime: "AgentRuntime", clock: Callable[[], float]
    ) -> None:
        self._parts = parts
        self._runtime = runtime
        self._clock = clock
        self._running: dict[str, _Running] = {}
        self._asked: dict[str, str] = {}
        self._shown_error = ""
        self._has_warned = False
        self._round = ""
        self.last_outcome = ""

    def show(self, event: AgentEvent) -> None:
        """Change the screen as `event` says."""
        chat = self._parts.chat
        match event:
            case TurnStarted():
                self._work("Waiting for the model")
            case UserMessageAdded():
                chat.append(UserBlock(without_attachments(event.text), event.image_count))
            case ReplyStarted():
                chat.start_reply()
                self._work("Waiting for the model")
            case TextDelta():
                chat.stream_text(event.text)
                self._relabel("Writing", len(event.text))
            case ThinkingDelta():
                chat.stream_thinking(event.text)
                self._relabel("Thinking", len(event.text))
            case ToolCallDelta():
                self._relabel(f"Preparing {event.name}", 0)
            case ReplyFinished():
                self._shown_error = event.message.error_message or ""
                chat.finish_reply(REPLY_MARKS[event.message.stop_reason], self._shown_error)
            case ReplyDiscarded():
                chat.discard_reply()
            case ToolStarted():
                self._begin(ToolBlock(event.call_id, event.name, event.title))
                self._relabel(f"Running {event.name}", 0)
            case ToolOutputDelta():
                chat.append_tool_output(event.call_id, event.text)
            case ToolFinished():
                self._end_tool(event)
            case BashStarted():
                self._begin(BashBlock(event.call_id, event.command))
                self._work("Running your command")
            case BashFinished():
                self._end_bash(event)
            case ApprovalRequested():
                self._asked[event.request.id] = event.request.call_id
                self._parts.plan.make_room(False)
                self._parts.approval.open(event.request)
                self._relabel("Waiting for your answer", 0)
            case ApprovalResolved():
                self._resolve(event)
            case RetryScheduled():
                self._retry(event)
            case ContextWarning():
                self._warn(event)
            case QueueChanged():
                self._parts.queue.show(event.texts)
            case TodosChanged():
                self._parts.plan.show(event.todos)
            case CompactionStarted():
                self._work(f"Compacting {event.tokens_before:,} tokens")
            case CompactionProgress():
                self._progress(f"Compacting: {event.phase}", event.summary_chars)
            case CompactionFinished():
                chat.append(finished_block(event))
            case CompactionFailed():
                chat.append(NoticeBlock("warning", event.message))
            case BranchSummaryProgress():
                self._progress(f"Leaving the branch: {event.phase}", event.summary_chars)
            case LoopAdvanced():
                self._round = f"loop {event.number}/{event.count}"
                self._work("Waiting for the model")
            case ScopeEntered():
                chat.append(entered_block(event.label))
            case ScopeProgress():
                self._progress(f"Summing up: {event.phase}", event.summary_chars)
            case ScopeLeft():
                for block in left_blocks(event):
                    chat.append(block)
            case SessionChanged():
                self._session(event)
            case WentBack():
                self._go_back(event)
            case Notice():
                chat.append(NoticeBlock(event.level, event.text))
            case TurnFinished():
                self._finish(event)
            case ContextChanged() | TotalsChanged() | ModelChanged():
                self._parts.status_changed()
            case _:
                assert_never(event)
        self._parts.noticed(event)

    def begin(self) -> None:
        """An activity is about to run; what was shown to go on beside it gives way."""
        self._parts.activity.show(None)
        self._parts.plan.make_room(True)
        self.last_outcome = ""
        self._round = ""

    def idle(self) -> None:
        """Nothing runs any more, however it ended."""
        self._parts.activity.show(None)
        self._parts.plan.make_room(False)
        self._running.clear()
        self._parts.status_changed()

    def redraw(self) -> None:
        """Rebuild the chat from the session, or greet if nothing is in it."""
        blocks = blocks_of(self._runtime.conversation.log.path_entries())
        self._parts.chat.load(blocks or [self._parts.welcome()])
        self._parts.plan.show(tuple(self._runtime.conversation.todos))
        self._parts.status_changed()

    def _work(self, label: str) -> None:
        state = self._parts.activity.state
        started_at = state.started_at if state is not None else self._clock()
        chars = state.output_chars if state is not None else 0
        self._parts.activity.show(ActivityState(label, started_at, chars, round=self._round))

    def _relabel(self, label: str, chars: int) -> None:
        state = self._parts.activity.state
        if state is None:
            self._work(label)
        elif label != state.label or chars:
            total = state.output_chars + chars
            self._parts.activity.show(
                replace(state, label=label, output_chars=total, until=0.0, detail="")
            )

    def _begin(self, block: ToolBlock | BashBlock) -> None:
        place = self._parts.chat.append(block)
        self._running[block.call_id] = _Running(place, block, self._clock())

    def _end_tool(self, event: ToolFinished) -> None:
        running = self._running.pop(event.call_id, None)
        if running is None or not isinstance(running.block, ToolBlock):
            return
        block = finished_tool(
            running.block,
            event.message,
            elapsed_s=self._clock() - running.started_at,
        )
        self._parts.chat.replace(running.place, block)
        self._work("Waiting for the model")

    def _end_bash(self, event: BashFinished) -> None:
        running = self._running.pop(event.call_id, None)
        if running is not None:
            self._parts.chat.replace(running.place, bash_block(event.call_id, event.message))

    def _resolve(self, event: ApprovalResolved) -> None:
        call_id = self._asked.pop(event.request_id, "")
        if (running := self._running.get(call_id)) is not None:  # the question took no run time
            self._running[call_id] = replace(running, started_at=self._clock())
        self._parts.approval.resolve(event.request_id)
        self._parts.plan.make_room(self._parts.approval.request is None)

    def _retry(self, event: RetryScheduled) -> None:
        self._work(f"Trying again ({event.attempt} of {event.max_attempts})")
        state = self._parts.activity.state
        if state is not None:
            until = self._clock() + event.delay_s
            self._parts.activity.show(replace(state, until=until, detail=event.reason))

    def _warn(self, event: ContextWarning) -> None:
        """Say it each time where the person must act, else once: the bar shows it anyway."""
        self._parts.status_changed()
        conversation = self._runtime.conversation
        acts_by_itself = conversation.settings.auto and not conversation.breaker.is_open
        if acts_by_itself and (event.level == "trigger" or self._has_warned):
            return
        self._has_warned = True
        advice = "/compact makes room."
        if acts_by_itself:
            advice = "It will be compacted by itself when it is full; /compact does it now."
        text = f"The context is {event.usage.percent}% full. {advice}"
        self._parts.chat.append(NoticeBlock("warning", text))

    def _progress(self, label: str, summary_chars: int) -> None:
        self._work(label)
        state = self._parts.activity.state
        if state is not None:
            self._parts.activity.show(replace(state, output_chars=summary_chars))

    def _session(self, event: SessionChanged) -> None:
        if event.reason not in ("compacted", "renamed"):  # the chat of those is on the screen
            self.redraw()
        if event.reason != "renamed":
            self._has_warned = False
        self._parts.status_changed()

    def _go_back(self, event: WentBack) -> None:
        self.redraw()
        self._has_warned = False
        if event.text:
            self._parts.edit_again(event.text)
        if event.image_count:
            text = f"The message had images ({event.image_count}), which are not in the prompt."
            self._parts.chat.append(NoticeBlock("warning", text))

    def _finish(self, event: TurnFinished) -> None:
        self.last_outcome = event.outcome
        again = " /retry goes on." if event.can_continue else ""
        match event.outcome:
            case "error" if event.error == self._shown_error:  # it stands below the reply
                if again:
                    self._parts.chat.append(NoticeBlock("info", again.strip()))
            case "error":
                self._parts.chat.append(NoticeBlock("error", event.error + again))
            case "length":
                text = f"The reply was cut off at the model's limit.{again}"
                self._parts.chat.append(NoticeBlock("warning", text))
            case "aborted" | "done":
                pass
            case _:
                assert_never(event.outcome)
