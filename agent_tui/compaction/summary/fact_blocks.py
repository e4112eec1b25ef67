"""The fact blocks that code puts after every summary, and removes before the next one."""

import re
from collections.abc import Sequence

from agent_tui.compaction.ledger.files import FileOperations, cap_lists
from agent_tui.compaction.ledger.pinned import fit_pins
from agent_tui.compaction.transcript import FACT_TAGS, tag_blocks, those_that_fit
from agent_tui.sessions.entries import Ledger

MAX_FILE_CHARS = 6_000
MAX_PIN_CHARS = 8_000
MAX_ERROR_CHARS = 3_000
_LEAST_CHARS = 600

_BLOCK = re.compile(rf"(?<!\n)\n*<({'|'.join(FACT_TAGS)})>\n.*?\n?</\1>", re.DOTALL)


def fact_blocks(ledger: Ledger, *, window: int) -> str:
    """The blocks after a summary's prose; empty if there are no facts.

    Args:
        ledger: Pinned constraints, open errors and file lists.
        window: Context window in tokens. All blocks together have at most a third of this number in
            characters (about a twelfth of the window). Each takes at most half of the rest, in this
            order: rules, errors, changed files, read files.
    """
    chars = max(window // 3, _LEAST_CHARS)
    pins = fit_pins(ledger.pinned, min(MAX_PIN_CHARS, chars // 2))
    chars -= _chars(pins)
    most = min(MAX_ERROR_CHARS, chars // 2)
    errors = those_that_fit(ledger.errors, most, lambda error: _chars((error,)))
    chars -= _chars(errors)
    read, modified = cap_lists(
        FileOperations(ledger.read_files, ledger.modified_files), min(MAX_FILE_CHARS, chars)
    )
    blocks = (
        ("pinned-constraints", [f"- {pin}" for pin in reversed(pins)]),
        ("open-errors", [f"- {error}" for error in errors]),
        ("read-files", read),
        ("modified-files", modified),
    )
    return tag_blocks(*blocks)


def _chars(texts: Sequence[str]) -> int:
    return sum(len(text) + 3 for text in texts)


def without_fact_blocks(summary: str) -> str:
    """The prose of a summary alone, which the next summary continues."""
    return _BLOCK.sub("", summary).strip()
