"""Logging in to an MCP server, with an authorization server on loopback in place of a browser."""

import json
import threading
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from agent_tui.errors import UsageError
from agent_tui.features.mcp.oauth import token_file
from agent_tui.features.mcp.subcommand import log_in
from tests.features.mcp.conftest import stage  # noqa: F401 - a fixture
from tests.support.mcp_http_server import McpHttpServer

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")


def allowing(code: str = "code-1"):
    """A person who allows it: their browser is sent back with `code`."""

    def show(page: str) -> None:
        asked = {key: values[0] for key, values in parse_qs(urlsplit(page).query).items()}
        assert asked["code_challenge_method"] == "S256"
        back = f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
        threading.Thread(target=urllib.request.urlopen, args=(back,)).start()

    return show


@pytest.mark.thorough
async def test_what_logging_in_gives_is_kept_and_sent(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert "agent-tui mcp login NAME" in stage.hub.servers[0].why
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        assert tokens.stat().st_mode & 0o777 == 0o600
        assert tokens.parent.stat().st_mode & 0o777 == 0o700
        assert far.grants[0]["code"] == "code-1"
        assert len(far.grants[0]["code_verifier"]) >= 43
        await stage.hub.restart("srv")
        await stage.take_up()
        assert stage.hub.servers[0].state == "ready"
        await stage.hub.aclose()


async def test_a_token_that_ended_is_renewed_without_the_person(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        kept = json.loads(tokens.read_text())
        kept["expires_at"] = 1
        kept["tokens"]["access_token"] = "token-1"
        tokens.write_text(json.dumps(kept))
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert stage.hub.servers[0].state == "ready"
        assert far.grants[1]["refresh_token"] == "again-1"
        assert json.loads(tokens.read_text())["tokens"]["access_token"] == "token-2"
        await stage.hub.aclose()


async def test_a_login_that_fails_is_said_and_keeps_no_token(tmp_path: Path):
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = tmp_path / "tokens.json"
        with pytest.raises(UsageError, match="Login failed"):
            await log_in(far.url, tokens, allowing("code-2"))
        assert "tokens" not in json.loads(tokens.read_text())


async def test_a_login_that_ended_for_good_is_said_and_no_page_opened(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        kept = json.loads(tokens.read_text())
        kept["tokens"] = {"access_token": "token-0", "token_type": "Bearer"}
        tokens.write_text(json.dumps(kept))
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert "agent-tui mcp login NAME" in stage.hub.servers[0].why
        assert len(far.grants) == 1
        await stage.hub.aclose()
