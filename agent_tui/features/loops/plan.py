"""The argument of ``/loop``."""

import re
from dataclasses import dataclass

from agent_tui.errors import UsageError

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
