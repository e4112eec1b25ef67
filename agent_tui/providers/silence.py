"""How long a server may be silent during a request, and how long it has been."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, TypeAlias


@dataclass(frozen=True, slots=True)
class SilenceLimit:
    """How long a request waits, in seconds; None for as long as its server lives.

    `byte_s` limits the time without a byte. `word_s` limits the time in which only pings, comments
    or empty deltas come.
    """

    byte_s: float | None
    word_s: float | None


NO_LIMIT: Final = SilenceLimit(None, None)
_WORD_S = 1_800.0
_ALIVE_S = 50.0
"""Seconds; a server whose last byte is older counts as silent. Most ping every 30 s."""


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """The limit for remote servers, and the one for servers at a loopback address.

    A server on this machine may read a long prompt, or load its model, for many minutes.
    """

    elsewhere: SilenceLimit
    here: SilenceLimit

    @classmethod
    def without_bytes(cls, elsewhere_s: float = 600.0, here_s: float = 3_600.0) -> Self:
        """The limits for this many seconds without a byte.

        A server that only pings is abandoned after half an hour, and never earlier than one that
        sends nothing.
        """
        seconds = (elsewhere_s, here_s)
        return cls(*(SilenceLimit(byte_s, max(byte_s, _WORD_S)) for byte_s in seconds))


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a request has been waiting, in seconds.

    Attributes:
        word_s: Since the last part of the reply, or since the request began.
        byte_s: Since the last byte of any kind. About the same as `word_s` if none came.
    """

    word_s: float
    byte_s: float


OnWait: TypeAlias = Callable[[Wait], None]
"""Called every few seconds while a request is in progress."""


def ignore_wait(_wait: Wait) -> None:
    """An `OnWait` for requests whose wait is not shown."""


class WaitTeller:
    """Reports once a minute that a request is waiting for output.

    Args:
        tell: Called with the seconds so far, and whether the server showed signs of life lately.
    """

    def __init__(self, tell: Callable[[float, bool], None]) -> None:
        self._tell = tell
        self._told_minutes = 0

    def hear(self, wait: Wait) -> None:
        """Take in a wait, as an `OnWait`."""
        minutes = int(wait.word_s // 60)
        if minutes > self._told_minutes:
            self._tell(wait.word_s, wait.byte_s < _ALIVE_S)
        self._told_minutes = minutes
