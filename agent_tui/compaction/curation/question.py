"""Makes the question to the model from the conversation: the pieces, and the available sizes."""

from agent_tui.compaction.curation.ask import Ask, TokenBudget
from agent_tui.compaction.curation.excerpts import earlier_pieces
from agent_tui.compaction.curation.pieces import read_pieces
from agent_tui.compaction.draft import (
    CompactionRequest,
    folders_of,
    last_exchange_tokens,
    room_of,
    sections_room_of,
    summary_tokens,
)
from agent_tui.compaction.plan import previous_summary, read_live
from agent_tui.compaction.sections.compose import ASKED_SHARE, NOTES_SHARE, TAIL_SHARE
from agent_tui.compaction.summary.templates import template_named
from agent_tui.compaction.tiers.units import read_units
from agent_tui.sessions.replay.changes import in_force
from agent_tui.tokens import TokenCounter


def make_ask(request: CompactionRequest, *, counter: TokenCounter) -> Ask:
    """The question for the model of `request`, with the pieces to choose from."""
    path = in_force(request.path)
    summary = previous_summary(path, request.previous)
    live = read_live(path, counter)
    units = read_units(
        path,
        carryover=request.previous,
        counter=counter,
        settings=request.settings,
        window=request.window,
    )
    entries = {entry.id for entry in live.entries}
    own = [unit for unit in units.items if unit.entry_id in entries]
    pieces = read_pieces(
        own,
        earlier_pieces(summary, counter),
        folders_of(request),
        counter,
    )
    replaced = live.leaving_tokens + (summary_tokens(summary, counter) if summary else 0)
    room = room_of(request, sum(live.tokens) + replaced, live.pinned_tokens)
    exchange = live.cuts[-1] if live.cuts else len(live.entries)
    newest, left = {entry.id for entry in live.entries[exchange:]}, int(room * TAIL_SHARE)
    for entry, tokens in zip(reversed(live.entries), reversed(live.tokens), strict=True):
        left -= tokens
        if left < 0:
            break
        newest.add(entry.id)
    sections_room = sections_room_of(room, last_exchange_tokens(live))
    return Ask(
        units=own,
        pieces=pieces,
        staying_from=next((piece.number for piece in pieces if piece.entry_id in newest), 0),
        budget=TokenBudget(
            used=request.estimated_before,
            target=request.overhead_tokens + live.pinned_tokens + room,
            notes=_notes_tokens(request, sections_room),
            keep=int(sections_room * ASKED_SHARE),
        ),
        template=template_named(request.settings.template),
        focus=request.focus,
        through=live.entries[-1].id if live.entries else "",
        earlier=summary,
    )


def _notes_tokens(request: CompactionRequest, room: int) -> int:
    return min(request.settings.max_summary_tokens, max(int(room * NOTES_SHARE), 500))
