"""The marks that stand for text left out of the context: making them, and knowing them."""

import re

_NUMBER = r"\d[\d,]*"
_MARK = re.compile(
    rf"^[ \t]*(?:"
    rf"\[\.\.\. {_NUMBER} \w+(?:, {_NUMBER} \w+)? left out \.\.\.\]"
    rf"|\[\.\.\. lines \d+-\d+ of \d+ left out \.\.\.\]"
    rf"|\[lines \d+-\d+ of \d+; use offset=\d+ for more(?:; cut at [^\]\n]*)?\]"
    rf"|.*\[recall [\w-]+\]"
    rf"|.*… \[\+{_NUMBER} characters\]"
    rf"|.*… \[{_NUMBER} characters left out\] ….*"
    rf")[ \t\r]*$",
    re.MULTILINE,
)


def recall_mark(entry_id: str) -> str:
    """How a message says where its original is."""
    return f"[recall {entry_id}]"


def omission_mark(amount: str) -> str:
    """The line that stands where `amount` was taken out: ``187 tokens``, ``lines 3-9 of 12``."""
    return f"[... {amount} left out ...]"


def cut_end_mark(chars: int) -> str:
    """What a line ends with of which the last `chars` characters are not shown."""
    return f"… [+{chars} characters]"


def cut_middle_mark(chars: int) -> str:
    """What stands inside a line of which `chars` characters are not shown."""
    return f" … [{chars} characters left out] … "


def more_lines_mark(first: int, last: int, total: int, cap: str = "") -> str:
    """The line below lines `first` to `last`, counted from 1, of a file of `total` lines.

    `cap` says what cut them; empty where no more were asked for.
    """
    why = f"; cut at {cap}" if cap else ""
    return f"[lines {first}-{last} of {total}; use offset={last + 1} for more{why}]"


def marks_in(text: str) -> tuple[str, ...]:
    """The lines of `text` that are, or end with, such a mark, without blanks around them.

    A mark with something behind it on its line, such as a quotation mark, is talked about: it
    stands for nothing.
    """
    return tuple(found[0].strip() for found in _MARK.finditer(text))
