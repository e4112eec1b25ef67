"""What a compaction would do, in words and rows. Pure; `PreviewScreen` and `/context` draw it."""

from collections.abc import Mapping, Sequence

from agent_tui.compaction.preview import CompactionPreview, TierPreview
from agent_tui.sessions.entries import Ledger
from agent_tui.ui.pages import Section

TIER_LABELS: Mapping[int, str] = {
    0: "repeats and thinking go",
    1: "long outputs shortened",
    2: "old outputs, a line each",
    3: "a summary instead",
}


def last_tier(preview: CompactionPreview) -> TierPreview | None:
    """The tier where an automatic compaction would stop; None if it would use none."""
    used = [tier for tier in preview.tiers if tier.is_used]
    return used[-1] if used else None


def verdict(preview: CompactionPreview) -> str:
    """What an automatic compaction would leave, against its target."""
    percent = preview.target_tokens * 100 // preview.window if preview.window > 0 else 0
    target = f"{preview.target_tokens:,} ({percent}%)"
    if last_tier(preview) is None:
        return f"Automatic compaction would change nothing; its target is {target}."
    left = f"Automatic compaction would leave {preview.tokens_after:,} tokens (▸)"
    if preview.tokens_after > preview.target_tokens:
        return f"{left}, more than its target of {target}."
    return f"{left}; its target is {target}."


def kept_facts(ledger: Ledger) -> tuple[Section, ...]:
    """The facts that code carries over whatever the summary says, each list bounded."""
    lists = (
        ("Your rules, word for word", ledger.pinned, 12),
        ("Changed files", ledger.modified_files, 8),
        ("Read files", ledger.read_files, 5),
        ("Open errors", ledger.errors, 5),
        ("Open steps of the plan", ledger.open_todos, 8),
        ("What you agreed to", ledger.decisions, 5),
    )
    return tuple(
        Section(f"{heading} ({len(facts):,})", _rows(facts, most))
        for heading, facts, most in lists
        if facts
    )


def _rows(facts: Sequence[str], most: int) -> tuple[tuple[str, str], ...]:
    rows = [("·", " ".join(fact.split())) for fact in facts[:most]]
    if hidden := len(facts) - len(rows):
        rows.append(("", f"+{hidden:,} more"))
    return tuple(rows)
