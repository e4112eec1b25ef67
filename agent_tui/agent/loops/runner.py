"""Running a prompt again and again, as one activity with one end."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.loops.plan import LoopPlan
from agent_tui.agent.loops.scopes import ScopeKeeper
from agent_tui.agent.turn.turn import Turn
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import AgentEvent, LoopAdvanced, Notice, TurnFinished
from agent_tui.providers.base import ProviderError
from agent_tui.sessions.replay.scope_entries import ScopeEnding

_EMPTY = "The loop has no rounds: nothing was sent."
_STOPPED = (
    "Loop stopped in round {number} of {count}. The other rounds are dropped; the conversation "
    "so far is kept."
)
_NOT_SUMMED_UP = "{label} was not summarised: cancelled. Nothing changed; /retry summarises it."


class LoopRunner:
    """Runs loops in one conversation, and ends what an earlier run left unfinished."""

    def __init__(
        self,
        conversation: Conversation,
        scopes: ScopeKeeper,
        make_turn: Callable[[Emit], Turn],
    ) -> None:
        self._conversation = conversation
        self._scopes = scopes
        self._make_turn = make_turn

    async def run(self, plan: LoopPlan, emit: Emit) -> None:
        """All rounds of `plan`, each a turn; then its summary, if one is wanted.

        A round that does not come to its end ends the loop, and so does cancelling. One
        `TurnFinished` is emitted for all of it.
        """
        self._scopes.give_up_unfinished(emit)
        if not plan.count:
            emit(Notice("info", _EMPTY))
            return
        scope_id = self._scopes.enter(
            "loop", plan.label, emit, is_compressed=plan.is_compressed, prompt=plan.focus
        )
        ending: ScopeEnding = "done"
        for number in range(1, plan.count + 1):
            self._scopes.begin_step(scope_id, number, plan.count, plan.item(number))
            emit(LoopAdvanced(number, plan.count))
            if not await self._round(plan, number, scope_id, emit):
                return
            if self._scopes.is_broken(scope_id):
                ending = "break"
                break
        await self._summed_up(partial(self._scopes.leave, scope_id, emit, ending), emit)

    async def go_on(self, emit: Emit) -> None:
        """Go on after an error or an interruption, first with a summary that is waited for.

        Of a loop nothing is left to do after its summary; within a turn the model goes on.
        """
        pending = self._scopes.pending
        if pending is None:
            self._scopes.give_up_unfinished(emit)
        else:
            is_all = pending.kind == "loop"
            finish = partial(self._scopes.finish, pending, emit)
            if not await self._summed_up(finish, emit, is_all=is_all) or is_all:
                return
        await self._make_turn(emit).run(None)

    async def _round(self, plan: LoopPlan, number: int, scope_id: str, emit: Emit) -> bool:
        """One turn; false where it did not come to its end, which leaves the loop."""
        finished = _Finished(emit)
        try:
            await self._make_turn(finished.emit).run(plan.message(number))
        except asyncio.CancelledError:
            self._stop(plan, number, scope_id, emit)
            emit(finished.event or TurnFinished("aborted", can_continue=True))
            raise
        event = finished.event
        if event is None or event.outcome != "done":
            self._stop(plan, number, scope_id, emit)
            emit(event or TurnFinished("error", "The turn ended without a result."))
            return False
        return True

    def _stop(self, plan: LoopPlan, number: int, scope_id: str, emit: Emit) -> None:
        try:
            self._scopes.stop(scope_id, emit)
        except SessionError as error:
            emit(Notice("error", str(error)))
        emit(Notice("warning", _STOPPED.format(number=number, count=plan.count)))

    async def _summed_up(
        self, leave: Callable[[], Awaitable[object]], emit: Emit, *, is_all: bool = True
    ) -> bool:
        """Carry out `leave`, and say how that ended unless it went well and more is to come."""
        try:
            await leave()
        except (CompactionError, ProviderError, SessionError) as error:
            emit(TurnFinished("error", str(error), can_continue=True))
            return False
        except asyncio.CancelledError:
            pending = self._scopes.pending
            if pending is not None:
                emit(Notice("warning", _NOT_SUMMED_UP.format(label=pending.label)))
            emit(TurnFinished("aborted", can_continue=True))
            raise
        if is_all:
            emit(TurnFinished("done"))
        return True


class _Finished:
    """Hands events on but the end of a turn, which it keeps."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.event: TurnFinished | None = None

    def emit(self, event: AgentEvent) -> None:
        """One event of the turn."""
        if isinstance(event, TurnFinished):
            self.event = event
        else:
            self._emit(event)
