"""What a compaction would keep, for a person who decides about it before it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agent_tui.compaction.curation.answer import Choice, NoChoice, Pick
from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.draft import Answered, CompactionRequest

Mark: TypeAlias = Literal["keep", "always", "drop"]
"""What a person says of a piece: keep it word for word now, through all compactions, or do not."""

Place: TypeAlias = Literal["stays", "kept", "goes"]
"""Where a piece would be: among the newest messages, word for word in the summary, or not there."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a proposal.

    Args:
        marked: What is kept, whatever the model chose.
        released: What is no longer kept through all compactions.
        answered: What the model chose, without what the person dropped; nobody is asked again.
    """

    marked: tuple[Pick, ...]
    released: tuple[Piece, ...]
    answered: Answered

    def applied(self, request: CompactionRequest) -> CompactionRequest:
        """`request` with the decision."""

        async def answered() -> Answered:
            return self.answered

        return replace(request, marked=self.marked, released=self.released, ahead=answered)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A compaction that waits for the person, who marks pieces by their numbers.

    Args:
        ask: What can be chosen, and how much there is room for.
        choice: What the model wants kept; None where none was asked, or none answered.
        problem: Why there is no choice, as a clause; empty where nobody was asked.
    """

    ask: Ask
    choice: Choice | None = None
    problem: str = ""

    def place(self, piece: Piece, marks: Mapping[int, Mark]) -> Place:
        """Where `piece` would be."""
        mark = marks.get(piece.number)
        if mark != "always" and 0 < self.ask.staying_from <= piece.number:
            return "stays"
        is_kept = piece.is_lasting or any(piece == pick.piece for pick in self._chosen)
        return "kept" if mark in ("keep", "always") or (is_kept and mark != "drop") else "goes"

    def chosen_lines(self, piece: Piece) -> str:
        """``10-20, 31-33``: what the model wants of a piece; empty for all of it."""
        spans = next((pick.spans for pick in self._chosen if pick.piece == piece), ())
        return ", ".join(f"{first}-{last}" for first, last in spans)

    def kept_tokens(self, marks: Mapping[int, Mark]) -> int:
        """About what would be kept word for word, parts of a piece by their lines."""
        picks = {pick.piece.number: pick for pick in self._chosen}
        return sum(
            _size(piece, None if piece.number in marks else picks.get(piece.number))
            for piece in self.ask.pieces
            if self.place(piece, marks) == "kept"
        )

    def decided(self, marks: Mapping[int, Mark]) -> Decision:
        """The decision that the marks come to."""
        marked = (
            *(Pick(piece, is_lasting=True) for piece in self._marked(marks, "always")),
            *(Pick(piece) for piece in self._marked(marks, "keep")),
        )
        dropped = self._marked(marks, "drop")
        picks = tuple(pick for pick in self._chosen if pick.piece not in dropped)
        answered: Answered = NoChoice()
        if self.choice is not None:
            answered = replace(self.choice, picks=picks)
        return Decision(marked, dropped, answered)

    def _marked(self, marks: Mapping[int, Mark], mark: Mark) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.ask.pieces if marks.get(piece.number) == mark)

    @property
    def _chosen(self) -> tuple[Pick, ...]:
        return self.choice.picks if self.choice is not None else ()


def _size(piece: Piece, pick: Pick | None) -> int:
    if pick is None or not pick.spans:
        return piece.tokens
    lines = sum(last - first + 1 for first, last in pick.spans)
    return piece.tokens * lines // max(len(piece.lines), 1)
