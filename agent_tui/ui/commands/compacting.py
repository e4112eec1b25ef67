"""Commands about the context: what fills it, making room in it, and taking that back."""

from collections.abc import Mapping, Sequence

from agent_tui.config import STRATEGY_NAMES, CompactionStrategy, strategy_named
from agent_tui.errors import AgentTuiError
from agent_tui.events import SessionChanged
from agent_tui.ui.commands.host import CommandHost
from agent_tui.ui.commands.registry import Choice, command

PREVIEW = "--preview"
STRATEGY = "--strategy"
_STRATEGY_WORDS: Mapping[CompactionStrategy, str] = {
    "tiered": "a summary, in this session",
    "hybrid": "message by message, the model judging each",
    "agent": "the model edits a copy of the conversation",
}


@command(
    f"[focus] [{PREVIEW}] [{STRATEGY} NAME]",
    refusal="Cannot compact while responding. Use /abort first.",
    choices=lambda _host: (
        Choice(PREVIEW, "show what it would do"),
        *(Choice(f"{STRATEGY} {name}", _STRATEGY_WORDS[name]) for name in STRATEGY_NAMES),
    ),
    harmless=(PREVIEW,),
)
async def compact(host: CommandHost, argument: str) -> None:
    """Summarise and go on in a new session."""
    words = argument.replace(f"{STRATEGY}=", f"{STRATEGY} ").split()
    if PREVIEW in words:
        await _preview(host, is_focus_given=len(words) > 1)
    elif STRATEGY in words:
        await _compact_here(host, words)
    elif words and words[0].startswith("--"):
        host.say(f"/compact has no option {words[0]}, only {PREVIEW} and {STRATEGY}.", "warning")
    else:
        host.start(host.runtime.compact(argument))


async def _compact_here(host: CommandHost, words: Sequence[str]) -> None:
    """By a strategy that was named: in this session, message by message."""
    at = words.index(STRATEGY)
    wanted = "".join(words[at + 1 : at + 2])
    strategy = strategy_named(wanted)
    if strategy is None:
        said = f"{wanted!r} is not a strategy" if wanted else f"{STRATEGY} needs a name"
        host.say(f"{said}; there are {', '.join(STRATEGY_NAMES)}.", "warning")
        return
    focus = " ".join((*words[:at], *words[at + 2 :]))
    host.start(host.runtime.compact_here(strategy, focus))


async def _preview(host: CommandHost, *, is_focus_given: bool) -> None:
    """Show what a compaction would do; it only reads, so it may run beside a turn."""
    from agent_tui.ui.screens.preview import PreviewScreen

    if is_focus_given:
        host.say(f"A focus changes the summary alone, so {PREVIEW} leaves it out.")
    runtime = host.runtime
    await host.ask(
        PreviewScreen(runtime.preview_compaction, lambda: runtime.conversation.usage.label)
    )
    host.show_events(())  # the bar shows what was counted


@command(refusal="Cannot undo while responding. Use /abort first.")
async def uncompact(host: CommandHost, _argument: str) -> None:
    """Undo the last compaction."""
    try:
        events = await host.runtime.sessions.undo_compaction()
    except AgentTuiError as error:
        host.say(str(error), "warning")
        return
    host.show_events(events)
    size = f"about {host.runtime.conversation.usage.used:,} tokens"
    said = f"Undone: the context is as it was before, {size} again."
    if any(isinstance(event, SessionChanged) for event in events):
        said = f"Undone: back in the session from before /compact, {size}."
    if host.runtime.conversation.is_overfull:
        said += " That is more than the window holds: it is compacted again before it is sent."
    host.say(said)


@command()
async def context(host: CommandHost, _argument: str) -> None:
    """Show what fills the context window."""
    from agent_tui.agent.context_map import map_context
    from agent_tui.ui.screens.context import ContextScreen

    shown = await map_context(host.runtime.conversation)
    await host.ask(ContextScreen(shown, host.runtime.preview_compaction))
