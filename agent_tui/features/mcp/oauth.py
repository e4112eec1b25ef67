"""Login to an MCP server at an address, with the SDK's OAuth client.

``agent-tui mcp login NAME`` asks the user to grant access in a browser, which returns to a port on
loopback. Tokens are stored in a file that only the user can read; the bridge to the server sends
and renews them. Only these two import the SDK.
"""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import AnyUrl, BaseModel, JsonValue

from agent_tui.atomic_files import replace_private_file
from agent_tui.messages import JsonObject
from agent_tui.regular_files import read_regular_file

if TYPE_CHECKING:  # takes a second to import, and the extra may be missing
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


_Kept = TypeVar("_Kept", bound=BaseModel)


def token_file(folder: Path, name: str, url: str) -> Path:
    """The file for the tokens of server `name` at `url`; each address has its own."""
    digest = hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return folder / f"{name}-{digest}.json"


class TokenFile:
    """The SDK's token storage, in a file of mode 0600; a broken one counts as empty."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def expires_at(self) -> float | None:
        """When the access token expires, in seconds since 1970; None if unknown."""
        ends = self._read().get("expires_at")
        return ends if isinstance(ends, int | float) else None

    async def get_tokens(self) -> "OAuthToken | None":
        """The stored tokens; None if there are none."""
        from mcp.shared.auth import OAuthToken

        return self._load("tokens", OAuthToken)

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Store new tokens."""
        values = tokens.model_dump(mode="json", exclude_none=True)
        lasts = values.get("expires_in")
        ends = time.time() + lasts if isinstance(lasts, int | float) else None
        self._write({**self._read(), "tokens": values, "expires_at": ends})

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """Our client registration at the server; None if there is none."""
        from mcp.shared.auth import OAuthClientInformationFull

        return self._load("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        """Store our client registration at the server."""
        client = client_info.model_dump(mode="json", exclude_none=True)
        self._write({**self._read(), "client": client})

    def _load(self, key: str, kind: type[_Kept]) -> _Kept | None:
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
        replace_private_file(self._path, json.dumps(values))


def oauth_provider(
    url: str,
    tokens: Path,
    redirect_uri: str,
    redirect: Callable[[str], Awaitable[None]] | None = None,
    callback: "Callable[[], Awaitable[AuthorizationCodeResult]] | None" = None,
) -> "OAuthClientProvider":
    """The SDK's OAuth client for the server at `url`.

    Args:
        url: The server's address.
        tokens: The file for its tokens.
        redirect_uri: Where the browser returns to.
        redirect: Sends the user to an address; None if nobody can be asked, so that an expired
            login is an error.
        callback: Waits for the browser, and returns what it delivered.

    Raises:
        ModuleNotFoundError: The SDK is not installed.
    """
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    metadata = OAuthClientMetadata(
        client_name="agent-tui",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    kept = TokenFile(tokens)
    provider = OAuthClientProvider(
        url, metadata, kept, redirect_handler=redirect, callback_handler=callback
    )
    provider.context.token_expiry_time = kept.expires_at
    return provider


def innermost_reason(error: BaseException) -> str:
    """What went wrong, in the words of the innermost error."""
    if isinstance(error, BaseExceptionGroup):
        grouped = cast("BaseExceptionGroup[BaseException]", error)
        return innermost_reason(grouped.exceptions[0])
    return str(error) or type(error).__name__
