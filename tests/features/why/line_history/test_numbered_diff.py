"""The diffs with line numbers that pi shows."""

import difflib
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from agent_tui.features.why.line_history.numbered_diff import unified_from_numbered
from agent_tui.tools.files.diffs import after_diff, before_diff
from tests.support.rows import each_row

CONTEXT = 4
LINES = st.lists(st.sampled_from(["a", "b", "", "...", " 3 c", "+ 4 d"]), max_size=30)


def numbered(before: Sequence[str], after: Sequence[str]) -> str:
    """The diff that pi shows."""
    width = len(str(max(len(before), len(after)) + 1))
    return "\n".join(rows(before, after, width))


def rows(before: Sequence[str], after: Sequence[str], width: int) -> Iterator[str]:
    parts = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for at, (kind, old, old_end, new, new_end) in enumerate(parts):
        if kind != "equal":
            yield from (f"-{n + 1:>{width}} {before[n]}" for n in range(old, old_end))
            yield from (f"+{n + 1:>{width}} {after[n]}" for n in range(new, new_end))
            continue
        first, last = at == 0, at == len(parts) - 1
        shown = [
            n
            for n in range(old, old_end)
            if (not first and n - old < CONTEXT) or (not last and old_end - n <= CONTEXT)
        ]
        for n in range(old, old_end):
            if n in shown:
                yield f" {n + 1:>{width}} {before[n]}"
            elif n - 1 in shown or n == old:
                yield f" {'':>{width}} ..."


@given(LINES, LINES)
def test_it_leads_from_one_text_to_the_other_and_back(before: list[str], after: list[str]):
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    unified = unified_from_numbered(numbered(before, after))
    assert bool(unified) == (before != after)
    assert after_diff(old, unified, is_exact=True) == new
    assert before_diff(new, unified, is_exact=True) == old


@each_row(
    "diff",
    [
        None,
        "",
        " 1 a\n 2 b",
        "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n",
        "-1 a\n+2 b",
        "-1 a\n-3 b",
        "-5 a\n   ...\n-3 b",
    ],
)
def test_what_is_no_such_diff_is_not_read(diff: str | None):
    assert unified_from_numbered(diff) == ""
