"""Stores the approved state of the working folders, and says what the wall covers for it."""

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_tui.atomic_files import replace_private_file
from agent_tui.features.sandbox.beneath import read_own
from agent_tui.features.sandbox.change_authors import Author, ChangeAuthors
from agent_tui.features.sandbox.folder_copies import FolderCopies
from agent_tui.features.sandbox.hidden import HiddenFiles
from agent_tui.features.sandbox.linked import name_first
from agent_tui.features.sandbox.obeyed_state import Approved, Look
from agent_tui.features.sandbox.plan import Covers
from agent_tui.features.sandbox.project_look import ProjectLook
from agent_tui.features.sandbox.project_walk import WalkFindings
from agent_tui.features.sandbox.provenance import Provenance
from agent_tui.features.sandbox.repository_makers import RepositoryMakers
from agent_tui.paths import make_private_dir
from agent_tui.safe_paths import is_folder
from agent_tui.tools.git.places import git_place

APPROVED: Final = "approved.json"
"""The name of the file in our folder for working folders."""

_NOTHING_ASKED: Final = b'"asked":{}'


def describe_asked(file: Path) -> str:
    """A notice about what stays in place until the user answers; empty for nothing. Blocking.

    Args:
        file: That of an `ApprovedState`.
    """
    try:
        text = read_own(file)
        asked = {} if _NOTHING_ASKED in text else Approved.model_validate_json(text).asked
    except (OSError, ValueError):
        return ""
    named = [path for path in asked if os.path.lexists(path)]
    if not named:
        return ""
    shown = name_first(named)
    return f"Written by you or a command in another session: {shown}. The next command asks."


class ApprovedState:
    """The approved state of one conversation's folders, which other programs may share.

    Args:
        file: Where it is stored while commands run, if it has changed: each command does that.
        project: Looks at the working folders.
        copies: Has the copies of followed folders.
        hidden: Has the files that commands do not see.
        provenance: Notes what the user wants.

    Attributes:
        approved: The state.
        last: The last look.
        covers: What the wall must mount for it.
        authors: Knows what was covered when the commands that run began.
        makers: Knows who made each repository.
        is_unclear: Whether commands of another conversation may have made some of the last look.
    """

    def __init__(
        self,
        file: Path,
        project: ProjectLook,
        copies: FolderCopies,
        hidden: HiddenFiles,
        provenance: Provenance,
    ) -> None:
        self._file = file
        self._text: bytes = b""
        self._stamp = 0, 0
        self._project = project
        self._copies = copies
        self._hidden = hidden
        self._provenance = provenance
        self.approved: Approved = Approved()
        self.last = Look(WalkFindings())
        self.covers = Covers()
        self.authors = ChangeAuthors()
        self.makers = RepositoryMakers()
        self.is_unclear = False

    def take_up(self) -> bool:
        """Read the stored state if another program has written it; returns whether there is one."""
        if self._stamp_now() == self._stamp:
            return True
        try:
            state = Approved.model_validate_json(read_own(self._file))
        except (OSError, ValueError):
            return False
        self.approved, self._project.walk.first = state, state.first
        return True

    def look(self, *, after_commands: bool = False) -> Look:
        """The current state of the folders. Blocking."""
        known, before = self.approved.standing, self.last.found.gits
        look = self._project.look(known, self.last, self.makers)
        gits = look.found.gits
        if after_commands:
            if self.makers.is_empty:
                self.makers.note_recovered(gits, known)
                before = gits
            self.makers.note_commands(gits, before, look.files.keys() - known.keys())
        self.last = look
        return look

    def take_users(self) -> None:
        """Approve of the last look: it is the user's. Blocking.

        Raises:
            OSError: It cannot be stored.
        """
        look, before = self.last, self.approved.files
        new = {path for path, digest in look.files.items() if digest != before.get(path)}
        controls = {path for path in new if look.node_of(path) is None}
        self.makers.note_user(look.found.gits, new, controls)
        for path in self.approved.take_users(look.files):
            self.approved.words.pop(path, None)
            self._provenance.note_changed(path, self.approved)
        for path in () if self.is_unclear else self.approved.files:
            self.approved.note_word(path)
        self._project.walk.new_in_gits.clear()
        self.finish("user")
        copied = (path for path, _ in self.covers.copies)
        self.authors.note((*self.covers.read_only, *copied))

    def take_rest(self, since: Author) -> None:
        """Take in the last look, at which all that was changed has been judged. Blocking.

        What only commands can have deleted may be back.

        Args:
            since: Who could change files since the look before the first of these.

        Raises:
            OSError: Our folder cannot be used.
        """
        gone = self.approved.take_rest(self.last.files)
        self.note_words(path for path in gone if self.authors.author_of(path, since) != "commands")

    def forget(self, replaced: Iterable[Path]) -> None:
        """Forget what was approved in folders that the user replaced. Blocking.

        They want what is not in the new ones as little as what they delete.

        Raises:
            OSError: Our folder cannot be used.
        """
        forgotten = self.approved.forget(filter(is_folder, replaced))
        self.note_words(path for path in forgotten if not os.path.lexists(path))

    def allow(self, files: Collection[tuple[Path, str]]) -> None:
        """Approve of files with these digests, as the user allows them, and store it. Blocking.

        Raises:
            OSError: Our folder cannot be used.
        """
        self.approved.take(files)
        self._provenance.note_allowed(files, self.approved)
        self.store()

    def note_words(self, paths: Iterable[Path]) -> None:
        """Note that the user wants what is approved at `paths`, and nothing from before. Blocking.

        Raises:
            OSError: Our folder cannot be used.
        """
        self._provenance.note_wanted(paths, self.approved)

    def finish(self, since: Author) -> None:
        """Store the state, and cover what was followed at the last look. Blocking.

        Args:
            since: Who could change files since the last time.

        Raises:
            OSError: It cannot be stored.
        """
        look, walk = self.last, self._project.walk
        new, walk.new = walk.new, set()
        self._hidden.take(look.found.secrets, since, new)
        self.store()
        copied = (path for path, node in look.nodes.items() if node.way == "copied")
        self._copies.bring_up_to_date(copied, self._hidden.paths)
        folder = make_private_dir(self._copies.folder) if self._project.has_mounts else None
        self.covers = Covers(
            read_only=tuple(sorted(set(self._project.find_covers(look, self.makers.of_commands)))),
            copies=self._copies.pairs,
            copies_folder=folder,
            hidden=(*self._hidden.paths, *look.found.closed),
            sockets=tuple(look.found.sockets),
            unfollowed=frozenset((*self.approved.asked, *self._find_unwatched())),
        )

    def hide_new_keys(self) -> None:
        """Hide the files with keys that are new or changed while only jobs run. Blocking."""
        self._hidden.take(self._project.walk.look().secrets, "either")
        hidden = dict.fromkeys((*self.covers.hidden, *self._hidden.paths))
        self.covers = replace(self.covers, hidden=tuple(hidden))

    def store(self) -> None:
        """Write the state to disk.

        Raises:
            OSError: It cannot be written.
        """
        self.approved.first = self._project.walk.first
        text = self.approved.model_dump_json().encode()
        if text != self._text or self._stamp_now() != self._stamp:
            replace_private_file(self._file, text)
            self._text, self._stamp = text, self._stamp_now()

    @property
    def is_stored(self) -> bool:
        """Whether this program has stored the state."""
        return bool(self._text)

    def _stamp_now(self) -> tuple[int, int]:
        try:
            status = self._file.stat()
        except OSError:
            return 0, 1
        return status.st_ino, status.st_mtime_ns

    def _find_unwatched(self) -> Iterator[Path]:
        """Each ``.git`` that by now leads to a place which was none of the roots' at the start."""
        for place in map(git_place, self._project.walk.roots):
            if place and not any(map(place.folder.is_relative_to, self._project.roots)):
                yield place.entry
