"""Carries out what was decided on changes: all that is written to working folders."""

import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.features.sandbox.beneath import writable_folder_of
from agent_tui.features.sandbox.change_finder import Change
from agent_tui.features.sandbox.file_contents import FileContents, is_link_digest, is_stored
from agent_tui.features.sandbox.git_controls import plain_content
from agent_tui.features.sandbox.git_index import INDEX
from agent_tui.features.sandbox.held import HeldStore
from agent_tui.features.sandbox.obeyed_state import Approved
from agent_tui.features.sandbox.tracked_files import TrackedFiles
from agent_tui.tools.held_files import HeldFile


@dataclass(frozen=True, slots=True)
class ChangeApplier:
    """Writes through no link that a command may have made.

    Args:
        contents: Has what is written.
        store: Has what is set aside.
        tracked: Makes an index.
        roots: The working folders with their git folders.
        new_in_gits: The folders in git folders that commands may have made.
    """

    contents: FileContents
    store: HeldStore
    tracked: TrackedFiles
    roots: Sequence[Path]
    new_in_gits: AbstractSet[str]

    def bring(self, change: Change) -> bool:
        """Do outside what a command did to a copy, unless the user changed it differently."""
        ((path, digest),) = change.files
        if self.contents.digest_of(path) != change.before:
            return False
        try:
            if digest:
                self.contents.write(path, digest)
            else:
                with writable_folder_of(path, self.roots) as folder:
                    os.unlink(path.name, dir_fd=folder)
                self._remove_empty(path.parent)
        except OSError:
            return False
        return True

    def set_aside(self, change: Change, why: str, approved: Approved) -> HeldFile:
        """Move what `change` left to our folder, and restore what was there before.

        What is written instead of that is approved. A folder in a git folder that commands made
        goes, too, if it is empty then: for git, it alone may mean a rebase or a work tree.

        Args:
            change: The change.
            why: Why the user decides on it.
            approved: What may be there.

        Raises:
            OSError: It is gone, or cannot be moved or written.
        """
        path, plain = change.path, self._keep_plain(change)
        held = self.store.set_aside(path, why, plain or change.before, change.source)
        if plain:
            approved.take_harmless([(path, plain)])
        for file, digest in self._find_lost(change, approved.standing).items():
            self.contents.write(file, digest)
        if change.control is None:
            found = {self.contents.bytes_of(digest) for _, digest in change.files}
            return replace(held, unstaging=self.tracked.find_unstaging(path, found))
        self._remove_empty(path.parent, self.new_in_gits)
        if change.control == "irregular" and path.name == INDEX and not approved.asked:
            return self._replace_index(held)
        return held

    def _keep_plain(self, change: Change) -> str:
        """The digest of what runs nothing in the changed file; empty if there is no such part."""
        path, control = change.path, change.control
        if control not in ("config", "step", "replacement") or is_link_digest(change.digest):
            return ""
        was, mode = self.contents.of(change.before) or (None, 0o644)
        plain = plain_content(path, control, was, self.contents.version_of(change.digest))
        return self.contents.keep(plain, mode) if plain or was is not None else ""

    def _find_lost(self, change: Change, files: Mapping[Path, str]) -> dict[Path, str]:
        """What `change` replaced that was elsewhere: the link around it, or a folder's `files`.

        Where a folder is in the place of a link, that comes back if the folder has no other files.
        """
        path = change.path
        if change.is_in_copy or change.control is not None or is_stored(change.before):
            return {}
        link = next((each for each in path.parents if is_link_digest(files.get(each, ""))), None)
        if link is not None:
            self._remove_empty(path.parent)
            return {} if os.path.lexists(link) else {link: files[link]}
        is_folder = not dict(change.files).get(path)
        below = (each for each in files if path in each.parents and is_stored(files[each]))
        return {} if is_folder else {each: files[each] for each in below}

    def _replace_index(self, held: HeldFile) -> HeldFile:
        """Leave git an index: without one, each file would count as deleted."""
        path = held.path
        if not self.tracked.make_index(path.parent):
            return held
        why = f"{held.who}; git made it again from the last commit, so nothing is staged"
        return replace(held, who=why, before=self.contents.digest_of(path))

    def _remove_empty(self, folder: Path, among: AbstractSet[str] | None = None) -> None:
        """Remove `folder` and those around it while they are empty, as git does.

        Args:
            folder: The innermost one.
            among: Those that may go; None for any.
        """
        with suppress(OSError):
            while among is None or os.fspath(folder) in among:
                with writable_folder_of(folder, self.roots) as around:
                    os.rmdir(folder.name, dir_fd=around)
                folder = folder.parent
