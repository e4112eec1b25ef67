"""Compacting the context, undoing that, and previewing the effect."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from agent_tui.commands.core.command import Completion, command
from agent_tui.commands.core.front import Choice, Front, Listing, Page, PageSection, Question, Row
from agent_tui.commands.core.plugin_kinds import STRATEGIES
from agent_tui.commands.core.short_words import count_text
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.compaction.proposal import Decision, Proposal
from agent_tui.compaction.strategies.registry import strategy_descriptions, unknown_strategy
from agent_tui.errors import AgentTuiError
from agent_tui.events import SessionChanged
from agent_tui.features.context.undo import undo_compaction
from agent_tui.providers.client import OnProgress
from agent_tui.sessions.entries import Ledger
from agent_tui.tokens import ContextUsage

if TYPE_CHECKING:  # a run without the screen imports no Textual
    from textual.screen import Screen

    from agent_tui.ui.screens.modal import FollowUp

PREVIEW = "--preview"
_RUNNING = "A compaction is already running. Esc or /abort stops it."
_BUSY = "Cannot compact while the agent works. {stop}"
PREVIEW_TITLE = "What a compaction would do now"
_STRATEGY = "--strategy"
_FORCE = "--force"
_NO_MODEL = ("--model", "none")
_LEAST_PART, _LEAST_PART_OF_WINDOW, _LEAST_TOKENS = 10, 100, 2_000
"""The user is asked before a compaction that frees less than a tenth of the used tokens.

Or less than a hundredth of the window, though freeing the last number is always enough for that.
"""
TIER_LABELS: Mapping[int, str] = {
    0: "repeats and thinking are dropped",
    1: "long outputs are shortened",
    2: "old outputs are cut to a line",
    3: "a summary replaces them",
}


@command(
    f"[focus] [{PREVIEW}] [{_FORCE}] [{_STRATEGY} NAME]",
    refusal=lambda front: _RUNNING if front.runtime.is_compacting else _BUSY,
    completions=lambda front: (
        Completion(PREVIEW, "show what it would do, and choose what it keeps"),
        Completion(_FORCE, "compact even if that frees almost nothing"),
        *(
            Completion(f"{_STRATEGY} {name}", description)
            for name, description in _strategies(front).items()
        ),
    ),
    harmless=(PREVIEW,),
)
async def compact(front: Front, argument: str) -> None:
    """Summarise the conversation and continue in a new session."""
    words = argument.replace(f"{_STRATEGY}=", f"{_STRATEGY} ").split()
    if PREVIEW in words:
        await _preview(front, [word for word in words if word != PREVIEW])
    elif _STRATEGY in words:
        await _compact_here(front, words)
    elif words and words[0].startswith("--") and words[0] != _FORCE:
        front.say(
            f"Unknown option {words[0]}. /compact takes {PREVIEW}, {_FORCE} and {_STRATEGY}.",
            "warning",
        )
    elif _FORCE in words:
        await front.run(front.runtime.compact(" ".join(w for w in words if w != _FORCE)))
    else:
        await front.run(front.runtime.compact(argument, confirm=partial(_why_not, front)))


async def _why_not(front: Front, preview: CompactionPreview) -> str:
    """Why not to begin a new session, empty to do it; asks if that would free next to nothing."""
    used = preview.tokens_before
    small = min(preview.window // _LEAST_PART_OF_WINDOW, _LEAST_TOKENS)
    if preview.compact_tokens is None or used - preview.compact_tokens >= max(
        used // _LEAST_PART, small
    ):
        return ""  # or the compaction itself says why there is nothing to compact
    freed = f"about {used - preview.compact_tokens:,} of {used:,} tokens"
    gain = f"This would free only {freed} in a {preview.window:,}-token context window"
    if not front.can_ask:
        return f"Not compacted: {gain.lower()}. /compact {_FORCE} compacts anyway."
    question = Question(
        "Compact anyway?",
        (f"{gain}. Compacting starts a new session.",),
        (Choice(True, "yes, in a new session", "y"), Choice(False, "no", "n")),
        is_grave=True,  # counting took a while, in which the next message may have been begun
    )
    return "" if await front.ask(question) else "Not compacted; nothing was changed."


async def _compact_here(front: Front, words: Sequence[str]) -> None:
    """Compact with the named strategy: in this session, message by message."""
    at = words.index(_STRATEGY)
    wanted = "".join(words[at + 1 : at + 2])
    known = _strategies(front)
    if not wanted:
        front.say(f"{_STRATEGY} needs a name. Available: {', '.join(known)}.", "warning")
        return
    if problem := unknown_strategy(wanted, known):
        front.say(problem, "warning")
        return
    focus = " ".join((*words[:at], *words[at + 2 :]))
    await front.run(front.runtime.compact_here(wanted, focus))


def _strategies(front: Front) -> Mapping[str, str]:
    return strategy_descriptions(front.services.plugins.of(STRATEGIES))


async def _preview(front: Front, words: Sequence[str]) -> None:
    """Show what a compaction would do; it only reads, so it may run during a turn."""
    asks_model = tuple(words) != _NO_MODEL
    if words and asks_model:
        front.say(f"{PREVIEW} ignores the focus, which affects only the summary.")
    runtime = front.runtime
    choose = keeping_choice(front, asks_model=asks_model)
    await front.show(
        PreviewPage(runtime.preview_compaction, lambda: runtime.conversation.usage.label, choose)
    )
    front.show_events(())  # the status bar shows the new count


@command(refusal="Cannot undo while the agent works. {stop}")
async def uncompact(front: Front, _argument: str) -> None:
    """Undo the last compaction."""
    try:
        events = await undo_compaction(front.runtime)
    except AgentTuiError as error:
        front.say(str(error), "warning")
        return
    front.show_events(events)
    size = f"about {front.runtime.conversation.usage.used:,} tokens"
    text = f"Compaction undone: the context is back to {size}."
    if any(isinstance(event, SessionChanged) for event in events):
        text = f"Compaction undone: back in the session before /compact, {size}."
    if front.runtime.conversation.is_overfull:
        text += " That exceeds the context window, so the next request compacts it again."
    front.say(text)


@dataclass(frozen=True, slots=True)
class PickableDecision:
    """What a compaction keeps, for the user to decide.

    Attributes:
        propose: Asks the model; takes a while.
    """

    propose: Callable[[OnProgress], Awaitable[Proposal]]

    def make_picker(self) -> "Screen[object]":
        """All that can be kept, as a screen."""
        from agent_tui.features.context.keeping_screen import KeepingScreen

        return cast("Screen[object]", KeepingScreen(self.propose))

    async def listing(self) -> Listing[Decision]:
        """Nothing: only a screen shows what can be kept."""
        return Listing("What a compaction keeps", (), "Only the screen offers this choice.")


def keeping_choice(front: Front, *, asks_model: bool = True) -> "FollowUp | None":
    """What lets the user decide what a compaction keeps, and compacts; None while the agent works.

    Args:
        front: A screen.
        asks_model: Whether the model is asked first what it needs.
    """
    runtime = front.runtime

    async def choose() -> None:
        propose = partial(runtime.propose_compaction, asks_model=asks_model)
        decision = await front.pick(PickableDecision(propose))
        if not isinstance(decision, Decision):
            return
        if runtime.is_busy:
            front.say(_RUNNING if runtime.is_compacting else _BUSY, "warning")
        else:
            await front.run(runtime.compact(decided=decision))

    return None if runtime.is_busy else choose


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What a compaction would do now; counting takes a moment.

    Attributes:
        load: Computes it.
        present_label: Returns the label of the context; called after `load`.
        choose: Lets the user decide what is kept; None while the agent works.
    """

    load: Callable[[], Awaitable[CompactionPreview]]
    present_label: Callable[[], str]
    choose: "FollowUp | None" = None

    def make_screen(self) -> "Screen[FollowUp]":
        """The page, which leads to the choice."""
        from agent_tui.features.context.keeping_screen import PreviewScreen

        return PreviewScreen(PREVIEW_TITLE, self.page, self.choose)

    async def page(self) -> Page:
        """The sizes, what is removed, and what stays."""
        sections = preview_sections(await self.load(), self.present_label())
        return Page(PREVIEW_TITLE, sections)


def preview_sections(preview: CompactionPreview, present_label: str) -> tuple[PageSection, ...]:
    """The size of the context now and after a compaction, what is removed, and what stays.

    Args:
        preview: The preview to show.
        present_label: The context as the status bar shows it now.
    """
    sizes = [("now", f"{preview.tokens_before:,} tokens {present_label}")]
    asked = [("", preview.problem)]
    if preview.compact_tokens is not None:
        sizes.append(("after /compact", _size(preview.compact_tokens, preview.window)))
        asked = [
            gain_row(preview.summarised, 3, preview.tokens_before - preview.compact_tokens),
            ("stays", "newer messages, and the facts below"),
        ]
    return (
        PageSection("", tuple(sizes)),
        PageSection("/compact", tuple(asked)),
        PageSection("Automatic compaction", (*automatic_rows(preview), ("", verdict(preview)))),
        *fact_sections(preview.ledger),
    )


def automatic_rows(preview: CompactionPreview) -> tuple[Row, ...]:
    """The messages that an automatic compaction would change, and the tokens freed."""
    return tuple(
        gain_row(count, tier, preview.freed.get(tier, 0))
        for tier, count in sorted(preview.messages.items())
    )


def gain_row(messages: int, tier: int, freed: int) -> Row:
    """A row saying how many messages `tier` changes and what that frees."""
    return (
        "goes",
        f"{count_text(messages, 'message')}: {TIER_LABELS[tier]}, frees {freed:,} tokens",
    )


def _size(tokens: int, window: int) -> str:
    return f"{tokens:,} tokens {ContextUsage(tokens, window, is_estimate=True).label}"


def verdict(preview: CompactionPreview) -> str:
    """The result of an automatic compaction compared with its target."""
    percent = preview.target_tokens * 100 // preview.window if preview.window > 0 else 0
    target = f"{preview.target_tokens:,} ({percent}%)"
    if preview.tokens_after >= preview.tokens_before:
        return f"Would change nothing now; its target is {target}."
    left = f"Would leave {preview.tokens_after:,} tokens"
    if preview.tokens_after > preview.target_tokens:
        return f"{left}, more than its target of {target}."
    return f"{left}; its target is {target}."


def fact_sections(ledger: Ledger) -> tuple[PageSection, ...]:
    """The facts that code carries over regardless of the summary, each list limited."""
    lists = (
        ("What you said that reads like a rule, word for word", ledger.pinned, 12),
        ("Files changed", ledger.modified_files, 8),
        ("Files read", ledger.read_files, 5),
        ("Open errors", ledger.errors, 5),
        ("Open plan steps", ledger.open_todos, 8),
    )
    return tuple(
        PageSection(f"{heading} ({len(facts):,})", _rows(facts, most))
        for heading, facts, most in lists
        if facts
    )


def _rows(facts: Sequence[str], most: int) -> tuple[Row, ...]:
    rows = [("·", " ".join(fact.split())) for fact in facts[:most]]
    if hidden := len(facts) - len(rows):
        rows.append(("", f"+{hidden:,} more"))
    return tuple(rows)
