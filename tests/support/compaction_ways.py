"""A conversation that is full, and every way in which it is compacted.

Summaries come from a model named in the settings and, where that fails, from the session's own;
a `Script` says which of them fail, and how.
"""

import asyncio
import dataclasses
from collections import deque
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Protocol

from agent_tui.agent.compaction.background import BackgroundSummary
from agent_tui.agent.runtime import AgentRuntime
from agent_tui.compaction.curation.answer import KeepChoice
from agent_tui.config import CompactionSettings
from agent_tui.events import (
    AgentEvent,
    CompactionFailed,
    CompactionFinished,
    TurnFinished,
)
from agent_tui.features.tour.scripted import Reply, ScriptedProvider, call
from agent_tui.messages import AssistantMessage, TextContent, Usage, UserMessage
from agent_tui.providers.base import FaultKind, ModelRef, ModelRequest, ProviderError
from agent_tui.sessions.entries import CompactionEntry, Entry, MessageEntry
from agent_tui.sessions.log import SessionLog
from agent_tui.sessions.replay.notes import was_copied
from tests.support.context_checks import assert_sendable
from tests.support.runtime import GOOD_SUMMARY, Stage, collect, of_kind, only

CHEAP = ModelRef("scripted/cheap")
USED = Usage(input=100, output=10, total_tokens=110)
FOCUS = "the greeting"
RETRY_AFTER_S = 7.0
WORK = """\
- [x] Read greet.py line by line and found the function that greets, called hello
- [x] Compared what it prints with the examples in the questions, which agree in every case
- [x] Answered each of them after a second look, with the exact wording quoted from the file
- [x] Looked for callers elsewhere and noted that only the command line uses it today
"""
SUMMARY = GOOD_SUMMARY.replace("- [x] Looked at greet.py\n", WORK)
HALF = SUMMARY[: SUMMARY.index("### In Progress")]


def failing(kind: FaultKind, *, text: str = "", retry_after_s: float | None = None) -> Reply:
    error = ProviderError(kind, f"It failed: {kind}.", retry_after_s=retry_after_s)
    return Reply(text=text, error=error)


class Script:
    """Turns go as told, then they are fine; summaries of the models in `broken` are `fault`."""

    def __init__(self, fault: Reply, *broken: ModelRef) -> None:
        self.fault = fault
        self.broken = broken
        self.turns: deque[Reply] = deque()
        self.paid = 0
        self.provider = ScriptedProvider(self.answer)

    def answer(self, request: ModelRequest) -> Reply:
        if request.purpose == "turn":
            return self.turns.popleft() if self.turns else Reply(text="Fine.")
        reply = self.fault if request.model in self.broken else Reply(text=SUMMARY)
        self.paid += reply.error is None and not reply.cut
        return dataclasses.replace(reply, usage=USED)

    @property
    def summaries(self) -> list[ModelRequest]:
        return [r for r in self.provider.requests if r.purpose == "summary"]


class Waits:
    """A sleep that notes what was asked for and is over at once, or never."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []
        self.is_endless = False

    async def sleep(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)
        if self.is_endless:
            await asyncio.Event().wait()


class Scene:
    """A conversation of some 28,000 tokens of talk, in which nothing can be shortened."""

    def __init__(
        self, stage: Stage, script: Script, window: int, *, background: bool = False
    ) -> None:
        self.script = script
        self.waits = Waits()
        self.runtime: AgentRuntime = stage.runtime(
            script.provider,
            sleep=self.waits.sleep,
            window=window,
            windows={CHEAP.name: 100_000},
            compaction=CompactionSettings(model=CHEAP.name),
            background=background,
        )
        self.log = self.runtime.conversation.log
        self.begin: Callable[[], AsyncGenerator[AgentEvent, None]] = lambda: self.runtime.submit(
            "go on"
        )
        """Runs what compacts."""
        talk(self.log, 28)

    async def is_usable(self, torn_lines: int = 0) -> bool:
        """Whether the conversation goes on as if nothing had happened."""
        self.script.fault = Reply(text=SUMMARY)
        events = await collect(self.runtime.submit("and now?"))
        assert_sound(self.runtime.conversation.log.path, torn_lines)
        return only(events, TurnFinished).outcome == "done"


def talk(log: SessionLog, exchanges: int) -> None:
    for number in range(exchanges):
        text = f"Question {number}: how does greet.py greet? " + "Please look closely. " * 120
        reply = f"Answer {number}: it says hello, as it should. " + "I looked closely. " * 120
        log.append(MessageEntry(message=UserMessage(content=text)))
        log.append(
            MessageEntry(
                message=AssistantMessage(content=(TextContent(text=reply),), stop_reason="stop")
            )
        )


def assert_sound(path: Path | None, torn_lines: int = 0) -> list[CompactionEntry]:
    """That the session file is whole and can be gone on with; its compactions.

    What a disk did not take to the end is a torn line, which is passed over with a warning.
    """
    assert path is not None
    with SessionLog.open(path, read_only=True) as log:
        assert sum("left out" in warning for warning in log.warnings) == torn_lines
        assert torn_lines or not log.warnings
        entries: tuple[Entry, ...] = log.path_entries()
        assert_sendable(entries)
    compactions = [entry for entry in entries if isinstance(entry, CompactionEntry)]
    ids = {entry.id for entry in entries}
    for compaction in compactions:
        assert compaction.first_kept_entry_id in ids
        assert compaction.tokens_after < compaction.tokens_before
        assert compaction.summary.strip()
    return compactions


# The ways in


async def by_hand(stage: Stage, script: Script) -> Scene:
    scene = Scene(stage, script, 64_000)
    scene.begin = lambda: scene.runtime.compact(FOCUS)
    return scene


async def at_the_threshold(stage: Stage, script: Script) -> Scene:
    return Scene(stage, script, 36_500)


async def in_a_tool_round(stage: Stage, script: Script) -> Scene:
    script.turns.append(Reply(tool_calls=(call("c1", "ls"),)))
    script.turns.append(failing("context_overflow"))
    return Scene(stage, script, 100_000)


async def by_the_tool(stage: Stage, script: Script) -> Scene:
    script.turns.append(Reply(tool_calls=(call("c1", "compact", focus=FOCUS),)))
    return Scene(stage, script, 56_000)


async def begun_ahead(stage: Stage, script: Script) -> Scene:
    """The summary has been asked for before the context is full."""
    scene = Scene(stage, script, 39_200, background=True)
    first = await collect(scene.runtime.submit("go on"))
    assert not of_kind(first, CompactionFinished)
    assert ahead_of(scene).ahead is not None
    talk(scene.log, 2)
    return scene


async def prepared_ahead(stage: Stage, script: Script) -> Scene:
    """The summary came, or failed, before the context is full."""
    scene = await begun_ahead(stage, script)
    await written_ahead(scene)
    return scene


def ahead_of(scene: Scene) -> BackgroundSummary:
    return scene.runtime._background


async def written_ahead(scene: Scene) -> KeepChoice | None:
    """What was chosen ahead, waited for; None where there is none."""
    ahead = ahead_of(scene).ahead
    return await ahead() if ahead is not None else None


class Way(Protocol):
    """Sets a scene in which the next activity compacts."""

    __name__: str

    async def __call__(self, stage: Stage, script: Script, /) -> Scene: ...


IN_PLACE: tuple[Way, ...] = (at_the_threshold, in_a_tool_round, by_the_tool, prepared_ahead)
WAYS: tuple[Way, ...] = (by_hand, *IN_PLACE)


def name_of(way: Way) -> str:
    return way.__name__.replace("_", " ")


def assert_spending_is_counted(scene: Scene) -> None:
    """That the totals hold every request, also those of the session before ``/compact``."""
    totals, entries = scene.runtime.conversation.totals, scene.log.path_entries()
    own = scene.runtime.conversation.log
    if own is not scene.log:
        entries += tuple(e for e in own.path_entries() if not was_copied(own.header, e))
    replies = [
        entry.message.usage
        for entry in entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)
    ]
    paid = scene.script.paid
    assert totals.input_tokens == sum(u.input for u in replies) + paid * USED.input
    assert totals.output_tokens == sum(u.output for u in replies) + paid * USED.output


def told(events: list[AgentEvent]) -> list[AgentEvent]:
    """The lines in the chat that tell of a compaction, or of what ended the turn."""
    return [
        event
        for event in events
        if isinstance(event, CompactionFinished | CompactionFailed)
        or (isinstance(event, TurnFinished) and event.error)
    ]
