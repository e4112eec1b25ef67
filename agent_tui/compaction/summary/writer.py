"""One model writing a summary."""

import asyncio
from dataclasses import dataclass

from agent_tui.compaction.model_client import ModelClient, RequestTracker, text_request
from agent_tui.compaction.shorten import shorten_middle
from agent_tui.compaction.summary.prompts import SYSTEM_PROMPT, SummaryPrompt, reminder
from agent_tui.compaction.summary.source import SummarySource
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.summary.validate import (
    AcceptedSummary,
    Judgement,
    LongSummary,
    RefusedSummary,
    SummaryJudge,
    ThinSummary,
    fit_to_tokens,
)
from agent_tui.compaction.transcript.bounded import bounded_transcript
from agent_tui.errors import CompactionError
from agent_tui.messages import Message
from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError
from agent_tui.tokens import TokenCounter

_INPUT_SHARE = 0.75
"""Our token estimates were up to 30 % under a provider's count on real sessions."""

_MOST_HALVINGS = 4
_LEAST_ROOM_TOKENS = 200

_FRAME_PARTS = 4
"""The prompt around the conversation may take this part of the window; else it is shortened."""


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
        previous_prose: The summary so far, without its fact blocks.
        source: What the summary is checked against.
        focus: What the person asked to pay attention to; may be empty.
        template: The form of the document.
        wanted_tokens: The size the model is asked for.
        max_tokens: The size above which a document is too long.
        splits_turn: `messages` end in the middle of a turn.
    """

    messages: tuple[Message, ...]
    previous_prose: str
    source: SummarySource
    focus: str
    template: Template
    wanted_tokens: int
    max_tokens: int
    splits_turn: bool


class UnusableReplyError(CompactionError):
    """A model's reply was refused, the reminder did not help."""


class SummaryWriter:
    """One model's try. `left_out` counts the messages that the model was not shown."""

    def __init__(
        self,
        client: ModelClient,
        counter: TokenCounter,
        job: SummaryJob,
        model: SummaryModel,
        tracker: RequestTracker,
    ) -> None:
        self._counter = counter
        self._job = job
        self._info = model.info
        self._client = client
        self._model = model.ref
        self._tracker = tracker
        tracker.begin()
        self._judge = SummaryJudge(job.template, job.source, counter, job.max_tokens)
        self._focus = shorten_middle(job.focus, max(model.info.window // 2, 200))
        self._is_short = False
        self.left_out = 0

    async def run(self) -> AcceptedSummary | ThinSummary:
        """The document; less is shown when the model's window proves smaller.

        Raises:
            ProviderError: a request failed.
            UnusableReplyError: a reply was refused twice.
        """
        room = await asyncio.to_thread(self._choose_wording)
        for _ in range(_MOST_HALVINGS):
            shown = await self._conversation(room)
            try:
                return await self._write(shown)
            except ProviderError as error:
                if error.kind != "context_overflow" or room <= _LEAST_ROOM_TOKENS:
                    raise
                size = await asyncio.to_thread(self._counter.count_text, shown)
                room = max(min(room, size) // 2, _LEAST_ROOM_TOKENS)
        return await self._write(await self._conversation(room))

    async def _conversation(self, room: int) -> str:
        made = await asyncio.to_thread(bounded_transcript, self._job.messages, self._counter, room)
        self.left_out = made.left_out
        return made.text

    def _choose_wording(self) -> int:
        """Choose the wording; tokens of conversation that fit into one request beside it."""
        self._is_short = self._frame_tokens() > self._info.window // _FRAME_PARTS
        taken = self._output_tokens + self._frame_tokens()
        return max(int((self._info.window - taken) * _INPUT_SHARE), _LEAST_ROOM_TOKENS)

    def _frame_tokens(self) -> int:
        """Tokens of a request without conversation and summary, the reminder included."""
        prompt = self._prompt("").text
        again = reminder("", self._job.template, 0)
        return self._counter.count_text(SYSTEM_PROMPT + prompt + again)

    @property
    def _output_tokens(self) -> int:
        """Room for the document, and for models that think aloud before it."""
        wanted = 2 * self._job.wanted_tokens + 1_000
        limits = [limit for limit in (self._info.max_output, self._info.window // 4) if limit > 0]
        return min([wanted, *limits])

    def _prompt(self, conversation: str) -> SummaryPrompt:
        job = self._job
        return SummaryPrompt(
            template=job.template,
            conversation=conversation,
            previous_summary=job.previous_prose,
            focus=self._focus,
            max_tokens=job.wanted_tokens,
            splits_turn=job.splits_turn,
            is_short=self._is_short,
        )

    async def _write(self, conversation: str) -> AcceptedSummary | ThinSummary:
        """One document; after a reply that cannot stand the model is reminded once."""
        outcome = await self._ask(conversation, "summarising")
        if not isinstance(outcome, AcceptedSummary):
            again = await self._ask(conversation, "summarising, retrying", problem=outcome.problem)
            outcome = min(again, outcome, key=_rank)
        match outcome:
            case RefusedSummary(problem=problem):
                raise UnusableReplyError(f"its summary was unusable: {problem}")
            case LongSummary(text=text):
                return AcceptedSummary(self._fitted(text))
            case ThinSummary(text=text, problem=problem):
                return ThinSummary(self._fitted(text), problem)
            case AcceptedSummary():
                return outcome

    async def _ask(self, conversation: str, phase: str, *, problem: str = "") -> Judgement:
        """What came back, judged."""
        prompt = self._prompt(conversation).text
        if problem:
            prompt += f"\n\n{reminder(problem, self._job.template, self._job.wanted_tokens)}"
        request = text_request(
            self._model, prompt, system=SYSTEM_PROMPT, max_output_tokens=self._output_tokens
        )
        reply = await self._client.ask(request, phase, self._tracker)
        return await asyncio.to_thread(self._judge.judge, reply)

    def _fitted(self, document: str) -> str:
        return fit_to_tokens(
            document,
            template=self._job.template,
            counter=self._counter,
            max_tokens=self._job.max_tokens,
        )


def _rank(judgement: Judgement) -> int:
    """The order in which documents are preferred, best first."""
    match judgement:
        case AcceptedSummary():
            return 0
        case LongSummary():
            return 1
        case ThinSummary():
            return 2
        case RefusedSummary():
            return 3
