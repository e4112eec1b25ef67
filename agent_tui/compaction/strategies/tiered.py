"""Strategy `tiered`: shorten messages in place; if that is not enough, make a summary."""

import asyncio
from dataclasses import dataclass, replace

from agent_tui.compaction.curation.answer import KeepChoice, NoChoice, Proof
from agent_tui.compaction.curation.choosing import Curator, own_curator
from agent_tui.compaction.curation.question import make_ask
from agent_tui.compaction.draft import CompactionDraft, draft_choice, make_draft
from agent_tui.compaction.outcome import CompactionResult, Outcome, result_of
from agent_tui.compaction.request import Answered, CompactionRequest
from agent_tui.compaction.strategies.base import BuiltInStrategy, Strategy, StrategyServices
from agent_tui.compaction.strategies.message_plan import (
    ConversationUnits,
    Fate,
    Lines,
    MessagePlan,
    OneLine,
)
from agent_tui.compaction.summary.writer import note_on_writing
from agent_tui.errors import CompactionError, NothingToCompactError, TargetTooSmallError
from agent_tui.providers.client import OnProgress, OnUsage, RequestTracker
from agent_tui.tokens import TokenCounter

_SMALL_SHARE = 0.25
"""Share of the context. Freeing more would reduce messages that the work needs to single lines.

Real sessions continued better from a summary with the current files.
"""


def shorten_in_place(request: CompactionRequest, counter: TokenCounter) -> Outcome:
    """Make the edits that reduce `request` to its target, or as near as possible.

    Everything shown elsewhere is removed, as the prompt cache is lost anyway. Then messages are cut
    to their ends, then to one line, one by one until the target is reached. If protected messages
    alone exceed the target, their outputs are finally cut to their ends.
    """
    conversation = ConversationUnits(request, counter, "tiered")
    before, target = conversation.tokens_before, conversation.target_tokens
    if before <= target:
        return Outcome((), before, before, {})
    plan = conversation.plan()
    for fate in (Lines(), OneLine()):
        plan = plan.towards_target(worthiest(plan, fate))
    protected = [unit for unit in conversation.units if unit.is_protected]
    if sum(unit.tokens for unit in protected) + request.sizes.overhead > target:
        plan = plan.towards_target((u.position, Lines()) for u in protected if u.output)
    freed = plan.freed
    return Outcome(plan.edits, before, before - sum(freed.values()), {}, freed=freed)


def worthiest(plan: MessagePlan, fate: Fate) -> list[tuple[int, Fate]]:
    """Offer `fate` to all open messages, ordered by tokens saved times age.

    Large old messages are needed least for their size, and many small outputs say more than one
    large one.
    """
    units = plan.conversation.units

    def worth(position: int) -> int:
        saved = plan.size(position) - plan.conversation.make(position, fate).tokens
        return saved * (len(units) - position)

    positions = [unit.position for unit in units if plan.is_open(unit.position)]
    return [(at, fate) for at in sorted(positions, key=worth, reverse=True)]


def shortening_does(shorter: Outcome, target_tokens: int) -> bool:
    """Whether `shorter` reaches the target and frees little enough to be used alone."""
    wanted = shorter.tokens_before - target_tokens
    is_small = wanted <= _SMALL_SHARE * shorter.tokens_before
    return is_small and shorter.tokens_after <= target_tokens


_UNUSED_FOCUS = "Your focus was not used: only a model can follow it."


def _build(services: StrategyServices) -> Strategy:
    counter = services.counter
    return TieredStrategy(own_curator(services.client, counter, services.models), counter)


@dataclass(frozen=True, slots=True)
class TieredStrategy:
    """Uses the tiers without a model first, and a summary if they miss the target.

    Args:
        curator: Asks a model what to keep; None to let code decide.
        counter: Estimates.
    """

    curator: Curator | None
    counter: TokenCounter

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> Outcome:
        """See `Strategy.plan`. If no summary is possible, shortened messages are used.

        Raises:
            CompactionError: Nothing can be freed.
        """
        shorter: Outcome | None = None
        if not request.wants_summary:
            shorter = await asyncio.to_thread(shorten_in_place, request, self.counter)
            if shorter.tokens_before <= request.sizes.target and request.occasion == "due":
                raise NothingToCompactError("Nothing to compact: the context is small enough.")
            gained = shorter.tokens_before - shorter.tokens_after
            if gained < request.sizes.least_gain or not shorter.edits:
                shorter = None
            elif shortening_does(shorter, request.sizes.target):
                return shorter
        try:
            draft = await asyncio.to_thread(make_draft, request, counter=self.counter)
            expected = draft.tokens_after(request, self.counter)
            target = request.sizes.target
            if expected > target and shorter is not None and shorter.tokens_after <= target:
                return shorter
            result = await self._summarise(request, draft, RequestTracker(on_progress, on_usage))
        except NothingToCompactError:
            if shorter is None:
                raise
            return shorter
        except CompactionError as error:
            if shorter is None:
                raise
            return replace(shorter, note=f"Shortened, but not summarised. {error}")
        return Outcome(
            result.edits,
            draft.tokens_before(request),
            result.estimated_after,
            {},
            result.note,
            result,
        )

    async def _summarise(
        self, request: CompactionRequest, draft: CompactionDraft, tracker: RequestTracker
    ) -> CompactionResult:
        """The compaction with a model's choice; made from `draft` if no model chooses."""
        found = await self._answer(request, draft, tracker)
        proof, choice = Proof(), found if isinstance(found, KeepChoice) else None
        if choice is not None:
            try:
                draft, proof = await asyncio.to_thread(
                    draft_choice, request, choice, counter=self.counter
                )
            except TargetTooSmallError:
                found = NoChoice((f"{choice.model.name}: its notes do not fit in the target",))
                choice = None
        notes = [f"{proof.sentence[0].upper()}{proof.sentence[1:]}."] if proof.sentence else []
        who_chose = _who_chose(found)
        notes.append(who_chose)
        notes += [_UNUSED_FOCUS] if request.asking.focus and choice is None else []
        notes.append(_omission_notice(draft.left_out))
        usage = tracker.total or (choice.usage if choice is not None else None)
        result = await asyncio.to_thread(
            result_of, request, draft, choice, usage, counter=self.counter
        )
        problem = who_chose if choice is None else ""
        return replace(result, note=" ".join(filter(None, notes)), problem=problem)

    async def _answer(
        self, request: CompactionRequest, draft: CompactionDraft, tracker: RequestTracker
    ) -> Answered | None:
        """A model's answer, given now or in advance; None without a model."""
        if request.asking.ahead is not None:
            tracker.tell("finishing the summary started earlier")
            answered = await request.asking.ahead()
            known = {entry.id for entry in request.path}
            if isinstance(answered, NoChoice) or (answered and answered.through in known):
                return answered
        tracker.tell("reading the conversation")
        if self.curator is None:
            return None
        ask = await asyncio.to_thread(make_ask, request, draft, counter=self.counter)
        return await self.curator.choose(request, ask, tracker)


def _who_chose(found: Answered | None) -> str:
    match found:
        case KeepChoice(model=model, problem=problem, failures=failures):
            return note_on_writing(model.name, problem, failures)
        case NoChoice(problems=problems):
            return note_on_writing("", "", problems)
        case None:
            return ""


def _omission_notice(messages: int) -> str:
    if not messages:
        return ""
    if messages == 1:
        return "The model no longer sees one of your messages. It can look it up with recall."
    return (
        f"The model no longer sees {messages:,} of your messages. It can look them up with recall."
    )


tiered = BuiltInStrategy("a summary, in this session", _build)
