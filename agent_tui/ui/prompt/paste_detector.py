"""Telling a paste from typing where the terminal does not mark pastes."""

from collections.abc import Awaitable, Callable

_PASTE_GAP_S = 0.02
"""Keys closer together than this are not typed: fingers need 30 ms, key repeat 25 and more."""


class PasteDetector:
    """Follows the keys as they come.

    Enter belongs to a paste if the keys around it came at once: some just before it and some
    waiting behind it, or lines of the same burst before it. The last Enter of one line alone
    sends, as that is also how scripts write into a terminal.

    Args:
        has_more: Whether further keys are waiting already; asked only within a burst.
    """

    def __init__(self, has_more: Callable[[], Awaitable[bool]]) -> None:
        self._has_more = has_more
        self._last_at = float("-inf")
        self._has_lines = False

    async def is_pasted(self, key: str, at: float) -> bool:
        """Whether `key`, which came at `at` (seconds), is text of a paste and no command."""
        is_burst = at - self._last_at <= _PASTE_GAP_S
        self._last_at = at
        if not is_burst:
            self._has_lines = False
        if not is_burst or key not in ("enter", "tab"):
            return False
        is_pasted = self._has_lines or await self._has_more()
        self._has_lines = self._has_lines or (is_pasted and key == "enter")
        return is_pasted
