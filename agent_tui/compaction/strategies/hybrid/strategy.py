"""Making messages shorter one by one: results become metadata, old messages fewer words."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnProgress, OnUsage, Spending
from agent_tui.compaction.strategies.base import SHORTEN_ALL, StrategyPlan, StrategyServices
from agent_tui.compaction.strategies.hybrid.condenser import Condenser
from agent_tui.compaction.strategies.hybrid.draft import HybridDraft, LongUnit
from agent_tui.compaction.strategies.hybrid.messages import is_spoken
from agent_tui.compaction.summary.candidates import candidates
from agent_tui.compaction.tiers.model import Unit
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.sessions.entries import ContextEditEntry


class HybridStrategy:
    """Makes messages shorter one by one, the oldest first, until the target is reached.

    Args:
        services: Without a provider messages are cut instead of put into fewer words.
    """

    def __init__(self, services: StrategyServices) -> None:
        self._services = services
        self._settings = services.settings

    def use_settings(self, settings: CompactionSettings) -> None:
        """See `Strategy.use_settings`."""
        self._settings = settings

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`. A model that fails costs words, not the plan.

        Raises:
            NothingToCompactError: No message can be made shorter.
        """
        on_progress("reading the conversation", 0)
        draft = await asyncio.to_thread(
            HybridDraft, request, self._services.counter, self._settings
        )
        on_progress("describing tool results", 0)
        await asyncio.to_thread(draft.describe_old_results)
        condenser = self._condenser(request, on_progress, on_usage)
        await self._condense(draft, condenser)
        await asyncio.to_thread(draft.describe_new_results)
        plan = await asyncio.to_thread(_finished, draft, condenser)
        if (on_decisions := self._services.on_decisions) is not None:
            await asyncio.to_thread(on_decisions, decisions(draft, plan.edits))
        if not plan.edits:
            raise NothingToCompactError("Nothing to compact: no older message can be shorter.")
        return plan

    def _condenser(
        self, request: CompactionRequest, on_progress: OnProgress, on_usage: OnUsage
    ) -> Condenser | None:
        services = self._services
        if services.provider is None:
            return None
        found = candidates(services.models, self._settings, request.model)
        return Condenser(
            services.provider,
            found.models,
            services.sleep,
            on_progress,
            Spending(on_usage),
            request.focus,
        )

    async def _condense(self, draft: HybridDraft, condenser: Condenser | None) -> None:
        """Call by call until the target is reached or no long message is left."""
        waiting: Iterator[LongUnit] = draft.long_units()
        done = 0
        while asked := await asyncio.to_thread(draft.next_call, waiting):
            texts = [""] * len(asked)
            if condenser is not None:
                first, last = done + 1, done + len(asked)
                found = await condenser.condense(
                    [long.asked for long in asked], f"condensing messages {first}-{last}"
                )
                texts = [found.get(at, "") for at in range(len(asked))]
            await asyncio.to_thread(draft.take_short_forms, asked, texts)
            done += len(asked)


def _finished(draft: HybridDraft, condenser: Condenser | None) -> StrategyPlan:
    edits = draft.finished()
    after = draft.tokens_before - sum(unit.tokens - draft.size_of(unit) for unit in draft.units)
    failures = condenser.failures if condenser is not None else ["no model"]
    return StrategyPlan(
        edits=edits,
        tokens_before=draft.tokens_before,
        tokens_after=after,
        statistics=statistics(draft, edits, after),
        note=note_on(draft, edits, after, failures),
    )


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
