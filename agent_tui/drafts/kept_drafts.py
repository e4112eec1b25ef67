"""The unsent draft, kept in a private file beside the session until it is sent or cleared."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import RLock

from agent_tui.atomic_files import replace_private_file
from agent_tui.drafts.draft import Draft, marks_in
from agent_tui.drafts.history import decode_draft, encode_draft
from agent_tui.file_locks import FileLock, LockHeldError, read_holder
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import read_regular_file
from agent_tui.sessions.file.side_files import side_file

MOST_CHARS = 8_000_000
"""If the pastes have more characters, the largest are not kept."""

_LOCK = ".lock"


class KeptDraft:
    """The file of the draft that one program is writing. Blocking; any thread may use it.

    While it exists, a lock beside it tells other programs that the draft is in a prompt.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._lock: FileLock | None = None
        self._one_by_one = RLock()

    @property
    def is_there(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def write(self, draft: Draft, session: Path) -> None:
        """Keep `draft` beside the file of `session`, in place of what was kept before.

        The session needs no file yet. Images are kept as mentions of their files.

        Raises:
            OSError: It cannot be written; what was kept before stays.
        """
        path = draft_file(session)
        with self._one_by_one:
            if path != self._path:
                make_private_dir(path.parent)
                lock = _lock(path)
                if lock is None:  # the session is open in a program that keeps its own draft
                    return
                self.remove()
                self._path, self._lock = path, lock
            replace_private_file(path, encode_draft(_fit(draft.with_mentions())))

    def remove(self) -> None:
        """Remove the file: the draft was sent or cleared."""
        with self._one_by_one:
            if self._path is not None:
                with suppress(OSError):
                    self._path.unlink()
            self.release()

    def release(self) -> None:
        """Leave the file, if there is one, to the next start."""
        with self._one_by_one:
            if self._lock is not None:
                self._lock.release()
            self._path = self._lock = None


def draft_file(session: Path) -> Path:
    """The file of the draft that belongs to the session at this path."""
    return side_file(session, ".draft")


def take_left_draft(session: Path, *, of_folder: bool = False) -> tuple[Draft, Path] | None:
    """The draft that a program left beside a session, and its file; None if there is none.

    The caller removes the file when it has the draft. Drafts that are in the prompt of a running
    program are not taken. Blocking.

    Args:
        session: The file of the session.
        of_folder: Whether to take the newest draft of any session in its folder.
    """
    for path in _newest_first(session.parent) if of_folder else (draft_file(session),):
        if read_holder(_lock_file(path)) is None:
            with suppress(OSError):
                if (draft := decode_draft(read_regular_file(path))) is not None:
                    return draft, path
    return None


def _newest_first(folder: Path) -> Iterator[Path]:
    found: list[tuple[int, Path]] = []
    for path in folder.glob("[!.]*.draft"):
        with suppress(OSError):
            found.append((path.stat().st_mtime_ns, path))
    return (path for _, path in sorted(found, reverse=True))


def _lock_file(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)


def _lock(path: Path) -> FileLock | None:
    """The lock of the draft at `path`; None if another program has it."""
    try:
        return FileLock(_lock_file(path))
    except LockHeldError:
        return None


def _fit(draft: Draft) -> Draft:
    """`draft` without its largest pastes if it is too large to keep; its text says so."""
    pastes, text = dict(draft.pastes), draft.text
    while pastes and sum(map(len, pastes.values())) > MOST_CHARS:
        del pastes[max(pastes, key=lambda number: len(pastes[number]))]
    for mark in reversed(tuple(marks_in(text))):
        if mark.kind == "paste" and mark.number in draft.pastes and mark.number not in pastes:
            size = f"{len(draft.pastes[mark.number]):,}"
            text = f"{text[: mark.start]}({size} pasted characters: not kept){text[mark.end :]}"
    return Draft(text, pastes)
