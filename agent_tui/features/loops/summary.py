"""Summarize a scope in a sentence or two by the session's own model."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_tui.compaction.candidates import SummaryModel
from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.summary.validate import (
    NotesJudgement,
    plain_text,
    refuse,
    sounds_like_refusal,
    why_unusable,
)
from agent_tui.compaction.summary.writer import Writer, WritingJob
from agent_tui.compaction.transcript import escape_tags, fit_texts, message_texts
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import (
    AssistantContent,
    AssistantMessage,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.client import ModelClient, ModelReply, OnProgress, OnUsage, RequestTracker
from agent_tui.sessions.entries import (
    BranchSummaryEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from agent_tui.sessions.replay.scope_entries import ScopeExit, ScopeStep, mark_of
from agent_tui.tokens import TokenCounter

_MOST_TOKENS = 400
_LEAST_TOKENS = 20
"""One sentence. If less would be freed, a summary is useless."""

_OPENING_CHARS = 40
"""A refusal is recognized in these first characters; later, the same words may describe events."""

_DEFAULT = """\
State the outcome in one or two sentences: the key results, and what is different now (files, \
decisions, facts found, what failed and why)."""

_ASKED = """\
Summarise it in a few sentences. The user asked for the summary to include this:
<focus>
{prompt}
</focus>"""

_RULES = """\
Copy paths, names, numbers and error messages exactly. State facts, not events. Reply with only \
the sentences: no heading, no list, no tool call. At most {max_tokens} tokens."""


@dataclass(frozen=True, slots=True)
class ScopeRequest:
    """A scope to summarize.

    Args:
        label: Its name.
        entries: The entries that the summary replaces and those between them, oldest first.
        replaced_tokens: Estimated size of what the summary replaces.
        prompt: What the summary should cover; None for the default wording.
        model: The model that writes it.
        info: The facts about that model.
        folders: Paths of the working folder.
    """

    label: str
    entries: tuple[Entry, ...]
    replaced_tokens: int
    prompt: str | None
    model: ModelRef
    info: ModelInfo
    folders: tuple[str, ...]


class ScopeSummariser:
    """Asks a model for summaries of scopes; has no side effects."""

    def __init__(self, client: ModelClient, counter: TokenCounter) -> None:
        self._client = client
        self._counter = counter

    async def summarise(
        self, request: ScopeRequest, on_progress: OnProgress, on_usage: OnUsage
    ) -> str:
        """The summary: the model's text, and the rules and files that code found.

        Raises:
            NothingToCompactError: It would not be smaller than what it replaces.
            CompactionError: Two replies in a row were unusable.
            ProviderError: The model could not be asked.
        """
        facts = await asyncio.to_thread(_facts, request)
        room = request.replaced_tokens - self._size(facts)
        if room < _LEAST_TOKENS:
            raise NothingToCompactError("It is no larger than a summary would be.")
        tracker = RequestTracker(on_progress, on_usage)
        prose = await self._prose(request, tracker, min(room, _MOST_TOKENS))
        summary = "\n\n".join(part for part in (escape_tags(prose), facts) if part)
        if self._size(summary) >= request.replaced_tokens:
            raise NothingToCompactError("A summary would not be smaller.")
        return summary

    async def _prose(self, request: ScopeRequest, tracker: RequestTracker, max_tokens: int) -> str:
        job = WritingJob(
            told=lambda room: scope_text(request.entries, self._counter, room),
            asked=_prompt_of(request, max_tokens),
            max_tokens=max_tokens,
            judge=lambda reply: self._judge(reply, max_tokens),
        )
        made = await Writer(self._client, self._counter).write(
            job, SummaryModel(request.model, request.info), tracker
        )
        if not made.text:
            raise CompactionError(f"The summary was unusable: {made.problem}.")
        return made.text

    def _judge(self, reply: ModelReply, max_tokens: int) -> NotesJudgement:
        """The text of `reply`, unless it is empty, much too long or a refusal."""
        text = plain_text(reply.text)
        size = self._counter.count_text(text)
        problem = why_unusable(reply)
        if not problem and sounds_like_refusal(text[:_OPENING_CHARS]):
            problem = "it was a refusal"
        if not problem and size > 2 * max_tokens:
            problem = f"it was {size} tokens long; the limit is {max_tokens}"
        return refuse(problem) if problem else NotesJudgement(text)

    def _size(self, text: str) -> int:
        """The tokens of `text` as a summary in the context; 0 for no text."""
        if not text:
            return 0
        content = f"<summary>\n{text}\n</summary>\n"
        return self._counter.count_message(UserMessage(content=content))


def scope_text(entries: Sequence[Entry], counter: TokenCounter, room_tokens: int) -> str:
    """The text of `entries` in about `room_tokens`; inner scopes appear as their summaries."""
    messages = tuple(_messages(entries))
    return fit_texts(lambda limits: message_texts(messages, limits), counter, room_tokens)


def _messages(entries: Sequence[Entry]) -> Iterator[Message]:
    """The messages of a scope, without the calls that mark scopes."""
    for entry in entries:
        match mark_of(entry), entry:
            case (ScopeStep(number=number, item=item), _):
                yield UserMessage(content=f"Round {number}{'' if item is None else f': {item}'}")
            case (ScopeExit(summary=summary, label=label), _) if summary:
                yield UserMessage(content=f"Summary of {label}: {summary}")
            case (None, CustomMessageEntry(text=text) | BranchSummaryEntry(summary=text)):
                yield UserMessage(content=text)
            case (None, MessageEntry(message=AssistantMessage() as reply)):
                said = tuple(part for part in reply.content if not _marks_scope(part))
                yield reply.model_copy(update={"content": said})
            case (None, MessageEntry(message=ToolResultMessage(tool_name="scope"))):
                pass
            case (None, MessageEntry(message=message)):
                yield message
            case _:
                pass


def _marks_scope(part: AssistantContent) -> bool:
    return isinstance(part, ToolCall) and part.name == "scope"


def _prompt_of(request: ScopeRequest, max_tokens: int) -> str:
    wanted = _ASKED.format(prompt=escape_tags(request.prompt)) if request.prompt else _DEFAULT
    told = f'This is all that happened in "{escape_tags(request.label)}". {wanted}'
    return f"{told}\n\n{_RULES.format(max_tokens=max_tokens)}"


def _facts(request: ScopeRequest) -> str:
    """The user's rules word for word and the changed files, one block each."""
    ledger = build_ledger(request.entries, folders=request.folders, previous=None)
    kept = ledger.model_copy(update={"errors": (), "read_files": ()})
    return fact_blocks(kept, window=request.info.window)
