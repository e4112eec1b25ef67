"""A model that writes summaries by a script."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from agent_tui.compaction.outcome import CompactionResult
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.strategies.tiered import TieredStrategy
from agent_tui.config import CompactionSettings
from agent_tui.errors import ConfigError
from agent_tui.features.curation.curator import ModelCurator
from agent_tui.messages import Usage
from agent_tui.providers.base import (
    Chunk,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.client import ModelClient, ignore_usage
from agent_tui.providers.limits import Sleep
from agent_tui.tokens import TokenCounter

GOOD = """\
## Goal
Build the parser.

### Done
- [x] looked through the questions about it one by one and answered each of them
- [x] changed the file that every question named, as it should be

## Next Steps
1. Run the tests.

## Critical Context
- the answers stand in the documents that were read, next to the question they belong to"""

EMPTY = (FinishChunk("stop"),)
REFUSAL = (TextChunk("I'm sorry, but I can't help with that."), FinishChunk("stop"))
TOOL_CALL = (
    TextChunk(GOOD),
    ToolCallChunk(0, "c1", "read", '{"path": "a"}'),
    FinishChunk("toolUse"),
)
CUT_OFF = (TextChunk(GOOD), FinishChunk("length"))
BROKEN_OFF = (TextChunk(GOOD),)
FILTERED = (TextChunk(GOOD), FinishChunk("contentFilter"))

Step: TypeAlias = (
    str | tuple[Chunk, ...] | ProviderError | Callable[[ModelRequest], "str | ProviderError"]
)


@dataclass
class Writer:
    """Answers each request with the next step; the last one is repeated."""

    steps: list[Step]
    requests: list[ModelRequest] = field(default_factory=list)
    hangs: bool = False
    closed: int = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        self.requests.append(request)
        step = self.steps[min(len(self.requests), len(self.steps)) - 1]
        if callable(step):
            step = step(request)
        if isinstance(step, ProviderError):
            raise step
        chunks: tuple[Chunk, ...] = (
            (TextChunk(step), UsageChunk(Usage(input=70, output=30)), FinishChunk("stop"))
            if isinstance(step, str)
            else step
        )
        try:
            for chunk in chunks:
                if self.hangs:
                    await asyncio.Event().wait()
                yield chunk
        finally:
            self.closed += 1

    async def warm(self, model: ModelRef) -> None: ...

    async def aclose(self) -> None: ...

    @property
    def questions(self) -> list[ModelRequest]:
        """The requests that ask what stays, without those for additions to an answer."""
        return [one for one in self.requests if "Answer in two parts." in one.messages[-1].text]

    @property
    def prompts(self) -> list[str]:
        return [str(request.messages[0].content) for request in self.requests]  # pyright: ignore


@dataclass
class Models:
    """A catalog of whatever name it is asked for."""

    cheap: ModelRef | None = None
    window: int = 100_000
    max_output: int = 8_000
    takes_schema: bool = False

    def info(self, ref: ModelRef) -> ModelInfo:
        return ModelInfo(ref.name, self.window, self.max_output, takes_schema=self.takes_schema)

    def resolve(self, name: str) -> ModelRef:
        if name == "unknown":
            raise ConfigError("there is no model 'unknown'")
        return ModelRef(name)

    def cheap_model(self, ref: ModelRef) -> ModelRef | None:
        return self.cheap


async def no_wait(delay_s: float) -> None:
    """A sleep that is over at once."""


def client_of(writer: Provider | None, sleep: Sleep = no_wait) -> ModelClient | None:
    """What asks `writer`, and waits for nothing."""
    return ModelClient(writer, sleep) if writer is not None else None


async def compact(
    writer: Provider | None,
    counter: TokenCounter,
    request: CompactionRequest,
    *,
    models: Models | None = None,
    settings: CompactionSettings | None = None,
    sleep: Sleep = no_wait,
    phases: list[str] | None = None,
) -> CompactionResult:
    """The result; the phases that were told on the way are added to `phases`."""
    client = client_of(writer, sleep)
    curator = ModelCurator(client, counter, models or Models()) if client is not None else None
    told = [] if phases is None else phases
    plan = await TieredStrategy(curator, counter).plan(
        replace(request, settings=settings or request.settings, occasion="new session"),
        on_progress=lambda phase, _chars: told.append(phase),
        on_usage=ignore_usage,
    )
    assert plan.summary is not None
    return plan.summary
