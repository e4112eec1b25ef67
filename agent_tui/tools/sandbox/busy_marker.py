"""Which programs run commands in a folder, and which were killed while they did."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_tui.file_locks import FileLock, LockHeldError
from agent_tui.paths import make_private_dir

_STATE: Final = ".state"
_BUSY: Final = b"1"
_IDLE: Final = b"0"


class BusyMarker:
    """The marker of one program: two files in `folder`, which all programs share.

    One is locked while the program lives, the other says whether commands run: writing a byte costs
    nothing, while creating and removing a file takes some milliseconds.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._file = folder / name
        self._lock: FileLock | None = None
        self._state = -1

    def say_busy(self) -> None:
        """Note that commands run from now on.

        Raises:
            OSError: The folder cannot be used.
        """
        if self._lock is None:
            make_private_dir(self._folder)
            self._lock = FileLock(self._file)
            state = self._file.with_name(self._file.name + _STATE)
            self._state = os.open(state, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._state, _BUSY, 0)

    def say_idle(self) -> None:
        """Note that no command runs."""
        if self._lock is not None:
            os.pwrite(self._state, _IDLE, 0)

    def is_another_busy(self) -> bool:
        """Whether another program runs commands, or did when it was killed."""
        try:
            states = [path for path in self._folder.iterdir() if path.suffix == _STATE]
        except OSError:
            return False
        return any([self._is_busy(state) for state in states if state.stem != self._file.name])

    def remove(self) -> None:
        """Remove the marker when the program or the conversation ends."""
        if self._lock is not None:
            os.close(self._state)
            self._file.with_name(self._file.name + _STATE).unlink(missing_ok=True)
            self._lock.release()
            self._lock = None

    def _is_busy(self, state: Path) -> bool:
        with suppress(OSError):
            is_busy = state.read_bytes() == _BUSY
            try:
                FileLock(state.with_suffix("")).release()
                state.unlink()  # its program has ended
            except LockHeldError:
                pass
            return is_busy
        return False
