"""Logs in to an MCP server at an address: the user grants access in a browser."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import AnyHttpUrl, ValidationError

from agent_tui.atomic_files import replace_private_file
from agent_tui.cli.browser import WAIT_S, Callback, listening_callback
from agent_tui.cli.output import complain
from agent_tui.errors import UsageError
from agent_tui.features.mcp.json_rpc import display_text
from agent_tui.features.mcp.oauth import (
    SELF_REGISTERED,
    Registration,
    TokenFile,
    innermost,
    join_scopes,
    oauth_provider,
    want_json,
)
from agent_tui.installation import install_command
from agent_tui.regular_files import read_regular_file
from agent_tui.secret_text import mask_secrets

if TYPE_CHECKING:  # takes a second to import, and the extra may be missing
    from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
    from mcp.client.auth.oauth2 import OAuthContext

_MAX_REASON_CHARS: Final = 300


async def log_in(
    url: str,
    tokens: Path,
    show: Callable[[str], object],
    registration: Registration = SELF_REGISTERED,
) -> None:
    """Have the user grant access, and store the tokens; a login that fails changes nothing.

    Args:
        url: The server's address.
        tokens: The file to store them in. It may hold an older login, and what that one lacks.
        show: Opens a page for the user.
        registration: How the server knows us.

    Raises:
        UsageError: The login failed, or the server asks for none; says why.
    """
    try:
        async with AsyncExitStack() as stack:
            new = Path(stack.enter_context(TemporaryDirectory())) / "login.json"
            dialog = _Dialog(new, show, registration, TokenFile(tokens).next_scope)
            callback = await stack.enter_async_context(
                listening_callback(registration.callback_port, dialog.is_answer)
            )
            await stack.enter_async_context(asyncio.timeout(WAIT_S))
            await dialog.hold(url, callback)
            if await TokenFile(new).get_tokens() is None:
                raise UsageError("The server did not ask for a login. Nothing was stored.")
            replace_private_file(tokens, read_regular_file(new))
    except ModuleNotFoundError as error:
        raise UsageError("Logging in requires the package mcp.", install_command("mcp")) from error
    except TimeoutError as error:
        raise UsageError(f"The browser did not answer within {WAIT_S:g} s.") from error
    except Exception as error:
        raise _in_words(innermost(error), registration) from error


def _in_words(error: BaseException, registration: Registration) -> UsageError:
    import httpx2
    from mcp.client.auth import OAuthRegistrationError

    if isinstance(error, UsageError):
        return error
    for cause in (error, error.__context__):
        if isinstance(cause, ValidationError):
            wrong = cause.errors()[0]
            where = "".join(f"{part}: " for part in wrong["loc"])
            return UsageError(
                f"Login failed: the answer of the login server is not valid: {where}{wrong['msg']}."
            )
    why = mask_secrets(str(error) or type(error).__name__, filter(None, (registration.secret,)))
    why = display_text(why, _MAX_REASON_CHARS)
    if isinstance(error, OAuthRegistrationError):
        return UsageError(
            f"The server does not let agent-tui register itself: {why.removesuffix('.')}.",
            "Register it there yourself, and set the server's client_id, client_secret_env and "
            "callback_port in config.toml.",
        )
    if isinstance(error, httpx2.TransportError):
        why = f"no connection to {error.request.url.host}: {why}"
    return UsageError(f"Login failed: {why}")


class _Dialog:
    """One login: what the SDK's client asks of us meanwhile."""

    def __init__(
        self,
        new: Path,
        show: Callable[[str], object],
        registration: Registration,
        scope: str,
    ) -> None:
        self._new = new
        self._kept = TokenFile(new)
        self._show = show
        self._registration = registration
        self._scope = scope
        self._state = ""  # until there is a page that can be answered

    def is_answer(self, brought: Mapping[str, str]) -> bool:
        """Whether the page that was shown sent `brought` (RFC 6749, section 10.12)."""
        return bool(self._state) and brought.get("state") == self._state

    async def hold(self, url: str, callback: Callback) -> None:
        """Use the server until it has given tokens; they and its registration are in the file."""
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async def redirect(page: str) -> None:
            await self._open(page, provider)

        async def wait() -> "AuthorizationCodeResult":
            return self._code_in(await callback.wait_for_values())

        own = self._registration
        redirect_uri = own.callback_url(callback.port)
        provider = oauth_provider(url, self._new, redirect_uri, redirect, wait, own.metadata_url)
        if own.client_id:
            await self._kept.set_client_info(own.client_info(redirect_uri))
        try:
            async with (
                httpx2.AsyncClient(auth=provider, event_hooks={"request": [want_json]}) as client,
                Client(streamable_http_client(url, http_client=client)) as session,
            ):
                await session.list_tools()  # some servers ask for a login only here
        except Exception:
            if await self._kept.get_tokens() is None:
                raise  # later errors are not the login's
        self._kept.keep_servers(provider.context)

    async def _open(self, page: str, provider: "OAuthClientProvider") -> None:
        if urlsplit(page).scheme not in ("https", "http"):
            raise UsageError(f"The server gave no login page that can be opened: {page[:100]}")
        context = provider.context
        if self._registration.client_id and context.client_info is not None:
            client = context.client_info
            client.token_endpoint_auth_method = self._way_to_send_the_secret(context)
            await self._kept.set_client_info(client)
            self._name_receiver(context, page)
        if self._scope:
            # A server that grants all of it need not repeat it (RFC 6749, section 5.1).
            metadata = context.client_metadata
            metadata.scope = join_scopes(metadata.scope or "", self._scope)
            page = _with_scope(page, metadata.scope)
        self._state = dict(parse_qsl(urlsplit(page).query)).get("state", "")
        self._show(page)

    def _name_receiver(self, context: "OAuthContext", page: str) -> None:
        """Say where the secret goes if neither the server's address nor the page shows it."""
        if not self._registration.secret or context.oauth_metadata is None:
            return
        receiver = _origin(str(context.oauth_metadata.token_endpoint))
        if receiver not in (_origin(context.server_url), _origin(page)):
            complain(
                f"Your secret will be sent to {receiver}, which is neither the server's host nor "
                "the page's. If you do not trust it, press Ctrl+C."
            )

    def _way_to_send_the_secret(self, context: "OAuthContext") -> str:
        """Of the ways that the login server takes, ``Basic`` first (RFC 8414, section 2)."""
        if not self._registration.secret:
            return "none"
        metadata = context.oauth_metadata
        ways = metadata.token_endpoint_auth_methods_supported if metadata else None
        is_basic = not ways or "client_secret_basic" in ways
        return "client_secret_basic" if is_basic else "client_secret_post"

    def _code_in(self, brought: Mapping[str, str]) -> "AuthorizationCodeResult":
        from mcp.client.auth import AuthorizationCodeResult

        if not self.is_answer(brought):
            raise UsageError(
                "This is not the address that this login ended at.",
                "Log in again, and paste the whole address of the page that cannot be opened.",
            )
        if error := brought.get("error"):
            why = display_text(brought.get("error_description") or error, _MAX_REASON_CHARS)
            raise UsageError(f"The server did not grant access: {why}")
        return AuthorizationCodeResult(
            code=brought.get("code", ""), state=brought.get("state"), iss=brought.get("iss")
        )


def _origin(url: str) -> str:
    """The scheme, host and port of `url`, as browsers compare them."""
    parts = urlsplit(str(AnyHttpUrl(url)))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _with_scope(page: str, scope: str) -> str:
    """`page` asking for the rights in `scope`."""
    parts = urlsplit(page)
    query = {**dict(parse_qsl(parts.query, keep_blank_values=True)), "scope": scope}
    return parts._replace(query=urlencode(query)).geturl()
