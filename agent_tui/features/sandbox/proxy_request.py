"""Strict parsing of the head of a client's request to an HTTP proxy. Pure.

Anything that is not clearly one request to one host is refused, as differences between two parsers
allow smuggling a request to another host (RFC 9112, section 11.2).
"""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_HEAD_BYTES: Final = 65_536
_METHOD = re.compile(rb"[A-Z][A-Z-]{0,31}")
_VERSIONS: Final = (b"HTTP/1.0", b"HTTP/1.1")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_PATH = re.compile(rb"[/?][\x21\x23-\x7e]*|")
_HOST = re.compile(
    rb"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252}[A-Za-z0-9_])?\.?)|\[(?P<ip>[0-9A-Fa-f:.]{2,45})\]"
)
_ENDS_IN_NUMBER = re.compile(r"(?:\A|\.)(?:\d+|0x[0-9a-f]*)\Z")
_PORT = re.compile(rb"[0-9]{1,5}")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e\x80-\xff]*)?")
_PLAIN_PORT: Final = 80
_OF_THE_HOP: Final = frozenset(
    b"connection host keep-alive proxy-authenticate proxy-authorization proxy-connection te"
    b" trailer upgrade".split()
)
"""Headers between a client and its proxy, and ``Host``, which the target determines."""

_CHUNKED: Final = -1


class BadRequest(Exception):
    """The head is not clearly one request to one host."""


class Target(NamedTuple):
    """Where a request goes: a lowercase name or an IP address, and a port."""

    host: str
    port: int

    @property
    def netloc(self) -> str:
        """The target in the form of a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def shown(self) -> str:
        """The target for users: the port only if it is not one of the web's."""
        return self.netloc if self.port not in (80, 443) else self.host


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """One request.

    Attributes:
        target: Where it goes, by its first line alone.
        is_tunnel: ``CONNECT``: the rest is between the client and `target`.
        method: The method; this and the following are for plain requests only.
        path: With the query.
        version: ``HTTP/1.0`` or ``HTTP/1.1``.
        headers: Those for `target`.
        body_bytes: Length of the body; negative if it is chunked.
    """

    target: Target
    is_tunnel: bool = False
    method: bytes = b""
    path: bytes = b""
    version: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
    body_bytes: int = 0

    @property
    def is_chunked(self) -> bool:
        """Whether the body is chunked."""
        return self.body_bytes == _CHUNKED

    def head(self, *, through_proxy: tuple[bytes, ...] | None = None) -> bytes:
        """The head to send on.

        Args:
            through_proxy: Lines for another proxy on the way; None: directly to the target.
        """
        target = self.target
        is_usual = target.port == _PLAIN_PORT
        netloc = target.netloc.removesuffix(f":{_PLAIN_PORT}") if is_usual else target.netloc
        host = netloc.encode()
        path = self.path if through_proxy is None else b"http://" + host + self.path
        lines = [
            b" ".join((self.method, path, self.version)),
            b"Host: " + host,
            *(name + b": " + value for name, value in self.headers),
            *(through_proxy or ()),
            b"Connection: close",
        ]
        return b"\r\n".join([*lines, b"", b""])


def read_head(head: bytes) -> ProxyRequest:
    """Parse a client's request.

    Args:
        head: Everything up to and including the empty line.

    Raises:
        BadRequest: It is refused; the text says why.
    """
    if not head.endswith(b"\r\n\r\n"):
        raise BadRequest("the head has no end")
    first, *lines = head[:-4].split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _METHOD.fullmatch(words[0]) or words[2] not in _VERSIONS:
        raise BadRequest("the first line is not that of an HTTP/1.1 request")
    method, target, version = words
    headers = [_header(line) for line in lines]
    if method == b"CONNECT":
        return ProxyRequest(_target(target, None), is_tunnel=True)
    scheme, mark, rest = target.partition(b"://")
    if not mark or scheme.lower() != b"http":
        raise BadRequest("a plain request to a proxy names a URL that begins with http://")
    begin = min((place for place in map(rest.find, (b"/", b"?")) if place >= 0), default=len(rest))
    path = rest[begin:]
    if not _PATH.fullmatch(path):
        raise BadRequest("the URL has characters that it may not have")
    return ProxyRequest(
        _target(rest[:begin], _PLAIN_PORT),
        method=method,
        path=path if path.startswith(b"/") else b"/" + path,
        version=version,
        headers=_headers_to_send(headers),
        body_bytes=_body_bytes(headers, version),
    )


def chunk_bytes(line: bytes) -> int:
    """The length of the chunk that `line` (without its end) announces; 0 ends the body.

    Raises:
        BadRequest: It announces none.
    """
    found = _CHUNK.fullmatch(line)
    if found is None:
        raise BadRequest("a chunk of the body has no length")
    return int(found[1], 16)


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, mark, value = line.partition(b":")
    if not mark or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise BadRequest("a header is malformed")
    return name, value.strip(b"\t ")


def _target(netloc: bytes, usual_port: int | None) -> Target:
    host, mark, digits = netloc.rpartition(b":")
    if not mark or netloc.endswith(b"]"):
        host, digits = netloc, b"" if usual_port is None else str(usual_port).encode()
    found = _HOST.fullmatch(host)
    port = int(digits) if _PORT.fullmatch(digits) else 0
    if found is None or not 0 < port < 65_536:
        raise BadRequest("it names no host and port")
    return Target(_name((found["name"] or found["ip"]).decode().lower()), port)


def _name(host: str) -> str:
    """The canonical form of a name or address, so that rules cannot be evaded."""
    host = host.removesuffix(".")
    if ":" in host or _ENDS_IN_NUMBER.search(host):  # "127.1" and "0x7f000001" are addresses, too
        try:
            return str(ipaddress.ip_address(host))
        except ValueError as error:
            raise BadRequest("an IP address is written in an unusual form") from error
    if ".." in host:
        raise BadRequest("it names no host and port")
    return host


def _headers_to_send(headers: list[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    named = {
        word.strip().lower()
        for name, value in headers
        if name.lower() == b"connection"
        for word in value.split(b",")
    } - {b"content-length", b"transfer-encoding"}
    return tuple(
        (name, value) for name, value in headers if name.lower() not in _OF_THE_HOP | named
    )


def _body_bytes(headers: list[tuple[bytes, bytes]], version: bytes) -> int:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise BadRequest("the length of the body is given twice")
    if codings:
        if codings[0].lower() != b"chunked" or version != b"HTTP/1.1":
            raise BadRequest("the body is neither whole nor in chunks")
        return _CHUNKED
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise BadRequest("the body has no length")
    return int(lengths[0]) if lengths else 0
