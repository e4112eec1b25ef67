"""Strategy `hybrid`: metadata for tool results, fewer words for what was said, the newest as is."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import ModelClient, OnProgress, OnUsage, RequestTracker
from agent_tui.compaction.strategies.base import SHORTEN_ALL, OnDecisions, StrategyPlan
from agent_tui.compaction.strategies.hybrid.condenser import Condenser
from agent_tui.compaction.strategies.hybrid.draft import HybridDraft, LongUnit
from agent_tui.compaction.strategies.hybrid.messages import is_spoken
from agent_tui.compaction.summary.candidates import ModelLookup, candidates
from agent_tui.compaction.tiers.model import Unit
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.sessions.entries import ContextEditEntry
from agent_tui.tokens import TokenCounter


class HybridStrategy:
    """Makes messages shorter one by one, the oldest first, until the target is reached.

    Args:
        client: Asks who puts messages into fewer words; None has them cut instead.
        counter: Estimates.
        models: Answers what is known of models.
        on_decisions: Told of every decision, for a log; None for no log.
    """

    def __init__(
        self,
        client: ModelClient | None,
        counter: TokenCounter,
        models: ModelLookup,
        on_decisions: OnDecisions | None = None,
    ) -> None:
        self._client = client
        self._counter = counter
        self._models = models
        self._on_decisions = on_decisions

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`. A model that fails costs words, not the plan.

        Raises:
            NothingToCompactError: No message can be made shorter.
        """
        on_progress("reading the conversation", 0)
        draft = await asyncio.to_thread(HybridDraft, request, self._counter)
        on_progress("describing tool results", 0)
        await asyncio.to_thread(draft.describe_old_results)
        condenser = self._condenser(request, on_progress, on_usage)
        await self._condense(draft, condenser)
        await asyncio.to_thread(draft.describe_new_results)
        plan = await asyncio.to_thread(_finished, draft, condenser)
        if self._on_decisions is not None:
            lines = decisions(draft, plan.edits)
            await asyncio.to_thread(self._on_decisions, lines)
        if not plan.edits:
            raise NothingToCompactError("Nothing to compact: no older message can be shorter.")
        return plan

    def _condenser(
        self, request: CompactionRequest, on_progress: OnProgress, on_usage: OnUsage
    ) -> Condenser | None:
        if self._client is None:
            return None
        found = candidates(self._models, request.settings, request.model)
        tracker = RequestTracker(on_progress, on_usage)
        return Condenser(self._client, found.models, tracker, request.focus)

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
    0: "left out or replaced by a pointer",
    1: "cut in the middle",
    2: "metadata only",
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
            f"About {tokens_after:,} tokens remain, above the target of {draft.target_tokens:,}: "
            f"nothing older can be shortened, and the newest messages take {kept:,}."
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
