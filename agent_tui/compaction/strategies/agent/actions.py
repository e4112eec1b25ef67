"""Carrying out the calls of the compression agent on the copy, and answering them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from agent_tui.compaction.strategies.agent.budget import TokenBudget
from agent_tui.compaction.strategies.agent.checks import text_problem
from agent_tui.compaction.strategies.agent.copy import ContextCopy
from agent_tui.compaction.strategies.agent.listing import contents, listing
from agent_tui.compaction.strategies.agent.prompt import reading
from agent_tui.compaction.strategies.agent.reply import AgentReply
from agent_tui.compaction.strategies.agent.tools import (
    METADATA,
    SEGMENT,
    AgentAction,
    BadCallError,
    CompressResults,
    CompressSegment,
    ListMessages,
    Span,
    VerifyTarget,
    read_call,
)
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.messages import TextContent, ToolCall, ToolResultMessage
from agent_tui.tokens import TokenCounter

_MOST_CALLS = 32
"""In one reply; more are a model that goes round in circles."""

_FRAME_TOKENS = 120
"""What stands around the contents of a segment."""

_LEAST_CONTENTS_TOKENS = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the calls of one reply.

    Args:
        results: One for each call, in order.
        is_verified: The agent asked whether the target is met, and it is.
        problem: What was wrong with the last call, if none of them was carried out.
    """

    results: tuple[ToolResultMessage, ...]
    is_verified: bool
    problem: str


@dataclass(frozen=True, slots=True)
class _Share:
    """Bounds in tokens: of one answer, and of the segments that are offered."""

    tokens: int
    segment: int


class AgentActions:
    """Does on a copy what calls ask for.

    Attributes:
        results: How many tool results were made short.
        segments: How many segments were replaced by a text.
    """

    def __init__(self, copy: ContextCopy, counter: TokenCounter) -> None:
        self._copy = copy
        self._counter = counter
        self._shown: set[Span] = set()
        self._readable: set[Span] = set()
        self.results = 0
        self.segments = 0

    def forget_contents(self) -> None:
        """What was read is no part of the next request: it must be read again."""
        self._shown.clear()

    def carry_out(self, reply: AgentReply, room: TokenBudget) -> Outcome:
        """Do what the calls of `reply` ask for, in their order.

        A segment can only be replaced right after it was read: later its contents are no longer
        before the agent.
        """
        calls = reply.message.tool_calls
        long_answers = sum(call.name in (SEGMENT, METADATA) for call in calls[:_MOST_CALLS])
        share = _Share(room.answers // max(long_answers, 1), room.segment)
        self._readable, self._shown = self._shown, set()
        results: list[ToolResultMessage] = []
        problem = ""
        was_useful = is_verified = False
        for number, call in enumerate(calls):
            try:
                if number >= _MOST_CALLS:
                    raise BadCallError(f"Not done: a reply may have at most {_MOST_CALLS} calls.")
                action = _action(call, reply.broken)
                results.append(_result(call, self._answer(action, share)))
            except BadCallError as error:
                problem = error.message
                results.append(_result(call, str(error), is_error=True))
                continue
            was_useful = True
            is_verified |= isinstance(action, VerifyTarget) and self._copy.is_met
        return Outcome(tuple(results), is_verified, "" if was_useful else problem)

    def _answer(self, action: AgentAction, share: _Share) -> str:
        match action:
            case ListMessages(skip=skip):
                return listing(self._copy, self._counter, share.tokens, share.segment, skip)
            case CompressResults():
                return self._shorten(action)
            case CompressSegment(span=span, text=text):
                span = self._checked(span)
                if text and span in self._readable:
                    return self._replace(span, text, share)
                if reading_of_it := self._read(span, share):
                    return reading_of_it
                raise BadCallError("Not shown: read fewer segments at once.")
            case VerifyTarget():
                return self._verified()
            case _:
                assert_never(action)

    def _shorten(self, action: CompressResults) -> str:
        """Make messages short, oldest first, until the target is met; ranges may hold others."""
        copy, count = self._copy, len(self._copy.units)
        named = {n for s in action.spans for n in range(s.first, min(s.last, count) + 1) if n > 0}
        if not named:
            raise BadCallError(f"There are no such messages; ids are 1 to {count}.")
        changed = freed = 0
        excess = copy.used_tokens - copy.target_tokens
        for number in sorted(named):
            if freed < excess and copy.is_open(number - 1):
                gain = copy.shorten(number - 1, keeps_ends=action.keeps_ends)
                changed, freed = changed + (gain > 0), freed + gain
        if not changed:
            raise BadCallError(
                "Nothing changed: these messages are protected, already short, or not results. "
                + self._verified()
            )
        self.results += changed
        return f"Shortened {changed} messages; {freed:,} tokens freed. {self._verified()}"

    def _checked(self, span: Span) -> Span:
        count = len(self._copy.units)
        if span.first < 1 or span.last > count:
            raise BadCallError(f"There are no messages {span}; ids are 1 to {count}.")
        whole = self._copy.widened(span)
        closed = [n for n in range(whole.first, whole.last + 1) if not self._copy.is_open(n - 1)]
        if closed:
            raise BadCallError(
                f"Messages {span} cannot be replaced: {closed[0]} is protected or was replaced "
                "already. Choose one of the segments listed."
            )
        return whole

    def _read(self, span: Span, share: _Share) -> str:
        """What a segment holds; empty where there is no room for that."""
        tokens = self._tokens(span)
        room = share.tokens - _FRAME_TOKENS
        if room < _LEAST_CONTENTS_TOKENS:
            return ""
        quoted = contents(self._copy, span, self._counter, room)
        self._shown.add(span)
        return reading(span, quoted, tokens)

    def _replace(self, span: Span, text: str, share: _Share) -> str:
        copy, tokens = self._copy, self._tokens(span)
        original = [*copy.present(span), *copy.written(span)]
        text = escape_tags(text)
        problem = text_problem(text, original, tokens)
        if not problem and self._counter.count_text(text) >= tokens:
            problem = "it is not shorter than what it replaces"
        freed = 0 if problem else copy.replace(span, text)
        if problem or not freed:
            problem = problem or "it saves nothing"
            raise BadCallError(
                f"The text for messages {span} was not accepted: {problem}.",
                self._read(span, share),
            )
        self.segments += 1
        return f"Replaced messages {span}; {freed:,} tokens freed. {self._verified()}"

    def _verified(self) -> str:
        used, target = self._copy.used_tokens, self._copy.target_tokens
        if used <= target:
            return f"The target is met: {used:,} of at most {target:,} tokens."
        return f"Not met yet: {used:,} tokens, {used - target:,} too many."

    def _tokens(self, span: Span) -> int:
        return sum(self._copy.tokens(number - 1) for number in range(span.first, span.last + 1))


def _action(call: ToolCall, broken: Mapping[str, str]) -> AgentAction:
    if call.id in broken:
        raise BadCallError(f"Not done: {broken[call.id]}.")
    return read_call(call.name, call.arguments)


def _result(call: ToolCall, text: str, *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=text),),
        is_error=is_error,
    )
