"""Strategy `hybrid`: metadata for tool results, fewer words for what was said, the newest as is."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import OnProgress, OnUsage, RequestTracker
from agent_tui.compaction.shorten import shorten_middle
from agent_tui.compaction.strategies.base import SHORTEN_ALL, StrategyPlan, StrategyServices
from agent_tui.compaction.strategies.hybrid.condenser import (
    MESSAGES_A_CALL,
    Condenser,
    LongMessage,
)
from agent_tui.compaction.strategies.message_plan import (
    Conversation,
    Fate,
    Line,
    Lines,
    MessagePlan,
    Words,
)
from agent_tui.compaction.strategies.words import words_problem
from agent_tui.compaction.summary.candidates import candidates
from agent_tui.compaction.tiers.model import Unit
from agent_tui.messages import AssistantMessage, UserMessage
from agent_tui.omissions import recall_mark
from agent_tui.sessions.entries import CustomMessageEntry
from agent_tui.tokens import MESSAGE_OVERHEAD_TOKENS, TokenCounter

KEPT_MESSAGES = 5
"""The newest messages of person and model that stay byte for byte."""

MOST_USER_TOKENS = 50
MOST_ASSISTANT_TOKENS = 200
"""Of a message with everything around it, calls and rules that are kept word for word apart."""


@dataclass(frozen=True, slots=True)
class HybridStrategy:
    """Makes messages shorter one by one, the oldest first, until the target is reached.

    Args:
        services: Models are asked to put messages into fewer words; without a client they are cut.
    """

    services: StrategyServices

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`. A model that fails costs words, not the plan.

        Raises:
            CompactionError: No message can be made shorter, or the result is not sound.
        """
        counter, client = self.services.counter, self.services.client
        on_progress("reading the conversation", 0)
        rules = await asyncio.to_thread(_Rules.of, request, counter)
        on_progress("describing tool results", 0)
        plan = await asyncio.to_thread(rules.begun)
        condenser = None
        if client is not None:
            found = candidates(self.services.models, request.settings, request.model)
            tracker = RequestTracker(on_progress, on_usage)
            condenser = Condenser(client, found.models, tracker, request.focus)
        waiting, done = rules.long_messages(), 0
        while asked := await asyncio.to_thread(rules.next_call, plan, waiting):
            phase = f"condensing messages {done + 1}-{done + len(asked)}"
            messages = [message for _, message in asked]
            texts = await condenser.condense(messages, phase) if condenser else dict[int, str]()
            made = [(unit, texts.get(at, "")) for at, (unit, _) in enumerate(asked)]
            plan = await asyncio.to_thread(rules.said, plan, made)
            done += len(asked)
        plan = await asyncio.to_thread(rules.ended, plan)
        failures = condenser.failures if condenser else ["no model"]
        return await asyncio.to_thread(
            lambda: plan.finished(
                _statistics(plan), _note(plan, failures), self.services.on_decisions
            )
        )


@dataclass(frozen=True, slots=True)
class _Rules:
    """What becomes of which message, stage by stage. `unread` are results no reply came after."""

    conversation: Conversation
    unread: range

    @classmethod
    def of(cls, request: CompactionRequest, counter: TokenCounter) -> "_Rules":
        """The rules for the conversation of `request`.

        Protected are the last `KEPT_MESSAGES` of person and model, the person's last message,
        and what features tell the model.
        """
        told = {e.id for e in request.path if isinstance(e, CustomMessageEntry) and not e.display}

        def protect(units: Sequence[Unit]) -> Sequence[Unit]:
            spoken = [u for u in units if _is_spoken(u) and u.entry_id not in told]
            own = [unit for unit in spoken if isinstance(unit.message, UserMessage)]
            newest = {unit.position for unit in (*spoken[-KEPT_MESSAGES:], *own[-1:])}
            return tuple(
                replace(unit, is_protected=unit.position in newest or unit.entry_id in told)
                for unit in units
            )

        conversation = Conversation(request, counter, "hybrid", protect)
        end = unread = len(conversation.units)
        while unread > 0 and conversation.units[unread - 1].output is not None:
            unread -= 1
        return cls(conversation, range(unread, end))

    def begun(self) -> MessagePlan:
        """A line for every result before the newest messages, and shorter calls."""
        units = self.conversation.units
        border = next((unit.position for unit in units if unit.is_protected), len(units))
        return self.conversation.plan().towards_target(self._lines(units[:border]))

    def long_messages(self) -> Iterator[tuple[Unit, LongMessage]]:
        """Old messages that can be said in fewer words, the oldest first."""
        count = self.conversation.counter.count_text
        for unit in self.conversation.units:
            most = _most_tokens(unit)
            is_old = _is_spoken(unit) and not unit.is_protected and unit.edited_tier < 3
            if is_old and count(unit.message.text) > most:
                room = most - count(_ending(unit))
                text = unit.message.text
                yield unit, LongMessage(unit.message.role, text, max(room, most // 4))

    def next_call(
        self, plan: MessagePlan, waiting: Iterator[tuple[Unit, LongMessage]]
    ) -> Sequence[tuple[Unit, LongMessage]]:
        """As many of `waiting` as are needed to reach the target, or as go into one call."""
        missing = plan.missing_tokens
        chosen: list[tuple[Unit, LongMessage]] = []
        while missing > 0 and len(chosen) < MESSAGES_A_CALL and (one := next(waiting, None)):
            chosen.append(one)
            missing -= max(plan.size(one[0].position) - _most_tokens(one[0]), 0)
        return chosen

    def said(self, plan: MessagePlan, made: Sequence[tuple[Unit, str]]) -> MessagePlan:
        """`plan` with what a model wrote of messages, or their beginning and end if that fails."""
        return plan.towards_target((unit.position, self._short(unit, text)) for unit, text in made)

    def ended(self, plan: MessagePlan) -> MessagePlan:
        """A line for results among the newest messages; those nobody has read keep their ends."""
        units = self.conversation.units
        plan = plan.towards_target(self._lines(units[: self.unread.start]))
        return plan.towards_target((position, Lines()) for position in self.unread)

    def _lines(self, units: Sequence[Unit]) -> Iterator[tuple[int, Fate]]:
        """Long notes beside calls are left to a model."""
        for unit in units:
            is_long = self.conversation.counter.count_text(unit.message.text) > _most_tokens(unit)
            if unit.output is not None or not is_long:
                yield unit.position, Line()

    def _short(self, unit: Unit, text: str) -> Words:
        count, ending = self.conversation.counter.count_text, _ending(unit)
        original, most = unit.message.text.strip(), _most_tokens(unit)
        problem = words_problem(text, original, most) if text else "no answer"
        if not problem and count(text + ending) <= most:
            return Words(text + ending)
        chars, short = len(original) * most // max(count(original), 1), original + ending
        while chars and count(short) > most:
            short = shorten_middle(original, chars) + ending
            chars = chars * 4 // 5
        return Words(short if chars else f"…{ending}", problem or "it is too long")


def _is_spoken(unit: Unit) -> bool:
    """Whether a person or a model said it, rather than a tool or a feature."""
    is_message = isinstance(unit.message, UserMessage | AssistantMessage)
    return is_message and unit.output is None and not unit.is_display_only


def _most_tokens(unit: Unit) -> int:
    is_own = isinstance(unit.message, UserMessage)
    return (MOST_USER_TOKENS if is_own else MOST_ASSISTANT_TOKENS) - MESSAGE_OVERHEAD_TOKENS


def _ending(unit: Unit) -> str:
    return f" {recall_mark(unit.entry_id)}"


def _statistics(plan: MessagePlan) -> dict[str, int]:
    """How many messages of which kind were compressed and deleted."""
    made = {edit.target_id for edit in plan.edits}
    edited = [unit for unit in plan.conversation.units if unit.entry_id in made]
    spoken = [unit.message for unit in edited if _is_spoken(unit)]
    return {
        "tool_results": sum(unit.output is not None for unit in edited),
        "user_messages": sum(isinstance(message, UserMessage) for message in spoken),
        "assistant_messages": sum(isinstance(message, AssistantMessage) for message in spoken),
        "display_only_deleted": sum(unit.is_display_only for unit in edited),
    }


def _note(plan: MessagePlan, failures: Sequence[str]) -> str:
    """What did not go as planned, in whole sentences; empty where all went well."""
    words = [fate for fate in plan.fates.values() if isinstance(fate, Words)]
    cut = [fate.problem for fate in words if fate.problem]
    sentences: list[str] = []
    if cut:
        why = "; ".join(failures) or cut[0]
        sentences.append(
            f"{len(cut)} of {len(words)} old messages were cut, not rewritten ({why})."
        )
    target, after = plan.conversation.target_tokens, plan.used_tokens
    if after > target > SHORTEN_ALL:
        units = plan.conversation.units
        kept = sum(plan.size(unit.position) for unit in units if unit.is_protected)
        sentences.append(
            f"About {after:,} tokens remain, above the target of {target:,}: "
            f"nothing older can be shortened, and the newest messages take {kept:,}."
        )
    return " ".join(sentences)
