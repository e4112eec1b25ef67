"""What a person asks for with ``/loop``: pure."""

import re
from dataclasses import dataclass

from agent_tui.errors import UsageError

_MOST_ROUNDS = 1_000
_ITEM = "{item}"
"""Where in the prompt the item of the round goes; without it, the item follows the prompt."""

_USAGE = (
    "Usage: /loop 3 PROMPT, or /loop over a,b,c PROMPT with {item} in it. To summarise the loop "
    'when it ends, put compress or compress "what matters" before the prompt.'
)
_LABEL_CHARS = 40

_WORD = r"(?:\"[^\"]*\"|[^\s,\"]+)"
_ITEMS = re.compile(rf"over\s+(?P<items>{_WORD}(?:\s*,\s*{_WORD})*)\s+", re.IGNORECASE)
_COUNT = re.compile(r"(?P<count>\d+)x?\s+", re.IGNORECASE)
_COMPRESS = re.compile(
    r"compress(?:\s*\[\s*\"?(?P<inside>[^\"\]]*)\"?\s*\]|\s*\"(?P<quoted>[^\"]*)\")?(?:\s+|\Z)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """A prompt to be run again and again.

    Args:
        prompt: As it was typed.
        count: How often.
        items: What each round is about; empty where it is only counted.
        is_compressed: The loop is summed up at its end.
        focus: What that summary is to be about; empty for the default wording.
    """

    prompt: str
    count: int
    items: tuple[str, ...] = ()
    is_compressed: bool = False
    focus: str = ""

    @property
    def label(self) -> str:
        """What the loop is called."""
        words = " ".join(self.prompt.split())
        if len(words) > _LABEL_CHARS:
            words = f"{words[: _LABEL_CHARS - 1].rstrip()}…"
        return f"loop {self.count}x: {words}"

    def item(self, number: int) -> str | None:
        """What round `number` (from 1) is about, if that was given."""
        return self.items[number - 1] if self.items else None

    def message(self, number: int) -> str:
        """What is sent in round `number`, counted from 1."""
        item = self.item(number)
        if item is None:
            return self.prompt
        if _ITEM in self.prompt:
            return self.prompt.replace(_ITEM, item)
        return f"{self.prompt} {item}"


def parse_loop(text: str) -> LoopPlan:
    """The plan in ``N [compress["focus"]] prompt`` or ``over a,b,c [compress["focus"]] prompt``.

    Items are parted by commas, in quotes where they hold spaces or commas. The focus may stand
    in brackets or only in quotes.

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
        focus = (compress["inside"] or compress["quoted"] or "").strip()
        rest = rest[compress.end() :].strip()
    if not rest:
        raise UsageError("The loop has no prompt.", _USAGE)
    if count > _MOST_ROUNDS:
        raise UsageError(f"A loop can have at most {_MOST_ROUNDS:,} rounds, not {count:,}.")
    return LoopPlan(rest, count, items, is_compressed=compress is not None, focus=focus)
