"""Tells which repositories the user made, and which followed files came with those of commands."""

import os
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path

from agent_tui.features.sandbox.git_places import is_git_folder
from agent_tui.tools.git.places import git_folders, repositories_of


class RepositoryMakers:
    """Remembers who made each repository in one conversation's folders.

    One that is removed as a whole takes followed files along: all of them if it is the user's, else
    only those that commands made in it.

    Attributes:
        of_commands: Each ``.git``, or git folder, that commands made.
    """

    def __init__(self) -> None:
        self.of_commands: set[Path] = set()
        self._of_user: set[Path] = set()
        self._folders: set[Path] | None = None
        self._made: set[Path] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was noted."""
        return self._folders is None

    def note_user(
        self, gits: Collection[Path], changed: AbstractSet[Path], controls: AbstractSet[Path]
    ) -> None:
        """Note what the user has. Blocking.

        Args:
            gits: See `WalkFindings`.
            changed: The followed files that they made or changed since the look before.
            controls: Which of them are git's own: these still go with the repository.
        """
        known, others = self._of_user, set(gits) - self.of_commands
        self._take({git for git in others if git in known or _is_repository(git)})
        self._made -= changed - controls
        self._note_made(controls)

    def note_commands(
        self, gits: Collection[Path], before: Collection[Path], new: Iterable[Path]
    ) -> None:
        """Note what commands left.

        Args:
            gits: See `WalkFindings`.
            before: Those of the look before.
            new: The followed files that were neither approved nor in question.
        """
        self.of_commands |= set(gits) - (self._of_user & set(before))
        self._of_user -= self.of_commands
        self._note_made(new)

    def note_recovered(self, gits: Iterable[Path], approved: Collection[Path]) -> None:
        """Note a first look after commands that another program began. Blocking.

        Args:
            gits: See `WalkFindings`.
            approved: The approved files. Without its HEAD among them, a repository is of commands.
        """
        found = ((entry, git_folders(entry)) for entry in gits)
        self._take({entry for entry, git in found if git and git[0] / "HEAD" in approved})

    def _take(self, gits: set[Path]) -> None:
        self._of_user = gits
        self._folders = set(chain.from_iterable(map(repositories_of, gits)))

    def _note_made(self, paths: Iterable[Path]) -> None:
        self._made.update(path for path in paths if _tops_among(self.of_commands, path))

    def keeps(self, gits: AbstractSet[Path], path: Path) -> bool:
        """Whether the followed file `path` is one of git's own in one of the folders `gits`."""
        users = self._folders
        own = gits if users is None or path in self._made else gits & users
        return not own.isdisjoint(path.parents)

    def takes_along(self, path: Path) -> bool:
        """Whether a repository is gone as a whole that takes the followed file `path` along."""
        gits = self._of_user | (self.of_commands if path in self._made else set[Path]())
        return any(not os.path.lexists(top) for top in _tops_among(gits, path))


def _tops_among(gits: AbstractSet[Path], path: Path) -> list[Path]:
    """The git folders and work trees of `gits` that are around `path`."""
    return [top for top in path.parents if not gits.isdisjoint((top, top / ".git"))]


def _is_repository(entry: Path) -> bool:
    found = git_folders(entry)
    return found is not None and is_git_folder(found[0])
