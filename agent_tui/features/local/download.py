"""Downloads one file over HTTP into a part file, and resumes from what is already there."""

import asyncio
import json
import netrc
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Final

import httpx
from pydantic import TypeAdapter, ValidationError

from agent_tui.config.model_addresses import display_address, without_secrets
from agent_tui.errors import ModelFileError
from agent_tui.features.local.addresses import next_address
from agent_tui.regular_files import read_regular_file

_BUFFER_BYTES: Final = 64 * 1024
"""The most that is lost if the program is killed; a connection delivers far smaller chunks."""
_MAX_REDIRECTS: Final = 10
_MAX_FRUITLESS_TRIES: Final = 4
_TIMEOUT_S: Final = 30.0
_TRANSIENT: Final = (408, 425, 429)
_SHA256_DIGITS: Final = 64
_START: Final = b"GGUF"


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What the server reported about the file.

    `validator` is its ETag or date, `total_bytes` its whole size, `sha256` the hash it promises.
    """

    validator: str = ""
    total_bytes: int | None = None
    sha256: str = ""


class PartFile:
    """A growing file and a note beside it. Methods raise `OSError` as file operations do.

    Args:
        folder: The folder for downloads; exists.
        name: The name of both files, without suffix.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / f"{name}.part"
        self._note = folder / f"{name}.part.json"

    def size(self) -> int:
        """The number of bytes received so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def facts(self) -> PartFacts:
        """The facts noted with the bytes; empty facts if the note cannot be read."""
        try:
            return TypeAdapter(PartFacts).validate_json(read_regular_file(self._note))
        except (OSError, ValidationError):
            return PartFacts()

    def open(self, size: int, facts: PartFacts) -> BinaryIO:
        """Open for writing after the first `size` bytes, dropping the rest; note `facts`."""
        if not size:
            self.clear()
        self._note.write_text(json.dumps(asdict(facts)), encoding="utf-8")
        file = self.path.open("ab", buffering=_BUFFER_BYTES)
        try:
            file.truncate(size)
        except BaseException:
            file.close()
            raise
        return file

    def clear(self) -> None:
        """Delete the bytes and the note."""
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def open_client() -> httpx.AsyncClient:
    """Create a client that uses the environment's proxies and also the system's certificates.

    Raises:
        ModelFileError: The environment names a proxy or certificates that cannot be used.
    """
    try:
        context = httpx.create_ssl_context()
        context.load_default_certs()
        return httpx.AsyncClient(verify=context, timeout=_TIMEOUT_S)
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
        why = str(error).rstrip(".")
        raise ModelFileError(
            f"Cannot download with the proxy or the certificates of the environment: {why}.",
            "Check HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE.",
        ) from error


@dataclass(frozen=True, slots=True)
class Download:
    """One GGUF file to download.

    Args:
        address: Its address. Its login, or the host's in ``~/.netrc``, is sent to that host only.
        part: The file to write.
        is_checked: The hash will be checked, so mixed parts of different files would be noticed.
        make_room: Called with the bytes still to come; raises `ModelFileError` if they do not fit.
        on_progress: Called with the bytes received and the bytes in total (None: unknown).
        pause: Waits this many seconds before another try.
    """

    address: str
    part: PartFile
    is_checked: bool
    make_room: Callable[[int], None]
    on_progress: Callable[[int, int | None], None]
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def fetch(self, client: httpx.AsyncClient) -> str:
        """Download the whole file; returns the SHA-256 the server promises, or an empty text.

        A lost connection is resumed until several tries in a row bring nothing new.

        Raises:
            ModelFileError: The server refuses, or the connection fails. Received bytes stay.
            OSError: The part file cannot be written.
        """
        furthest, fruitless = self.part.size(), 0
        while True:
            try:
                if await self._try_once(client):
                    return self.part.facts().sha256
                reason = "connection lost"
            except (_TemporaryError, httpx.HTTPError, httpx.InvalidURL) as error:
                reason = without_secrets(_reason(error))
            size = self.part.size()
            fruitless = 0 if size > furthest else fruitless + 1
            furthest = max(size, furthest)
            if fruitless >= _MAX_FRUITLESS_TRIES:
                kept = "Pull again to continue the download." if size else "Try again later."
                raise ModelFileError(
                    f"Cannot download {display_address(self.address)}: {reason}.", kept
                )
            await self.pause(float(2**fruitless) / 2)

    async def _try_once(self, client: httpx.AsyncClient) -> bool:
        """Make one more request; returns whether the file is complete."""
        facts, size = self.part.facts(), self.part.size()
        headers = {"Accept-Encoding": "identity"}
        if size and (facts.validator or self.is_checked):
            headers["Range"] = f"bytes={size}-"
            if facts.validator:
                headers["If-Range"] = facts.validator
        response, linked_sha256 = await self._request(client, headers)
        async with aclosing(response):
            if response.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                _, total = _content_range(response.headers)
                if size and size == (total if total is not None else facts.total_bytes):
                    return True
                self.part.clear()
                return False
            self._check_status(response.status_code)
            if response.status_code == HTTPStatus.PARTIAL_CONTENT:
                first, total = _content_range(response.headers)
                is_other = facts.total_bytes not in (None, total)
                if first != size or is_other or facts.sha256 != linked_sha256:
                    self.part.clear()
                    return False
            else:
                total, size = _length(response.headers), 0
            self.make_room(max((total or size) - size, 0))
            facts = PartFacts(_validator(response.headers), total, linked_sha256)
            with self.part.open(size, facts) as file:
                size = await self._receive(response, file, size, total)
        return total is None or size == total

    async def _receive(
        self, response: httpx.Response, file: BinaryIO, size: int, total: int | None
    ) -> int:
        """Write the body after the first `size` bytes; returns the file's new size in bytes."""
        self.on_progress(size, total)
        chunks = response.aiter_raw()
        while chunk := await _next_chunk(chunks):
            if not size and not chunk.startswith(_START[: len(chunk)]):
                self.part.clear()
                raise ModelFileError(
                    f"{display_address(self.address)} is not a model file.",
                    "It may be a web page about a model. Use the URL of the file itself.",
                )
            file.write(chunk)
            size += len(chunk)
            self.on_progress(size, total)
        return size

    async def _request(
        self, client: httpx.AsyncClient, headers: Mapping[str, str]
    ) -> tuple[httpx.Response, str]:
        """The response after all redirects, and the SHA-256 in Hugging Face's header."""
        address, linked_sha256 = self.address, ""
        logins = _netrc_logins()
        for _ in range(_MAX_REDIRECTS):
            request = client.build_request("GET", address, headers=headers)
            login = None if request.url.userinfo else logins
            response = await client.send(request, auth=login, stream=True)
            linked_sha256 = linked_sha256 or _find_linked_sha256(response.headers)
            location = response.headers.get("Location")
            if not (response.is_redirect and location):
                return response, linked_sha256
            await response.aclose()
            address = next_address(address, location)
        raise ModelFileError(
            f"{display_address(self.address)} redirects too often.", "Try another URL."
        )

    def _check_status(self, status: int) -> None:
        if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return
        shown = display_address(self.address)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TRANSIENT:
            raise _TemporaryError(f"the server returned {status}")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise ModelFileError(
                f"{shown} requires a login (HTTP {status}).",
                "Add it to ~/.netrc, or download the file yourself, then: "
                "agent-tui models add PATH",
            )
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            raise ModelFileError(f"{shown} does not exist (HTTP {status}).", "Check the URL.")
        raise ModelFileError(f"Cannot download {shown}: HTTP {status}.", "Check the URL.")


class _TemporaryError(Exception):
    """The server cannot answer now; a later try may succeed."""


async def _next_chunk(chunks: AsyncIterator[bytes]) -> bytes:
    try:
        return await anext(chunks, b"")
    except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
        raise _TemporaryError("connection lost") from error


def _netrc_logins() -> httpx.Auth | None:
    try:
        return httpx.NetRCAuth()
    except (OSError, netrc.NetrcParseError):
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"no answer for {_TIMEOUT_S:.0f} seconds"
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else "connection lost"


def _validator(headers: Mapping[str, str]) -> str:
    """A validator that identifies this version of the file (RFC 9110, 13.1.5: strong ones only)."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified", "")


def _find_linked_sha256(headers: Mapping[str, str]) -> str:
    """The SHA-256 of a large file on Hugging Face, from its redirect; empty if it names none."""
    digest = headers.get("X-Linked-Etag", "").strip('"').lower()
    is_hash = len(digest) == _SHA256_DIGITS and not digest.strip("0123456789abcdef")
    return digest if is_hash else ""


def _length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdecimal() else None


def _content_range(headers: Mapping[str, str]) -> tuple[int | None, int | None]:
    """The first byte and the total size in ``bytes 5-9/10`` or ``bytes */10``."""
    span, _, whole = headers.get("Content-Range", "").lower().removeprefix("bytes").partition("/")
    first, whole = span.strip().partition("-")[0], whole.strip()
    return (
        int(first) if first.isascii() and first.isdecimal() else None,
        int(whole) if whole.isascii() and whole.isdecimal() else None,
    )
