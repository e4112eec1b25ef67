"""Text files on disk: bytes, encoding, line endings; and how to replace one."""

import codecs
import os
import stat
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.regular_files import open_in
from agent_tui.safe_paths import open_folder
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import ToolContext, ToolError
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.files.walk import near_names

_MAX_FILE_BYTES = 50_000_000
"""Bytes; larger files are not read into memory."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8_192
GUESSED_BYTES = 200_000
"""Bytes at the start that are examined if the encoding must be guessed."""


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
        """The line ending of most lines."""
        crlf = self.raw_text.count("\r\n")
        return "\r\n" if crlf > self.raw_text.count("\n") - crlf else "\n"

    def encoded(self, raw_text: str) -> bytes:
        """`raw_text` in this file's encoding, with its byte order mark.

        Raises:
            ToolError: The encoding lacks a character.
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

        Bytes outside the spans stay the same; new text gets the file's line ending. Spans are in
        order and do not overlap.
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
    """Maps offsets in a text with ``\\n`` to those in the same text with ``\\r\\n``."""

    def __init__(self, raw_text: str) -> None:
        self._dropped: list[int] = []
        at = raw_text.find("\r\n")
        while at >= 0:
            self._dropped.append(at - len(self._dropped))
            at = raw_text.find("\r\n", at + 2)

    def of(self, offset: int) -> int:
        return offset + bisect_right(self._dropped, offset - 1)


def read_bytes(path: Path, context: ToolContext) -> bytes:
    """The content of a regular file of limited size; an editor's version if it is open there.

    Args:
        path: The file, resolved.
        context: Names it in error texts, and knows the editor.

    Raises:
        ToolError: It is not a regular file, too large or unreadable.
    """
    shown = context.shown(path)
    try:
        with open_folder(path.parent) as folder, open_in(folder, path) as file:
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
    """`content` as text, or None if it is binary.

    Only encodings that convert back to exactly the same bytes are accepted.
    """
    for encoding, bom in likely_encodings(content):
        text = _decoded_exactly(content[len(bom) :], encoding)
        if text is not None:
            return TextFile(text, encoding, bom, digest_of(content))
    return None


def likely_encodings(beginning: bytes) -> Iterator[tuple[str, bytes]]:
    """Encodings to try for a file with this beginning, likeliest first, with byte order marks.

    A byte order mark decides; else UTF-8; else charset-normalizer's guess. None for a binary file.
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
    """Why the model does not know `path` with this `content`; empty if it does."""
    seen = files.seen.get(path)
    if seen is None:
        return "exists, but you have not read it"
    return "" if seen == digest_of(content) else "has changed since you read it"


def replace_file(path: Path, content: bytes, context: ToolContext) -> None:
    """Write `content` to `path` in one step: readers see the whole old or new file.

    Missing folders are created. An existing file keeps its mode. `path` is resolved, so a link
    stays a link. An editor that accepts the text writes the file itself.

    Raises:
        ToolError: The folder or the file cannot be written.
    """
    try:
        with open_folder(path.parent, makes=True) as folder:
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
    """The error for a missing file; suggests similar names."""
    near = near_names(path, context.cwd)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ToolError(f"There is no file {context.shown(path)}.{hint}")


def remove_file(path: Path, shown: str) -> None:
    """Delete the file at `path`.

    Raises:
        ToolError: It cannot be deleted.
    """
    try:
        with open_folder(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
    except OSError as error:
        raise ToolError(f"{shown} cannot be deleted: {error.strerror}.") from error


def content_fingerprint(changes: Iterable[tuple[Path, bytes | None, bytes | None]]) -> str:
    """A hash of these changes: differs if a target, an old or a new content does.

    Each change is the file, and its content before and after; None if it has none.
    """
    parts: list[bytes] = []
    for path, before, after in changes:
        contents = (
            b"-" if content is None else digest_of(content).encode() for content in (before, after)
        )
        parts += (os.fsencode(path), *contents)
    return digest_of(b"\0".join(parts))
