"""Logging in to an MCP server at an address, with the SDK's own client of OAuth.

``agent-tui mcp login NAME`` has the person allow it in a browser, which comes back to a port on
loopback. Tokens are kept in a file that only the person reads; the bridge to the server sends
them, and has them renewed. Only these two import the SDK.
"""

import hashlib
import importlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, cast

from pydantic import JsonValue

from agent_tui.atomic_files import scratch_beside
from agent_tui.messages import JsonObject
from agent_tui.paths import make_private_dir
from agent_tui.regular_files import read_regular_file

Redirect = Callable[[str], Awaitable[None]]
Callback = Callable[[], Awaitable[object]]


class _Model(Protocol):
    """A model of the SDK."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> JsonObject: ...


class _ModelClass(Protocol):
    def model_validate(self, value: JsonObject) -> _Model: ...


class _Context(Protocol):
    token_expiry_time: float | None


class Provider(Protocol):
    """As much of the SDK's ``OAuthClientProvider`` as is used here."""

    context: _Context


class _Auth(Protocol):
    def OAuthClientProvider(
        self,
        server_url: str,
        client_metadata: object,
        storage: object,
        *,
        redirect_handler: Redirect | None,
        callback_handler: Callback | None,
    ) -> Provider: ...


class _Shared(Protocol):
    OAuthToken: _ModelClass
    OAuthClientMetadata: _ModelClass
    OAuthClientInformationFull: _ModelClass


def token_file(folder: Path, name: str, url: str) -> Path:
    """Where the tokens for the server `name` at `url` are; of another address they are others."""
    digest = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder / f"{name}-{digest}.json"


class TokenFile:
    """The SDK's token storage, in a file of mode 0600; a broken one holds nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shared = cast(_Shared, importlib.import_module("mcp.shared.auth"))

    @property
    def expires_at(self) -> float | None:
        """When the access token ends, in seconds since 1970; None where that is not known."""
        ends = self._read().get("expires_at")
        return ends if isinstance(ends, int | float) else None

    async def get_tokens(self) -> _Model | None:
        """The tokens, if there are any."""
        return self._kept("tokens", self._shared.OAuthToken)

    async def set_tokens(self, tokens: _Model) -> None:
        """Keep new tokens."""
        values = tokens.model_dump(mode="json", exclude_none=True)
        lasts = values.get("expires_in")
        ends = time.time() + lasts if isinstance(lasts, int | float) else None
        self._write({**self._read(), "tokens": values, "expires_at": ends})

    async def get_client_info(self) -> _Model | None:
        """What the server knows us as, if it does."""
        return self._kept("client", self._shared.OAuthClientInformationFull)

    async def set_client_info(self, client_info: _Model) -> None:
        """Keep what the server knows us as."""
        client = client_info.model_dump(mode="json", exclude_none=True)
        self._write({**self._read(), "client": client})

    def _kept(self, key: str, kind: _ModelClass) -> _Model | None:
        value = self._read().get(key)
        try:
            return kind.model_validate(value) if isinstance(value, dict) else None
        except ValueError:
            return None

    def _read(self) -> JsonObject:
        try:
            value = cast("JsonValue", json.loads(read_regular_file(self._path)))
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def _write(self, values: JsonObject) -> None:
        make_private_dir(self._path.parent)
        with scratch_beside(self._path) as scratch:
            scratch.touch(mode=0o600, exist_ok=False)
            scratch.write_text(json.dumps(values))
            scratch.replace(self._path)


def oauth_provider(
    url: str,
    tokens: Path,
    redirect_uri: str,
    redirect: Redirect | None = None,
    callback: Callback | None = None,
) -> Provider:
    """The SDK's client of OAuth for the server at `url`.

    Args:
        url: Where the server is.
        tokens: The file of its tokens.
        redirect_uri: Where the browser comes back to.
        redirect: Sends the person to an address; None where nobody can be asked, so that a login
            which has ended is an error.
        callback: Waits for the browser, and gives what it brought.

    Raises:
        ModuleNotFoundError: The SDK is not installed.
    """
    auth = cast(_Auth, importlib.import_module("mcp.client.auth"))
    shared = cast(_Shared, importlib.import_module("mcp.shared.auth"))
    uris: list[JsonValue] = [redirect_uri]
    grants: list[JsonValue] = ["authorization_code", "refresh_token"]
    metadata = shared.OAuthClientMetadata.model_validate(
        {
            "client_name": "agent-tui",
            "redirect_uris": uris,
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
    )
    kept = TokenFile(tokens)
    provider = auth.OAuthClientProvider(
        url, metadata, kept, redirect_handler=redirect, callback_handler=callback
    )
    provider.context.token_expiry_time = kept.expires_at
    return provider
