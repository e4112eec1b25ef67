"""The messages sent in a project: a private JSON-lines file, and stepping through it."""

import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import cast

from agent_tui.drafts.draft import Draft
from agent_tui.file_locks import lock_descriptor
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import read_regular_file

MAX_DRAFTS = 10_000
MAX_BYTES = 16_000_000
"""At the start, older drafts are dropped if the file has twice as many lines or bytes."""


class PromptHistory:
    """The drafts sent in one project, oldest first, without duplicates.

    Several programs may write the same file: each appends whole lines, and one that shortens it
    holds a lock and keeps what others wrote.

    Args:
        path: ``history.jsonl``, created with mode 0600 at the first `add`; None keeps the
            history in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._drafts: dict[str, Draft] = {}
        self._is_fault_told = False

    @property
    def drafts(self) -> tuple[Draft, ...]:
        """All drafts, oldest first."""
        return tuple(self._drafts.values())

    @property
    def single_lines(self) -> list[str]:
        """The texts that a line editor can show: one line, nothing pasted; oldest first."""
        return [d.text for d in self.drafts if "\n" not in d.text and not d.pastes]

    def load(self) -> None:
        """Read the file, and shorten it if it has grown too long. Blocking.

        Unreadable lines are skipped; drafts added before stay newest. If the file cannot be read or
        shortened, nothing changes.
        """
        added = self.drafts
        self._drafts = _decode_all(self._read())
        for draft in added:
            self._remember(draft)

    def add(self, draft: Draft) -> None:
        """Add a sent draft, also to the file.

        Raises:
            OSError: The file cannot be written (raised once); the draft is still in memory.
        """
        if draft.is_empty:
            return
        self._remember(draft)
        if self._path is None:
            return
        try:
            make_private_dir(self._path.parent)
            with _lock(self._path) as descriptor:
                _write(descriptor, encode_draft(draft))
        except OSError:
            if not self._is_fault_told:
                self._is_fault_told = True
                raise

    def _remember(self, draft: Draft) -> None:
        self._drafts.pop(draft.text, None)
        self._drafts[draft.text] = draft
        while len(self._drafts) > MAX_DRAFTS:
            del self._drafts[next(iter(self._drafts))]

    def _read(self) -> list[bytes]:
        if self._path is None:
            return []
        try:
            lines = read_regular_file(self._path).splitlines()
        except OSError:
            return []
        if len(lines) >= 2 * MAX_DRAFTS or sum(map(len, lines)) >= 2 * MAX_BYTES:
            with suppress(OSError):
                self._shorten(self._path)
        return lines

    def _shorten(self, path: Path) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        with _lock(path):
            kept = _newest(_decode_all(read_regular_file(path).splitlines()).values())
            handle = os.open(temporary, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.writelines(kept)
            temporary.replace(path)


@contextmanager
def _lock(path: Path) -> Generator[int]:
    """Open the file for appending and lock it, even against a file that replaces it.

    On a file system without locks, at worst a draft is lost that another program adds while this
    one shortens the file.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            lock_descriptor(descriptor, waits=True)
            if _is_still(path, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _write(descriptor: int, line: bytes) -> None:
    """Append `line`, on a new line if another program left an incomplete one."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    while line:
        line = line[os.write(descriptor, line) :]


def _newest(drafts: Iterable[Draft]) -> list[bytes]:
    """The lines of the newest drafts within `MAX_BYTES`, oldest first."""
    kept: list[bytes] = []
    size = 0
    for draft in reversed(tuple(drafts)):
        line = encode_draft(draft)
        size += len(line)
        if size > MAX_BYTES:
            break
        kept.append(line)
    return kept[::-1]


def _decode_all(lines: Iterable[bytes]) -> dict[str, Draft]:
    """The newest drafts by their text, oldest first."""
    drafts: dict[str, Draft] = {}
    for line in lines:
        if (draft := decode_draft(line)) is not None:
            drafts.pop(draft.text, None)
            drafts[draft.text] = draft
    return dict(islice(drafts.items(), max(len(drafts) - MAX_DRAFTS, 0), None))


def encode_draft(draft: Draft) -> bytes:
    """One JSON line with the text and the pastes; images are not in it."""
    value: dict[str, object] = {"text": draft.text}
    if draft.pastes:
        value["pastes"] = dict(draft.pastes)
    return json.dumps(value).encode() + b"\n"


def decode_draft(line: bytes) -> Draft | None:
    """The draft of one line; None for anything that `encode_draft` did not write."""
    try:
        value: object = json.loads(line)
        if not isinstance(value, dict):
            return None
        fields = cast(dict[str, object], value)
        text, pastes = fields.get("text"), fields.get("pastes", {})
        if not isinstance(text, str) or not isinstance(pastes, dict):
            return None
        numbered = cast(dict[str, object], pastes)
        return Draft(text, {int(number): str(paste) for number, paste in numbered.items()})
    except (ValueError, RecursionError):
        return None


class HistoryWalk:
    """Steps through the history. The draft it began with is the newest step.

    Changes at a step are kept for that step until the walk ends.
    """

    def __init__(self, drafts: Sequence[Draft], current: Draft) -> None:
        self._steps = [*drafts, current]
        self._position = len(self._steps) - 1

    def older(self, current: Draft) -> Draft | None:
        """The previous step; None at the oldest. `current` is the present draft."""
        return self._move(current, -1)

    def newer(self, current: Draft) -> Draft | None:
        """The next step; None at the draft that the walk began with."""
        return self._move(current, 1)

    def _move(self, current: Draft, step: int) -> Draft | None:
        target = self._position + step
        if not 0 <= target < len(self._steps):
            return None
        self._steps[self._position] = current
        self._position = target
        return self._steps[target]
