"""Ways to make a context smaller: ours within a budget, and what other programs do."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time

from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.compaction.planner import CompactionPlanner
from agent_tui.compaction.request import CompactionRequest, ContextSizes
from agent_tui.compaction.strategies.base import Strategy, StrategyServices
from agent_tui.compaction.strategies.tiered import shorten_in_place
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.features.strategies.agent.strategy import CompressionAgent
from agent_tui.features.strategies.hybrid import HybridStrategy
from agent_tui.features.tour.scripted import ScriptedProvider
from agent_tui.messages import Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.sessions.context import build_context, wrap_summary
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.benchmarks.compaction_cases import RealCompaction, RecordedSession
from tests.benchmarks.compaction_truth import said
from tests.compaction.writer import Models, client_of
from tests.features.strategies.agent.diligent_agent import diligent_reply

_NO_MODEL = ModelRef("none/none")
_TARGET = 0.4
"""Of the window: what automatic compaction aims at."""

_TRIES = 10
_OMITTED = "[output left out]"


@dataclass(frozen=True)
class Compacted:
    """A context afterwards: its text, size in tokens, and the seconds it took to make."""

    text: str
    tokens: int
    seconds: float = 0.0


class _NoModels:
    def info(self, ref: ModelRef) -> ModelInfo:
        return ModelInfo(ref.name, 0, 0)

    def resolve(self, name: str) -> ModelRef:
        return ModelRef(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return None


def ours(
    path: Sequence[Entry], *, cwd: str, counter: TokenCounter, max_tokens: int
) -> Compacted | None:
    """The product without a model, given the largest target whose compaction fits `max_tokens`.

    As ``agent-tui compact --model none`` does it; None where there is nothing to compact.
    """
    window, target = int(max_tokens / _TARGET), max_tokens
    for _ in range(_TRIES):
        started = perf_counter()
        after = _by_the_product(tuple(path), cwd, counter, window, target)
        seconds = perf_counter() - started
        if after is None:
            return None
        messages = [item.message for item in build_context(after).messages]
        tokens = counter.count_messages(messages)
        if tokens <= max_tokens:
            return Compacted("\n".join(said(m) for m in messages), tokens, seconds)
        target = int(target * min(max_tokens / tokens, 0.98) * 0.98)
    return None


def _by_the_product(
    path: tuple[Entry, ...], cwd: str, counter: TokenCounter, window: int, target_tokens: int
) -> tuple[Entry, ...] | None:
    asked = _request(path, cwd=cwd, max_tokens=target_tokens)
    sizes = replace(asked.sizes, window=window)
    request = replace(asked, sizes=sizes, occasion="new session")
    planner = CompactionPlanner(None, counter, _NoModels())
    try:
        outcome = asyncio.run(planner.outcome(request, "tiered", lambda *_: None))
    except CompactionError:
        return None
    return outcome.child_entries(path, "manual", 0)


def by_hybrid(
    path: Sequence[Entry], *, cwd: str, counter: TokenCounter, max_tokens: int
) -> Compacted | None:
    """Strategy `hybrid` without a model, alone; None where it finds nothing to do."""
    strategy = HybridStrategy(StrategyServices(None, counter, _NoModels()))
    return _planned(strategy, _request(path, cwd=cwd, max_tokens=max_tokens), counter)


def by_agent(
    path: Sequence[Entry], *, cwd: str, counter: TokenCounter, max_tokens: int
) -> Compacted | None:
    """Strategy `agent` alone, played by a script; None where it does not come to the target.

    The script makes every old result short and puts the same few sentences in the place of
    segments, so it shows what the strategy keeps whatever a model writes.
    """
    client = client_of(ScriptedProvider(diligent_reply))
    strategy = CompressionAgent(StrategyServices(client, counter, Models()))
    return _planned(strategy, _request(path, cwd=cwd, max_tokens=max_tokens), counter)


def then_tiers(
    alone: Compacted | None,
    path: Sequence[Entry],
    *,
    cwd: str,
    counter: TokenCounter,
    max_tokens: int,
) -> Compacted | None:
    """The product with a strategy that made `alone`: the tiers where that is not enough."""
    if alone is not None and alone.tokens <= max_tokens:
        return alone
    return ours(path, cwd=cwd, counter=counter, max_tokens=max_tokens)


def _planned(
    strategy: Strategy, request: CompactionRequest, counter: TokenCounter
) -> Compacted | None:
    """The context with the edits of `strategy`; None where it finds nothing that it can do."""
    started = perf_counter()
    try:
        plan = asyncio.run(
            strategy.plan(request, on_progress=lambda *_: None, on_usage=lambda _: None)
        )
    except CompactionError:
        return None
    seconds = perf_counter() - started
    edits = [edit.model_copy(update={"id": f"s{n:07x}"}) for n, edit in enumerate(plan.edits)]
    messages = [item.message for item in build_context((*request.path, *edits)).messages]
    text = "\n".join(said(message) for message in messages)
    return Compacted(text, counter.count_messages(messages), seconds)


def _request(path: Sequence[Entry], *, cwd: str, max_tokens: int) -> CompactionRequest:
    return CompactionRequest(
        path=tuple(path),
        previous=None,
        model=_NO_MODEL,
        cwd=Path(cwd),
        settings=CompactionSettings(),
        sizes=ContextSizes(window=int(max_tokens / _TARGET), used=0, target=max_tokens),
    )


@dataclass(frozen=True)
class HybridCost:
    """What making all messages shorter takes: tokens, and seconds of one processor."""

    session: str
    results: int
    tokens_before: int
    tokens_after: int
    seconds: float

    @property
    def ms_a_result(self) -> float:
        """All of it, reading the session included, shared among the tool results."""
        return 1_000 * self.seconds / max(self.results, 1)


def hybrid_cost(session: RecordedSession, counter: TokenCounter) -> HybridCost | None:
    """All that strategy `hybrid` does without a model; texts have been counted before."""
    before = counter.count_messages(session.messages)
    started = process_time()
    made = by_hybrid(session.entries, cwd=session.cwd, counter=counter, max_tokens=1)
    seconds = process_time() - started
    results = sum(isinstance(message, ToolResultMessage) for message in session.messages)
    return HybridCost(session.name, results, before, made.tokens, seconds) if made else None


@dataclass(frozen=True)
class Saving:
    """What the tiers without a summary free of a whole session; tokens and seconds."""

    session: str
    messages: int
    tokens_before: int
    freed: tuple[int, int, int]
    tokens_after: int
    seconds: float
    ledger_seconds: float


def tier_savings(session: RecordedSession, counter: TokenCounter, window: int = 200_000) -> Saving:
    """All that tiers 0 to 2 can free in a session that has not been compacted."""
    counter.count_messages(session.messages)
    started = perf_counter()
    asked = _request(session.entries, cwd=session.cwd, max_tokens=1)
    plan = shorten_in_place(replace(asked, sizes=replace(asked.sizes, window=window)), counter)
    planned = perf_counter()
    build_ledger(session.entries, folders=(session.cwd,), previous=None)
    return Saving(
        session.name,
        len(session.entries),
        plan.tokens_before,
        (plan.freed.get(0, 0), plan.freed.get(1, 0), plan.freed.get(2, 0)),
        plan.tokens_after,
        round(planned - started, 3),
        round(perf_counter() - planned, 3),
    )


def newest_within(messages: Sequence[Message], counter: TokenCounter, max_tokens: int) -> Compacted:
    """The newest messages that fit."""
    kept: list[Message] = []
    tokens = 0
    for message in reversed(messages):
        size = counter.count_message(message)
        if tokens + size > max_tokens:
            break
        tokens += size
        kept.append(message)
    return _compacted(kept[::-1], counter)


def mask_outputs(messages: Sequence[Message], counter: TokenCounter, kept: int) -> Compacted:
    """All messages, but only the newest `kept` tool outputs."""
    outputs = [i for i, m in enumerate(messages) if isinstance(m, ToolResultMessage)]
    masked = set(outputs[: len(outputs) - kept])
    return _compacted(
        [_with_text(m, _OMITTED) if i in masked else m for i, m in enumerate(messages)], counter
    )


def cut_outputs(messages: Sequence[Message], counter: TokenCounter, max_chars: int) -> Compacted:
    """All messages, with tool outputs cut at the end."""
    return _compacted(
        [
            _with_text(m, m.text[:max_chars])
            if isinstance(m, ToolResultMessage) and len(m.text) > max_chars
            else m
            for m in messages
        ],
        counter,
    )


def real_summary(
    messages: Sequence[Message], counter: TokenCounter, real: RealCompaction
) -> Compacted:
    """What the file itself holds at this place, with the messages that were kept."""
    summary = UserMessage(content=wrap_summary(real.summary), timestamp=0)
    return _compacted([summary, *messages[real.kept_from : real.cut]], counter)


def _compacted(messages: Sequence[Message], counter: TokenCounter) -> Compacted:
    return Compacted("\n".join(said(m) for m in messages), counter.count_messages(messages))


def _with_text(message: Message, text: str) -> Message:
    if isinstance(message, ToolResultMessage):
        return message.model_copy(update={"content": (TextContent(text=text),)})
    return message
