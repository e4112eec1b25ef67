"""Makes the question to the model from the conversation: what can be kept, and in what space."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from agent_tui.compaction.conversation import Conversation, summary_tokens, text_of
from agent_tui.compaction.curation.answer import Promise
from agent_tui.compaction.curation.ask import LEAST_NOTES_TOKENS, Ask, Staying, TokenBudget
from agent_tui.compaction.curation.excerpts import Kept, earlier_pieces
from agent_tui.compaction.curation.pieces import Piece, read_pieces
from agent_tui.compaction.draft import CompactionDraft, draft_beside
from agent_tui.compaction.plan import LiveEntry
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import LEAST_KEPT, WorkRecord
from agent_tui.compaction.sections.files import paths_shown_in
from agent_tui.compaction.sections.history import Replied, Said, is_filler, with_short_paths
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.tiers.model import UNEDITED, Unit
from agent_tui.compaction.transcript import escape_tags
from agent_tui.messages import UserMessage
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
    "work-state": "the plan, items, commits and newest test results",
    "failures": "error messages that your notes lack, what was tried and what cured them, at most",
}
"""Blocks that code writes whatever a model chooses."""

_FRAME, _NEWEST = "what names and separates all this", "your newest messages"
_TAG_LINE = re.compile(r"</?[\w-]+>$")
_STAYING_CHARS = 600
_OPENING_CHARS = 40
_TRIAL_NOTES_SHARE = 0.1
_NOTHING_KEPT = Kept("<kept>\n</kept>")
"""What stays is what a draft has that is full of notes and texts."""


def make_ask(request: CompactionRequest, draft: CompactionDraft, *, counter: TokenCounter) -> Ask:
    """The question for the model of `request`.

    Args:
        request: The conversation.
        draft: Its compaction without a model.
        counter: Counts tokens.
    """
    conversation = draft.conversation
    live, record, summary = conversation.live, conversation.record, conversation.summary
    entries = {entry.id for entry in live.entries}
    own = [unit for unit in conversation.units if unit.entry_id in entries]
    room = conversation.room
    spoken = [event for event in record.events if isinstance(event, Said)]
    events = pairwise(record.events)
    answered = [a for a, b in events if isinstance(a, Replied) and isinstance(b, Said)]
    pieces = read_pieces(
        own,
        (*earlier_pieces(summary, counter), *_tasks_before(conversation, own)),
        record.files,
        record.folders,
        counter,
        on_disk=request.on_disk,
        shown=frozenset(paths_shown_in(summary)),
        said={event.entry_id for event in (*spoken, *answered)},
    )
    promise = Promise(files=tuple(piece for piece in pieces if piece.kind == "file"))
    notes = max(int(room * _TRIAL_NOTES_SHARE), LEAST_NOTES_TOKENS)
    draft = draft_beside(request, conversation, notes, room, promise, counter=counter)
    blocks = _blocks_that_stay(draft)
    sizes = {_STAYING[tag]: counter.count_text(block) for tag, block in blocks.items()}
    tail = draft.plan.kept_tokens - live.pinned_tokens
    beside = summary_tokens(replace(draft, notes="", kept=_NOTHING_KEPT).summary, counter)
    free = max(room - tail - beside, int(room * LEAST_KEPT))
    sizes[_FRAME] = max(beside - sum(sizes.values()), 0)
    said = _block(draft.before_notes, _SAID)
    kept = {e.id for e in draft.plan.kept_entries if isinstance(e, LiveEntry)}  # edits have no ids
    left = draft.plan.left
    edited = {unit.entry_id for unit in conversation.units if unit.edited_tier != UNEDITED}
    as_written = left.keys() - edited
    before = [e for e in spoken if e.entry_id not in as_written and not is_filler(e.text)]
    told = [_told(event, _as_shown(event, record), said, counter) for event in before]
    whole = {e.entry_id for e in spoken if e.entry_id in as_written or _as_shown(e, record) in said}
    cut = {e.entry_id for e, (number, _, _) in zip(before, told, strict=True) if number}
    offered = (p for p in pieces if p.kind != "said" or p.entry_id not in whole)
    pieces = tuple(replace(piece, number=number) for number, piece in enumerate(offered, 1))
    target = request.sizes.overhead + live.pinned_tokens + room
    most_notes = min(
        max(int(free * _MOST_NOTES_SHARE), LEAST_NOTES_TOKENS),
        request.settings.max_summary_tokens,
    )
    gone = UserMessage(content="")
    newest = [(one, left.get(one.entry_id, gone)) for one in own if one.entry_id in kept]
    texts_left = ((one, text_of(after)) for one, after in newest)
    shortened = {one.entry_id: text for one, text in texts_left if text != text_of(one.message)}
    return Ask(
        units=own,
        pieces=pieces,
        staying=Staying(
            sizes={
                "the system prompt and the tools": request.sizes.overhead,
                "pinned texts": live.pinned_tokens,
                **sizes,
                _NEWEST: tail,
            },
            texts={
                _STAYING[tag]: _first_lines(block) for tag, block in blocks.items() if tag != _SAID
            },
            messages=told,
            said={
                e.entry_id: e.entry_id in whole
                for e in spoken
                if e.entry_id in whole | cut and not is_filler(e.text)
            },
            entries=kept - shortened.keys(),
            shortened=shortened,
        ),
        budget=TokenBudget(
            used=request.sizes.used_estimate,
            ratio=request.sizes.ratio,
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
        failures=record.failures,
        files=record.files,
        has_disk=request.on_disk is not None,
    )


def _tasks_before(conversation: Conversation, own: Sequence[Unit]) -> Iterator[Piece]:
    """The texts of tasks that neither a message in `own` nor a known file has."""
    entries, record = {unit.entry_id for unit in own}, conversation.record
    files = {file.path for file in record.files}
    for task in record.named_tasks:
        if task.entry_id not in entries and task.item not in files:
            lines = tuple(task.text.split("\n"))
            yield Piece(0, "", "kept", f"the task {task.item}", lines, remark="as it was shown")


def _first_lines(block: str) -> str:
    """The first lines of a `block`, as many as fit, on one line."""
    lines = [line for line in block.split("\n") if line.strip() and not _TAG_LINE.match(line)]
    ends = list(accumulate(len(line) + 2 for line in lines))
    count = max(bisect_right(ends, _STAYING_CHARS), 1)
    more = f"; and {len(lines) - count} more" if len(lines) > count else ""
    return one_line("; ".join(line.strip() for line in lines[:count]), _STAYING_CHARS) + more


def _blocks_that_stay(draft: CompactionDraft) -> dict[str, str]:
    """The blocks in `_STAYING`, as far as there are any."""
    text = f"{draft.before_notes}\n{draft.after_notes}"
    return {tag: block for tag in _STAYING if (block := _block(text, tag))}


def _block(text: str, tag: str) -> str:
    found = re.search(rf"^<{tag}>\n.*?^</{tag}>$", text, re.DOTALL | re.MULTILINE)
    return found[0] if found else ""


def _as_shown(event: Said, record: WorkRecord) -> str:
    return escape_tags(with_short_paths(event.told, record.folders))


def _told(event: Said, text: str, block: str, counter: TokenCounter) -> tuple[int, str, int]:
    """How `block` shows the `text` that the user said, see `Staying.messages`."""
    end = "$" if len(text) <= _OPENING_CHARS else ""
    opening = re.escape(text[:_OPENING_CHARS])
    number = re.search(rf"^\((\d+)\) {opening}{end}", block, re.MULTILINE)
    tokens = 0 if text in block else counter.count_text(text)
    opening = one_line(event.text, _OPENING_CHARS) + event.mark
    return int(number[1]) if number else 0, opening, tokens
