"""``/loop``: parse its argument, and run a prompt repeatedly as one activity."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from agent_tui.agent.activity import Emit, LastTurn
from agent_tui.agent.conversation import Conversation
from agent_tui.agent.scopes import ScopeKeeper
from agent_tui.agent.turn.turn import Turn
from agent_tui.agent.turn.user_message import NewMessage
from agent_tui.errors import CompactionError, SessionError, UsageError
from agent_tui.events import LoopAdvanced, Notice, TurnFinished
from agent_tui.providers.base import ProviderError
from agent_tui.sessions.replay.scope_entries import ScopeEnding

_MOST_ROUNDS = 1_000
_ITEM = "{item}"
"""Placeholder in the prompt for the item of a round; without it, the item follows the prompt."""

_USAGE = (
    "Usage: /loop 3 PROMPT, or /loop over a,b,c PROMPT with {item} in it. To summarise the loop "
    'when it ends, put compress or compress "what matters" before the prompt.'
)
_LABEL_CHARS = 40

_WORD = r"(?:\"[^\"]*\"|[^\s,\"]+)"
_ITEMS = re.compile(rf"over\s+(?P<items>{_WORD}(?:\s*,\s*{_WORD})*)\s+", re.IGNORECASE)
_COUNT = re.compile(r"(?P<count>\d+)x?\s+", re.IGNORECASE)
_COMPRESS = re.compile(
    r"compress(?:\s*[\[(]\s*(?:\"(?P<inside>[^\"]*)\"|(?P<bare>[^\"\])]*))\s*[\])]"
    r"|\s*\"(?P<quoted>[^\"]*)\")?(?:\s+|\Z)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """A prompt to run repeatedly.

    Args:
        prompt: As it was typed.
        count: Number of rounds.
        items: The item of each round; empty if rounds are only counted.
        is_compressed: Whether a summary replaces the loop at its end.
        focus: What that summary should cover; empty for the default.
    """

    prompt: str
    count: int
    items: tuple[str, ...] = ()
    is_compressed: bool = False
    focus: str = ""

    @property
    def label(self) -> str:
        """The loop's name: its count and the beginning of its prompt."""
        words = " ".join(self.prompt.split())
        if len(words) > _LABEL_CHARS:
            words = f"{words[: _LABEL_CHARS - 1].rstrip()}…"
        return f"loop {self.count}x: {words}"

    def item(self, number: int) -> str | None:
        """The item of round `number` (from 1); None if rounds are only counted."""
        return self.items[number - 1] if self.items else None

    def message(self, number: int) -> str:
        """The message of round `number` (from 1)."""
        item = self.item(number)
        if item is None:
            return self.prompt
        if _ITEM in self.prompt:
            return self.prompt.replace(_ITEM, item)
        return f"{self.prompt} {item}"


def parse_loop(text: str) -> LoopPlan:
    """The plan in ``N [compress["focus"]] prompt`` or ``over a,b,c [compress["focus"]] prompt``.

    Commas separate items; items with spaces or commas need quotes. The focus may be in brackets
    of either kind or only in quotes.

    Raises:
        UsageError: It is neither, the prompt is missing, or there are too many rounds.
    """
    text = text.strip() + " "
    items: tuple[str, ...] = ()
    if head := _ITEMS.match(text):
        items = tuple(word.strip('"') for word in re.findall(_WORD, head["items"]))
        items = tuple(item for item in items if item.strip())
        count = len(items)
    elif head := _COUNT.match(text):
        count = int(head["count"])
    else:
        raise UsageError("That is not a loop.", _USAGE)
    rest, focus = text[head.end() :].strip(), ""
    compress = _COMPRESS.match(rest)
    if compress is not None:
        focus = (compress["inside"] or compress["bare"] or compress["quoted"] or "").strip()
        rest = rest[compress.end() :].strip()
    if not rest:
        raise UsageError("The loop has no prompt.", _USAGE)
    if count > _MOST_ROUNDS:
        raise UsageError(f"A loop can have at most {_MOST_ROUNDS:,} rounds, not {count:,}.")
    return LoopPlan(rest, count, items, is_compressed=compress is not None, focus=focus)


_EMPTY = "The loop has no rounds: nothing was sent."
_STOPPED = (
    "Loop stopped in round {number} of {count}. The other rounds are dropped; the conversation "
    "so far is kept."
)
_NOT_SUMMED_UP = "{label} was not summarised: cancelled. Nothing changed; /retry summarises it."


class LoopRunner:
    """Runs loops in one conversation, and closes what an earlier run left unfinished."""

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
        """Run all rounds of `plan`, each a turn; then write the summary, if one is wanted.

        A round that fails ends the loop, and so does cancelling. One
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
        await self._leave_scope(partial(self._scopes.leave, scope_id, emit, ending), emit)

    async def go_on(self, emit: Emit) -> None:
        """Continue after an error or an interruption; first write a summary that is still pending.

        A loop is done after its summary; within a turn the model continues.
        """
        pending = self._scopes.pending
        if pending is None:
            self._scopes.give_up_unfinished(emit)
        else:
            is_all = pending.kind == "loop"
            finish = partial(self._scopes.finish, pending, emit)
            if not await self._leave_scope(finish, emit, is_all=is_all) or is_all:
                return
        await self._make_turn(emit).run(None)

    async def _round(self, plan: LoopPlan, number: int, scope_id: str, emit: Emit) -> bool:
        """Run one turn; false if it failed, which leaves the loop."""
        finished = LastTurn(emit)
        try:
            await self._make_turn(finished.emit).run(NewMessage(plan.message(number)))
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
