"""Summarize a branch of the conversation that the user leaves."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_tui.compaction.candidates import Candidates, SummaryModel
from agent_tui.compaction.ledger.build import build_ledger, earlier_ledger, entries_to_record
from agent_tui.compaction.sections.history import is_filler
from agent_tui.compaction.summary.degeneration import NOTHING
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.summary.validate import NotesJudgement, SummaryJudge, summary_source
from agent_tui.compaction.summary.writer import SYSTEM_PROMPT, Writer, WritingJob, note_on_writing
from agent_tui.compaction.transcript import escape_tags, fit_texts, message_texts
from agent_tui.config import CompactionSettings
from agent_tui.errors import NothingToCompactError
from agent_tui.messages import AssistantMessage, Usage
from agent_tui.omissions import one_line, shorten_middle
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.client import OnProgress, OnUsage, RequestTracker, failure_of
from agent_tui.safe_paths import real_path
from agent_tui.sessions.context import build_context
from agent_tui.sessions.entries import Entry, Ledger
from agent_tui.tokens import TokenCounter

_LEAST_SUMMARY_TOKENS = 150
"""The empty form plus a line or two."""

_MESSAGE_CHARS = 400
_REPLY_CHARS = 1_200

_ASKED = """\
Write the notes for the conversation above.

Rules:
- Use the form below with exactly these headings in this order. An empty section says {nothing}.
- Copy file paths, identifiers, commands, versions, numbers and error messages exactly.
- Keep the user's rules and corrections in their own words.
- State facts, not events: "tests in tests/test_a.py pass", not "then the tests were run".
- In progress: say where the work was interrupted, and quote the newest request it serves.
- For each changed file: what was changed in it and why. For each error: its cause and its fix, or
  that it is open. Name what was tried and did not work, so that nobody tries it again.
- At most {max_tokens} tokens. If space is short, shorten finished work first.

{form}"""


@dataclass(frozen=True, slots=True)
class BranchRequest:
    """A branch to summarize.

    Args:
        entries: The entries of the branch alone, from its beginning to its end.
        model: The session's model.
        window: Its context window in tokens, as the counter estimates them.
        cwd: The session's working folder.
        settings: Model, length and form of the summary.
    """

    entries: tuple[Entry, ...]
    model: ModelRef
    window: int
    cwd: Path
    settings: CompactionSettings


@dataclass(frozen=True, slots=True)
class BranchSummary:
    """A finished summary that is not written yet; `note` is as in `CompactionResult`."""

    text: str
    note: str
    usage: Usage | None


async def summarise_branch(
    request: BranchRequest,
    writer: Writer | None,
    models: Candidates,
    counter: TokenCounter,
    on_progress: OnProgress,
    on_usage: OnUsage,
) -> BranchSummary:
    """Summarize a branch; has no side effect. Cancel the task to stop.

    Args:
        request: The branch.
        writer: Asks models; None to write the summary by code.
        models: The models to ask, in this order.
        counter: Counts tokens.
        on_progress: Called for each step.
        on_usage: Called with the usage of every paid request.

    Raises:
        NothingToCompactError: The branch has no reply, so there is nothing to summarize.
    """
    on_progress("reading the branch", 0)
    job, by_code, facts = await asyncio.to_thread(_prepare, request, counter)
    tracker = RequestTracker(on_progress, on_usage)
    made, name, failures = NotesJudgement(""), "", list(models.problems)
    if writer is not None:
        made, name = await _first_whole(writer, job, models.models, tracker, failures)
    text = "\n\n".join(filter(None, (made.text or by_code, facts)))
    problem = "" if made.is_minor else made.problem
    if made.is_minor:
        failures = [one for one in failures if one != f"{name}: {made.problem}"]
    return BranchSummary(text, note_on_writing(name, problem, failures), tracker.total)


async def _first_whole(
    writer: Writer,
    job: WritingJob,
    models: Sequence[SummaryModel],
    tracker: RequestTracker,
    failures: list[str],
) -> tuple[NotesJudgement, str]:
    """The first complete text, else the first text, and its model's name; empty if there is none.

    Adds errors to `failures`.
    """
    best, name = NotesJudgement(""), ""
    for model in models:
        try:
            made = await writer.write(job, model, tracker)
        except ProviderError as error:
            failures.append(failure_of(model.ref, error))
            continue
        if not made.problem:
            return made, model.ref.name
        failures.append(f"{model.ref.name}: {made.problem}")
        if made.text and not best.text:
            best, name = made, model.ref.name
    return best, name


def _prepare(request: BranchRequest, counter: TokenCounter) -> tuple[WritingJob, str, str]:
    """The job for a model, the summary by code to use if none answers, and facts for both."""
    messages = tuple(item.message for item in build_context(request.entries).messages)
    replies = [message.text for message in messages if isinstance(message, AssistantMessage)]
    if not replies:
        raise NothingToCompactError("Nothing to summarise: no reply is left behind.")
    ledger = build_ledger(
        entries_to_record(request.entries),
        folders=(str(request.cwd), str(real_path(request.cwd))),
        previous=earlier_ledger(request.entries, None),
    )
    source = summary_source(messages, counter)
    cap = min(request.settings.max_summary_tokens, max(request.window // 6, 200))
    most = max(min(cap, source.tokens), _LEAST_SUMMARY_TOKENS)
    template = template_named(request.settings.template)
    asked = _ASKED.format(
        nothing=NOTHING, max_tokens=max(most // 2, _LEAST_SUMMARY_TOKENS), form=template.form
    )
    job = WritingJob(
        told=lambda room: fit_texts(lambda limits: message_texts(messages, limits), counter, room),
        asked=asked,
        max_tokens=most,
        judge=SummaryJudge(template, source, counter, most, f"{SYSTEM_PROMPT}\n{asked}").judge,
    )
    last_reply = next((text for text in reversed(replies) if text.strip()), "")
    by_code = summary_by_code(ledger, last_reply, counter=counter, max_tokens=most)
    return job, by_code, fact_blocks(ledger, window=request.window)


def summary_by_code(
    ledger: Ledger, last_reply: str, *, counter: TokenCounter, max_tokens: int
) -> str:
    """A summary of requests, open to-dos and the last reply, in at most `max_tokens`.

    If that is too long, requests are dropped first, from one third of the list on: the first ones
    state the goal, and the last ones how far the work got.
    """
    lines = [
        f"- asked: {one_line(text, _MESSAGE_CHARS)}"
        for text in reversed(ledger.user_messages)
        if not is_filler(text)
    ]
    lines += [f"- open: {todo}" for todo in ledger.open_todos]
    if last_reply:
        reply = one_line(shorten_middle(last_reply, _REPLY_CHARS), 2 * _REPLY_CHARS)
        lines.append(f"- last reply: {reply}")
    while lines and counter.count_text("\n".join(lines)) > max_tokens:
        lines.pop(len(lines) // 3)
    return escape_tags("\n".join(lines))
