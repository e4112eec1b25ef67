"""Ways to make a context smaller: ours within a budget, and what other programs do."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from agent_tui.compaction.ledger import build_ledger
from agent_tui.compaction.service import CompactionRequest, CompactionService, child_entries
from agent_tui.compaction.tiers.pipeline import plan_tiers
from agent_tui.config import CompactionSettings
from agent_tui.errors import CompactionError
from agent_tui.messages import Message, TextContent, ToolResultMessage, UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.sessions.context import build_context, wrap_summary
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter
from tests.benchmarks.compaction_cases import RealCompaction, RecordedSession
from tests.benchmarks.compaction_truth import said

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
    """The product without a model, given the largest window whose compaction fits `max_tokens`.

    First the tiers, then the summary of what lies before the messages that stay, as ``agent-tui
    compact --model none`` does it. None where it says that there is nothing to compact.
    """
    window = int(max_tokens / _TARGET)
    for _ in range(_TRIES):
        started = perf_counter()
        after = _by_the_product(tuple(path), cwd, counter, window, max_tokens)
        seconds = perf_counter() - started
        if after is None:
            return None
        messages = [item.message for item in build_context(after).messages]
        tokens = counter.count_messages(messages)
        if tokens <= max_tokens:
            return Compacted("\n".join(said(m) for m in messages), tokens, seconds)
        window = int(window * min(max_tokens / tokens, 0.98) * 0.98)
    return None


def _by_the_product(
    path: tuple[Entry, ...], cwd: str, counter: TokenCounter, window: int, target_tokens: int
) -> tuple[Entry, ...] | None:
    settings = CompactionSettings()
    plan = plan_tiers(
        path,
        carryover=None,
        counter=counter,
        settings=settings,
        window=window,
        overhead_tokens=0,
        target_tokens=target_tokens,
    )
    edits = tuple(edit.model_copy(update={"id": f"e{n:07x}"}) for n, edit in enumerate(plan.edits))
    service = CompactionService(None, counter, _NoModels(), settings)
    for candidate in ((*path, *edits), path):
        request = CompactionRequest(
            path=candidate,
            previous=None,
            model=_NO_MODEL,
            window=window,
            cwd=Path(cwd),
            tokens_before=plan.tokens_before,
        )
        try:
            return child_entries(asyncio.run(service.compact(request, lambda *_: None)))
        except CompactionError:
            continue
    return None


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
    plan = plan_tiers(
        session.entries,
        carryover=None,
        counter=counter,
        settings=CompactionSettings(),
        window=window,
        overhead_tokens=0,
        target_tokens=0,
    )
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
