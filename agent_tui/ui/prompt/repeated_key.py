"""The key that answered a question, pressed once more when the question is gone already."""

import time
from collections.abc import Callable

from textual.events import Key


class RepeatedKey:
    """Holds repetitions of a key for a moment.

    They are dropped unless something else is typed within that moment: then they were writing.

    Args:
        write: Writes a letter.

    Attributes:
        within_s: How long that moment is, in seconds.
    """

    def __init__(self, write: Callable[[Key], None]) -> None:
        self.within_s = 1.0
        self._write = write
        self._key = ""
        self._until = 0.0
        self._held: list[Key] = []

    def begin(self, key: str) -> None:
        """`key` answered a question; empty: none did."""
        self._key, self._held = key, []
        self._until = time.monotonic() + self.within_s

    def holds(self, event: Key) -> bool:
        """Whether `event` is used up; if not, what was held stands in the prompt before it."""
        if self._key and event.key == self._key and event.time <= self._until:
            self._held.append(event)
            return True
        self.write_held()
        return False

    def write_held(self) -> None:
        """Something else comes: what is held was writing, unless that was a while ago."""
        held, self._held, self._key = self._held, [], ""
        for event in held if time.monotonic() <= self._until else ():
            self._write(event)
