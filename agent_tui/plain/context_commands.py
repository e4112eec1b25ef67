"""Commands about the context: what fills it, making room in it, and taking that back."""

from collections.abc import Iterator
from functools import partial

from agent_tui.agent.context_map import PART_LABELS, ContextMap, map_context
from agent_tui.compaction.preview import CompactionPreview
from agent_tui.config import STRATEGY_NAMES, strategy_named
from agent_tui.events import SessionChanged
from agent_tui.plain.command_table import command
from agent_tui.plain.counted import counted
from agent_tui.plain.host import PlainHost

_PREVIEW = "--preview"
_STRATEGY = "--strategy"
_TIERS = (
    "repeated outputs and thinking left out",
    "long outputs shortened",
    "old outputs as one line each",
    "a summary in place of the older messages",
)


@command(f"[focus] [{_PREVIEW}] [{_STRATEGY} NAME]")
def compact(host: PlainHost, argument: str) -> None:
    """Summarise, and go on in a new session file."""
    words = argument.replace(f"{_STRATEGY}=", f"{_STRATEGY} ").split()
    if _PREVIEW in words:
        preview = host.agent.wait(host.runtime.preview_compaction())
        host.lines.lines(preview_lines(preview))
    elif _STRATEGY in words:
        _compact_here(host, words)
    elif words and words[0].startswith("--"):
        host.say(f"/compact has no option {words[0]}, only {_PREVIEW} and {_STRATEGY}.")
    else:
        host.run(partial(host.runtime.compact, argument))


def _compact_here(host: PlainHost, words: list[str]) -> None:
    at = words.index(_STRATEGY)
    wanted = "".join(words[at + 1 : at + 2])
    strategy = strategy_named(wanted)
    if strategy is None:
        said = f"{wanted!r} is not a strategy" if wanted else f"{_STRATEGY} needs a name"
        host.say(f"{said}; there are {', '.join(STRATEGY_NAMES)}.")
        return
    focus = " ".join((*words[:at], *words[at + 2 :]))
    host.run(partial(host.runtime.compact_here, strategy, focus))


def preview_lines(preview: CompactionPreview) -> Iterator[str]:
    """What a compaction would do, in sentences."""
    yield f"The context holds {preview.tokens_before:,} of {preview.window:,} tokens now."
    for tier in preview.tiers:
        used = " This would be used." if tier.is_used else ""
        yield (
            f"Step {tier.tier + 1}, {_TIERS[tier.tier]}: "
            f"{counted(tier.messages, 'message')}, frees {tier.freed:,}, "
            f"leaves {tier.tokens_after:,}.{used}"
        )
    yield (
        f"Compacted by itself it would come to {preview.tokens_after:,} tokens; "
        f"the target is {preview.target_tokens:,}. /compact takes the last step."
    )
    if preview.problem:
        yield f"No summary: {preview.problem}"
    ledger = preview.ledger
    kept = (
        (len(ledger.pinned), "rule of yours", "rules of yours"),
        (len(ledger.modified_files), "changed file", ""),
        (len(ledger.read_files), "read file", ""),
        (len(ledger.errors), "open error", ""),
        (len(ledger.open_todos), "open step of the plan", "open steps of the plan"),
    )
    if facts := [counted(count, one, many) for count, one, many in kept if count]:
        yield f"Kept in any case: {', '.join(facts)}."


@command()
def uncompact(host: PlainHost, _argument: str) -> None:
    """Undo the last compaction."""
    events = host.agent.wait(host.runtime.sessions.undo_compaction())
    host.show(events)
    is_elsewhere = any(isinstance(event, SessionChanged) for event in events)
    where = "back in the session from before /compact" if is_elsewhere else "in this session"
    host.say(f"Undone, {where}: about {host.runtime.conversation.usage.used:,} tokens again.")
    if host.runtime.conversation.is_overfull:
        host.say("That is more than the window holds: it is compacted again before it is sent.")


@command()
def context(host: PlainHost, _argument: str) -> None:
    """Say what fills the context window."""
    host.refresh_usage()
    host.lines.lines(context_lines(host.agent.wait(map_context(host.runtime.conversation))))


def context_lines(shown: ContextMap) -> Iterator[str]:
    """What fills the window, a line for each kind, then the largest messages."""
    usage = shown.usage
    about = "about " if usage.is_estimate else ""
    yield f"The context holds {about}{usage.used:,} of {usage.window:,} tokens, {usage.percent}%."
    for part in shown.parts:
        yield f"{PART_LABELS[part.kind]}: {part.tokens:,} tokens."
    if shown.largest:
        yield "Largest messages:"
    for large in shown.largest:
        yield f"{large.tokens:,} tokens: {large.label}"
