"""Tier 0, free: what the model gains nothing from seeing again."""

import json
from collections.abc import Iterator, Sequence
from functools import partial

from agent_tui.compaction.tiers.cut import recall_mark
from agent_tui.compaction.tiers.model import Content, Output, Proposal, Unit
from agent_tui.compaction.tiers.replies import without_thinking
from agent_tui.compaction.tiers.spans import SpansOfFile, span_of
from agent_tui.messages import AssistantMessage, TextContent

_POINTER_TOKENS = 40
_SMALLEST_REPEATED_TOKENS = 60
"""Below this a pointer is hardly smaller than what it stands for."""


def propose_free(units: Sequence[Unit]) -> Iterator[Proposal]:
    """Every edit of tier 0, protected messages left out.

    Display-only messages go; so does the thinking of replies, signed or not, as no provider
    wants that of a finished exchange back. A read whose lines a later successful read of the
    same file shows becomes a pointer to it, and so does an output that the same call gave word
    for word later.
    """
    pointers = _pointers(units)
    for unit in units:
        if unit.is_protected:
            continue
        if unit.is_display_only and unit.position > 0:
            yield Proposal(unit, 0, 0, _nothing, is_exact=True)
        elif isinstance(unit.message, AssistantMessage):
            if unit.thinking_tokens:
                make = partial(_thoughtless_content, unit.message)
                left = unit.written_tokens - unit.thinking_tokens
                yield Proposal(unit, 0, left, make, is_exact=True)
        elif pointer := pointers.get(unit.position):
            yield Proposal(unit, 0, _POINTER_TOKENS, partial(_same, pointer))


def _thoughtless_content(message: AssistantMessage) -> Content:
    """A reply without its thinking; calls that come last an edit need not repeat."""
    parts = without_thinking(message)
    texts = tuple(part for part in parts if isinstance(part, TextContent))
    return texts if parts[: len(texts)] == texts else parts


def _nothing() -> Content:
    return None


def _same(text: str) -> Content:
    return text


def _pointers(units: Sequence[Unit]) -> dict[int, str]:
    """What stands for outputs that a later one makes needless, by position."""
    pointers: dict[int, str] = {}
    spans_of: dict[str, SpansOfFile] = {}
    seen: dict[tuple[str, str, bool, str], str] = {}
    for unit in reversed(units):
        output = unit.output
        if output is None:
            continue
        action = output.action
        if action.kind == "read" and output.file_key:
            if output.has_failed:
                continue
            later, span = spans_of.setdefault(output.file_key, SpansOfFile()), span_of(output)
            if newer_id := later.covering(span):
                remark = f"{action.path} was read again later, in {newer_id}"
                pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
            else:
                later.add(span, unit.entry_id)
        elif unit.written_tokens >= _SMALLEST_REPEATED_TOKENS:
            newer_id = seen.setdefault(_content_key(output), unit.entry_id)
            if newer_id != unit.entry_id:
                remark = f"the same call gave the same output later, in {newer_id}"
                pointers[unit.position] = f"({remark}) {recall_mark(unit.entry_id)}"
    return pointers


def _content_key(output: Output) -> tuple[str, str, bool, str]:
    """The same for the same call with the same output."""
    asked = output.action.command or json.dumps(output.action.arguments, sort_keys=True)
    return output.action.tool, asked, output.has_failed, output.text
