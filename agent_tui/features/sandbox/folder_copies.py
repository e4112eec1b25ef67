"""Copies of followed folders, which commands see in their place and may change."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.features.sandbox.beneath import folder_of, move_in, remove_folder
from agent_tui.features.sandbox.file_contents import FileContents, entries_of, work_trees_in
from agent_tui.paths import make_private_dir
from agent_tui.tools.files.obeyed import WORK_TREES


@dataclass(frozen=True, slots=True)
class FolderCopy:
    """A copy, and what is in it, by paths relative to the folder.

    Args:
        path: The folder that it replaces.
        copy: Where it is.
        before: The digests of the files in it that were judged last; None if they were too many or
            too large.
        now: Those of today.
    """

    path: Path
    copy: Path
    before: Mapping[str, str] | None
    now: Mapping[str, str] | None


class FolderCopies:
    """The copies of one conversation.

    Args:
        folder: Where they are.
        contents: Reads and writes files in `roots` and in `folder`.
        roots: The working folders with their git folders.
    """

    def __init__(self, folder: Path, contents: FileContents, roots: Sequence[Path]) -> None:
        self.folder = folder
        self._contents = contents
        self._roots = roots
        self._copies: list[FolderCopy] = []

    @property
    def pairs(self) -> tuple[tuple[Path, Path], ...]:
        """Each folder, and its copy."""
        return tuple((each.path, each.copy) for each in self._copies)

    def bring_up_to_date(self, paths: Iterable[Path], blank: Iterable[Path]) -> None:
        """Copy the folders `paths` again where something differs.

        Commands can read a copy elsewhere, so the files `blank` are empty there.
        """
        hidden = frozenset(map(os.path.realpath, blank))
        self._copies = [self._copy_of(path, hidden) for path in paths]

    def look(self) -> list[FolderCopy]:
        """What is in the copies now, and what was when changes in them were judged last."""
        looked = (replace(each, now=self._digests_below(each.copy)) for each in self._copies)
        self._copies = list(looked)
        return self._copies

    def settle(self) -> None:
        """Note that the changes of the last look were judged: the next one does not find them."""
        self._copies = [replace(each, before=each.now) for each in self._copies]

    def move_work_trees_out(self) -> Iterator[Path]:
        """Move the work trees that commands made in a copy to where they belong.

        Yields each folder that gets some.
        """
        for path, copy in self.pairs:
            made, place = work_trees_in(copy), path / WORK_TREES
            if made is None:
                continue
            moves = {made: place}
            if os.path.lexists(place):  # others made some meanwhile
                moves = {each: place / each.name for each in entries_of(made)}
            for each, target in moves.items():
                if not os.path.lexists(target):
                    yield path
                    with suppress(OSError), folder_of(each, (self.folder,)) as folder:
                        move_in(folder, each.name, target, self._roots)

    def _copy_of(self, path: Path, hidden: AbstractSet[str]) -> FolderCopy:
        root = next(root for root in self._roots if path.is_relative_to(root))
        copy = self.folder / str(self._roots.index(root)) / path.relative_to(root)
        if not copy.is_dir():
            make_private_dir(copy)
        blank = self._contents.keep(b"", 0o600)
        wanted = {
            below: blank if os.fspath(path / below) in hidden else digest
            for below, digest in (self._digests_below(path) or {}).items()
        }
        if self._digests_below(copy) != wanted:
            for there in set(entries_of(copy)) - {work_trees_in(copy)}:
                _remove(there)
            for below, digest in wanted.items():
                self._contents.write(copy / below, digest)
        return FolderCopy(path, copy, wanted, wanted)

    def _digests_below(self, folder: Path) -> dict[str, str] | None:
        digests = self._contents.digests_in(folder)
        if digests is None:
            return None
        return {os.fspath(path.relative_to(folder)): digests[path] for path in digests}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink()
