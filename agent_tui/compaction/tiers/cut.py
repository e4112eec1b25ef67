"""Cutting the middle out of a text, measured in tokens."""

from agent_tui.omissions import omission_mark, recall_mark
from agent_tui.tokens import TokenCounter

_MOST_CHARS_A_TOKEN = 6
"""Prose and code have 3 to 5; runs of blanks have hundreds, and would hide what is beside them."""

SLACK = 1.1
"""By so much a piece may be larger than was asked for."""
_LINE_SHARE = 4
"""A cut is moved to the end of a line when that costs no more than this part of a piece."""


def left_out_mark(tokens: int, entry_id: str) -> str:
    """What stands for `tokens` that were left out; the original is `entry_id`."""
    return f"{omission_mark(f'{tokens:,} tokens')} {recall_mark(entry_id)}"


def cut_middle(
    text: str, *, tokens: int, end_tokens: int, entry_id: str, counter: TokenCounter
) -> str:
    """The beginning and the end of `text`, about `end_tokens` each, and a line on what is gone.

    A single huge line is cut like any other text.

    Args:
        text: At least twice `end_tokens` long, or the result is no smaller.
        tokens: Size of `text`.
        end_tokens: Tokens that stay at each end.
        entry_id: Where the original is.
        counter: Measures the pieces.
    """
    chars = min(len(text) * end_tokens // max(tokens, 1), _MOST_CHARS_A_TOKEN * end_tokens)
    chars = min(max(chars, 1), len(text) // 2)
    head, tail = text[:chars], text[len(text) - chars :]
    head = head[: _fitting_chars(head, end_tokens, counter)]
    tail = tail[len(tail) - _fitting_chars(tail, end_tokens, counter) :]
    if len(head) - (line_end := head.rfind("\n") + 1) < len(head) // _LINE_SHARE:
        head = head[:line_end]
    if (line_start := tail.find("\n") + 1) < len(tail) // _LINE_SHARE:
        tail = tail[line_start:]
    left_out = max(tokens - counter.count_text(head) - counter.count_text(tail), 0)
    start = "" if head.endswith("\n") else "\n"
    return f"{head}{start}{left_out_mark(left_out, entry_id)}\n{tail}"


def _fitting_chars(piece: str, max_tokens: int, counter: TokenCounter) -> int:
    """How many characters of `piece` to keep where it is denser than the text it is from."""
    tokens = counter.count_text(piece)
    if tokens <= SLACK * max_tokens:
        return len(piece)
    return max(len(piece) * max_tokens // tokens, 1)
