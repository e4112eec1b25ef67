"""What fills the context window, and what a compaction would free of it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_tui.agent.compaction.cache_clock import CacheState, cache_state
from agent_tui.commands.core.short_words import count_text
from agent_tui.compaction.outcome import CompactionPreview
from agent_tui.compaction.tiers.describe import call_label
from agent_tui.features.context.compact import TIER_LABELS
from agent_tui.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.pins import pin_of, pins_on
from agent_tui.tokens import ContextUsage

if TYPE_CHECKING:
    from agent_tui.agent.conversation import Conversation

PartKind: TypeAlias = Literal[
    "system", "tools", "summary", "pinned", "you", "replies", "results", "free"
]

PART_LABELS: Mapping[PartKind, str] = {
    "system": "System prompt and AGENTS.md",
    "tools": "Tool descriptions",
    "summary": "Compaction summary",
    "pinned": "Pinned skills and instructions",
    "you": "Your messages",
    "replies": "Replies and tool calls",
    "results": "Tool results",
    "free": "Free",
}
LARGEST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Part:
    """Tokens of one kind."""

    kind: PartKind
    tokens: int


@dataclass(frozen=True, slots=True)
class LargeMessage:
    """A message that takes much space. `label` identifies it."""

    label: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextMap:
    """All parts of the window, ``free`` last, and the largest messages, largest first.

    `token_price` is the price of a context token in the newest request, in US dollars, cache
    discounts included; 0 if unknown. The context is compacted automatically at `compacts_at`
    percent of the window, 0 for never, to `target_tokens`; `held_by` says what makes that lower
    than ``trigger_at``, empty for nothing. `cache` is the state of the context in
    the provider's cache; None if unknown.
    """

    usage: ContextUsage
    parts: tuple[Part, ...]
    largest: tuple[LargeMessage, ...]
    token_price: float = 0.0
    compacts_at: int = 0
    target_tokens: int = 0
    cache: CacheState | None = None
    held_by: str = ""

    @property
    def compaction_words(self) -> str:
        """When the context is compacted automatically, and to which size."""
        why = f" ({self.held_by})" if self.held_by else ""
        target = f", to {self.target_tokens:,} tokens" if self.target_tokens else ""
        return f"at {self.compacts_at}%{why}{target}"


async def map_context(conversation: "Conversation") -> ContextMap:
    """Count every message of the next request, off the event loop."""
    messages = [(item.message, item.entry_id) for item in conversation.context().messages]
    compaction = conversation.context().compaction
    pinned = pins_on(in_force(conversation.log.path_entries()))
    kinds: dict[str, PartKind] = {entry.id: "pinned" for entry in pinned.values()}
    names = {entry.id: pin.name for entry in pinned.values() if (pin := pin_of(entry))}
    if compaction is not None:
        kinds[compaction.id] = "summary"
    found = await asyncio.to_thread(_count, conversation, messages, kinds, names)
    price = token_price([message for message, _ in messages])
    return replace(
        found,
        token_price=price,
        compacts_at=conversation.compacts_at,
        target_tokens=conversation.limits.target,
        cache=cache_state(conversation),
        held_by=_what_holds(conversation),
    )


def _what_holds(conversation: "Conversation") -> str:
    """What makes compaction start below the fraction ``trigger_at`` of the window."""
    limits, settings = conversation.limits, conversation.settings
    used = settings.effective_window(limits.window)
    if round(used * settings.trigger_at) > limits.trigger:
        return "the rest is for the reply"
    return "compaction.trigger_tokens" if used < limits.window else ""


def token_price(messages: Sequence[Message]) -> float:
    """The price per context token in the newest request that states its cost, in US dollars."""
    for message in reversed(messages):
        usage = message.usage if isinstance(message, AssistantMessage) else None
        if usage is not None and usage.cost.total:
            read = usage.input + usage.cache_read + usage.cache_write
            return (usage.cost.total - usage.cost.output) / max(read, 1)
    return 0.0


def _count(
    conversation: "Conversation",
    messages: list[tuple[Message, str]],
    kinds: Mapping[str, PartKind],
    names: Mapping[str, str],
) -> ContextMap:
    counter = conversation.services.counter
    tokens: dict[PartKind, int] = {
        "system": counter.count_text(conversation.prompt.system),
        "tools": counter.count_tools(conversation.prompt.tools),
    }
    counted: list[LargeMessage] = []
    calls: dict[str, ToolCall] = {}
    for message, entry_id in messages:
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        kind = kinds.get(entry_id) or _kind(message)
        count = counter.count_message(message)
        tokens[kind] = tokens.get(kind, 0) + count
        label = names.get(entry_id) or _label(kind, message, calls)
        counted.append(LargeMessage(label, count))
    return scale_to_usage(conversation.usage, tokens, counted)


def scale_to_usage(
    usage: ContextUsage, tokens: Mapping[PartKind, int], counted: list[LargeMessage]
) -> ContextMap:
    """Scale our estimates to the provider's total, so that the parts add up."""
    estimated = sum(tokens.values())
    factor = usage.used / estimated if usage.used and estimated else 1.0
    parts = [Part(kind, round(tokens[kind] * factor)) for kind in PART_LABELS if tokens.get(kind)]
    used = usage.used or estimated
    parts.append(Part("free", max(usage.window - used, 0)))
    counted.sort(key=lambda message: -message.tokens)
    largest = tuple(
        LargeMessage(message.label, round(message.tokens * factor))
        for message in counted[:LARGEST_SHOWN]
    )
    return ContextMap(usage, tuple(parts), largest)


def _kind(message: Message) -> PartKind:
    match message:
        case UserMessage():
            return "you"
        case AssistantMessage():
            return "replies"
        case ToolResultMessage() | BashExecutionMessage():
            return "results"


def _label(kind: PartKind, message: Message, calls: Mapping[str, ToolCall]) -> str:
    match message:
        case ToolResultMessage():
            return call_label(message, calls.get(message.tool_call_id))
        case BashExecutionMessage():
            return f"! {_first_line(message.command)}"
        case UserMessage():
            said = _first_line(message.text)
            return "summary" if kind == "summary" else f"you: {said}"
        case AssistantMessage():
            called = ", ".join(call.name for call in message.tool_calls)
            return f"reply: {_first_line(message.text) or called}"


def _first_line(text: str) -> str:
    return " ".join(text.strip().partition("\n")[0].split())[:80]


FREED_HEADING = "What a compaction would free"


def cache_text(state: CacheState | None) -> str:
    """The state of the context in the provider's cache: ``cache warm ~4m``; empty if unknown."""
    match state:
        case None:
            return ""
        case CacheState(warmth="warm", left_s=left_s):
            return f"cache warm ~{max(round(left_s / 60), 1)}m"
        case CacheState(warmth="unsure"):
            return "cache may be cold"
        case CacheState():
            return "cache cold"


def savings_of(preview: CompactionPreview) -> tuple[tuple[str, int], ...]:
    """The tokens that ``/compact`` and each step of an automatic compaction would free."""
    rows = [
        (f"automatic: {TIER_LABELS[tier]}", preview.freed.get(tier, 0))
        for tier in sorted(preview.messages)
    ]
    if preview.compact_tokens is not None:
        what = f"/compact: a summary of {count_text(preview.summarised, 'message')}"
        rows.insert(0, (what, preview.tokens_before - preview.compact_tokens))
    return tuple(rows)


def request_cost(preview: CompactionPreview, token_price: float) -> str:
    """The size of a request now, and what ``/compact`` would save of it.

    `token_price` is in US dollars, and 0 if unknown.
    """

    def amount(tokens: int) -> str:
        return f"{tokens:,} tokens" + (f" (${tokens * token_price:.4f})" if token_price else "")

    now, problem = f"Each request reads {amount(preview.tokens_before)}", preview.problem
    left = preview.tokens_after if preview.compact_tokens is None else preview.compact_tokens
    if left < preview.tokens_before:
        return f"{now}; compacting now would save {amount(preview.tokens_before - left)}."
    return f"{now}. {problem}" if problem else f"{now}; compacting now would save nothing."
