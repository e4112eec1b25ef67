"""Record the results of the calls of a reply, and what they changed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.turn.file_keeper import FileKeeper
from agent_tui.agent.turn.repetition import Repetition
from agent_tui.events import (
    TodosChanged,
    ToolFinished,
)
from agent_tui.messages import (
    FileTouches,
    TextContent,
    ToolCall,
    ToolResultMessage,
)
from agent_tui.sessions.replay.file_changes import changes_entry
from agent_tui.tools.base import (
    ToolOutput,
    TurnEnding,
)
from agent_tui.tools.shorten import OutputLimits, size_bytes


class CallResults:
    """Records one result for each call, in the order of the calls.

    Args:
        conversation: Where they are recorded.
        files: Has the file changes of the newest call.
        emit: Takes events.

    Attributes:
        repetition: Tracks repeated calls.
        ending: How the calls of this reply end the turn so far.
    """

    def __init__(self, conversation: Conversation, files: FileKeeper, emit: Emit) -> None:
        self._conversation = conversation
        self._files = files
        self._emit = emit
        self._finding: asyncio.Task[None] | None = None
        self.repetition = Repetition()
        self._begin(1, "")

    def begin(self, calls: Sequence[ToolCall], *, are_refused: bool) -> None:
        """Begin with the `calls` of a reply; if `are_refused`, none can be run as written."""
        self.repetition.count_reply(is_refused=are_refused)
        self._begin(len(calls), calls[-1].id)

    def _begin(self, calls: int, last_id: str) -> None:
        self._calls, self._last_id = calls, last_id
        self._done = self._given_bytes = 0
        self._uncounted: list[ToolResultMessage] = []
        """Results that the counted usage does not include yet."""
        self.ending: TurnEnding = ""

    def _add(self, result: ToolResultMessage) -> None:
        self._done += 1
        self._given_bytes += size_bytes(result.text)
        self._uncounted.append(result)

    @property
    def limits(self) -> OutputLimits:
        """What is left for the output of the next call in this reply."""
        return self._conversation.output_limits(
            self._calls, given_bytes=self._given_bytes, done=self._done
        )

    def forget_uncounted(self) -> None:
        """Note that the context was counted with all results so far."""
        self._uncounted.clear()

    def record(self, call: ToolCall, output: ToolOutput, *, only_reads: bool = True) -> None:
        """Record the result of a call.

        Args:
            call: The call.
            output: Its result.
            only_reads: Whether the call is known to change nothing.
        """
        output = self.repetition.with_remark(call, output, only_reads=only_reads)
        if self.repetition.has_progressed:
            self._note_progress()
        self.ending = self.ending or output.ends_turn
        message = _result_message(call, output)
        self._add(message)
        if call.id == self._last_id:
            note = self._conversation.note_on_context(self._uncounted)
            details = output.for_person.model_copy(update={"context_note": note})
            message = _result_message(call, replace(output, for_person=details))
        entry = self._conversation.append(message)
        stored = entry.message
        assert isinstance(stored, ToolResultMessage)
        self._emit(ToolFinished(entry.id, call.id, stored))
        if output.for_person.todos is not None:
            self._emit(TodosChanged(output.for_person.todos))
        state = self._files.take_newest()
        if output.find_changes is not None:
            finding = self._find_changes(entry.id, output.find_changes, state)
            self._finding = asyncio.create_task(finding)

    async def settle(self) -> None:
        """Wait until the file changes of the newest command are recorded.

        Await this before anything else changes files or reads the session's facts, and at the end
        of the turn.

        Raises:
            SessionError: They could not be recorded.
        """
        if (finding := self._finding) is not None:
            await asyncio.wait((finding,))
            self._finding = None
            finding.result()

    async def _find_changes(
        self, result_id: str, find: Callable[[], Awaitable[FileTouches]], state: str
    ) -> None:
        files = await find()
        if files != FileTouches():
            self._conversation.log.append(changes_entry(result_id, files))
            self.repetition.note_changes(state)
            if self.repetition.has_progressed:
                self._note_progress()

    def _note_progress(self) -> None:
        """Note that compactions are not all that happens."""
        conversation = self._conversation
        conversation.refill = conversation.refill.after_progress()


def _result_message(call: ToolCall, output: ToolOutput) -> ToolResultMessage:
    details = output.for_person.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=output.for_model), *output.images),
        is_error=output.is_error,
        details=details or None,
    )
