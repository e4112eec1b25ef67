"""Read the reply of a model that was asked what to keep: lenient about its form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.pieces import Piece

_NOTES = re.compile(r"<notes>\s*(.*?)\s*(?:</notes>|(?=<keep>)|\Z)", re.DOTALL | re.IGNORECASE)
_KEEP = re.compile(r"<keep>\s*(.*?)\s*(?:</keep>|\Z)", re.DOTALL | re.IGNORECASE)
_KEEP_HEADING = re.compile(r"^\W*keep\W*$", re.MULTILINE | re.IGNORECASE)
_SPAN = re.compile(
    r"(?<!\d)(\d{1,9})(?!\d|(?:,\d{3})*\s+(?:tokens|lines)\b)(?:\s*[-–—]\s*L?(\d{1,9}))?",
    re.IGNORECASE,
)
"""A range of lines or a single one, but no size."""

_LINE = re.compile(
    r"^[\s>*`-]*#?\s*(?P<number>\d{1,9})\b"
    rf"(?P<spans>(?:[\s,:(]*(?:lines?|L)?\s*{_SPAN.pattern})*)",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\A\s*```\w*\n(.*?)\n```\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """The parsed reply of a model.

    Args:
        notes: The text of the notes, unchecked.
        picks: Pieces to keep, the most needed first.
        unknown: Number of list lines that name no known piece.
    """

    notes: str
    picks: tuple[Pick, ...]
    unknown: int = 0


def read_answer(text: str, pieces: Sequence[Piece]) -> Answer:
    """Parse the notes and the list in `text`: in the requested form or close to it.

    Args:
        text: The reply.
        pieces: The pieces to choose from.
    """
    if fenced := _FENCE.match(text):
        text = fenced[1]
    by_number = {piece.number: piece for piece in pieces}
    notes, lines = _parts(text)
    picks: dict[Pick, None] = {}
    unknown = 0
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        piece = by_number.get(int(found["number"]))
        pick = _pick(piece, found["spans"]) if piece is not None else None
        if pick is None:
            unknown += 1
        else:
            picks[pick] = None
    return Answer(notes.strip(), tuple(picks), unknown)


def _parts(text: str) -> tuple[str, list[str]]:
    keep = _KEEP.search(text)
    if keep is None and (heading := _KEEP_HEADING.search(text)) is not None:
        start, end, listed = heading.start(), len(text), text[heading.end() :]
    elif keep is not None:
        start, end, listed = keep.start(), keep.end(), keep[1]
    else:
        start, end, listed = len(text), len(text), ""
    notes = _NOTES.search(text)
    return notes[1] if notes is not None else text[:start] + text[end:], listed.splitlines()


def _pick(piece: Piece, spans: str) -> Pick | None:
    """A pick with those spans that are inside `piece`; None if all named spans are outside."""
    last = piece.last
    named = [(int(a), int(b or a)) for a, b in _SPAN.findall(spans)]
    inside = [(max(a, piece.first), min(b, last)) for a, b in named if a <= last and b >= a]
    good = tuple(dict.fromkeys((a, b) for a, b in inside if a <= b))
    if named and not good:
        return None
    return Pick(piece, () if good == ((piece.first, last),) else good)
