"""Check whether the chosen pieces would have sufficed for the steps taken since the choice.

Between choice and compaction, the model took real steps. What they needed is known, so anything
that the new context lacks is added now. (The idea: arXiv 2605.08580.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_tui.compaction.curation.answer import Pick
from agent_tui.compaction.curation.pieces import Piece
from agent_tui.compaction.ledger.files import normalise_path
from agent_tui.compaction.sections.files import FileReader, FileState, edits_in
from agent_tui.compaction.sections.history import Done, read_history
from agent_tui.sessions.entries import Entry

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
    ids = [entry.id for entry in path]
    at = ids.index(through) + 1 if through in ids else len(ids)
    before = {f.path: f for f in FileReader(folders).read(read_history(path[:at]))}
    now = {f.path: f for f in FileReader(folders).read(read_history(path))}
    lines = frozenset(map(str.strip, shown.split("\n")))
    steps = covered = 0
    back: dict[Pick, None] = {}
    for event in read_history(path[at:]):
        if not isinstance(event, Done):
            continue
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
