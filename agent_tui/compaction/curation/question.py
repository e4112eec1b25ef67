"""Makes the question to the model from the conversation: what can be kept, and in what space."""

import re
from collections.abc import Mapping, Sequence, Set

from agent_tui.compaction.curation.ask import LEAST_NOTES_TOKENS, Ask, Staying, TokenBudget
from agent_tui.compaction.curation.excerpts import earlier_pieces
from agent_tui.compaction.curation.pieces import Piece, read_pieces
from agent_tui.compaction.draft import (
    CompactionDraft,
    folders_of,
    last_exchange_tokens,
    room_of,
    summary_tokens,
)
from agent_tui.compaction.plan import LiveConversation, previous_summary, read_live
from agent_tui.compaction.request import CompactionRequest
from agent_tui.compaction.sections.compose import LEAST_KEPT, TAIL_SHARE
from agent_tui.compaction.sections.files import FileReader, paths_shown_in
from agent_tui.compaction.sections.history import Said, is_filler, read_history
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.tiers.model import Unit
from agent_tui.compaction.tiers.units import read_units
from agent_tui.compaction.transcript import escape_tags
from agent_tui.omissions import one_line
from agent_tui.sessions.context import without_dropped
from agent_tui.sessions.replay.changes import in_force
from agent_tui.sessions.replay.marks import read_marks
from agent_tui.tokens import TokenCounter

_NOTES_TOKENS, _NOTES_SHARE = 1_500, 0.15
"""Together 4,500 tokens of notes at a target of 20,000, and 3,000 at 10,000.

Contexts with these answered all questions on failures and reasons of three real sessions.
"""

_MOST_NOTES_SHARE = 2 / 3
"""Of notes and chosen texts together."""

_LIST_SHARE, _LIST_TOKENS = 0.03, 3_000
"""Of the window, and at most, for the list of what can be kept."""

_STAYING = {
    "said-by-the-person": "the user's messages, reasons of refusals and answers to questions",
    "pinned-constraints": "the user's rules that are not in these messages",
    "work-state": "the plan, items, commits and newest test results",
    "open-errors": "errors that no later run has solved",
    "failures": "failures that your notes do not name, at most",
}
"""Blocks that code writes whatever a model chooses."""

_OPENING_CHARS = 40
_MOST_MESSAGES = 30


def make_ask(request: CompactionRequest, draft: CompactionDraft, *, counter: TokenCounter) -> Ask:
    """The question for the model of `request`.

    Args:
        request: The conversation.
        draft: Its compaction without a model.
        counter: Counts tokens.
    """
    path = in_force(request.path)
    summary = previous_summary(path, request.previous)
    live = read_live(path, counter)
    units = read_units(
        path,
        carryover=request.previous,
        counter=counter,
        settings=request.settings,
        window=request.sizes.window,
    )
    entries = {entry.id for entry in live.entries}
    own = [unit for unit in units.items if unit.entry_id in entries]
    folders = folders_of(request)
    events = read_history(without_dropped(path, read_marks(path)))
    handed_over = request.previous.handover if request.previous is not None else None
    files = FileReader(folders, handed_over.files if handed_over else ()).read(events)
    said = _block(draft.before_notes, "said-by-the-person")
    kept = {entry.id for entry in draft.plan.kept_entries}
    spoken = [event for event in events if isinstance(event, Said)]
    before = [e for e in spoken if e.entry_id not in kept and not is_filler(e.text)]
    whole = {e.entry_id for e in spoken if e.entry_id in kept or escape_tags(e.told) in said}
    pieces = read_pieces(
        [unit for unit in own if unit.entry_id not in whole or unit.output is not None],
        earlier_pieces(summary, counter),
        files,
        folders,
        counter,
        on_disk=request.on_disk,
        shown=frozenset(paths_shown_in(summary)),
        said={event.entry_id for event in spoken},
    )
    replaced = live.leaving_tokens + (summary_tokens(summary, counter) if summary else 0)
    room = room_of(request, sum(live.tokens) + replaced, live.pinned_tokens)
    newest = _newest(live, int(room * TAIL_SHARE))
    tail = max(last_exchange_tokens(live), int(room * TAIL_SHARE))
    blocks = _blocks_that_stay(draft, counter)
    free = max(room - tail - sum(blocks.values()), int(room * LEAST_KEPT))
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
                **{_STAYING[tag]: tokens for tag, tokens in blocks.items()},
                f"your newest messages{_beginning(newest, own, pieces)}": tail,
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


def _beginning(newest: Set[str], units: Sequence[Unit], pieces: Sequence[Piece]) -> str:
    """Where the newest messages begin, as far as a piece shows it."""
    order = {unit.entry_id: at for at, unit in enumerate(units)}
    among = [piece for piece in pieces if piece.entry_id in newest & order.keys()]
    first = min(among, key=lambda piece: order[piece.entry_id], default=None)
    return f", from about `{first.label}` on" if first is not None else ""


def _blocks_that_stay(draft: CompactionDraft, counter: TokenCounter) -> Mapping[str, int]:
    """The tokens of the blocks in `_STAYING`, as far as there are any."""
    text = f"{draft.before_notes}\n{draft.after_notes}"
    return {tag: counter.count_text(block) for tag in _STAYING if (block := _block(text, tag))}


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
