"""What a model can be asked to keep, and in what space: the question as values."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from agent_tui.compaction.curation.answer import Promise
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.sections.file_states import FileState
from agent_tui.compaction.summary.templates import Template
from agent_tui.compaction.tiers.model import Unit
from agent_tui.sessions.entries import Failure
from agent_tui.tokens import TokenCounter

LEAST_NOTES_TOKENS = 500


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Sizes in tokens.

    Args:
        used: The context now.
        target: The context afterwards.
        notes: The longest notes, as the model is told.
        most_notes: The longest notes that are not cut: models cannot count, and the list may leave
            room. If it does not, its end is left out.
        free: Notes and chosen texts together: what else stays is subtracted.
        listed: The list of what can be chosen.
        ratio: Tokens that the provider counts for one of these.
    """

    used: int
    target: int
    notes: int
    most_notes: int
    free: int
    listed: int
    ratio: float = 1.0

    def with_notes(self, most: int) -> "TokenBudget":
        """The same with notes of at most `most` tokens."""
        return replace(self, notes=min(self.notes, most))


@dataclass(frozen=True, slots=True)
class Staying:
    """What stays without the model's help.

    Args:
        sizes: The tokens of each part, by its description.
        texts: What parts hold, by their description.
        messages: Of each message of the user before the newest ones: its number in the summary (0
            if it is left out), its beginning, and its tokens if it is shortened, else 0.
        said: Entries of the user's messages, and whether they stay whole.
        entries: The entries that stay whole.
        shortened: What is left of those that stay in part.
    """

    sizes: Mapping[str, int]
    messages: Sequence[tuple[int, str, int]]
    entries: Set[str]
    said: Mapping[str, bool] = field(default_factory=dict[str, bool])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    shortened: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for notes and a list of what to keep.

    Args:
        units: The conversation.
        pieces: The pieces to choose from.
        staying: What stays anyway.
        budget: The available sizes.
        template: The form of the notes.
        counter: Counts the tokens of the list.
        focus: What the user wants the summary to focus on; may be empty.
        through: The newest entry that the model sees with the request; empty if none.
        earlier: The summary at the beginning of the conversation; may be empty.
        failures: What failed, oldest first.
        files: The files in the log, the most recently touched first.
        has_disk: Whether files are offered as they are now rather than as last seen.
    """

    units: Sequence[Unit]
    pieces: Sequence[Piece]
    staying: Staying
    budget: TokenBudget
    template: Template
    counter: TokenCounter
    focus: str = ""
    through: str = ""
    earlier: str = ""
    failures: Sequence[Failure] = ()
    files: Sequence[FileState] = ()
    has_disk: bool = True

    def stays(self, piece: Piece) -> bool:
        """Whether `piece` stays whole among the newest messages."""
        left = self.staying.shortened.get(piece.entry_id, "")
        return piece.entry_id in self.staying.entries or "\n".join(piece.lines) in left

    @property
    def promise(self) -> Promise:
        """What stays without the model's help, text by text."""
        files = tuple(piece for piece in self.pieces if piece.kind == "file")
        return Promise(self.staying.said, tuple(filter(self.stays, self.pieces)), files)
