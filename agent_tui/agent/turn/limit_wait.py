"""Waits until a model's limit resets or an outage ends, and records the wait in the session."""

import math
import platform
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal

from agent_tui.agent.activity import Emit
from agent_tui.agent.conversation import Conversation
from agent_tui.durations import clock_time
from agent_tui.errors import SessionError
from agent_tui.events import LimitWaitEnded, LimitWaitStarted
from agent_tui.messages import Stored
from agent_tui.providers.base import FaultKind, ModelRef, ProviderError
from agent_tui.providers.limits import LONGEST_DELAY_S, RETRIED_S, BudgetSpent, Sleep
from agent_tui.sessions.entries import (
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    custom_entry,
    custom_value,
)

LIMIT_WAIT: Final = "limit_wait"
"""The custom type of the entries."""


class LimitWait(Stored):
    """A wait, or its end: ``over`` when the turn continues, ``stopped`` if the user stopped it.

    ``replaced``: nothing waits, as another model works in place of ``model`` until then.
    ``until_s`` is in seconds since 1970. ``is_reset``: a limit resets then; otherwise the request
    is only tried again. ``host`` is the machine that waits.
    """

    state: Literal["waiting", "over", "stopped", "replaced"] = "waiting"
    model: str = ""
    reason: str = ""
    until_s: float = 0.0
    is_reset: bool = True
    host: str = ""


def wait_entry(wait: LimitWait) -> CustomEntry:
    """The entry that records `wait`, on this machine."""
    return custom_entry(LIMIT_WAIT, wait.model_copy(update={"host": platform.node()}))


def limit_of_replacement(path: Sequence[Entry]) -> LimitWait | None:
    """The limit because of which the newest model on `path` replaces another; None without one."""
    for entry in reversed(path):
        if isinstance(entry, ModelChangeEntry):
            return None
        wait = custom_value(entry, LIMIT_WAIT, LimitWait)
        if wait is not None and wait.state == "replaced":
            return wait
    return None


def open_wait(path: Sequence[Entry]) -> LimitWait | None:
    """The wait of this machine that the branch `path` ends in; None if it ends in none.

    A session that was copied here from another machine does not continue automatically.
    """
    for entry in reversed(path):
        if isinstance(entry, MessageEntry):
            return None
        if (wait := custom_value(entry, LIMIT_WAIT, LimitWait)) is not None:
            is_open = wait.state == "waiting" and wait.host == platform.node()
            return wait if is_open else None
    return None


_POLL_S = 30.0
"""Longest sleep at once: the wall clock goes on while a laptop is suspended, timers do not."""

_AFTER_RESET_S, _JITTER_S = 2.0, 8.0
"""Seconds after a reset at which the request is sent, and how much of it is random."""

_LOOKS_S = (300.0, 600.0, 900.0)
"""Seconds until each look at a server that does not say when it is back; the last one repeats."""

_OUTAGES: tuple[FaultKind, ...] = ("rate_limit", "overloaded", "server", "network", "address")
"""Kinds of errors that a later request may not meet, if the server has answered before."""

_SPENT: tuple[FaultKind, ...] = ("quota", "auth", "not_found")
"""Kinds of errors of a fallback model after which the limit of the first one is waited for."""

_HOUR_S = 3_600.0


def long_wait_s(error: ProviderError) -> float | None:
    """Seconds that the server asks to wait, if that is longer than retries; else None."""
    stated_s = error.retry_after_s
    is_long = error.is_retryable and stated_s is not None and stated_s > LONGEST_DELAY_S
    return stated_s if is_long else None


def note_limit(conversation: Conversation, error: ProviderError, model: ModelRef) -> bool:
    """Note when the limit of `model` resets, if its `error` states that; true if it does."""
    stated_s = long_wait_s(error)
    if stated_s is None or error.kind != "rate_limit":
        return False
    now_s = conversation.services.wall_clock()
    conversation.limited_until[model.name] = now_s + stated_s
    return True


def stand_in(conversation: Conversation, model: ModelRef) -> None:
    """Record that the present model works in place of `model`, whose limit is known."""
    until_s = conversation.limited_until[model.name]
    wait = LimitWait(state="replaced", model=model.name, until_s=until_s)
    conversation.log.append(wait_entry(wait))
    conversation.stands_in_for = model


def take_up_stand_in(conversation: Conversation, model: ModelRef) -> None:
    """Restore what `stand_in` recorded, if `model` is the one that the session's model replaces."""
    wait = limit_of_replacement(conversation.log.path_entries())
    if wait is not None and wait.model == model.name:
        conversation.limited_until[model.name] = wait.until_s
        conversation.stands_in_for = model


def is_limited(conversation: Conversation, model: ModelRef) -> bool:
    """Whether a limit of `model` is known that has not reset yet."""
    now_s = conversation.services.wall_clock()
    return conversation.limited_until.get(model.name, 0.0) > now_s


def wait_to_continue(conversation: Conversation) -> LimitWait | None:
    """The unfinished wait that a restarted program continues; None if there is none.

    None, too, for a session that is not in the store, for one that is read-only, and if the wait
    ends, or ended, further from now than the settings allow.
    """
    log, services = conversation.log, conversation.services
    if log.path is None or log.is_read_only or not log.path.is_relative_to(services.store.root):
        return None
    wait = open_wait(log.path_entries())
    if wait is None:
        return None
    bound_s = services.settings.limit_wait_h * _HOUR_S
    return wait if abs(wait.until_s - services.wall_clock()) < bound_s else None


def stop_wait(conversation: Conversation) -> None:
    """Record that the user stopped the unfinished wait, if there is one."""
    if (wait := open_wait(conversation.log.path_entries())) is not None:
        with suppress(SessionError):  # the turn, which ends, reports it
            conversation.log.append(wait_entry(wait.model_copy(update={"state": "stopped"})))


@dataclass(slots=True)
class LimitWaits:
    """The waits of one turn, or of one question beside the turns.

    Attributes:
        slept_s: Seconds that the turn has slept so far.
    """

    conversation: Conversation
    emit: Emit
    sleep: Sleep
    slept_s: float = 0.0
    _waited_s: float = field(default=0.0, init=False)
    _looks: int = field(default=0, init=False)

    def note_reply(self) -> None:
        """Note that the server has answered: the next outage is a new one."""
        self._looks = 0

    async def wait_out(self, error: ProviderError, model: ModelRef) -> bool:
        """Wait until a request to `model` may succeed; false if that is too far away or unknown."""
        note_limit(self.conversation, error, model)
        wait = self._wait(error, model)
        if wait is None:
            return False
        self.conversation.log.append(wait_entry(wait))
        self.conversation.log.sync()
        await self._wait_until(wait)
        return True

    async def finish(self) -> bool:
        """Continue the wait in which the session was left; false if there is none."""
        wait = wait_to_continue(self.conversation)
        if wait is None:
            return False
        await self._wait_until(wait)
        return True

    def beyond(self, error: ProviderError) -> str:
        """When the limit resets, for the end of a turn that does not wait for it; may be empty."""
        if (stated_s := long_wait_s(error)) is None:
            return ""
        now_s = self.conversation.services.wall_clock()
        moment = clock_time(now_s + stated_s, now_s)
        return f" {'It resets' if error.kind == 'rate_limit' else 'Try again'} at {moment}."

    def _wait(self, error: ProviderError, asked: ModelRef) -> LimitWait | None:
        """The wait that `error` calls for; None if there is none, or if it is too long."""
        services, stated_s = self.conversation.services, long_wait_s(error)
        wait_s, name = min(self._chances(error, stated_s, asked), default=(math.inf, ""))
        bound_s = services.settings.limit_wait_h * _HOUR_S
        if name or stated_s is not None:
            bound_s = max(bound_s, RETRIED_S)  # as long as the ordinary retries would take
            wait_s += _AFTER_RESET_S + _JITTER_S * random.random()
        else:
            self._looks += 1
        if self._waited_s + wait_s > bound_s + _AFTER_RESET_S + _JITTER_S:
            return None
        return LimitWait(
            model=name or asked.name,
            reason=f"Usage limit of {name} reached." if name else error.message,
            until_s=services.wall_clock() + wait_s,
            is_reset=bool(name),
        )

    def _chances(
        self, error: ProviderError, stated_s: float | None, asked: ModelRef
    ) -> Iterator[tuple[float, str]]:
        """Yield in how many seconds a request may succeed, and the model whose limit resets then.

        The model is empty if only the request is tried again.
        """
        conversation = self.conversation
        if isinstance(error, BudgetSpent) or error.kind not in (*_OUTAGES, *_SPENT):
            return
        models = [asked]
        if asked == conversation.model:
            models += filter(None, (conversation.stands_in_for, self._limited_fallback))
        for model in models:
            if is_limited(conversation, model):
                now_s = conversation.services.wall_clock()
                yield conversation.limited_until[model.name] - now_s, model.name
        if stated_s is not None and error.kind != "rate_limit":
            yield stated_s, ""
        elif stated_s is None and error.has_answered and error.kind in _OUTAGES:
            yield _LOOKS_S[min(self._looks, len(_LOOKS_S) - 1)], ""

    @property
    def _limited_fallback(self) -> ModelRef | None:
        """The model that would work during the limit of the present one."""
        conversation = self.conversation
        is_wanted = is_limited(conversation, conversation.model)
        return conversation.services.fallback_model if is_wanted else None

    async def _wait_until(self, wait: LimitWait) -> None:
        """Wait by the wall clock, but never longer in all than it says now."""
        conversation, wall_clock = self.conversation, self.conversation.services.wall_clock
        began_s, slept_s = wall_clock(), 0.0
        left_s = wait_s = max(wait.until_s - began_s, 0.0)
        self.emit(
            LimitWaitStarted(wait.model, wait.reason, wait.until_s, wait_s, is_reset=wait.is_reset)
        )
        while left_s > 0:
            step_s = min(left_s, _POLL_S)
            self.slept_s += step_s
            slept_s += step_s
            await self.sleep(step_s)
            left_s = min(wait.until_s - wall_clock(), wait_s - slept_s)
        self._waited_s += wait_s
        conversation.log.append(wait_entry(wait.model_copy(update={"state": "over"})))
        self.emit(LimitWaitEnded(wait.model, wait.reason, wait_s))
