"""What a compaction would keep, for the user to decide before it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from agent_tui.compaction.curation.answer import KeepChoice, NoChoice, Pick, Promise, tokens_of
from agent_tui.compaction.curation.ask import Ask
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.request import Answered, CompactionRequest

PieceMark: TypeAlias = Literal["keep", "always", "drop"]
"""A user's mark: keep a piece word for word now, through all compactions, or drop it."""

PiecePlace: TypeAlias = Literal["stays", "kept", "goes"]
"""Where a piece will be: among the newest messages, word for word in the summary, or nowhere."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The user's decision about a proposal.

    Args:
        marked: Pieces to keep, whatever the model chose.
        released: Pieces that are no longer kept through all compactions.
        answered: The model's choice without dropped pieces; no model is asked again.
        promise: What was shown to stay.
    """

    marked: tuple[Pick, ...]
    released: tuple[Piece, ...]
    answered: Answered
    promise: Promise = field(default_factory=Promise)

    def apply_to(self, request: CompactionRequest) -> CompactionRequest:
        """`request` with the decision applied."""

        async def answered() -> Answered:
            return self.answered

        selection = replace(
            request.selection, marked=self.marked, released=self.released, promise=self.promise
        )
        return replace(request, asking=replace(request.asking, ahead=answered), selection=selection)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A compaction that waits for the user, who marks pieces by their numbers.

    Args:
        ask: The pieces to choose from, and the available sizes.
        choice: The model's choice; None if no model was asked or none answered.
        problem: Why there is no choice, as a clause; empty if no model was asked.
    """

    ask: Ask
    choice: KeepChoice | None = None
    problem: str = ""

    def place(self, piece: Piece, marks: Mapping[int, PieceMark]) -> PiecePlace:
        """Where `piece` will be with these marks."""
        mark = marks.get(piece.number)
        if mark != "always" and self.ask.stays(piece):
            return "stays"
        is_kept = piece.is_lasting or any(piece == pick.piece for pick in self._chosen)
        return "kept" if mark in ("keep", "always") or (is_kept and mark != "drop") else "goes"

    def lines_of_choice(self, piece: Piece) -> str:
        """The lines of a piece that the model wants, as ``10-20, 31-33``; empty for all of it."""
        spans = next((pick.spans for pick in self._chosen if pick.piece == piece), ())
        return ", ".join(f"{first}-{last}" for first, last in spans)

    def tokens_to_keep(self, marks: Mapping[int, PieceMark]) -> int:
        """Approximate tokens kept word for word; partial pieces count by their lines."""
        picks = {pick.piece: pick for pick in self._chosen if pick.piece.number not in marks}
        kept = (piece for piece in self.ask.pieces if self.place(piece, marks) == "kept")
        return tokens_of(picks.get(piece, Pick(piece)) for piece in kept)

    def decide(self, marks: Mapping[int, PieceMark]) -> Decision:
        """The decision that results from the marks."""
        marked = (
            *(Pick(piece, is_lasting=True) for piece in self._pieces_with(marks, "always")),
            *(Pick(piece) for piece in self._pieces_with(marks, "keep")),
        )
        dropped = self._pieces_with(marks, "drop")
        picks = tuple(pick for pick in self._chosen if pick.piece not in dropped)
        answered: Answered = NoChoice()
        if self.choice is not None:
            answered = replace(self.choice, picks=picks)
        return Decision(marked, dropped, answered, self.ask.promise)

    def _pieces_with(self, marks: Mapping[int, PieceMark], mark: PieceMark) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.ask.pieces if marks.get(piece.number) == mark)

    @property
    def _chosen(self) -> tuple[Pick, ...]:
        return self.choice.picks if self.choice is not None else ()
