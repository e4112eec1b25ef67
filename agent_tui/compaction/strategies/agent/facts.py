"""What code adds to the text of a segment, so that no model has to be trusted with it."""

from collections.abc import Collection, Sequence

from agent_tui.compaction.draft import CompactionRequest
from agent_tui.compaction.ledger.build import build_ledger
from agent_tui.compaction.strategies.agent.tools import Span
from agent_tui.compaction.summary.fact_blocks import fact_blocks
from agent_tui.compaction.tiers.model import Unit
from agent_tui.sessions.entries import Entry, Ledger

_TOKENS_PER_FILE_CHAR = 2
"""File names may add this much to a text: an eighth of what it stands for, about."""


def open_errors(request: CompactionRequest) -> tuple[str, ...]:
    """The errors of the conversation that nothing has made good since."""
    return build_ledger(request.path, folders=_folders(request), previous=None).errors


def segment_facts(
    request: CompactionRequest,
    units: Sequence[Unit],
    span: Span,
    tokens: int,
    still_open: Collection[str],
) -> str:
    """Rules of the person, word for word, errors and touched files of a segment; may be empty.

    Args:
        request: The conversation.
        units: Its messages.
        span: The segment.
        tokens: Its size in the context.
        still_open: The `open_errors` of the conversation.
    """
    inside = _entries_of(request.path, units, span)
    ledger = build_ledger(inside, folders=_folders(request), previous=None)
    facts = Ledger(
        pinned=ledger.pinned,
        errors=tuple(error for error in ledger.errors if error in still_open),
        read_files=ledger.read_files,
        modified_files=ledger.modified_files,
    )
    told_chars = sum(len(line) + 3 for line in (*facts.pinned, *facts.errors))
    room_chars = 2 * told_chars + tokens // _TOKENS_PER_FILE_CHAR  # rules get half of it
    return fact_blocks(facts, request="", window=3 * room_chars)


def _folders(request: CompactionRequest) -> tuple[str, str]:
    return str(request.cwd), str(request.cwd.resolve())


def _entries_of(path: Sequence[Entry], units: Sequence[Unit], span: Span) -> Sequence[Entry]:
    """The entries of a segment, those among them included that earlier edits left out."""
    places = {entry.id: place for place, entry in enumerate(path)}
    start = min(places[unit.entry_id] for unit in units[span.first - 1 : span.last])
    end = min((places[unit.entry_id] for unit in units[span.last :]), default=len(path))
    return path[start:end]
