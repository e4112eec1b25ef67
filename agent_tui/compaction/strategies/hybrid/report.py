"""What strategy `hybrid` did, for the person and for the log."""

from collections.abc import Iterator, Mapping, Sequence

from agent_tui.compaction.strategies.base import SHORTEN_ALL
from agent_tui.compaction.strategies.hybrid.draft import HybridDraft
from agent_tui.compaction.strategies.hybrid.messages import is_spoken
from agent_tui.compaction.tiers.model import Unit
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.sessions.entries import ContextEditEntry

_DONE: Mapping[int, str] = {
    0: "left out or pointed to",
    1: "cut in the middle",
    2: "metadata alone",
    3: "fewer words",
}


def statistics(
    draft: HybridDraft, edits: Sequence[ContextEditEntry], tokens_after: int
) -> Mapping[str, int]:
    """How many messages of which kind were compressed, deleted and protected, and the sizes."""
    by_id = {unit.entry_id: unit for unit in draft.units}
    edited = [by_id[edit.target_id] for edit in edits]
    spoken = [unit for unit in edited if is_spoken(unit)]
    return {
        "tool_results": sum(unit.output is not None for unit in edited),
        "user_messages": sum(isinstance(unit.message, UserMessage) for unit in spoken),
        "assistant_messages": sum(isinstance(unit.message, AssistantMessage) for unit in spoken),
        "display_only_deleted": sum(unit.is_display_only for unit in edited),
        "protected": sum(unit.is_protected for unit in draft.units),
        "before": draft.tokens_before,
        "after": tokens_after,
    }


def note_on(
    draft: HybridDraft,
    edits: Sequence[ContextEditEntry],
    tokens_after: int,
    failures: Sequence[str],
) -> str:
    """What did not go as planned, in whole sentences; empty where all went well."""
    made = {edit.target_id for edit in edits if edit.tier == 3}
    cut = sum(entry_id in made for entry_id in draft.problems)
    sentences: list[str] = []
    if cut:
        why = "; ".join(failures) or next(iter(draft.problems.values()))
        sentences.append(f"{cut} of {len(made)} old messages were cut, not rewritten ({why}).")
    if tokens_after > draft.target_tokens > SHORTEN_ALL:
        kept = sum(draft.size_of(unit) for unit in draft.units if unit.is_protected)
        sentences.append(
            f"About {tokens_after:,} tokens stay, more than the {draft.target_tokens:,} aimed at: "
            f"nothing older can be shorter, and the newest messages take {kept:,}."
        )
    return " ".join(sentences)


def decisions(draft: HybridDraft, edits: Sequence[ContextEditEntry]) -> Sequence[str]:
    """One line for each message: entry, role, size before and after, what was done or why not."""
    return [
        f"before {draft.tokens_before:,} tokens, target {draft.target_tokens:,}",
        *_lines(draft, {edit.target_id: edit for edit in edits}),
    ]


def _lines(draft: HybridDraft, edit_of: Mapping[str, ContextEditEntry]) -> Iterator[str]:
    for unit in draft.units:
        edit = edit_of.get(unit.entry_id)
        if edit is None:
            yield f"{_named(unit)} {unit.tokens:,} tokens kept: {_why_kept(unit)}"
            continue
        problem = draft.problems.get(unit.entry_id, "") if edit.tier == 3 else ""
        done = f"cut, {problem}" if problem else _DONE[edit.tier]
        yield f"{_named(unit)} {unit.tokens:,} -> {draft.size_of(unit):,} tokens: {done}"


def _named(unit: Unit) -> str:
    action = unit.output.action if unit.output is not None else None
    tool = f" {action.tool}" if action else ""
    return f"{unit.entry_id} {unit.message.role}{tool}"


def _why_kept(unit: Unit) -> str:
    if unit.is_protected:
        return "protected"
    return "edited before" if unit.edited_tier >= 0 else "short enough, or the target is reached"
