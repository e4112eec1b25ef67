"""Makes the question to the model from the conversation: what can be kept, and in what space."""

import re
from collections.abc import Iterator, Sequence, Set

from agent_tui.compaction.curation.ask import LEAST_NOTES_TOKENS, Ask, Staying, TokenBudget
from agent_tui.compaction.curation.excerpts import earlier_pieces
from agent_tui.compaction.curation.pieces import Piece, read_pieces
from agent_tui.compaction.draft import (
    CompactionDraft,
    Conversation,
    last_exchange_tokens,
    read_conversation,
)
from agent_tui.compaction.plan import LiveConversation
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import LEAST_KEPT, TAIL_SHARE
from agent_tui.compaction.sections.files import paths_shown_in
from agent_tui.compaction.sections.history import Said, is_filler
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.transcript import escape_tags
from agent_tui.omissions import one_line
from agent_tui.tokens import TokenCounter

_NOTES_TOKENS, _NOTES_SHARE = 1_500, 0.15
"""Together 4,500 tokens of notes at a target of 20,000, and 3,000 at 10,000.

Contexts with these answered all questions on failures and reasons of three real sessions.
"""

_MOST_NOTES_SHARE = 2 / 3
"""Of notes and chosen texts together."""

_LIST_SHARE, _LIST_TOKENS = 0.03, 3_000
"""Of the window, and at most, for the list of what can be kept."""

_SAID = "said-by-the-person"
_STAYING = {
    _SAID: "the user's messages, reasons of refusals and answers to questions",
    "pinned-constraints": "the user's rules that are not in these messages",
    "work-state": "the plan, items, commits and newest test results",
    "failures": "failures that your notes do not name, at most",
}
"""Blocks that code writes whatever a model chooses."""

_TAG_LINE = re.compile(r"^</?[\w-]+>$", re.MULTILINE)
_STAYING_CHARS = 600
_OPENING_CHARS = 40
_MOST_MESSAGES = 30


def make_ask(request: CompactionRequest, draft: CompactionDraft, *, counter: TokenCounter) -> Ask:
    """The question for the model of `request`.

    Args:
        request: The conversation.
        draft: Its compaction without a model.
        counter: Counts tokens.
    """
    conversation = read_conversation(request, counter)
    live, record, summary = conversation.live, conversation.record, conversation.summary
    entries = {entry.id for entry in live.entries}
    own = [unit for unit in conversation.units if unit.entry_id in entries]
    said = _block(draft.before_notes, _SAID)
    kept = {entry.id for entry in draft.plan.kept_entries}
    spoken = [event for event in record.events if isinstance(event, Said)]
    before = [e for e in spoken if e.entry_id not in kept and not is_filler(e.text)]
    whole = {e.entry_id for e in spoken if e.entry_id in kept or escape_tags(e.told) in said}
    pieces = read_pieces(
        [unit for unit in own if unit.entry_id not in whole or unit.output is not None],
        (*earlier_pieces(summary, counter), *_tasks_before(conversation, own)),
        record.files,
        record.folders,
        counter,
        on_disk=request.on_disk,
        shown=frozenset(paths_shown_in(summary)),
        said={event.entry_id for event in spoken},
    )
    room = conversation.room
    newest = _newest(live, int(room * TAIL_SHARE))
    tail = max(last_exchange_tokens(live), int(room * TAIL_SHARE))
    blocks = _blocks_that_stay(draft)
    sizes = {_STAYING[tag]: counter.count_text(block) for tag, block in blocks.items()}
    free = max(room - tail - sum(sizes.values()), int(room * LEAST_KEPT))
    target = request.sizes.overhead + live.pinned_tokens + room
    most_notes = max(int(free * _MOST_NOTES_SHARE), LEAST_NOTES_TOKENS)
    most_notes = min(most_notes, request.settings.max_summary_tokens)
    return Ask(
        units=own,
        pieces=pieces,
        staying=Staying(
            sizes={
                "the system prompt and the tools": request.sizes.overhead,
                "pinned texts": live.pinned_tokens,
                **sizes,
                f"your newest messages{_beginning(newest, pieces)}": tail,
            },
            texts={
                _STAYING[tag]: one_line(_TAG_LINE.sub("", block), _STAYING_CHARS)
                for tag, block in blocks.items()
                if tag != _SAID
            },
            messages=[_told(event, said, counter) for event in before[-_MOST_MESSAGES:]],
            entries=newest,
        ),
        budget=TokenBudget(
            used=request.sizes.used_estimate,
            target=target,
            notes=min(_NOTES_TOKENS + int(target * _NOTES_SHARE), most_notes),
            most_notes=most_notes,
            free=free,
            listed=min(int(request.sizes.window * _LIST_SHARE), _LIST_TOKENS),
        ),
        template=template_named(request.settings.template),
        counter=counter,
        focus=request.asking.focus,
        through=live.entries[-1].id if live.entries else "",
        earlier=summary,
    )


def _tasks_before(conversation: Conversation, own: Sequence[Unit]) -> Iterator[Piece]:
    """The texts of tasks that neither a message in `own` nor a known file has."""
    entries, record = {unit.entry_id for unit in own}, conversation.record
    files = {file.path for file in record.files}
    for task in record.named_tasks:
        if task.entry_id not in entries and task.item not in files:
            lines = tuple(task.text.split("\n"))
            yield Piece(0, "", "kept", f"the task {task.item}", lines, remark="as it was shown")


def _newest(live: LiveConversation, room: int) -> frozenset[str]:
    """The entries of the newest messages: the last exchange, and what fits into `room` tokens."""
    exchange = live.cuts[-1] if live.cuts else len(live.entries)
    newest = {entry.id for entry in live.entries[exchange:]}
    for entry, tokens in zip(reversed(live.entries), reversed(live.tokens), strict=True):
        room -= tokens
        if room < 0:
            break
        newest.add(entry.id)
    return frozenset(newest)


def _beginning(newest: Set[str], pieces: Sequence[Piece]) -> str:
    """Which texts stay with the `newest` messages, by their numbers."""
    before = [piece.number for piece in pieces if piece.entry_id not in newest]
    return f" (everything after #{before[-1]})" if before else ""


def _blocks_that_stay(draft: CompactionDraft) -> dict[str, str]:
    """The blocks in `_STAYING`, as far as there are any."""
    text = f"{draft.before_notes}\n{draft.after_notes}"
    return {tag: block for tag in _STAYING if (block := _block(text, tag))}


def _block(text: str, tag: str) -> str:
    found = re.search(rf"^<{tag}>\n.*?^</{tag}>$", text, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


def _told(event: Said, block: str, counter: TokenCounter) -> tuple[int, str, int]:
    """How `block` shows what the user said, see `Staying.messages`."""
    text = escape_tags(event.told)
    beginning = re.escape(text[:_OPENING_CHARS])
    number = re.search(rf"^\((\d+)\) {beginning}", block, re.MULTILINE)
    tokens = 0 if text in block else counter.count_text(text)
    return int(number[1]) if number else 0, one_line(event.text, _OPENING_CHARS), tokens
