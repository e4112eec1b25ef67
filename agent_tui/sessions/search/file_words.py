"""What is new of a session file for the index of words. Reads files; writes nothing."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent_tui.sessions.file.chunks import checksum, read_chunks
from agent_tui.sessions.listing.index import SessionFile
from agent_tui.sessions.listing.summary import one_line
from agent_tui.sessions.search.words import load_record, record_text, title_part, words_of

PART_BYTES = 128_000
"""So much of a file is one row; where a word occurs is known as exactly as this."""

BATCH_BYTES = 8_000_000
"""So much is indexed in one go, and lost when the program is stopped meanwhile."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A run of whole lines of a file, in bytes."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class FileState:
    """How far a file is indexed: `done` bytes, whole lines, with the checksum `crc`.

    `size` and `mtime_ns` are the file's when all of it was; `size` is -1 until then. `name` and
    `prompt` are the session's name and the beginning of its first prompt.
    """

    size: int = -1
    mtime_ns: int = 0
    done: int = 0
    crc: int = -1
    name: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class PartWords:
    """The different words of a part, folded, with spaces between them."""

    place: FilePart
    words: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A step from what is known of a file to what it holds.

    `starts_anew`: what is known is of no use, the file was rewritten.
    """

    path: Path
    before: FileState | None
    after: FileState
    starts_anew: bool
    parts: tuple[PartWords, ...]

    @property
    def size_bytes(self) -> int:
        """How much of the file it covers."""
        return sum(part.place.stop - part.place.start for part in self.parts)


def file_changes(file: SessionFile, known: FileState | None) -> Iterator[FileChange]:
    """The steps from `known` to all whole lines of `file`, each of at most some megabytes.

    A file that cannot be read has none: it stays as it was.
    """
    before, after = known, known or FileState()
    starts_anew = known is None or not _continues(file, known)
    if starts_anew:
        after = FileState()
    parts: list[PartWords] = []
    size_bytes = 0
    with suppress(OSError):
        for data in read_chunks(file.path, after.done, PART_BYTES):
            if not data.endswith(b"\n"):
                break
            part, after = _read_part(data, after)
            parts.append(part)
            size_bytes += len(data)
            if size_bytes >= BATCH_BYTES:
                after = replace(after, size=-1, crc=checksum(file.path, after.done))
                yield FileChange(file.path, before, after, starts_anew, tuple(parts))
                before, starts_anew, parts, size_bytes = after, False, [], 0
        after = replace(
            after,
            size=file.size_bytes,
            mtime_ns=file.mtime_ns,
            crc=checksum(file.path, after.done),
        )
        yield FileChange(file.path, before, after, starts_anew, tuple(parts))


def _continues(file: SessionFile, known: FileState) -> bool:
    if known.done == 0 or known.done > file.size_bytes or known.size == file.size_bytes:
        return False  # of the same size with another time: rewritten
    return known.crc >= 0 and checksum(file.path, known.done) == known.crc


def _read_part(data: bytes, before: FileState) -> tuple[PartWords, FileState]:
    name, prompt = before.name, before.prompt
    texts: list[str] = []
    for line in data.split(b"\n"):
        entry = load_record(line) if line else None
        if entry is None:
            continue
        new_name, new_prompt = title_part(entry)
        name, prompt = new_name or name, prompt or one_line(new_prompt)
        texts.append(record_text(entry))
    stop = before.done + len(data)
    words = " ".join(words_of("\n".join(texts)))
    part = PartWords(FilePart(before.done, stop), words)
    return part, replace(before, done=stop, name=one_line(name), prompt=prompt)
