"""Asking the model of the conversation what it will need: one message behind all of it."""

import asyncio
from dataclasses import dataclass, replace

from agent_tui.compaction.curation.answer import Answer, Pick, read_answer
from agent_tui.compaction.curation.ask import Ask, ask_again
from agent_tui.compaction.curation.numbered import SYSTEM_PROMPT, numbered_text
from agent_tui.compaction.model_client import (
    ModelClient,
    ModelReply,
    RequestTracker,
    failure_of,
    text_request,
)
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
        through: The newest entry that it had seen; empty where there is none.
        problem: What the notes lack, as a clause; empty if nothing.
        usage: What the requests for it used.
        failures: What went wrong before, one clause each.
    """

    notes: str
    picks: tuple[Pick, ...]
    model: ModelRef
    through: str = ""
    problem: str = ""
    usage: Usage | None = None
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoChoice:
    """A model was asked in vain.

    Args:
        problems: What went wrong, one clause each.
        has_answered: It answered, but not usably; else there was no answer.
    """

    problems: tuple[str, ...]
    has_answered: bool


class Curator:
    """Asks a model what is to stay.

    The model of the conversation is asked on the prefix that its provider has cached: its request
    is the next one of the conversation with one message more, and system text, tools and everything
    else that a cache depends on is the same. Another model gets the conversation as text. Calls of
    tools that come instead of an answer are not run.

    A model that twice gives no usable answer is not asked again.

    Args:
        client: Asks the model.
        counter: Measures what is asked.
    """

    def __init__(self, client: ModelClient, counter: TokenCounter) -> None:
        self._client = client
        self._counter = counter
        self._unable: set[ModelRef] = set()

    async def choose(
        self,
        live: ModelRequest | None,
        model: ModelRef,
        window: int,
        ask: Ask,
        judge: SummaryJudge,
        tracker: RequestTracker,
    ) -> Choice | NoChoice | None:
        """What a model wants kept; None where question and answer do not fit its window.

        Args:
            live: The next request of the conversation, if its model is asked; else None.
            model: Who is asked.
            window: Its context window in tokens, as the counter counts.
            ask: What it is asked.
            judge: Checks the notes.
            tracker: Told of the progress and of what was paid.
        """
        if model in self._unable:
            why = f"{model.name} was not asked, as it gave no usable answer before"
            return NoChoice((why,), has_answered=True)
        text = ask.text
        if live is not None:
            base, size = live, ask.budget.used + self._counter.count_text(text)
        else:
            text = await asyncio.to_thread(_with_conversation, ask)
            most = ask.budget.notes + _REPLY_TOKENS
            made = text_request(model, "", system=SYSTEM_PROMPT, max_output_tokens=most)
            base = replace(made, messages=())
            size = self._counter.count_text(text)
        if size + ask.budget.notes + _REPLY_TOKENS > window:
            return None
        failures: list[str] = []
        problem = ""
        found: Choice | None = None
        for number in range(_TRIES):
            asked = text + (ask_again(problem) if problem else "")
            messages = (*base.messages, UserMessage(content=asked))
            phase = "choosing what to keep" + (", retrying" if number else "")
            try:
                request = replace(base, messages=messages, purpose="summary")
                reply = await self._client.ask(request, phase, tracker)
            except ProviderError as error:
                if error.kind == "context_overflow":
                    return None  # the window is smaller than it was said to be
                return NoChoice((*failures, failure_of(model, error)), has_answered=False)
            answer = read_answer(reply.text, ask.pieces)
            choice = self._judged(reply, answer, ask, judge, model)
            if isinstance(choice, Choice):
                found = choice
                if choice.picks or not choice.problem:
                    break
            problem = choice if isinstance(choice, str) else choice.problem
            failures.append(f"{model.name}: {problem}")
        if found is not None:
            return replace(found, usage=tracker.total, failures=tuple(failures))
        self._unable.add(model)
        return NoChoice(tuple(failures), has_answered=True)

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
                pass
            case LongSummary(text=text) | AcceptedSummary(text=text):
                problem = ""
        fitted = fit_to_tokens(
            text, template=ask.template, counter=self._counter, max_tokens=ask.budget.notes
        )
        return Choice(fitted, answer.picks, model, ask.through, problem)


def _with_conversation(ask: Ask) -> str:
    return f"{numbered_text(ask.units, ask.pieces)}\n\n{ask.text}"
