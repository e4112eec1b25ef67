"""What the person said, word for word."""

from collections.abc import Sequence

from agent_tui.compaction.tiers.cut import cut_middle
from agent_tui.tokens import TokenCounter

_LEAST_TOKENS = 60
"""A message is not shortened below this; of many more the ones in the middle are counted."""


def said_by_person(
    messages: Sequence[tuple[str, str]], room_tokens: int, counter: TokenCounter
) -> list[str]:
    """The messages within `room_tokens`, oldest first.

    All of them whole while there is room. Beyond it the longest are shortened in the middle, all
    to the same size; where even that is too much the oldest and the newest stay, and one line
    says how many are left out.

    Args:
        messages: Entry id and text of each, oldest first.
        room_tokens: Bound of all together.
        counter: Measures them.
    """
    sizes = [counter.count_text(text) + 4 for _, text in messages]
    kept = list(range(len(messages)))
    left_out = 0
    least = sum(min(size, _LEAST_TOKENS) for size in sizes)
    middle = 1
    while least > room_tokens and len(kept) > 2:
        at = kept.pop(middle)
        least -= min(sizes[at], _LEAST_TOKENS)
        left_out += 1
    most = max(_equal_share([sizes[at] for at in kept], room_tokens), _LEAST_TOKENS)
    lines = [_shortened(*messages[at], sizes[at], most, counter) for at in kept]
    if left_out:
        lines.insert(1, f"[{left_out} messages in between left out; recall finds them]")
    return lines


def _equal_share(sizes: Sequence[int], room: int) -> int:
    """The size to which the largest must come down so that all fit."""
    left, share = room, max(sizes, default=0)
    for number, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _shortened(entry_id: str, text: str, tokens: int, most: int, counter: TokenCounter) -> str:
    if tokens <= most:
        return text
    ends = max((most - 20) // 2, 10)
    return cut_middle(text, tokens=tokens, end_tokens=ends, entry_id=entry_id, counter=counter)
