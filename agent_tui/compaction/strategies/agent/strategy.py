"""The strategy `agent`: a model that edits the plan with four tools until it meets its target."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import TypeAlias, cast

from pydantic import JsonValue

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.model_client import (
    ModelClient,
    ModelReply,
    OnProgress,
    OnUsage,
    RequestTracker,
    failure_of,
)
from agent_tui.compaction.shorten import shorten_middle
from agent_tui.compaction.strategies.agent.actions import AgentActions, Room
from agent_tui.compaction.strategies.agent.tools import REMINDER, SYSTEM_PROMPT, TOOLS, VERIFY
from agent_tui.compaction.strategies.base import StrategyPlan, StrategyServices
from agent_tui.compaction.strategies.message_plan import Conversation
from agent_tui.compaction.summary.candidates import candidates
from agent_tui.compaction.summary.writer import SummaryModel
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.errors import CompactionError
from agent_tui.messages import AssistantMessage, Message, TextContent, ToolCall, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRequest, ProviderError
from agent_tui.text import repair_json
from agent_tui.tokens import TokenCounter

Clock: TypeAlias = Callable[[], float]
"""Seconds that only go forward."""

MOST_ROUNDS = 8
TIME_LIMIT_S = 120.0
"""Recorded summaries of large models took 71 to 105 s; work that takes longer is no gain."""

_FORGIVEN_ROUNDS = 1
"""Replies without any call that could be carried out, in all."""

_FOCUS_CHARS = 1_000
_INPUT_SHARE = 0.75
"""Our token estimates were up to 30 % under a provider's count on real sessions."""

_OUTPUT_PARTS, _MOST_OUTPUT_TOKENS = 5, 6_000
_LISTING_PARTS, _MOST_LISTING_TOKENS = 3, 6_000
_MOST_READING_TOKENS = 40_000
_SEGMENT_TOKENS = (400, 6_000)
_LEAST_TOKENS = 400
_STATUS_TOKENS = 300
"""What a request says besides prompt, tools, list and answers to calls."""


class CompressionAgent:
    """Has a model shorten and sum up parts of a context until it meets its target.

    Nothing is taken over unless the agent has verified that the target is met and a check by
    code agrees; else the tiers take over.

    Args:
        services: Models and counter; without a client there is no agent.
        clock: For the time limit.
    """

    def __init__(self, services: StrategyServices, clock: Clock = time.monotonic) -> None:
        self._services = services
        self._clock = clock

    async def plan(
        self, request: CompactionRequest, *, on_progress: OnProgress, on_usage: OnUsage
    ) -> StrategyPlan:
        """See `Strategy.plan`.

        Models are tried in the order of summaries; where one cannot be reached the next goes on
        with the work, within the same rounds and time.

        Raises:
            CompactionError: the agent did not come to the target, for the reason given.
        """
        client, counter = self._services.client, self._services.counter
        if client is None:
            raise _gave_up("no model is available")
        on_progress("reading the conversation", 0)
        conversation = await asyncio.to_thread(Conversation, request, counter, "agent")
        plan = await asyncio.to_thread(conversation.plan)
        work = _Work(
            AgentActions(plan), request, client, RequestTracker(on_progress, on_usage), self._clock
        )
        if not await asyncio.to_thread(lambda: plan.is_met):
            protected = sum(unit.tokens for unit in conversation.units if unit.is_protected)
            if protected + request.overhead_tokens > conversation.target_tokens:
                raise _gave_up("the protected messages alone exceed the target")
            await self._work(work, request)
        made, told = work.actions.plan, self._services.on_decisions
        return await asyncio.to_thread(lambda: made.finished(work.statistics, on_decisions=told))

    async def _work(self, work: "_Work", request: CompactionRequest) -> None:
        found = candidates(self._services.models, request.settings, request.model)
        failures = list(found.problems)
        for model in found.models:
            try:
                return await work.run(model)
            except ProviderError as error:
                failures.append(failure_of(model.ref, error))
        raise _gave_up("; ".join(failures))


class _Work:
    """The rounds of one compaction, whichever models take part."""

    def __init__(
        self,
        actions: AgentActions,
        request: CompactionRequest,
        client: ModelClient,
        tracker: RequestTracker,
        clock: Clock,
    ) -> None:
        self.actions = actions
        self._focus = escape_tags(shorten_middle(request.focus, _FOCUS_CHARS))
        self._client = client
        self._tracker = tracker
        self._clock = clock
        self._deadline_s = clock() + TIME_LIMIT_S
        self._rounds = self._useless_rounds = 0

    @property
    def statistics(self) -> dict[str, int]:
        """What the agent did."""
        return {
            "messages_changed": len(self.actions.plan.edits),
            "tool_results_shortened": self.actions.results,
            "segments_replaced": self.actions.segments,
            "rounds": self._rounds,
        }

    async def run(self, model: SummaryModel) -> None:
        """Let `model` work until it has verified that the target is met.

        Raises:
            ProviderError: the model cannot be asked.
            CompactionError: it does not do it.
        """
        counter = self.actions.plan.conversation.counter
        room = await asyncio.to_thread(room_for, model.info, counter)
        if room is None:
            raise ProviderError("context_overflow", "its window is too small for the work")
        self.actions.forget_contents()
        last, remark = tuple[Message, ...](), ""
        while self._rounds < MOST_ROUNDS:
            self._rounds += 1
            reply = await self._ask(model, room, last, remark)
            if reply.finish == "contentFilter":
                raise _gave_up("the provider's content filter stopped it")
            if not reply.calls:
                self._count_useless("it answered with text instead of tool calls")
                self.actions.forget_contents()
                last, remark = (), REMINDER
                continue
            message, broken = _with_calls(reply)
            calls = message.tool_calls
            done = await asyncio.to_thread(self.actions.carry_out, calls, broken, room)
            if done.is_verified:
                return
            if done.problem:
                self._count_useless(done.problem.rstrip("."))
            last, remark = (message, *done.results), ""
        raise _gave_up(f"the target was not met in {MOST_ROUNDS} rounds")

    async def _ask(
        self, model: SummaryModel, room: Room, last: tuple[Message, ...], remark: str
    ) -> ModelReply:
        left_s = self._deadline_s - self._clock()
        too_late = _gave_up(f"it did not finish within {TIME_LIMIT_S:.0f} s")
        if left_s <= 0:
            raise too_late
        status = await asyncio.to_thread(self._status, room, remark)
        request = ModelRequest(
            model=model.ref,
            system=SYSTEM_PROMPT,
            messages=(UserMessage(content=status), *last),
            tools=TOOLS,
            max_output_tokens=room.output,
            purpose="summary",
        )
        changed = len(self.actions.plan.edits)
        phase = f"compression agent {self._rounds}/{MOST_ROUNDS}, {changed} message"
        phase += f"{'s' * (changed != 1)} shortened"
        try:
            async with asyncio.timeout(left_s):
                return await self._client.ask(request, phase, self._tracker)
        except TimeoutError:
            raise too_late from None

    def _status(self, room: Room, remark: str) -> str:
        plan = self.actions.plan
        used, target = plan.used_tokens, plan.conversation.target_tokens
        todo = f"{used - target:,} tokens to go." if used > target else f"It is met: call {VERIFY}."
        about = "Keep everything about what the user asked to pay attention to:"
        blocks = (
            f"Round {self._rounds} of {MOST_ROUNDS}. The context has {used:,} tokens; "
            f"the target is {target:,}. {todo}",
            self.actions.listing(room.listing, room.segment),
            f"{about}\n<focus>\n{self._focus}\n</focus>" if self._focus else "",
            remark,
        )
        return "\n\n".join(block for block in blocks if block)

    def _count_useless(self, problem: str) -> None:
        self._useless_rounds += 1
        if self._useless_rounds > _FORGIVEN_ROUNDS:
            raise _gave_up(problem)


def room_for(info: ModelInfo, counter: TokenCounter) -> Room | None:
    """The bounds for a model; None where its window is too small to work in.

    A request holds prompt, tools, list, the last reply and the answers to its calls, and leaves
    room for the next reply.
    """
    limits = [limit for limit in (info.max_output, _MOST_OUTPUT_TOKENS) if limit > 0]
    output = min(info.window // _OUTPUT_PARTS, *limits)
    frame = counter.count_text(SYSTEM_PROMPT) + counter.count_tools(TOOLS) + _STATUS_TOKENS
    room = int((info.window - 2 * output) * _INPUT_SHARE) - frame
    if room < _LEAST_TOKENS:
        return None
    listing = min(room // _LISTING_PARTS, _MOST_LISTING_TOKENS)
    answers = min(room - listing, _MOST_READING_TOKENS)
    lowest, highest = _SEGMENT_TOKENS
    return Room(output, listing, answers, min(max(answers, lowest), highest))


def _with_calls(reply: ModelReply) -> tuple[AssistantMessage, dict[str, str]]:
    """`reply` with its calls as they can be carried out; by their ids, what is wrong with them."""
    calls: dict[str, ToolCall] = {}
    broken: dict[str, str] = {}
    for call in reply.calls:
        call_id = call.id or f"call_{len(calls) + 1}"
        while call_id in calls:
            call_id += "_"
        try:
            value = repair_json(cast(JsonValue, json.loads(call.arguments_json.strip() or "{}")))
        except (ValueError, RecursionError):
            value, broken[call_id] = {}, "its arguments are not valid JSON"
        if not isinstance(value, dict):
            value, broken[call_id] = {}, "its arguments are not a JSON object"
        calls[call_id] = ToolCall(id=call_id, name=call.name, arguments=value)
    said = (TextContent(text=reply.text),) if reply.text.strip() else ()
    return AssistantMessage(content=(*said, *calls.values())), broken


def _gave_up(why: str) -> CompactionError:
    return CompactionError(f"The compression agent did not reach the target: {why}.")
