"""Tells whose content is in a followed file, and notes which content the user wants."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from agent_tui.features.sandbox.change_finder import Change
from agent_tui.features.sandbox.file_contents import FileContents
from agent_tui.features.sandbox.known_versions import KnownVersions
from agent_tui.features.sandbox.obeyed_state import Approved


class Commit(NamedTuple):
    """One that a command, or the user meanwhile, made or fetched; as the user is shown it."""

    shown: str


Origin: TypeAlias = Commit | Literal["user", "unknown"]
"""Whose content it is. The user's is what they last had or allowed there, or in their commits."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Knows what the user had and allowed in these folders, and in all that share a repository.

    Args:
        contents: Has the contents of files by their digests.
        versions: Knows the versions in the user's commits, and what they allowed.
    """

    contents: FileContents
    versions: KnownVersions

    async def find_origin(self, change: Change, approved: Approved) -> Origin:
        """Where all files of `change` are from."""
        if change.control not in (None, "way"):  # a commit can have a link
            return "unknown"
        origin: Origin = "user"
        for path, digest in change.files:
            version = self.contents.version_of(digest or change.before)
            if version is None:
                return "unknown"
            is_word = digest == approved.words.get(path)
            if is_word and not self.versions.is_withdrawn(path, version):
                continue
            if await self.versions.has(path, version):
                if digest or await self.versions.lack(path):
                    continue
                return "unknown"
            shown = await self.versions.commit_with(path, version) if digest else ""
            if not shown:
                return "unknown"
            origin = Commit(shown)
        return origin

    def note_wanted(self, paths: Iterable[Path], approved: Approved) -> None:
        """Note that the user wants what is approved at `paths`, and nothing from before. Blocking.

        Raises:
            OSError: Our folder cannot be used.
        """
        for path in paths:
            approved.note_word(path)
            self.note_changed(path, approved)

    def note_changed(self, path: Path, approved: Approved) -> None:
        """Note that what the user allowed at `path` before does not count any more. Blocking.

        Raises:
            OSError: Our folder cannot be used.
        """
        now = self.contents.version_of(approved.files.get(path, ""))
        self.versions.approve(path, None, now)

    def note_allowed(self, files: Iterable[tuple[Path, str]], approved: Approved) -> None:
        """Note that the user allows `files`, which are approved by now. Blocking.

        Raises:
            OSError: Our folder cannot be used.
        """
        for path, digest in files:
            approved.note_word(path)
            self.versions.approve(path, self.contents.version_of(digest))
