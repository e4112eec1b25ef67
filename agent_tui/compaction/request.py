"""What to compact, why, and what is known about it: the input of every strategy."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from agent_tui.compaction.curation.answer import KeepChoice, NoChoice, Pick, Promise
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.sections.file_states import ReadFile
from agent_tui.config import CompactionSettings
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.sessions.entries import Carryover, Entry, RepositoryState

Occasion: TypeAlias = Literal["due", "overflow", "asked", "new session", "limit"]
"""Why a conversation is compacted, which decides what is done if it is below its target.

``due``: it is large. ``overflow``: the provider refused it as too large. ``asked``: the user asked,
and messages may stay in this session. ``new session``: the user asked for one that begins with a
summary. ``limit``: a program asked; the result may not exceed the target, so everything is
shortened to fit, the newest messages too.
"""

Answered: TypeAlias = KeepChoice | NoChoice
"""The result of asking models; also `NoChoice` if none should be asked any more."""

Ahead: TypeAlias = Callable[[], Awaitable[Answered | None]]
"""Waits for the result of asking in advance; None if there is none and a model is asked now."""


@dataclass(frozen=True, slots=True)
class ContextSizes:
    """The sizes of a conversation in tokens.

    Args:
        window: The model's context window.
        used: Tokens in use, as measured; all others are our own estimates.
        overhead: System prompt and tool schemas.
        target: Target size of the result; 0 for the window's default.
        least_gain: Least saving for which shortening messages is worth it.
        ratio: Tokens that the model counts per estimated token.
    """

    window: int
    used: int
    overhead: int = 0
    target: int = 0
    least_gain: int = 1
    ratio: float = 1.0

    @property
    def used_estimate(self) -> int:
        """`used` converted to our own estimate."""
        return round(self.used / self.ratio)


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked what to keep.

    Args:
        focus: What the user wants the summary to focus on.
        ahead: Waits for the answer of a model asked in advance; None if none was.
        live: The conversation's next request, for asking its own model; None if that cannot be
            asked.
    """

    focus: str = ""
    ahead: Ahead | None = None
    live: ModelRequest | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What a model and the user decided.

    Args:
        choice: The model's choice.
        marked: Pieces that the user keeps, whatever a model chooses.
        released: Pieces that the user no longer keeps through all compactions.
        promise: What the model, or the user, was told stays.
    """

    choice: KeepChoice | None = None
    marked: tuple[Pick, ...] = ()
    released: tuple[Piece, ...] = ()
    promise: Promise = field(default_factory=Promise)


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A conversation to compact.

    Args:
        path: Entries from the root to the leaf.
        previous: ``compaction`` of the session's header.
        cwd: The session's working folder; files inside are named relative to it.
        model: The session's model.
        settings: The settings in force: how much stays, which model is asked, in what form.
        sizes: The conversation's sizes.
        occasion: Why it is compacted.
        on_disk: Reads a file of the working folder; None if files are unavailable.
        repositories: What git says now; none if it was not asked or does not answer.
        asking: How a model is asked.
        selection: What is already decided.
    """

    path: tuple[Entry, ...]
    previous: Carryover | None
    cwd: Path
    model: ModelRef
    settings: CompactionSettings
    sizes: ContextSizes
    occasion: Occasion = "due"
    on_disk: ReadFile | None = None
    repositories: tuple[RepositoryState, ...] = ()
    asking: Asking = Asking()
    selection: Selection = Selection()

    @property
    def wants_summary(self) -> bool:
        """Whether to make a summary even if shorter messages would suffice."""
        return self.occasion in ("new session", "limit")

    @property
    def is_asked(self) -> bool:
        """Whether someone asked, so that the context is made smaller than it is in any case."""
        return self.occasion in ("asked", "new session", "limit")
