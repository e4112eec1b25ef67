"""How long a server may be silent while a reply is awaited, and how long it has been."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self, TypeAlias


@dataclass(frozen=True, slots=True)
class SilenceLimit:
    """How long a request waits, in seconds; None for as long as its server lives.

    `byte_s` is without a byte. `word_s` is while bytes come that hold nothing of a reply: pings,
    comments, empty deltas.
    """

    byte_s: float | None
    word_s: float | None


NO_LIMIT: Final = SilenceLimit(None, None)
_WORD_S = 1_800.0
_ALIVE_S = 50.0
"""A server whose last byte is older is not said to be alive; most that ping do so every 30 s."""


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """The limit for servers elsewhere, and the one for servers at a loopback address.

    A server on this machine may read a long prompt, or load its model, for many minutes.
    """

    elsewhere: SilenceLimit
    here: SilenceLimit

    @classmethod
    def without_bytes(cls, elsewhere_s: float = 600.0, here_s: float = 3_600.0) -> Self:
        """The limits where so many seconds may pass without a byte.

        A server that only ever pings is given up after half an hour, and never before one that
        sends nothing.
        """
        seconds = (elsewhere_s, here_s)
        return cls(*(SilenceLimit(byte_s, max(byte_s, _WORD_S)) for byte_s in seconds))


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a request has been waiting, in seconds.

    Attributes:
        word_s: Since anything of the reply came, or since the request began.
        byte_s: Since the last byte of any kind. About as long as `word_s` where none came.
    """

    word_s: float
    byte_s: float


OnWait: TypeAlias = Callable[[Wait], None]
"""Called every few seconds while a request is under way."""


def ignore_wait(_wait: Wait) -> None:
    """An `OnWait` for requests whose wait is not shown."""


class WaitTeller:
    """Tells once a minute of a request that waits for words.

    Args:
        tell: Called with the seconds so far, and whether the server gave signs of life lately.
    """

    def __init__(self, tell: Callable[[float, bool], None]) -> None:
        self._tell = tell
        self._told_minutes = 0

    def hear(self, wait: Wait) -> None:
        """An `OnWait`."""
        minutes = int(wait.word_s // 60)
        if minutes > self._told_minutes:
            self._tell(wait.word_s, wait.byte_s < _ALIVE_S)
        self._told_minutes = minutes
