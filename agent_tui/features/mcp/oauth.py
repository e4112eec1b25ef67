"""What a login to an MCP server gives, in a file, and the SDK's OAuth client that uses it.

`login.py` asks the user to grant access, and `stored_login.py` sends and renews the tokens. Only
these and the bridge import the SDK.
"""

import hashlib
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pydantic import AnyUrl, BaseModel, JsonValue

from agent_tui.atomic_files import replace_private_file
from agent_tui.errors import UsageError
from agent_tui.messages import JsonObject
from agent_tui.regular_files import read_regular_file

if TYPE_CHECKING:  # takes a second to import, and the extra may be missing
    import httpx2
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


# The characters of an access token (RFC 6749, appendix A.12), without the space, which ends one.
_TOKEN: Final = re.compile("[!-~]+")

_Kept = TypeVar("_Kept", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Registration:
    """How a server knows agent-tui, if the user registered it there.

    Args:
        client_id: The id that the server gave it; empty if agent-tui registers itself.
        secret: The secret of that id; empty if there is none.
        metadata_url: The page that describes agent-tui to servers that read such a page.
        callback_port: The port on loopback that the browser returns to; 0 for any free one.
    """

    client_id: str = ""
    secret: str = field(default="", repr=False)
    metadata_url: str = ""
    callback_port: int = 0

    def callback_url(self, port: int) -> str:
        """Where the browser returns to: forms of servers ask for ``localhost``, not its address."""
        is_own = self.client_id or self.metadata_url or self.callback_port
        return f"http://{'localhost' if is_own else '127.0.0.1'}:{port}/callback"

    def client_info(self, redirect_uri: str) -> "OAuthClientInformationFull":
        """The registration as the SDK stores it."""
        from mcp.shared.auth import OAuthClientInformationFull

        return OAuthClientInformationFull(
            client_id=self.client_id,
            client_secret=self.secret or None,
            redirect_uris=[AnyUrl(redirect_uri)],
        )


SELF_REGISTERED: Final = Registration()


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

    @property
    def next_scope(self) -> str:
        """The rights that the next login asks for beside those that the server names then.

        They are those of this login, and those that calls lacked.
        """
        kept = self._read()
        tokens = kept.get("tokens")
        granted = tokens.get("scope") if isinstance(tokens, dict) else ""
        lacked = kept.get("wanted_scope")
        return join_scopes(*(one if isinstance(one, str) else "" for one in (granted, lacked)))

    def want_scope(self, scope: str) -> None:
        """At the next login, ask for `scope`, too."""
        wanted = join_scopes(self.next_scope, scope)
        self._write({**self._read(), "wanted_scope": wanted})

    async def get_tokens(self) -> "OAuthToken | None":
        """The stored tokens; None if there are none that can be sent."""
        from mcp.shared.auth import OAuthToken

        kept = self._load("tokens", OAuthToken)
        return kept if kept and _TOKEN.fullmatch(kept.access_token) else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Store new tokens.

        Raises:
            UsageError: They cannot be sent. An HTTP client would show them when it says so.
        """
        if not _TOKEN.fullmatch(tokens.access_token):
            raise UsageError(
                "The server gave a token that is empty or contains characters that no token has."
            )
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

    def keep_servers(self, found: "OAuthContext") -> None:
        """Store where the login was made: tokens are renewed there, too."""
        servers: JsonObject = {}
        if found.oauth_metadata is not None:
            servers["login_server"] = found.oauth_metadata.model_dump(mode="json")
        if found.protected_resource_metadata is not None:
            servers["resource"] = found.protected_resource_metadata.model_dump(mode="json")
        self._write({**self._read(), **servers})

    def find_servers(self, context: "OAuthContext") -> None:
        """Give `context` what `keep_servers` stored."""
        from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

        context.oauth_metadata = self._load("login_server", OAuthMetadata)
        context.protected_resource_metadata = self._load("resource", ProtectedResourceMetadata)

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


def join_scopes(first: str, second: str) -> str:
    """The words of both, each once, in their order."""
    return " ".join(dict.fromkeys(f"{first} {second}".split()))


def oauth_provider(
    url: str,
    tokens: Path,
    redirect_uri: str,
    redirect: Callable[[str], Awaitable[None]] | None = None,
    callback: "Callable[[], Awaitable[AuthorizationCodeResult]] | None" = None,
    metadata_url: str = "",
) -> "OAuthClientProvider":
    """The SDK's OAuth client for the server at `url`.

    Args:
        url: The server's address.
        tokens: The file for its tokens.
        redirect_uri: Where the browser returns to.
        redirect: Sends the user to an address; None if nobody can be asked.
        callback: Waits for the browser, and returns what it delivered.
        metadata_url: The page that describes agent-tui; empty if there is none.

    Raises:
        ModuleNotFoundError: The SDK is not installed.
    """
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    # It reports each error with what the server said, perhaps a token; the user reads our words.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)
    metadata = OAuthClientMetadata(
        client_name="agent-tui",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    kept = TokenFile(tokens)
    provider = OAuthClientProvider(
        url,
        metadata,
        kept,
        redirect_handler=redirect,
        callback_handler=callback,
        client_metadata_url=metadata_url or None,
    )
    provider.context.token_expiry_time = kept.expires_at
    kept.find_servers(provider.context)
    return provider


async def want_json(request: "httpx2.Request") -> None:
    """Ask for JSON where the SDK asks for nothing: GitHub gives its tokens as a form otherwise."""
    request.headers.setdefault("Accept", "application/json")


def innermost(error: BaseException) -> BaseException:
    """The error inside groups of errors that says what went wrong."""
    if isinstance(error, BaseExceptionGroup):
        grouped = cast("BaseExceptionGroup[BaseException]", error)
        return innermost(grouped.exceptions[0])
    return error
