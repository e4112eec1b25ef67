"""Runs loops in one conversation, and closes what an earlier run left unfinished."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from agent_tui.agent.activity import Emit, LastTurn
from agent_tui.agent.part import Host, Part
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.errors import CompactionError, SessionError
from agent_tui.events import LoopAdvanced, Notice, TurnFinished
from agent_tui.features.loops.plan import LoopPlan
from agent_tui.features.loops.scopes import ScopeKeeper, TurnScopes
from agent_tui.providers.base import ProviderError
from agent_tui.sessions.replay.scope_entries import ScopeEnding
from agent_tui.tools.base import Ability

_EMPTY = "The loop has no rounds: nothing was sent."
_STOPPED = (
    "Loop stopped in round {number} of {count}. The other rounds are dropped; the conversation "
    "so far is kept."
)
_NOT_SUMMED_UP = "{label} was not summarised: cancelled. Nothing changed; /retry summarises it."


class LoopsPart(Part):
    """Runs loops and keeps the scopes of one conversation."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._scopes = ScopeKeeper(host)

    @property
    def must_finish(self) -> bool:
        """Whether a scope waits for its summary."""
        return self._scopes.pending is not None

    def before_work(self, emit: Emit) -> None:
        """Leave a scope that waits for its summary, and loops that no longer run, as they are."""
        self._scopes.give_up_unfinished(emit)

    def opening_notices(self) -> Sequence[Notice]:
        """Notices about scopes that were not left."""
        return self._scopes.notices()

    def abilities(self, emit: Emit) -> Sequence[Ability]:
        """What the `scope` tool asks for."""
        return (TurnScopes(self._scopes, emit),)

    async def run(self, plan: LoopPlan, emit: Emit) -> None:
        """Run all rounds of `plan`, each a turn; then write the summary, if one is wanted.

        A round that fails ends the loop, and so does cancelling. One
        `TurnFinished` is emitted for all of it.
        """
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
        await self._leave_scope(partial(self._scopes.leave, scope_id, emit, ending), emit)

    async def finish(self, emit: Emit) -> bool:
        """Write the summary that is pending. A loop is done after it; else the model continues."""
        pending = self._scopes.pending
        assert pending is not None
        is_all = pending.kind == "loop"
        finish = partial(self._scopes.finish, pending, emit)
        return await self._leave_scope(finish, emit, is_all=is_all) and not is_all

    async def _round(self, plan: LoopPlan, number: int, scope_id: str, emit: Emit) -> bool:
        """Run one turn; false if it failed, which leaves the loop."""
        finished = LastTurn(emit)
        try:
            await self.host.make_turn(finished.emit).run(NewMessage(plan.message(number)))
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

    async def _leave_scope(
        self, leave: Callable[[], Awaitable[object]], emit: Emit, *, is_all: bool = True
    ) -> bool:
        """Run `leave`; emit the end of the turn unless it succeeded and more follows."""
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
