"""Cut long text in the middle, stating how much was left out."""

import re

from agent_tui.omissions import cut_middle_mark

SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\.\.)(?<=[.!?])[\"')\]]*\s+")
"""Between two sentences; three dots do not end one."""


def shorten_middle(text: str, max_chars: int) -> str:
    """`text`, or its head and tail around the number of characters left out.

    The result is at most `max_chars` long, unless that is too small for the remark itself. Two
    thirds of the kept text is head.
    """
    if len(text) <= max_chars:
        return text
    remark = cut_middle_mark(len(text) - max_chars)
    room = max(max_chars - len(remark), 2)
    tail = room // 3
    return f"{text[: room - tail]}{remark}{text[len(text) - tail :]}"


def one_line(text: str, max_chars: int) -> str:
    """`text` on one line, runs of white space as one space, cut at the end."""
    joined = " ".join(text[: 4 * max_chars + 1_000].split())
    return joined if len(joined) <= max_chars else joined[: max_chars - 1].rstrip() + "…"
