"""Summing up what happened in a scope, in a sentence or two of the session's own model."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.compaction.model_client import (
    ModelClient,
    ModelReply,
    OnProgress,
    OnUsage,
    RequestTracker,
    text_request,
)
from agent_tui.compaction.scopes.text import scope_text
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.summary.prompts import SYSTEM_PROMPT
from agent_tui.compaction.summary.reply import plain_text
from agent_tui.compaction.transcript.text import escape_tags
from agent_tui.errors import CompactionError, NothingToCompactError
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelInfo, ModelRef, ProviderError
from agent_tui.sessions.entries import Entry
from agent_tui.tokens import TokenCounter

_MOST_TOKENS = 400
_LEAST_TOKENS = 20
"""A sentence. Where less is to be gained a summary is no use."""

_THINKING_TOKENS = 1_000
"""Room for models that think aloud before they answer."""

_INPUT_SHARE = 0.5
"""Of the window. Our estimates were up to 30 % under a provider's count on real sessions."""

_MOST_HALVINGS = 4

_REFUSAL = re.compile(
    r"\A\W*(?:i['’]?m sorry|i am sorry|sorry|i can(?:no|['’]?)t|i['’]?m unable|i am unable"
    r"|i won['’]?t|as an ai)\b",
    re.IGNORECASE,
)

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
    """A scope to sum up.

    Args:
        label: What it is called.
        entries: What the summary is to stand for and what happened between, oldest first.
        replaced_tokens: Estimate of what the summary is to stand for.
        prompt: What the summary is to be about; None for the default wording.
        model: Who writes it.
        info: What is known of that model.
        folders: Names of the working folder.
    """

    label: str
    entries: tuple[Entry, ...]
    replaced_tokens: int
    prompt: str | None
    model: ModelRef
    info: ModelInfo
    folders: tuple[str, ...]


class ScopeSummariser:
    """Asks for summaries of scopes; without any side effect."""

    def __init__(self, client: ModelClient, counter: TokenCounter) -> None:
        self._client = client
        self._counter = counter

    async def summarise(
        self, request: ScopeRequest, on_progress: OnProgress, on_usage: OnUsage
    ) -> str:
        """The summary: what the model wrote, and the rules and files that code knows of.

        Raises:
            NothingToCompactError: It would not be smaller than what it is to stand for.
            CompactionError: Two replies in a row could not be used.
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
        """A reply that can be used; what was wrong with the first is said once."""
        window = request.info.window
        room = max(int(window * _INPUT_SHARE), _LEAST_TOKENS)
        problem = ""
        halvings = 0
        while True:
            text = await asyncio.to_thread(scope_text, request.entries, self._counter, room)
            prompt = _prompt(request, text, max_tokens, problem)
            question = text_request(
                request.model,
                prompt,
                system=SYSTEM_PROMPT,
                max_output_tokens=_output_tokens(request.info, max_tokens),
            )
            try:
                reply = await self._client.ask(question, "asking the model", tracker)
            except ProviderError as error:
                if error.kind != "context_overflow" or halvings == _MOST_HALVINGS:
                    raise
                room, halvings = min(room, self._counter.count_text(text)) // 2, halvings + 1
                continue
            found = self._problem_of(reply, max_tokens)
            if not found:
                return plain_text(reply.text)
            if problem:
                raise CompactionError(f"The summary was unusable: {found}.")
            problem = found

    def _problem_of(self, reply: ModelReply, max_tokens: int) -> str:
        """What is wrong with `reply`, as a clause; empty if it will do."""
        text = plain_text(reply.text)
        if reply.called_tools or reply.finish == "toolUse":
            return "it called a tool"
        if reply.finish == "contentFilter":
            return "the provider's content filter stopped it"
        if reply.finish == "length":
            return "it was cut off by the length limit"
        if not text:
            return "it was empty"
        if _REFUSAL.search(text):
            return "it was a refusal"
        size = self._counter.count_text(text)
        if size > 2 * max_tokens:
            return f"it was {size} tokens long; the limit is {max_tokens}"
        return ""

    def _size(self, text: str) -> int:
        """What `text` takes as a summary before the model; nothing for no text."""
        if not text:
            return 0
        content = f"<summary>\n{text}\n</summary>\n"
        return self._counter.count_message(UserMessage(content=content))


def _prompt(request: ScopeRequest, text: str, max_tokens: int, problem: str) -> str:
    wanted = _DEFAULT
    if request.prompt:
        wanted = _ASKED.format(prompt=escape_tags(request.prompt))
    parts = [
        f"<conversation>\n{text}\n</conversation>",
        f'This is all that happened in "{escape_tags(request.label)}". {wanted}',
        _RULES.format(max_tokens=max_tokens),
    ]
    if problem:
        parts.append(f"Your last reply was unusable: {problem}.")
    return "\n\n".join(parts)


def _output_tokens(info: ModelInfo, max_tokens: int) -> int:
    wanted = 2 * max_tokens + _THINKING_TOKENS
    limits: Sequence[int] = [limit for limit in (info.max_output, info.window // 4) if limit > 0]
    return min([wanted, *limits])


def _facts(request: ScopeRequest) -> str:
    """The person's rules word for word and the files that were changed, as a block each."""
    ledger = build_ledger(request.entries, folders=request.folders, previous=None)
    kept = ledger.model_copy(update={"errors": (), "read_files": ()})
    return fact_blocks(kept, request="", window=request.info.window)
