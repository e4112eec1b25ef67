"""Which commits the files in a git folder name, read without running git.

References name some. So do the logs of ``HEAD`` and of the stash, of which git drops entries into
references again, and unfinished work: a merge, a rebase, a fetch.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from agent_tui.tools.files.folder_entries import folders_in

MOST_LISTED = 5_000
"""Files with references."""

_MOST_BYTES: Final = 64_000_000
_MOST_LOG_BYTES: Final = 64_000
"""The end of a log: some 400 entries."""

_REFERENCES: Final = ("HEAD", "packed-refs", "refs", "reftable")
_LOGS: Final = ("logs/HEAD", "logs/refs/stash")
_UNFINISHED: Final = ("rebase-merge", "rebase-apply", "sequencer")
_ID: Final = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")

NamesStamp: TypeAlias = tuple[tuple[str, int], ...]


def stamp_of(store: Path) -> NamesStamp:
    """A digest of all files that name commits in the git folder `store`; changes when one does.

    Their times say less: what is written to a mapped file changes them only once. Blocking.
    """
    return tuple(sorted(_digests(store)))


def noted_ids(store: Path) -> Iterator[str]:
    """The ids of objects that files in the git folder `store` name besides references. Blocking."""
    for git in _folders_of(store):
        for file in _noted_files(git):
            with suppress(OSError):
                ids = _ID.findall(_read_noted(file))
                yield from (id.decode() for id in dict.fromkeys(ids) if id.strip(b"0"))


def listed_ids(store: Path) -> list[str]:
    """The ids that files with references in the git folder `store` hold, and `noted_ids`. Blocking.

    However many these are. Files of the format reftable hold none that can be read without git.
    """
    found = (id for _, content in _references_in(store) for id in _ID.findall(content))
    return [*map(bytes.decode, found), *noted_ids(store)]


def _folders_of(store: Path) -> tuple[Path, ...]:
    return store, *folders_in(store / "worktrees")


def _noted_files(git: Path) -> Iterator[str]:
    yield from (f"{git}/{name}" for name in _LOGS)
    with suppress(OSError), os.scandir(git) as entries:  # MERGE_HEAD, FETCH_HEAD and the like
        yield from (entry.path for entry in entries if entry.name.isupper())
    for name in _UNFINISHED:
        with suppress(OSError), os.scandir(f"{git}/{name}") as entries:
            yield from (entry.path for entry in entries)


def _digests(store: Path) -> Iterator[tuple[str, int]]:
    for git in _folders_of(store):
        for file in _noted_files(git):
            with suppress(OSError):
                yield file, hash(_read_noted(file))
    for number, (file, content) in enumerate(_references_in(store)):
        if number == MOST_LISTED:
            yield "", time.monotonic_ns()  # git is asked every time
            return
        yield file, hash(content)  # with a key that no other program knows


def _references_in(store: Path) -> Iterator[tuple[str, bytes]]:
    """Each file with references, and what it holds."""
    places = [f"{git}/{name}" for git in _folders_of(store) for name in _REFERENCES]
    for place in places:
        try:
            yield place, _read(place, _MOST_BYTES)
        except IsADirectoryError:
            with suppress(OSError), os.scandir(place) as entries:
                places += [f"{place}/{entry.name}" for entry in entries]
        except OSError:
            continue


def _read_noted(file: str) -> bytes:
    """What unfinished work notes, or the end of a log.

    Raises:
        OSError: It cannot be read.
    """
    return _read(file, _MOST_LOG_BYTES if file.endswith(_LOGS) else _MOST_BYTES)


def _read(file: str, most_bytes: int) -> bytes:
    """The end of `file`.

    Raises:
        OSError: It cannot be read.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        size = os.fstat(descriptor).st_size
        if size > most_bytes:
            os.lseek(descriptor, -most_bytes, os.SEEK_END)
        return os.read(descriptor, min(size + 1, most_bytes))  # a large buffer costs more
    finally:
        os.close(descriptor)
