"""Signing in to OpenRouter in the browser, here or, with a line to paste, on another machine."""

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from agent_tui.cli.browser import WAIT_S, Callback, listening_callback, typed_line
from agent_tui.errors import AgentTuiError
from agent_tui.providers.accounts.openrouter import OpenRouterSignIn


async def openrouter_key(
    sign_in: OpenRouterSignIn, show: Callable[[str], object], terminal: int = 0
) -> str:
    """A key of the person's account.

    Args:
        sign_in: The sign-in.
        show: Brings the person to a page.
        terminal: The descriptor that they may paste into.

    Raises:
        AgentTuiError: It did not come to that; says why.
    """
    async with listening_callback() as callback:
        show(sign_in.page(f"http://localhost:{callback.port}/callback"))
        try:
            async with asyncio.timeout(WAIT_S):
                code = await _code(callback, terminal)
        except TimeoutError as error:
            raise AgentTuiError(f"Nothing came back in {WAIT_S:g} s.", "Try again.") from error
    return await sign_in.key(code)


async def _code(callback: Callback, terminal: int) -> str:
    """What the browser brings or the person pastes, whichever comes first.

    Raises:
        AgentTuiError: They did not allow it.
    """
    brought = asyncio.ensure_future(callback.brought)
    pasted = asyncio.ensure_future(typed_line(terminal))
    try:
        await asyncio.wait((brought, pasted), return_when=asyncio.FIRST_COMPLETED)
        code = code_in(pasted.result()) if pasted.done() else brought.result().get("code", "")
    finally:
        brought.cancel()
        pasted.cancel()
    if not code:
        raise AgentTuiError("It was not allowed on the page.")
    return code


def code_in(pasted: str) -> str:
    """The code in what was pasted: itself, or the address that the browser could not open."""
    query = parse_qs(urlsplit(pasted).query)
    return query.get("code", [""])[0] if query else pasted
