"""Queries a model server about itself: JSON over HTTP, with one time limit for everything.

A socket's own timeout restarts with each byte, so a slow server could block its caller forever.
Here every wait gets only the remaining time. No proxy, no redirect: a key goes only to the address
it was named for.
"""

import http.client
import io
import json
import re
import socket
import ssl
import time
from typing import TypeVar, cast
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, JsonValue

from agent_tui.messages import JsonObject

PATIENCE_S = 1.0
"""Seconds for all queries to one server on this machine."""

REMOTE_PATIENCE_S = 4.0
"""Seconds for all queries to a server elsewhere."""

_MAX_ANSWER_BYTES = 4_000_000
_PIECE_BYTES = 65_536
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,12})[ \t]*\r\n", re.I)

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class ServerClient:
    """A series of queries to one server; a failed one returns None.

    Args:
        base_url: Where it speaks OpenAI's protocol, as for ``--base-url``.
        api_key: Sent to this address only; empty for none.
        patience_s: Seconds for all queries together.

    Attributes:
        models_path: Where it lists its models, for `get`.
        wants_key: A response said that the key is missing or wrong.
        is_loading: A response said that the server is not ready yet.
    """

    def __init__(self, base_url: str, api_key: str = "", *, patience_s: float = PATIENCE_S) -> None:
        self._base = base_url.rstrip("/").removesuffix("/v1")
        self.models_path = "/v1/models" if base_url.rstrip("/").endswith("/v1") else "/models"
        self._api_key = api_key.strip()
        self._deadline = time.monotonic() + patience_s
        self.wants_key = False
        self.is_loading = False

    def get(
        self, path: str, answer_type: type[AnswerT], *, body: JsonObject | None = None
    ) -> AnswerT | None:
        """The answer to a GET (a POST if there is a `body`); None if it has another form.

        `path` follows the address without its ``/v1``, where each kind of server has its own API.
        """
        try:
            received = self._exchange(path, body)
            response = http.client.HTTPResponse(cast("socket.socket", _Received(received)))
            response.begin()
            if response.status == 200:
                return answer_type.model_validate_json(response.read())
            _Refusal.model_validate_json(response.read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        self.wants_key |= response.status in (401, 403)
        self.is_loading |= response.status == 503
        return None

    def _exchange(self, path: str, body: JsonObject | None) -> bytes:
        received = bytearray()
        with self._connect() as connection:
            connection.settimeout(self._remaining_s())
            connection.sendall(self._request(path, body))
            while len(received) < _MAX_ANSWER_BYTES and not _is_whole(received):
                connection.settimeout(self._remaining_s())
                piece = connection.recv(_PIECE_BYTES)
                if not piece:
                    break
                received += piece
        return bytes(received)

    def _connect(self) -> socket.socket:
        address = urlsplit(self._base)
        host = address.hostname
        if not host or address.scheme not in ("http", "https"):
            raise ValueError(f"not an address: {self._base}")
        is_secure = address.scheme == "https"
        port = address.port or (443 if is_secure else 80)
        connection = socket.create_connection((host, port), self._remaining_s())
        if not is_secure:
            return connection
        try:
            connection.settimeout(self._remaining_s())
            return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise

    def _request(self, path: str, body: JsonObject | None) -> bytes:
        address = urlsplit(self._base)
        target = quote(address.path + path, safe="/?=&%:@+,;~")
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{'GET' if body is None else 'POST'} {target} HTTP/1.1",
            f"Host: {address.netloc.rpartition('@')[2]}",
            "Accept: application/json",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        ]
        if self._api_key.isascii() and self._api_key.isprintable() and self._api_key:
            lines.append(f"Authorization: Bearer {self._api_key}")
        return "\r\n".join([*lines, "", ""]).encode() + content

    def _remaining_s(self) -> float:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s


class _Refusal(BaseModel):
    """How model servers refuse; anything else on their ports answers differently."""

    error: JsonValue


class _Received:
    """Received bytes, in place of the socket they came from."""

    def __init__(self, received: bytes) -> None:
        self._received = received

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._received)


def _is_whole(received: bytearray) -> bool:
    """Whether the response is complete, though the connection is open."""
    end_of_head = received.find(b"\r\n\r\n")
    if end_of_head < 0:
        return False
    if received.endswith(_LAST_CHUNK):
        return True
    length = _CONTENT_LENGTH.search(received, 0, end_of_head + 2)
    return length is not None and len(received) >= end_of_head + 4 + int(length[1])
