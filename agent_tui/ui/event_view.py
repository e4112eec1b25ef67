"""The only place that turns events of the agent into changes of the screen."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import assert_never

from agent_tui import events
from agent_tui.attachments import without_attachments
from agent_tui.commands.attached_files import describe_attached
from agent_tui.commands.core.front import Level
from agent_tui.commands.event_lines import event_line, limit_wait_reason, warning_text
from agent_tui.drafts.draft import Draft
from agent_tui.messages import Todo, ToolResultMessage, UserMessage
from agent_tui.sessions.entries import Entry, MessageEntry
from agent_tui.sessions.lineage.joined import entries_kept_behind
from agent_tui.sessions.replay.notes import end_of_job_line
from agent_tui.sessions.replay.pins import pin_line
from agent_tui.ui.chat.compaction_blocks import (
    compaction_block,
    scope_end_blocks,
    scope_start_block,
)
from agent_tui.ui.chat.history_blocks import (
    REPLY_MARKS,
    EarlierChat,
    bash_block,
    blocks_of,
    call_title,
    command_of,
    user_block,
    with_result,
)
from agent_tui.ui.chat.lines_above_prompt import ActivityState
from agent_tui.ui.chat.welcome import welcome_block
from agent_tui.ui.chat.widgets import ChatWidgets
from agent_tui.ui.options import UiOptions
from agent_tui.ui.prompt.draft_keeper import DraftKeeper
from agent_tui.ui.status.status_view import StatusView
from agent_tui.ui.transcript.blocks import (
    BashBlock,
    BlockId,
    NoticeBlock,
    SpokenBlock,
    ToolBlock,
    TurnBlock,
    UserBlock,
)


@dataclass(frozen=True, slots=True)
class _Running:
    place: BlockId
    block: ToolBlock | BashBlock


class EventView:
    """Shows events in order.

    Args:
        options: The conversation, read when another session was opened, and the clock.
        widgets: The widgets to change.
        status: What stands around the chat; follows each event.
        drafts: Keeps what is not sent yet, beside the present session.

    Attributes:
        drafts: The same.
        earlier: What was said before compactions.
        last_outcome: How the last turn of the present activity ended; empty before.
    """

    def __init__(
        self, options: UiOptions, widgets: ChatWidgets, status: StatusView, drafts: DraftKeeper
    ) -> None:
        self.widgets = widgets
        self.status = status
        self.drafts = drafts
        self._options = options
        self._runtime = options.runtime
        self._clock = options.clock
        self._running: dict[str, _Running] = {}
        self._asked: set[str] = set()
        self._reasons: dict[str, Draft] = {}
        self._plan: tuple[Todo, ...] = ()
        self._cut_parts: dict[str, Sequence[BlockId]] = {}
        self._has_warned = False
        self._round = ""
        self.earlier = EarlierChat(widgets.transcript, options.runtime)
        self.last_outcome = ""

    def show(self, event: events.AgentEvent) -> None:
        """Change the screen for `event`."""
        chat = self.widgets.transcript
        match event:
            case events.TurnStarted():
                self._work("Waiting for the model")
            case events.UserMessageAdded():
                chat.append(self._user_block(event))
                self.drafts.note_change(at_once=True)
            case events.ReplyStarted():
                chat.start_reply()
                self._work("Waiting for the model")
            case events.ReplyAwaited():
                self._await(event)
            case events.TextDelta():
                chat.stream_text(event.text)
                self._relabel("Writing", len(event.text))
            case events.ThinkingDelta():
                chat.stream_thinking(event.text)
                self._relabel("Thinking", len(event.text))
            case events.ToolCallDelta():
                self._relabel(f"Preparing {event.name}", 0)
            case events.ReplyFinished():
                self._end_reply(event)
            case events.CutReplyDropped(entry_ids=entry_ids):
                for entry_id in entry_ids:
                    for place in self._cut_parts.pop(entry_id, ()):
                        chat.remove_block(place)
            case events.ReplyDiscarded():
                chat.discard_reply()
            case events.ToolStarted():
                has_title = event.title != event.name  # a call that is refused immediately has none
                title = event.title if has_title else call_title(event.name, event.arguments)
                command = command_of(event.name, event.arguments)
                self._begin(ToolBlock(event.call_id, event.name, title, command=command))
                since = self._clock() if event.name == "bash" else 0.0
                self._relabel(f"Running {event.name}", 0, command_since=since)
            case events.ToolOutputDelta():
                chat.append_tool_output(event.call_id, event.text, event.skipped_lines)
            case events.ToolFinished():
                self._end_tool(event)
            case events.BashStarted():
                self._begin(BashBlock(event.call_id, event.command))
                self._relabel("Running your command", 0, command_since=self._clock())
            case events.BashFinished():
                self._end_bash(event)
            case events.ApprovalRequested():
                self._asked.add(event.request.id)
                self.widgets.plan.make_room("line")
                self.widgets.approval.open(event.request)
                self._pause()
            case events.ApprovalResolved():
                self._resolve(event)
            case events.FormOpened():
                self.status.set_asking(True)
                self.widgets.plan.make_room("line")
                self._pause()
            case events.FormClosed():
                self.status.set_asking(False)
                self.widgets.plan.make_room("steps")
                self._end_pause()
            case events.RetryScheduled():
                self._retry(event)
            case events.LimitWaitStarted():
                self._wait_for_limit(event)
            case events.LimitWaitEnded():
                chat.append(NoticeBlock("info", event_line(event)))
                self._work("Waiting for the model")
            case events.ContextWarning():
                self._warn(event)
            case events.QueueChanged():
                self.widgets.queue.show(event.texts, event.notes)
                self.drafts.note_change(at_once=True)
            case events.TodosChanged():
                self._plan = event.todos
                self.widgets.plan.show(event.todos)
            case events.JobStarted() | events.PlanHandedOver():
                pass  # the bar counts them, and the plan is asked about
            case events.TextPinned(pin=pin, is_changed=is_changed):
                line = pin_line(pin, is_changed=is_changed)
                chat.append(NoticeBlock("info", line, "file"))
            case events.JobEnded():
                chat.append(NoticeBlock("info", end_of_job_line(event.job), "job"))
            case events.CompactionStarted():
                self._work(f"Compacting {event.tokens_before:,} tokens")
            case events.CompactionProgress():
                self._work(f"Compacting: {event.phase}", chars=event.summary_chars)
            case events.CompactionFinished():
                chat.append(compaction_block(event))
            case events.CompactionFailed():
                chat.tell(NoticeBlock("warning", event.message))
            case events.BranchSummaryProgress():
                self._work(f"Leaving the branch: {event.phase}", chars=event.summary_chars)
            case events.LoopAdvanced():
                self._round = f"loop {event.number}/{event.count}"
                self._work("Waiting for the model")
            case events.FeatureEvent():
                if not self.widgets.standing.show(event) and (line := events.line_of(event)):
                    chat.append(NoticeBlock("info", line))
            case events.ScopeEntered():
                chat.append(scope_start_block(event.label))
            case events.ScopeProgress():
                self._work(f"Summarising: {event.phase}", chars=event.summary_chars)
            case events.ScopeLeft():
                for block in scope_end_blocks(event):
                    chat.append(block)
            case events.SessionChanged():
                self._session(event)
            case events.WentBack():
                self._go_back(event)
            case events.Notice():
                chat.tell(NoticeBlock(event.level, event.text, event.about))
                self.status.refresh()  # it may report another mode
            case events.TurnRecorded():
                chat.append(TurnBlock(event.facts))
            case events.TurnFinished():
                self._finish(event)
            case events.ContextChanged() | events.TotalsChanged() | events.ModelChanged():
                self.status.refresh()
            case _:
                assert_never(event)
        self.status.follow(event)
        self.widgets.steps.follow(event)

    def _user_block(self, event: events.UserMessageAdded) -> UserBlock:
        if event.image_count:
            for entry in reversed(self._runtime.conversation.log.entries):
                match entry:
                    case MessageEntry(id=event.entry_id, message=UserMessage() as message):
                        return user_block(message)
                    case _:
                        pass
        attached = describe_attached(event.text)
        return UserBlock(without_attachments(event.text), attached=attached)

    def begin(self, label: str) -> None:
        """Prepare for an activity; hides what is shown while nothing runs.

        `label` names it until its events do, which can take seconds after a long paste.
        """
        self.status.set_working(True)
        self.widgets.cold.display = False
        self.widgets.plan.make_room("steps")
        self.widgets.standing.pause(is_paused=False)
        self.last_outcome = ""
        self._round = ""
        self.widgets.activity.show(ActivityState(label, self._clock()))

    def idle(self) -> None:
        """Reset the screen after an activity, however it ended."""
        self.give_back_reasons()
        self.status.set_working(False)
        self.widgets.activity.show(None)
        self.widgets.plan.make_room("none")
        self.widgets.standing.pause(is_paused=True)
        self._running.clear()
        self.widgets.cold.look()
        self.status.refresh()

    def redraw(self) -> None:
        """Rebuild the chat from the session; shows the greeting if that is empty."""
        log = self._runtime.conversation.log
        path = log.path_entries()
        blocks = blocks_of(path, self._runtime.parts)
        self.widgets.transcript.load(blocks or [welcome_block(self._options)])
        if not blocks:
            self.status.greet()
        self.earlier.begin(log)
        self.widgets.standing.clear()
        for standing in filter(None, (part.standing() for part in self._runtime.parts)):
            self.show(standing)
        self._plan = tuple(self._runtime.conversation.todos)
        self.widgets.plan.take_up(self._plan, is_followed=_has_new_plan(path))
        self.widgets.cold.look()
        self.status.refresh()

    def say(self, text: str, level: Level = "info") -> None:
        """Put one line into the chat."""
        self.show(events.Notice(level, text))

    @contextmanager
    def loading(self, label: str) -> Generator[None]:
        """Show `label` as loading inside a ``with`` block, unless something else runs."""
        activity = self.widgets.activity
        if activity.state is not None:
            yield
            return
        state = ActivityState(label, self._clock(), can_stop=False)
        activity.show(state)
        try:
            yield
        finally:
            if self.widgets.activity.state is state:
                activity.show(None)

    def refresh_status(self) -> None:
        """Update what is around the chat."""
        self.status.refresh()
        self.widgets.steps.show_step()  # it names keys

    def follow_end(self) -> None:
        """Go to the newest message."""
        self.widgets.transcript.follow_end()

    def message_sent(self, draft: Draft) -> None:
        """Add a sent draft to the prompt's history, and count it for the hints."""
        self._remember(draft)
        self.status.onboarding.message_sent()

    def give_back(self, drafts: Sequence[Draft]) -> None:
        """Return undelivered drafts to the prompt."""
        self.widgets.prompt.put_before(drafts)

    def hold_reason(self, request_id: str, reason: Draft) -> None:
        """Keep a reason that was given until it is part of a result in the session."""
        if not reason.is_empty:
            self._reasons[request_id] = reason
            self.drafts.hold(request_id, (reason,))

    def give_back_reasons(self) -> None:
        """Return to the prompt the reasons that did not arrive: the turn was stopped."""
        reasons, self._reasons = self._reasons, {}
        for request_id in reasons:
            self.drafts.give_back(request_id)

    def _note_reasons(self, result: ToolResultMessage) -> None:
        """Let go of the reasons that `result`, which the session has, tells the model."""
        told = "\n".join((result.text, result.tool_details.user_words))
        arrived = [key for key, reason in self._reasons.items() if reason.sent_text in told]
        for request_id in arrived:
            del self._reasons[request_id]
            self.drafts.hold(request_id, ())

    @property
    def is_drafting(self) -> bool:
        """Whether something stands in the prompt that was not sent."""
        return not self.widgets.prompt.draft.trim().is_empty

    def clear_prompt(self) -> None:
        """Empty the prompt; its contents go into the history."""
        draft = self.widgets.prompt.draft.trim()
        if not draft.is_empty:
            self._remember(draft)
        self.widgets.prompt.clear()

    def edit_again(self, text: str, *, is_returned: bool = False) -> None:
        """Put an earlier message into the prompt, whose present text goes into the history.

        Args:
            text: The message.
            is_returned: Whether going back in the session returned it.
        """
        self.clear_prompt()
        self.widgets.prompt.load(Draft(text), is_returned=is_returned)

    def _remember(self, draft: Draft) -> None:
        try:
            self.widgets.prompt.remember(draft)
        except OSError as error:
            self.say(f"Cannot write the prompt history: {error.strerror}.", "warning")

    def person_typed(self) -> None:
        """Note a key: a question waits for a pause, and the hint is updated."""
        self.widgets.approval.postpone()
        self.person_acted()
        self.status.refresh_hint()

    def person_acted(self) -> None:
        """Note that the user is present."""
        self.status.person_acted()

    def focus_changed(self, has_focus: bool) -> None:
        """Note that the terminal gained or lost the focus."""
        for watcher in self.status.watchers:
            watcher.note_focus(has_focus)
        if has_focus:  # keys and clicks of that moment answer nothing
            self.widgets.approval.ignore_focus_click()

    def _work(
        self,
        label: str,
        *,
        chars: int | None = None,
        detail: str = "",
        until: float = 0.0,
        ends_at_s: float = 0.0,
        awaited_since: float = 0.0,
    ) -> None:
        """Show what runs now, as part of the same activity; fields are those of its state."""
        before = self.widgets.activity.state or ActivityState(label, self._clock())
        self.widgets.activity.show(
            ActivityState(
                label,
                before.started_at,
                before.output_chars if chars is None else chars,
                until,
                detail,
                round=self._round,
                paused_at=before.paused_at,
                awaited_since=awaited_since,
                ends_at_s=ends_at_s,
            )
        )

    def _relabel(self, label: str, chars: int, *, command_since: float = 0.0) -> None:
        state = self.widgets.activity.state
        if state is None:
            self._work(label)
        elif label != state.label or chars or command_since:
            total = state.output_chars + chars
            self.widgets.activity.show(
                replace(
                    state,
                    label=label,
                    output_chars=total,
                    until=0.0,
                    detail="",
                    awaited_since=0.0,
                    command_since=command_since,
                )
            )

    def _await(self, event: events.ReplyAwaited) -> None:
        """Show for how long a reply is awaited, and whether the server is working.

        Waiting for a helper is shown below its call instead.
        """
        if self._running:
            return
        label = "Thinking" if event.is_alive else "No response from the model for"
        self._work(label, awaited_since=self._clock() - event.waited_s)

    def _pause(self) -> None:
        """Stop counting time while waiting for the user."""
        if (state := self.widgets.activity.state) is not None:
            self.widgets.activity.show(state.with_pause(self._clock()))

    def _end_reply(self, event: events.ReplyFinished) -> None:
        """Finish a reply; an error is reported with the retry, or at the end of the turn."""
        stop = event.message.stop_reason
        places = self.widgets.transcript.finish_reply("" if stop == "error" else REPLY_MARKS[stop])
        if stop == "error":
            self._cut_parts[event.entry_id] = places
        else:
            self._cut_parts.clear()

    def _begin(self, block: ToolBlock | BashBlock) -> None:
        place = self.widgets.transcript.append(block)
        self._running[block.call_id] = _Running(place, block)

    def _end_tool(self, event: events.ToolFinished) -> None:
        self._note_reasons(event.message)
        running = self._running.pop(event.call_id, None)
        if running is None or not isinstance(running.block, ToolBlock):
            return
        block = with_result(running.block, event.message, self._plan)
        self.widgets.transcript.replace(running.place, block)
        others = [
            other.block.name
            for other in self._running.values()
            if isinstance(other.block, ToolBlock)
        ]
        self._work(f"Running {others[-1]}" if others else "Waiting for the model")

    def _end_bash(self, event: events.BashFinished) -> None:
        running = self._running.pop(event.call_id, None)
        if running is not None:
            self.widgets.transcript.replace(running.place, bash_block(event.call_id, event.message))

    def _resolve(self, event: events.ApprovalResolved) -> None:
        self._asked.discard(event.request_id)
        self._end_pause()
        self.widgets.approval.resolve(event.request_id)
        self.widgets.plan.make_room("line" if self.widgets.approval.request else "steps")

    def _end_pause(self) -> None:
        """Count time again, unless another question is open."""
        if not self._asked and (state := self.widgets.activity.state) is not None:
            self.widgets.activity.show(state.without_pause(self._clock()))

    def _retry(self, event: events.RetryScheduled) -> None:
        label = f"Try {event.attempt + 1} of {event.max_attempts + 1}"
        self._work(label, until=self._clock() + event.delay_s, detail=event.reason)

    def _wait_for_limit(self, event: events.LimitWaitStarted) -> None:
        label = "Continuing" if event.is_reset else "Trying again"
        self._work(label, ends_at_s=event.until_s, detail=limit_wait_reason(event))

    def _warn(self, event: events.ContextWarning) -> None:
        """Show a warning each time if the user must act, else once: the status bar shows it too."""
        self.status.refresh()
        if event.compacts_at and (event.level == "trigger" or self._has_warned):
            return
        self._has_warned = True
        self.widgets.transcript.append(NoticeBlock("warning", warning_text(event)))

    def _session(self, event: events.SessionChanged) -> None:
        if event.reason == "compacted":  # the chat stays: what is only in the summary is dimmed
            kept = blocks_of(entries_kept_behind(self._runtime.conversation.log.path_entries()))
            spoken = sum(isinstance(block, SpokenBlock) for block in kept)
            self.widgets.transcript.dim_above(spoken)
        elif event.reason != "renamed":
            self.redraw()
        if event.reason != "renamed":
            self._has_warned = False
        if event.reason == "resumed":
            self.widgets.prompt.run_worker(self.drafts.restore(), group="draft")
        else:
            self.drafts.note_change()
        self.status.refresh()

    def _go_back(self, event: events.WentBack) -> None:
        self.redraw()
        self._has_warned = False
        if event.text:
            self.edit_again(event.text, is_returned=True)
        if event.image_count:
            text = f"The message's images ({event.image_count}) are not put back into the prompt."
            self.widgets.transcript.append(NoticeBlock("warning", text))

    def _finish(self, event: events.TurnFinished) -> None:
        self.last_outcome = event.outcome
        self.widgets.plan.end_turn()
        again = " /retry continues." if event.can_continue else ""
        match event.outcome:
            case "error":
                self.widgets.transcript.append(NoticeBlock("error", event.error + again))
            case "limit":
                self.widgets.transcript.append(NoticeBlock("warning", event.error + again))
            case "length":
                text = f"The reply was cut off at the model's limit.{again}"
                self.widgets.transcript.append(NoticeBlock("warning", text))
            case "aborted":
                self.widgets.transcript.append(NoticeBlock("info", f"Stopped.{again}"))
            case "done":
                pass
            case _:
                assert_never(event.outcome)


def _has_new_plan(path: Sequence[Entry]) -> bool:
    """Whether the last turn on `path` changed the plan."""
    for entry in reversed(path):
        match entry:
            case MessageEntry(message=UserMessage()):
                return False
            case MessageEntry(message=ToolResultMessage(details={"todos": list()})):
                return True
            case _:
                pass
    return False
