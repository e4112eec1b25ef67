"""Outputs that a later one makes unnecessary."""

import json
from collections import defaultdict
from collections.abc import Sequence
from math import inf

from agent_tui.compaction.sections.files import file_view
from agent_tui.compaction.tiers.model import Output, Unit
from agent_tui.omissions import recall_mark

_SMALLEST_REPEATED_TOKENS = 60
"""Below this, a pointer is hardly smaller than the output it replaces."""


def pointers_to_newer(units: Sequence[Unit]) -> dict[int, str]:
    """The pointers that replace outputs made unnecessary by a later one, by position.

    A read becomes a pointer if a later successful read of the same file shows its lines, and so
    does an output that a later equal call repeats word for word.
    """
    pointers: dict[int, str] = {}
    views: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    seen: dict[tuple[str, str, bool, str], str] = {}
    for unit in reversed(units):
        output = unit.output
        if output is None:
            continue
        newer, remark = "", ""
        if output.action.kind == "read" and output.file_key:
            if (view := file_view(output)) is None:
                continue
            later = views[output.file_key]
            first, last = view.first, inf if view.is_whole else view.first + len(view.lines) - 1
            newer = next((entry for a, b, entry in later if a <= first and last <= b), "")
            remark = f"{output.action.path} was read again later, in {newer}"
            if not newer:
                later.append((first, last, unit.entry_id))
        elif unit.written_tokens >= _SMALLEST_REPEATED_TOKENS:
            found = seen.setdefault(_content_key(output), unit.entry_id)
            newer = found if found != unit.entry_id else ""
            remark = f"the same call gave the same output later, in {newer}"
        if newer:
            pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
    return pointers


def _content_key(output: Output) -> tuple[str, str, bool, str]:
    """A key that is equal for the same call with the same output."""
    asked = output.action.command or json.dumps(output.action.arguments, sort_keys=True)
    return output.action.tool, asked, output.has_failed, output.text
