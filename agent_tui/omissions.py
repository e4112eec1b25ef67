"""Text left out of the context: cut it, mark where, and recognize the marks."""

import re

IMAGE_MARK = "[image left out]"
"""The line that replaces an image."""

_NUMBER = r"\d[\d,]*"
_MARK = re.compile(
    rf"^[ \t]*(?:"
    rf"{re.escape(IMAGE_MARK)}"
    rf"|\[\.\.\. {_NUMBER} \w+(?:, {_NUMBER} \w+)? left out \.\.\.\]"
    rf"|\[\.\.\. lines \d+-\d+ of \d+ left out \.\.\.\]"
    rf"|\[lines \d+-\d+ of \d+; use offset=\d+ for more(?:; cut at [^\]\n]*)?\]"
    rf"|.*\[recall [\w-]+\]"
    rf"|.*… \[\+{_NUMBER} characters\]"
    rf"|.*… \[{_NUMBER} characters left out\] ….*"
    rf")[ \t\r]*$",
    re.MULTILINE,
)


def recall_mark(entry_id: str) -> str:
    """The mark that refers to a message's original."""
    return f"[recall {entry_id}]"


def omission_mark(amount: str) -> str:
    """The line that replaces the removed `amount`: ``187 tokens``, ``lines 3-9 of 12``."""
    return f"[... {amount} left out ...]"


def cut_end_mark(chars: int) -> str:
    """The end of a line whose last `chars` characters are not shown."""
    return f"… [+{chars} characters]"


def cut_middle_mark(chars: int) -> str:
    """The mark inside a line of which `chars` characters are not shown."""
    return f" … [{chars} characters left out] … "


def more_lines_mark(first: int, last: int, total: int, cap: str = "") -> str:
    """The line after lines `first` to `last` (from 1) of a file with `total` lines.

    `cap` says what cut them; empty if no more were requested.
    """
    why = f"; cut at {cap}" if cap else ""
    return f"[lines {first}-{last} of {total}; use offset={last + 1} for more{why}]"


def marks_in(text: str) -> tuple[str, ...]:
    """The lines of `text` that are, or end with, such a mark, stripped.

    A mark followed by something on its line, such as a quotation mark, is only quoted.
    """
    return tuple(found[0].strip() for found in _MARK.finditer(text))


SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\.\.)[\"')\]]*\s+")
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
