"""What runs in working folders: the commands of a conversation, and those of other programs.

What runs says who can change files. Each program writes that down where the others read it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from agent_tui.errors import ToolError
from agent_tui.features.sandbox.beneath import list_own, read_own, reopen
from agent_tui.features.sandbox.change_authors import Author, any_of
from agent_tui.file_locks import FileLock, LockHeldError, lock_within
from agent_tui.paths import make_private_dir

_TURN_WITHIN_S = 15.0
"""A turn of another program takes milliseconds, and seconds if git or the disk is slow."""

_STUCK: Final = (
    "{} is starting a command in this folder and does not go on. Nothing was run. Continue or end "
    "that program, then try again."
)
_STATE: Final = ".state"
_BYTES: Final[Mapping[Author, bytes]] = {"user": b"0", "commands": b"1", "either": b"2"}
_AUTHORS: Final[Mapping[bytes, Author]] = {byte: author for author, byte in _BYTES.items()}


class RunningCommands:
    """Counts the commands of one conversation, and tells other programs whether there are some.

    Args:
        folder: Our folder for these working folders.
        everywhere: Our folder for the markers of all conversations.
        name: This conversation's.
        roots: The working folders with their git folders.

    Attributes:
        commands: How many commands run that the user waits for.
        jobs: How many run in the background.
        unsettled: Who made what is not judged yet: commands, if judging failed; the user or a job,
            if something was put back since, which may lead to more.
    """

    def __init__(self, folder: Path, everywhere: Path, name: str, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._marker = BusyMarker(folder / "running", name)
        self._near = BusyMarker(everywhere, name, roots)
        self.commands = self.jobs = 0
        self.unsettled: Author = "user"

    @property
    def author(self) -> Author:
        """Who changes files by now, or made what is not judged yet."""
        return any_of(self._author(), self.unsettled)

    def changes_since(self, *, ending: int = 0) -> Author:
        """Who may have changed files since the last look, as far as they are not covered.

        What runs in a folder around these or in them counts as a job: it may write elsewhere.

        Args:
            ending: How many commands have ended, and what they did was judged.
        """
        near: Author = "user" if self._near.author_elsewhere() == "user" else "either"
        return any_of(self._author(ending), self._marker.author_elsewhere(), near)

    def _author(self, ending: int = 0) -> Author:
        if self.commands > ending or self.unsettled == "commands":
            return "commands"
        return "either" if self.jobs or ending else "user"

    def open_turn(self) -> IO[bytes]:
        """Open the file that a program locks while it takes up the state; closing it releases it.

        Otherwise what the user did before would look like the work of a program that just began.
        """
        turn, flags = self._folder / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            make_private_dir(turn.parent)
            opened = os.open(turn, flags, 0o600)
        except PermissionError:
            reopen(turn.parent)
            with suppress(FileNotFoundError):
                turn.chmod(0o600)
            opened = os.open(turn, flags, 0o600)
        return os.fdopen(opened, "rb")

    def take_turn(self, turn: IO[bytes]) -> None:
        """Wait until no other program takes up the state of these folders. Blocking.

        Raises:
            ToolError: It does not go on.
        """
        try:
            lock_within(turn.fileno(), _TURN_WITHIN_S)
        except LockHeldError as error:
            raise ToolError(_STUCK.format(error.owner)) from error

    def say_busy(self) -> Author:
        """Tell other programs that a command begins; returns who else changes files here.

        Raises:
            OSError: Our folder cannot be used.
        """
        self._marker.say("commands")
        self._near.say("commands")
        return self._marker.author_elsewhere()

    def say(self) -> None:
        """Tell other programs who the `author` is.

        Raises:
            OSError: Our folder cannot be used.
        """
        self._marker.say(self.author)
        self._near.say(self.author)

    def close(self) -> None:
        """Remove the markers."""
        self._marker.remove()
        self._near.remove()


def conversations_beside(repositories: Path) -> Path:
    """Our folder for the markers of all conversations, beside that for repositories."""
    return repositories.with_name("conversations")


def find_killed(folder: Path, roots: Iterable[Path]) -> Iterator[Path]:
    """The working folder of each program that was killed while its commands ran near `roots`.

    That is around one of them, in one, or with a common root. Blocking.

    Args:
        folder: Has the markers of all conversations.
        roots: Working folders with their git folders.
    """
    ours = [os.fsencode(root) + b"/" for root in roots]
    for state in [path for path in list_own(folder) if path.suffix == _STATE]:
        with suppress(OSError, LockHeldError):
            byte, *theirs = read_own(state).split(b"\0")
            if byte != _BYTES["user"] and theirs and _overlap(ours, theirs):
                FileLock(state.with_suffix("")).release()  # its program has ended
                yield Path(os.fsdecode(theirs[0]))


def _overlap(roots: Iterable[bytes], others: Sequence[bytes]) -> bool:
    """Whether one of `roots` is, contains or is in one of `others`; each ends in a slash."""
    return any(root.startswith(each) or each.startswith(root) for root in roots for each in others)


class BusyMarker:
    """The marker of one program: two files in `folder`, which all programs share.

    One is locked while the program lives, the other says who changes files: writing a byte costs
    nothing, while creating and removing a file takes some milliseconds.

    Args:
        folder: Where the markers are.
        name: This program's.
        roots: Where its commands run; none if all programs that use `folder` run them in one place.
    """

    def __init__(self, folder: Path, name: str, roots: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._roots = tuple(os.fsencode(root) + b"/" for root in roots)
        self._file = folder / name
        self._lock: FileLock | None = None
        self._state = -1
        self._said: Author = "user"

    def say(self, author: Author) -> None:
        """Note who changes files from now on.

        Raises:
            OSError: The folder cannot be used.
        """
        if self._lock is None and author != "user":
            make_private_dir(self._folder)
            self._lock = FileLock(self._file)
            state = self._file.with_name(self._file.name + _STATE)
            self._state = os.open(state, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._state, b"\0".join((_BYTES["user"], *self._roots)), 0)
        if self._lock is not None:
            os.pwrite(self._state, _BYTES[author], 0)
        self._said = author

    def author_elsewhere(self) -> Author:
        """Who changes files in our roots with other programs, or did when these were killed.

        That is also around one of them, or in a folder in one.
        """
        states = [path for path in list_own(self._folder) if path.suffix == _STATE]
        others: Iterable[Author] = map(self._read, states)
        return any_of("user", *others)

    def remove(self) -> None:
        """Remove the marker when the program or the conversation ends.

        If what commands did was not judged, it stays, as after a kill.
        """
        if self._lock is not None:
            os.close(self._state)
            if self._said == "user":
                self._file.with_name(self._file.name + _STATE).unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def _read(self, state: Path) -> Author:
        if state.stem == self._file.name:
            return "user"
        with suppress(OSError):
            byte, *roots = read_own(state).split(b"\0")
            if self._roots and not _overlap(self._roots, roots):
                return "user"
            try:
                FileLock(state.with_suffix("")).release()
                state.unlink()  # its program has ended
            except LockHeldError:
                pass
            return _AUTHORS.get(byte, "user")
        return "user"
