"""Reads the diffs with line numbers that pi shows to people."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_ROW = re.compile(r"([ +-]) *(\d+) (.*)", re.DOTALL)
_GAP = re.compile(r" +\.\.\.")


@dataclass(slots=True)
class _Part:
    """Lines without a gap; `old` and `new` are the numbers of the first ones, `rows` have signs."""

    old: int
    new: int
    rows: list[str] = field(default_factory=list[str])

    def count(self, signs: str) -> int:
        """How many rows have one of `signs`."""
        return sum(row[0] in signs for row in self.rows)


def unified_from_numbered(diff: str | None) -> str:
    """The unified diff of one file that says the same; empty if `diff` is no such diff.

    Removed and unchanged lines are numbered as before the change, added ones as after it. Each
    number must be the one that follows from the lines above.
    """
    parts: list[_Part] = []
    is_gap, shift, old = True, 0, 1
    for row in diff.split("\n") if diff else ():
        found = _ROW.fullmatch(row)
        if found is None:
            if not _GAP.fullmatch(row):
                return ""
            is_gap = True
            continue
        sign, number, text = found[1], int(found[2]), found[3]
        at = number - shift if sign == "+" else number
        if is_gap and at >= old:
            old = at
            parts.append(_Part(old, old + shift))
        elif at != old:
            return ""
        is_gap = False
        parts[-1].rows.append(sign + text)
        old += sign != "+"
        shift += (sign == "+") - (sign == "-")
    return _unified(parts) if any(part.count("+-") for part in parts) else ""


def _unified(parts: Sequence[_Part]) -> str:
    lines = ["--- before", "+++ after"]
    for part in parts:
        removed, added = part.count(" -"), part.count(" +")
        old = part.old if removed else part.old - 1
        new = part.new if added else part.new - 1
        lines += [f"@@ -{old},{removed} +{new},{added} @@", *part.rows]
    return "\n".join([*lines, ""])
