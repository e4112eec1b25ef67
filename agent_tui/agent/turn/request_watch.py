"""Compare each request with the one before, which decides how much the cache saves."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.messages import Message, Usage
from agent_tui.providers.base import ModelRequest
from agent_tui.providers.prompt_cache import CacheLifetime

_KEPT_BREAKS = 10


@dataclass(frozen=True, slots=True)
class CacheBreak:
    """A request whose beginning was not in the provider's cache.

    Attributes:
        number: Number of the request since the program started, from 1.
        cause: The first part that differed, as a phrase.
        cached_tokens: Tokens that were still read from the cache.
        input_tokens: All tokens sent.
    """

    number: int
    cause: str
    cached_tokens: int
    input_tokens: int


@dataclass(frozen=True, slots=True)
class _Sent:
    request: ModelRequest
    compaction_id: str
    at_s: float


class RequestWatch:
    """Compares each request with the one before; keeps only the newest request and the breaks."""

    def __init__(self) -> None:
        self._newest: _Sent | None = None
        self._breaks: deque[CacheBreak] = deque(maxlen=_KEPT_BREAKS)
        self.count = 0
        """Number of answered requests."""

    @property
    def sent_s(self) -> float:
        """When the newest request was sent, in seconds since 1970; 0 before the first."""
        return self._newest.at_s if self._newest is not None else 0.0

    @property
    def breaks(self) -> tuple[CacheBreak, ...]:
        """The newest breaks, oldest first."""
        return tuple(self._breaks)

    def record(
        self,
        request: ModelRequest,
        compaction_id: str,
        at_s: float,
        usage: Usage,
        lifetime: CacheLifetime | None,
    ) -> None:
        """Record a request that was answered.

        Args:
            request: The request.
            compaction_id: The newest compaction in it; empty for none.
            at_s: When, in seconds since 1970.
            usage: The provider's counts.
            lifetime: How long it keeps a prefix; None if that is unknown.
        """
        before, self._newest = self._newest, _Sent(request, compaction_id, at_s)
        self.count += 1
        if before is None:
            return
        cause = _difference(before, self._newest)
        if not cause and not usage.cache_read and usage.cache_write:
            paused_s = at_s - before.at_s
            if lifetime is not None and paused_s >= lifetime.least_s:
                cause = f"a pause of {round(paused_s / 60)} minutes"
            else:
                cause = "nothing in the request: the provider dropped it"
        if cause:
            read = usage.input + usage.cache_read + usage.cache_write
            self._breaks.append(CacheBreak(self.count, cause, usage.cache_read, read))


def _difference(before: _Sent, now: _Sent) -> str:
    """The first part of `now` that does not continue `before`; empty if all of it does."""
    old, new = before.request, now.request
    if old.model != new.model:
        return f"the model: {old.model.name}, then {new.model.name}"
    if old.tools != new.tools:
        return "the tools"
    if old.system != new.system:
        return "the system text"
    if old.thinking != new.thinking:
        return f"thinking: {old.thinking}, then {new.thinking}"
    at = _first_difference(old.messages, new.messages)
    if at is None:
        return ""
    if before.compaction_id != now.compaction_id:
        return f"a compaction, from message {at + 1} on"
    return f"an edit in message {at + 1} of {len(old.messages)}"


def _first_difference(old: Sequence[Message], new: Sequence[Message]) -> int | None:
    """The index of the first message of `old` that `new` does not have at the same place."""
    for at, message in enumerate(old):
        if at >= len(new) or (message is not new[at] and message != new[at]):
            return at
    return None
