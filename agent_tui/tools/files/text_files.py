"""Text files on disk: encoding and line endings, a window of a large one, and replacing one."""

import codecs
import hashlib
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from agent_tui.atomic_files import scratch_beside, sync_file
from agent_tui.errors import ToolError
from agent_tui.omissions import cut_end_mark, marks_in
from agent_tui.safe_paths import open_folder
from agent_tui.sessions.file.kept_files import digest_of
from agent_tui.tools.base import Intent, ToolContext
from agent_tui.tools.files.diffs import Diff
from agent_tui.tools.files.documents import is_document
from agent_tui.tools.files.images import image_type
from agent_tui.tools.files.memory import FileMemory
from agent_tui.tools.files.opening import open_judged_file
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

_CHUNK_BYTES = 1 << 18
_PROBED_BYTES = 64
_LARGE_BYTES = 5_000_000
"""Bytes; editors are not asked for larger files (`acp/editor.py`)."""

_MAX_SCANNED_BYTES = 2_000_000_000
"""Bytes; takes about ten seconds to read, to count the lines."""


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

    def encode(self, raw_text: str) -> bytes:
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

    def replace_spans(self, spans: list[tuple[int, int, str]]) -> str:
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
    shown = context.display_name(path)
    try:
        with open_judged_file(path) as file:
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
        text = _decode_exactly(content[len(bom) :], encoding)
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
    if (encoding := _guess_encoding(beginning)) is not None:
        yield encoding, b""


def _decode_exactly(content: bytes, encoding: str) -> str | None:
    try:
        text = content.decode(encoding)
        return text if text.encode(encoding) == content else None
    except UnicodeError:
        return None


def _guess_encoding(beginning: bytes) -> str | None:
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
        raise ToolError(
            f"{context.display_name(path)} cannot be written: {error.strerror}."
        ) from error


def _mode_of(name: str, folder: int) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def resolve_existing(given: str, context: ToolContext, *, to_read: bool = True) -> Path:
    """The path that the model means by `given`, at which something exists.

    Args:
        given: The path as written.
        context: That of the call.
        to_read: See `ToolContext.resolve`.

    Raises:
        ToolError: Nothing is there, or no file can have this name; suggests similar names.
    """
    path = context.resolve(given, to_read=to_read)
    if path.exists():
        return path
    if not to_read and context.resolve(given, to_read=True).exists():
        raise ToolError(
            f"{context.display_name(path)} exists outside only: /tmp is the sandbox's own. Write a "
            "new file there, or one in the working folder."
        )
    near = near_names(path, context.cwd)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ToolError(f"There is no file {context.display_name(path)}.{hint}")


def read_for_change(given: str, context: ToolContext) -> tuple[Path, bytes]:
    """The path and the content of an existing file that a call would change.

    Raises:
        ToolError: There is no such file, it is a folder, or it cannot be read.
    """
    path = resolve_existing(given, context, to_read=False)
    if path.is_dir():
        raise ToolError(f"{context.display_name(path)} is a folder.")
    return path, read_bytes(path, context)


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


@dataclass(frozen=True, slots=True)
class Window:
    """Which lines are wanted, and how much of them is kept.

    Args:
        first: Number of the first line, from 1.
        count: How many lines.
        max_bytes: Lines are kept until they exceed this, line numbers not counted.
        max_line_chars: Longer lines are cut, with a mark.
    """

    first: int
    count: int
    max_bytes: int
    max_line_chars: int


@dataclass(slots=True)
class WindowedText:
    """The kept lines of a window, and the total number of lines in the text."""

    window: Window
    lines: list[str] = field(default_factory=list[str])
    total_lines: int = 0
    _kept_bytes: int = 0
    _newlines: int = 0
    _begun: str = ""
    _begun_chars: int = 0
    _is_open: bool = False

    def add(self, text: str) -> None:
        """Take in the next piece; only ``\\n`` ends a line."""
        if not text:
            return
        if self._may_hold_wanted(text):
            *ended, begun = text.split("\n")
            for number, piece in enumerate(ended, start=self._newlines + 1):
                self._go_on(number, piece)
                self._end(number)
            self._go_on(self._newlines + len(ended) + 1, begun)
        self._newlines += text.count("\n")
        self._is_open = not text.endswith("\n")

    def finish(self) -> None:
        """End the text. A newline at the very end does not begin another line."""
        if self._is_open:
            self._end(self._newlines + 1)
        self.total_lines = self._newlines + self._is_open

    def _may_hold_wanted(self, text: str) -> bool:
        last = self.window.first + self.window.count - 1
        is_before = self._newlines + text.count("\n") + 1 < self.window.first
        return not is_before and self._newlines + 1 <= last and not self._is_full

    @property
    def _is_full(self) -> bool:
        return self._kept_bytes > self.window.max_bytes

    def _is_wanted(self, number: int) -> bool:
        first, count = self.window.first, self.window.count
        return first <= number < first + count and not self._is_full

    def _go_on(self, number: int, piece: str) -> None:
        if self._is_wanted(number):
            self._begun += piece[: self.window.max_line_chars - len(self._begun)]
            self._begun_chars += len(piece)

    def _end(self, number: int) -> None:
        if self._is_wanted(number):
            left = self._begun_chars - len(self._begun)
            line = self._begun + (cut_end_mark(left) if left else "")
            self.lines.append(line)
            self._kept_bytes += len(line.encode("utf-8", "surrogatepass")) + 1
        self._begun, self._begun_chars = "", 0


def take_window(pieces: Iterable[str], window: Window) -> WindowedText:
    """The lines of `window` in a text that arrives in pieces, with ``\\r\\n`` as ``\\n``."""
    found = WindowedText(window)
    held = ""
    for piece in pieces:
        text = held + piece
        held = "\r" if text.endswith("\r") else ""
        found.add(text.removesuffix("\r").replace("\r\n", "\n"))
    found.add(held)
    found.finish()
    return found


def is_large_text(path: Path) -> bool:
    """Whether the file at `path` is large enough to read only a window of it.

    Smaller files are read whole, as an editor may have them open; so are images and documents.
    """
    try:
        if not path.is_file() or path.stat().st_size <= _LARGE_BYTES:
            return False
        with open_judged_file(path) as file:
            beginning = file.read(_PROBED_BYTES)
    except OSError:
        return False
    return not (image_type(beginning) or is_document(path, beginning))


@contextmanager
def open_text(path: Path, context: ToolContext) -> Generator[BinaryIO]:
    """Open the file at `path` to read a window of it.

    Raises:
        ToolError: It is too large to scan, or cannot be read.
    """
    try:
        with open_judged_file(path) as file:
            if os.fstat(file.fileno()).st_size > _MAX_SCANNED_BYTES:
                raise ToolError(
                    f"{context.display_name(path)} is larger than {_MAX_SCANNED_BYTES // 10**9} GB."
                    " Look at parts of it with grep, or with head, tail or sed in bash."
                )
            yield file
    except OSError as error:
        raise ToolError(
            f"{context.display_name(path)} cannot be read: {error.strerror}."
        ) from error


def read_window(file: BinaryIO, window: Window) -> tuple[WindowedText, str] | None:
    """The lines of `window` of an open file, and the file's digest; None if it is binary.

    The whole file is read, but only one piece at a time is in memory, besides the kept lines.

    Raises:
        OSError: It cannot be read.
    """
    for encoding, bom in likely_encodings(file.read(GUESSED_BYTES)):
        file.seek(0)
        digest = hashlib.sha256(file.read(len(bom)))
        try:
            found = take_window(_decode_chunks(file, encoding, digest.update), window)
        except UnicodeError:
            continue
        return found, digest.hexdigest()
    return None


def _decode_chunks(
    file: BinaryIO, encoding: str, look_at: Callable[[bytes], None]
) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    while chunk := file.read(_CHUNK_BYTES):
        look_at(chunk)
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a call would do to one file.

    `before` is None if the file is new, `after` if it is deleted.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    diff: Diff

    @property
    def verb(self) -> str:
        """What happens to the file, as a past participle."""
        if self.after is None:
            return "deleted"
        return "added" if self.before is None else "updated"

    def write(self, context: ToolContext) -> None:
        """Write the new content in one step, and remember it as seen.

        Raises:
            ToolError: The file cannot be written; it is unchanged.
        """
        if self.after is None:
            remove_file(self.path, context.display_name(self.path))
        else:
            replace_file(self.path, self.after, context)
            context.files.remember(self.path, digest_of(self.after))
        context.files.written[self.path] = self.after


def intent_for(title: str, *changes: FileChange) -> Intent:
    """The intent for one or several changes: the files, and one diff of them all."""
    return Intent(
        title=title,
        access="write",
        paths=tuple(change.path for change in changes),
        body="".join(change.diff.text for change in changes),
        body_kind="diff",
        fingerprint=content_fingerprint(
            (change.path, change.before, change.after) for change in changes
        ),
    )


def check_whole(new: str, old: str, name: str) -> None:
    """Refuse `new` if it has a mark for omitted text that `old` does not have.

    Args:
        new: The text to write.
        old: The file's current text; empty if it is new.
        name: The argument that held `new`, for the error.

    Raises:
        ToolError: Names the mark, and how to get the omitted text.
    """
    marks = marks_in(new)
    known = set(marks_in(old)) if marks else set[str]()
    if mark := next((mark for mark in marks if mark not in known), ""):
        raise ToolError(
            f"{name} contains {mark[-200:]!r}, a placeholder for text left out of this "
            "conversation. Read the file, or recall the original, and give the whole text. "
            "Nothing was written."
        )
