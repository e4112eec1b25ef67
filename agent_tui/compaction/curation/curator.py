"""Asking the model of the conversation what it will need: one message behind all of it."""

from dataclasses import dataclass, replace

from agent_tui.compaction.curation.answer import Answer, Pick, read_answer
from agent_tui.compaction.curation.ask import Ask, ask_again
from agent_tui.compaction.model_client import ModelClient, ModelReply, RequestTracker, failure_of
from agent_tui.compaction.summary.validate import (
    AcceptedSummary,
    LongSummary,
    RefusedSummary,
    SummaryJudge,
    ThinSummary,
    fit_to_tokens,
)
from agent_tui.messages import Usage, UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.tokens import TokenCounter

_TRIES = 2
_REPLY_TOKENS = 2_000
"""Beside notes and list, for models that think aloud before them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a model wants kept.

    Args:
        notes: Its notes, in the form of the template.
        picks: What is to stay word for word, in order of need.
        model: Who chose.
        problem: What the notes lack, as a clause; empty if nothing.
        usage: What the requests for it used.
    """

    notes: str
    picks: tuple[Pick, ...]
    model: ModelRef
    problem: str = ""
    usage: Usage | None = None


class Curator:
    """Asks for a choice on the prefix that the provider has cached.

    The request is the next one of the conversation with one message more: system text, tools and
    everything else that a provider's cache depends on is the same. Calls of tools that come instead
    of an answer are not run.

    Args:
        client: Asks the model.
        counter: Measures what is asked.
    """

    def __init__(self, client: ModelClient, counter: TokenCounter) -> None:
        self._client = client
        self._counter = counter

    async def choose(
        self,
        live: ModelRequest,
        window: int,
        ask: Ask,
        judge: SummaryJudge,
        tracker: RequestTracker,
    ) -> tuple[Choice | None, tuple[str, ...]]:
        """What the model of `live` wants kept, or None, and what went wrong on the way.

        Args:
            live: The next request of the conversation.
            window: Context window of its model in tokens, as the counter counts.
            ask: What it is asked.
            judge: Checks the notes.
            tracker: Told of the progress and of what was paid.
        """
        failures: list[str] = []
        text = ask.text
        size = ask.budget.used + self._counter.count_text(text) + ask.budget.notes + _REPLY_TOKENS
        if size > window:
            return None, ()
        problem = ""
        for number in range(_TRIES):
            asked = text + (ask_again(problem) if problem else "")
            messages = (*live.messages, UserMessage(content=asked))
            phase = "choosing what to keep" + (", retrying" if number else "")
            try:
                request = replace(live, messages=messages, purpose="summary")
                reply = await self._client.ask(request, phase, tracker)
            except ProviderError as error:
                return None, (*failures, failure_of(live.model, error))
            answer = read_answer(reply.text, ask.pieces)
            choice = self._judged(reply, answer, ask, judge, live.model)
            if isinstance(choice, Choice):
                return replace(choice, usage=tracker.total), tuple(failures)
            problem = choice
            failures.append(f"{live.model.name}: {problem}")
        return None, tuple(failures)

    def _judged(
        self,
        reply: ModelReply,
        answer: Answer,
        ask: Ask,
        judge: SummaryJudge,
        model: ModelRef,
    ) -> Choice | str:
        """The choice, or what is wrong with it as a clause."""
        match judge.judge(replace(reply, text=answer.notes)):
            case RefusedSummary(problem=problem):
                return problem
            case ThinSummary(text=text, problem=problem):
                if not answer.picks:
                    return problem
            case LongSummary(text=text) | AcceptedSummary(text=text):
                problem = ""
        fitted = fit_to_tokens(
            text, template=ask.template, counter=self._counter, max_tokens=ask.budget.notes
        )
        return Choice(fitted, answer.picks, model, problem)
