"""Signing in to OpenRouter in the browser, here or, with a line to paste, on another machine."""

import asyncio
from collections.abc import Callable

from agent_tui.cli.browser import WAIT_S, listening_callback
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
                brought = await callback.brought(terminal)
        except TimeoutError as error:
            raise AgentTuiError(f"No answer within {WAIT_S:g} s.", "Try again.") from error
    if not (code := brought.get("code", "")):
        raise AgentTuiError("Access was not allowed on the page.")
    return await sign_in.key(code)
