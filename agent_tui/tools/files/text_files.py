"""Text files as they are on disk: bytes, encoding, line endings; and how to replace one."""

import codecs
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.regular_files import open_in
from agent_tui.safe_paths import opened_folder
from agent_tui.tools.base import ToolContext, ToolError
from agent_tui.tools.files.memory import FileMemory, digest_of
from agent_tui.tools.files.walk import near_names

_MAX_FILE_BYTES = 50_000_000
"""Larger files are not taken into memory."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8_192
GUESSED_BYTES = 200_000
"""So much of the beginning is looked at where an encoding has to be guessed."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A decoded file. `raw_text` has its own line endings, `text` only ``\\n``."""

    raw_text: str
    encoding: str
    bom: bytes
    digest: str

    @property
    def text(self) -> str:
        """The content with ``\\r\\n`` as ``\\n``, as the model sees it."""
        return self.raw_text.replace("\r\n", "\n")

    @property
    def newline(self) -> str:
        """The line ending most lines have."""
        crlf = self.raw_text.count("\r\n")
        return "\r\n" if crlf > self.raw_text.count("\n") - crlf else "\n"

    def encoded(self, raw_text: str) -> bytes:
        """`raw_text` as bytes in this file's encoding, with its byte order mark.

        Raises:
            ToolError: the encoding lacks a character.
        """
        try:
            return self.bom + raw_text.encode(self.encoding)
        except UnicodeEncodeError as error:
            missing = raw_text[error.start]
            raise ToolError(
                f"The file is encoded as {self.encoding}, which cannot represent {missing!r}."
            ) from error

    def replaced(self, spans: list[tuple[int, int, str]]) -> str:
        """`raw_text` with `spans` of `text` (start, end, new text with ``\\n``) replaced.

        What lies outside the spans keeps its bytes; new text gets the file's line ending.
        Spans are in order and do not overlap.
        """
        offsets = _RawOffsets(self.raw_text)
        pieces: list[str] = []
        done = 0
        for start, end, new in spans:
            pieces.append(self.raw_text[done : offsets.of(start)])
            pieces.append(new.replace("\n", self.newline))
            done = offsets.of(end)
        return "".join([*pieces, self.raw_text[done:]])


class _RawOffsets:
    """Offsets in a text with ``\\r\\n`` for offsets in the same text with ``\\n``."""

    def __init__(self, raw_text: str) -> None:
        self._dropped: list[int] = []
        at = raw_text.find("\r\n")
        while at >= 0:
            self._dropped.append(at - len(self._dropped))
            at = raw_text.find("\r\n", at + 2)

    def of(self, offset: int) -> int:
        return offset + bisect_right(self._dropped, offset - 1)


def read_bytes(path: Path, context: ToolContext) -> bytes:
    """The content of a regular file of bearable size, as an editor has it that has it open.

    Args:
        path: The file, resolved.
        context: Names it in error texts, and knows of editors.

    Raises:
        ToolError: it is no regular file, too large or not readable.
    """
    shown = context.shown(path)
    try:
        with opened_folder(path.parent) as folder, open_in(folder, path) as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            raise ToolError(
                f"{shown} is larger than {_MAX_FILE_BYTES // 1_000_000} MB. Look at parts of it "
                "with grep, or with head, tail or sed in bash."
            )
        return context.open_texts.present(path, content)
    except OSError as error:
        raise ToolError(f"{shown} cannot be read: {error.strerror}.") from error


def decode(content: bytes) -> TextFile | None:
    """`content` as text, or None where it is binary.

    Only encodings that give the very same bytes back are taken.
    """
    for encoding, bom in likely_encodings(content):
        text = _decoded_exactly(content[len(bom) :], encoding)
        if text is not None:
            return TextFile(text, encoding, bom, digest_of(content))
    return None


def likely_encodings(beginning: bytes) -> Iterator[tuple[str, bytes]]:
    """Encodings to try for a file that begins so, likeliest first, each with its byte order mark.

    A byte order mark decides; else UTF-8; else what charset-normalizer finds likeliest. None for
    a binary file.
    """
    for bom, encoding in _BOMS:
        if beginning.startswith(bom):
            yield encoding, bom
            return
    if b"\0" in beginning[:_SNIFFED_BYTES]:
        return
    yield "utf-8", b""
    if (encoding := _guessed_encoding(beginning)) is not None:
        yield encoding, b""


def _decoded_exactly(content: bytes, encoding: str) -> str | None:
    try:
        text = content.decode(encoding)
        return text if text.encode(encoding) == content else None
    except UnicodeError:
        return None


def _guessed_encoding(beginning: bytes) -> str | None:
    from charset_normalizer import from_bytes  # 60 ms, and few files are not UTF-8

    best = from_bytes(beginning[:GUESSED_BYTES]).best()
    return None if best is None else best.encoding


def why_unseen(path: Path, content: bytes, files: FileMemory) -> str:
    """Why the model does not know `path` with this `content`; empty where it does."""
    seen = files.seen.get(path)
    if seen is None:
        return "exists, but you have not read it"
    return "" if seen == digest_of(content) else "has changed since you read it"


def replace_file(path: Path, content: bytes, context: ToolContext) -> None:
    """Put `content` at `path` in one step: readers see the old file or the new one, whole.

    Missing folders are created. An existing file keeps its mode. `path` is resolved, so that a
    link stays a link. An editor that takes the text writes the file itself.

    Raises:
        ToolError: the folder or the file cannot be written.
    """
    try:
        with opened_folder(path.parent, makes=True) as folder:
            if context.open_texts.take(path, content):
                return
            with scratch_beside(path) as scratch:
                mode = _mode_of(path.name, folder)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                usual = 0o666 if mode is None else 0o600
                descriptor = os.open(scratch.name, flags, usual, dir_fd=folder)
                with os.fdopen(descriptor, "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(content)
                    file.flush()
                    sync_file(file.fileno())
                os.replace(scratch.name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{context.shown(path)} cannot be written: {error.strerror}.") from error


def _mode_of(name: str, folder: int) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def missing_file_error(path: Path, context: ToolContext) -> ToolError:
    """There is no such file; names those that come nearest."""
    near = near_names(path, context.cwd)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ToolError(f"There is no file {context.shown(path)}.{hint}")


def remove_file(path: Path, shown: str) -> None:
    """Delete the file at `path`.

    Raises:
        ToolError: it cannot be deleted.
    """
    try:
        with opened_folder(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{shown} cannot be deleted: {error.strerror}.") from error


def content_fingerprint(changes: Iterable[tuple[Path, bytes | None, bytes | None]]) -> str:
    """Names these changes: differs as soon as a target, an old or a new content does.

    Each change is the file, and its content before and after; None where there is none.
    """
    parts: list[bytes] = []
    for path, before, after in changes:
        contents = (
            b"-" if content is None else digest_of(content).encode() for content in (before, after)
        )
        parts += (os.fsencode(path), *contents)
    return digest_of(b"\0".join(parts))
