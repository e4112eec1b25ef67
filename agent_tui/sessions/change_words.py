"""What happened to the context, in words for a person: the same in the chat, lists and exports."""

from collections.abc import Mapping

UNDONE = "The compaction was undone."
NO_MODEL = "made without a model"

_DONE_BY_TIER: Mapping[int, str] = {
    0: "thinking, and output that came again later, left out",
    1: "long outputs and arguments shortened",
    2: "old outputs as one line each",
    3: "old messages said in fewer words",
}
_SIZES = frozenset({"before", "after"})
_STILL_THERE = "Nothing is lost: the session keeps every word, and `recall` brings any of it back."


def describe_edits(messages: Mapping[int, int], freed: Mapping[int, int]) -> str:
    """What a compaction without a summary did, as Markdown: a line for each tier, and a comfort.

    Args:
        messages: How many messages each tier changed.
        freed: About how many tokens each tier freed.
    """
    lines = [
        _line(changed, done, freed.get(tier, 0))
        for tier, done in _DONE_BY_TIER.items()
        if (changed := messages.get(tier, 0))
    ]
    return "\n".join([*lines, "", _STILL_THERE] if lines else [_STILL_THERE])


def describe_statistics(strategy: str, statistics: Mapping[str, int]) -> str:
    """What a strategy did in one sentence: ``hybrid: 12 tool results, 3 user messages ...``.

    Empty where no strategy is named, as for the tiers. The sizes before and after are said
    beside it.
    """
    if not strategy:
        return ""
    counts = [
        f"{count:,} {key.replace('_', ' ')}"
        for key, count in statistics.items()
        if count and key not in _SIZES
    ]
    return f"{strategy}: {', '.join(counts)}." if counts else f"{strategy}."


def _line(changed: int, done: str, freed: int) -> str:
    about = f" (about {freed:,} tokens)" if freed > 0 else ""
    return f"- {changed:,} message{'s' * (changed != 1)}: {done}{about}"
