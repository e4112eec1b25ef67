"""What a model wants to keep, and the proof that it suffices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.file_states import FileReader, FileState
from agent_tui.compaction.sections.file_views import edits_in
from agent_tui.compaction.sections.history import Done, read_history, split_after, steps_in
from agent_tui.messages import Usage
from agent_tui.providers.base import ModelRef
from agent_tui.sessions.entries import Entry


@dataclass(frozen=True, slots=True)
class Pick:
    """A piece to keep; `spans` are first and last lines of parts, the most needed first.

    They are empty for the whole piece.

    `is_lasting`: the user wants it kept through all later compactions. `is_certain`: it was said to
    stay, so it is not cut, whatever its size.
    """

    piece: Piece
    spans: tuple[tuple[int, int], ...] = ()
    is_lasting: bool = False
    is_certain: bool = False


def tokens_of(picks: Iterable[Pick]) -> int:
    """The size of `picks`; parts count by their lines, and each line once."""
    chosen: dict[Piece, set[int]] = {}
    for pick in picks:
        piece = pick.piece
        for first, last in pick.spans or ((piece.first, piece.last),):
            chosen.setdefault(piece, set()).update(range(first, last + 1))
    return sum(p.tokens * len(lines) // max(len(p.lines), 1) for p, lines in chosen.items())


@dataclass(frozen=True, slots=True)
class Promise:
    """What a model was told stays without its help, so that it did not choose it.

    Args:
        said: Entries of the user's messages, and whether they stay whole.
        pieces: What the list did not offer.
        files: All files of the list. Of their reads among the newest messages, those stay that show
            a file as it is now; the others are replaced by what the model chooses.
    """

    said: Mapping[str, bool] = field(default_factory=dict[str, bool])
    pieces: tuple[Piece, ...] = ()
    files: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class KeepChoice:
    """What a model wants kept.

    Args:
        notes: Its notes, in the form of the template.
        picks: Pieces to keep word for word, the most needed first.
        model: The model that chose.
        through: The newest entry that it saw; empty if none.
        promise: What it was told stays.
        problem: What the notes lack, as a clause; empty if nothing.
        usage: The usage of the requests.
        failures: Earlier errors, one clause each.
    """

    notes: str
    picks: tuple[Pick, ...]
    model: ModelRef
    through: str = ""
    promise: Promise = field(default_factory=Promise)
    problem: str = ""
    usage: Usage | None = None
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoChoice:
    """No model chose what to keep.

    Args:
        problems: Why not, one clause each; empty if none should be asked.
        has_answered: Whether a model answered, but unusably; false if none answered.
    """

    problems: tuple[str, ...] = ()
    has_answered: bool = False


_AROUND_LINES = 12
_LEAST_CHARS = 4
"""Shorter lines, such as a bracket, prove nothing."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of checking the steps since the choice.

    Args:
        steps: Number of steps that needed something known before.
        covered: How many of them have all of it in the new context.
        brought_back: What the others needed and can still be shown; kept first.
    """

    steps: int = 0
    covered: int = 0
    brought_back: tuple[Pick, ...] = ()

    @property
    def sentence(self) -> str:
        """The result for the user; empty if there was no step."""
        if not self.steps:
            return ""
        back = len(self.brought_back)
        more = f", {back} brought back" if back else ""
        return f"{self.covered} of the {self.steps} steps since then covered{more}"


def prove(path: Sequence[Entry], through: str, shown: str, folders: Sequence[str]) -> Proof:
    """Compare the steps on `path` after the entry `through` with the context `shown`.

    Args:
        path: Entries from the root to the leaf.
        through: The newest entry known at the time of the choice.
        shown: The new context without anything after that entry.
        folders: Paths of the working folder.
    """
    known, newer = split_after(path, through)
    before = {f.path: f for f in FileReader(folders).read(read_history(known))}
    now = {f.path: f for f in FileReader(folders).read(read_history(path))}
    lines = frozenset(map(str.strip, shown.split("\n")))
    steps = covered = 0
    back: dict[Pick, None] = {}
    for event in steps_in(newer):
        file = before.get(normalise_path(event.output.action.path, folders))
        if file is None or event.output.has_failed:
            continue
        steps += 1
        missing = [new for old, new in _edits(event) if not _is_met(old, file, lines)]
        covered += not missing and file.path in shown
        for new in missing:
            if file.path in now and (pick := _around(now[file.path], new)) is not None:
                back[pick] = None
    return Proof(steps, covered, tuple(back))


def _edits(event: Done) -> Iterator[tuple[str, str]]:
    action = event.output.action
    if action.kind == "edit":
        for old, new, _ in edits_in(action.arguments):
            yield old, new


def _is_met(old: str, file: FileState, lines: frozenset[str]) -> bool:
    """Whether those lines of `old` that were known from `file` are among `lines`."""
    known = {line.strip() for _, run in file.runs for line in run}
    wanted = {line.strip() for line in old.split("\n")} & known
    return all(line in lines for line in wanted if len(line) >= _LEAST_CHARS)


def _around(file: FileState, text: str) -> Pick | None:
    """The lines of `file` around `text`, as they are now; None if `text` is not there."""
    for first, run in file.runs:
        whole = "\n".join(run)
        if first and text and text in whole:
            at = whole.count("\n", 0, whole.find(text))
            start = max(at - _AROUND_LINES, 0)
            end = at + text.count("\n") + 1 + _AROUND_LINES
            shown = tuple(run[start:end])
            label = f"file {file.path}"
            return Pick(Piece(0, "", "kept", label, shown, first + start, 0, file.path))
    return None
