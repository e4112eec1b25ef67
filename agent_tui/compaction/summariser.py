"""Asking a model for a summary of a conversation of any length."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, assert_never

from agent_tui.compaction.prompts import SYSTEM_PROMPT, SummaryPrompt, reminder
from agent_tui.compaction.templates import Template
from agent_tui.compaction.transcript_parts import split_transcript
from agent_tui.compaction.validate import (
    AcceptedSummary,
    FinishReason,
    RefusedSummary,
    SummaryReply,
    fit_to_tokens,
    validate_summary,
)
from agent_tui.errors import CompactionError
from agent_tui.messages import Cost, Message, Usage, UserMessage
from agent_tui.providers.base import (
    FaultKind,
    FinishChunk,
    ModelInfo,
    ModelRef,
    ModelRequest,
    Provider,
    ProviderError,
    TextChunk,
    ThinkingChunk,
    ToolCallChunk,
    UsageChunk,
)
from agent_tui.providers.retry import Sleep, retry_delay_s
from agent_tui.tokens import TokenCounter

OnProgress: TypeAlias = Callable[[str, int], None]
"""Called with the phase ("summarising 2/3") and the characters received so far."""

_INPUT_SHARE = 0.75
"""Our token estimates were up to 30 % under a provider's count on real sessions."""

_MOST_HALVINGS = 4
_MOST_RETRIES = 2
_PASSING_FAULTS: Mapping[FaultKind, str] = MappingProxyType(
    {"rate_limit": "rate limited", "overloaded": "overloaded", "server": "server error"}
)
"""What is waited out, in words. For the rest the next model, or none, is the quicker way."""

_LEAST_PART_TOKENS = 200


@dataclass(frozen=True, slots=True)
class SummaryModel:
    """A model that may write the summary."""

    ref: ModelRef
    info: ModelInfo


@dataclass(frozen=True, slots=True)
class SummaryJob:
    """What is to be summarised, and how.

    Args:
        messages: The messages that the summary will stand for.
        previous_prose: The summary so far, without its appendix.
        focus: What the person asked to pay attention to; may be empty.
        template: The form of the document.
        wanted_tokens: The size the model is asked for.
        max_tokens: The size above which a document is refused.
        splits_turn: `messages` end in the middle of a turn.
    """

    messages: tuple[Message, ...]
    previous_prose: str
    focus: str
    template: Template
    wanted_tokens: int
    max_tokens: int
    splits_turn: bool


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A valid document, who wrote it, what that used, and which models failed before."""

    text: str
    model: ModelRef
    usage: Usage
    failures: tuple[str, ...] = ()


class NoSummaryError(CompactionError):
    """No model gave a usable summary; `failures` says why, one line a model."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("No model gave a usable summary: " + "; ".join(failures))
        self.failures = tuple(failures)


class Summariser:
    """Writes summaries with the first of several models that manages it."""

    def __init__(self, provider: Provider, counter: TokenCounter, sleep: Sleep) -> None:
        self._provider = provider
        self._counter = counter
        self._sleep = sleep

    async def summarise(
        self, job: SummaryJob, models: Sequence[SummaryModel], on_progress: OnProgress
    ) -> WrittenSummary:
        """Try `models` in order.

        Raises:
            NoSummaryError: none of them gave a usable document.
        """
        failures: list[str] = []
        for model in models:
            attempt = _Attempt(self._provider, self._counter, self._sleep, job, model, on_progress)
            try:
                text = await attempt.run()
            except ProviderError as error:
                failures.append(f"{model.ref.name}: {error.message}")
            except _UnusableReplyError as error:
                failures.append(f"{model.ref.name}: {error.message}")
            else:
                return WrittenSummary(text, model.ref, attempt.usage, tuple(failures))
        raise NoSummaryError(failures)


class _UnusableReplyError(CompactionError):
    """A model's reply was refused, the reminder did not help."""


class _Attempt:
    """One model's try: the conversation folded part by part into one document."""

    def __init__(
        self,
        provider: Provider,
        counter: TokenCounter,
        sleep: Sleep,
        job: SummaryJob,
        model: SummaryModel,
        on_progress: OnProgress,
    ) -> None:
        self._provider = provider
        self._counter = counter
        self._sleep = sleep
        self._job = job
        self._model = model
        self._on_progress = on_progress
        self._received_chars = 0
        self._largest_part_tokens = 0
        self.usage = Usage()

    async def run(self) -> str:
        """The document; smaller parts are tried when the model's window proves smaller.

        Raises:
            ProviderError: a request failed.
            _UnusableReplyError: a reply was refused twice.
        """
        room = self._input_room()
        for _ in range(_MOST_HALVINGS):
            try:
                return await self._fold(room)
            except ProviderError as error:
                if error.kind != "context_overflow" or room <= _LEAST_PART_TOKENS:
                    raise
                room = max(min(room, self._largest_part_tokens) // 2, _LEAST_PART_TOKENS)
        return await self._fold(room)

    def _input_room(self) -> int:
        """Tokens of conversation that fit into one request beside everything else."""
        frame = self._counter.count_text(SYSTEM_PROMPT + self._prompt("", "", (1, 2)).text)
        window = self._model.info.window
        free = window - self._output_tokens - frame - self._job.max_tokens
        return max(int(free * _INPUT_SHARE), _LEAST_PART_TOKENS)

    @property
    def _output_tokens(self) -> int:
        """Room for the document, and for models that think aloud before it."""
        info = self._model.info
        wanted = 2 * self._job.wanted_tokens + 1_000
        limits = [limit for limit in (info.max_output, info.window // 4) if limit > 0]
        return min([wanted, *limits])

    async def _fold(self, room: int) -> str:
        parts = await asyncio.to_thread(self._parts, room)
        document = ""
        for number, part in enumerate(parts, start=1):
            phase = "summarising" if len(parts) == 1 else f"summarising {number}/{len(parts)}"
            previous = document or self._job.previous_prose
            prompt = self._prompt(part, previous, (number, len(parts)))
            document = await self._write(prompt.text, phase)
        return document

    def _parts(self, room: int) -> Sequence[str]:
        parts = split_transcript(self._job.messages, self._counter, room)
        self._largest_part_tokens = max(map(self._counter.count_text, parts))
        return parts

    def _prompt(self, conversation: str, previous: str, part: tuple[int, int]) -> SummaryPrompt:
        job = self._job
        return SummaryPrompt(
            template=job.template,
            conversation=conversation,
            previous_summary=previous,
            focus=job.focus,
            max_tokens=job.wanted_tokens,
            part=part,
            splits_turn=job.splits_turn,
        )

    async def _write(self, prompt: str, phase: str) -> str:
        """One valid document; after a refused reply the model is reminded once."""
        outcome = self._judge(await self._ask(prompt, phase))
        if isinstance(outcome, RefusedSummary):
            job = self._job
            remark = reminder(outcome.problem, job.template, job.wanted_tokens)
            outcome = self._judge(await self._ask(f"{prompt}\n\n{remark}", f"{phase}, again"))
        if isinstance(outcome, AcceptedSummary):
            return outcome.text
        if outcome.too_long:
            return fit_to_tokens(
                outcome.too_long,
                template=self._job.template,
                counter=self._counter,
                max_tokens=self._job.max_tokens,
            )
        raise _UnusableReplyError(f"its summary could not be used, {outcome.problem}")

    def _judge(self, reply: SummaryReply) -> AcceptedSummary | RefusedSummary:
        return validate_summary(
            reply,
            template=self._job.template,
            counter=self._counter,
            max_tokens=self._job.max_tokens,
        )

    async def _ask(self, prompt: str, phase: str) -> SummaryReply:
        """The reply to one request, which is repeated where waiting helps."""
        retry = 1
        while True:
            try:
                return await self._ask_once(prompt, phase)
            except ProviderError as error:
                reason = _PASSING_FAULTS.get(error.kind)
                delay_s = retry_delay_s(error, retry, random.random())
                if reason is None or delay_s is None or retry > _MOST_RETRIES:
                    raise
                self._on_progress(f"waiting {delay_s:.0f} s ({reason})", self._received_chars)
                await self._sleep(delay_s)
                retry += 1

    async def _ask_once(self, prompt: str, phase: str) -> SummaryReply:
        request = ModelRequest(
            model=self._model.ref,
            system=SYSTEM_PROMPT,
            messages=(UserMessage(content=prompt),),
            max_output_tokens=self._output_tokens,
            purpose="summary",
        )
        texts: list[str] = []
        called_tools = False
        finish: FinishReason | None = None
        self._on_progress(phase, self._received_chars)
        async with aclosing(self._provider.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        texts.append(text)
                        self._received_chars += len(text)
                        self._on_progress(phase, self._received_chars)
                    case ToolCallChunk():
                        called_tools = True
                    case UsageChunk(usage=usage):
                        self.usage = add_usage(self.usage, usage)
                    case FinishChunk(reason=reason):
                        finish = reason
                    case ThinkingChunk():
                        pass
                    case _:
                        assert_never(chunk)
        if finish is None:
            raise ProviderError("interrupted", "the summary broke off before its end")
        return SummaryReply("".join(texts), finish, called_tools)


def add_usage(first: Usage, second: Usage) -> Usage:
    """Both together; an estimate in either makes the sum one."""
    cost = Cost(
        input=first.cost.input + second.cost.input,
        output=first.cost.output + second.cost.output,
        cache_read=first.cost.cache_read + second.cost.cache_read,
        cache_write=first.cost.cache_write + second.cost.cache_write,
        total=first.cost.total + second.cost.total,
    )
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        total_tokens=first.context_tokens + second.context_tokens,
        cost=cost,
        is_estimate=first.is_estimate or second.is_estimate,
    )
