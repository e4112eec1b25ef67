"""Signing in to OpenRouter, with a server on loopback in its place and a thread as the browser."""

import base64
import hashlib
import json
import os
import threading
import urllib.request
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_tui.errors import AgentTuiError
from agent_tui.features.accounts.openrouter import OpenRouterSignIn, openrouter_key
from tests.support.account_server import AccountServer

NO_TERMINAL = -1


@pytest.fixture
def server() -> Iterator[AccountServer]:
    with AccountServer() as running:
        running.answers = {"/api/v1/auth/keys": [{"key": "sk-or-v1-0123456789"}]}
        yield running


def browser(brought: str, pages: list[dict[str, list[str]]]):
    """A person whose browser comes back with `brought`; `pages` gets what the page was asked."""

    def show(page: str) -> None:
        asked = parse_qs(urlsplit(page).query)
        pages.append(asked)
        back = f"{asked['callback_url'][0]}?{brought}"
        threading.Thread(target=urllib.request.urlopen, args=(back,)).start()

    return show


async def test_the_page_gives_a_code_and_the_code_a_key(server: AccountServer):
    pages: list[dict[str, list[str]]] = []
    sign_in = OpenRouterSignIn(server.url)
    key = await openrouter_key(sign_in, browser("code=code-1", pages), NO_TERMINAL)
    assert key == "sk-or-v1-0123456789"
    ((_, _, body),) = server.asked
    given = json.loads(body)
    assert given["code"] == "code-1"
    digest = hashlib.sha256(given["code_verifier"].encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert pages[0]["code_challenge"] == [challenge]
    assert pages[0]["code_challenge_method"] == ["S256"]


async def test_what_was_not_allowed_is_said(server: AccountServer):
    with pytest.raises(AgentTuiError, match="not allowed"):
        await openrouter_key(
            OpenRouterSignIn(server.url), browser("error=access_denied", []), NO_TERMINAL
        )
    assert not server.asked


async def test_a_code_that_gives_no_key_is_said(server: AccountServer):
    server.answers["/api/v1/auth/keys"] = [403]
    with pytest.raises(AgentTuiError, match=r"returned no key \(status 403\)"):
        await openrouter_key(OpenRouterSignIn(server.url), browser("code=x", []), NO_TERMINAL)


async def test_the_address_can_be_pasted_where_the_browser_is_elsewhere(server: AccountServer):
    master, slave = os.openpty()
    try:
        key = await openrouter_key(
            OpenRouterSignIn(server.url),
            lambda _: os.write(master, b"\nhttp://localhost:1/callback?code=code-2&x=1\n"),
            slave,
        )
    finally:
        os.close(master)
        os.close(slave)
    assert key == "sk-or-v1-0123456789"
    assert json.loads(server.asked[0][2])["code"] == "code-2"
