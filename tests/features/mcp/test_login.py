"""Logging in to an MCP server, with an authorization server on loopback in place of a browser."""

import json
import socket
import threading
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_tui.cli.browser import Callback
from agent_tui.errors import ToolError, UsageError
from agent_tui.features.mcp.login import log_in
from agent_tui.features.mcp.oauth import Registration, join_scopes, token_file
from agent_tui.features.mcp.toolbox import CombinedToolbox
from agent_tui.tools.registry import default_toolbox
from tests.features.mcp.conftest import stage  # noqa: F401 - a fixture
from tests.support.mcp_http_server import McpHttpServer

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra mcp")


PAGE = "https://me.invalid/agent-tui.json"


class Browser:
    """A person who allows it: their browser is sent back with `brought`."""

    def __init__(self, **brought: str) -> None:
        self._brought = brought or {"code": "code-1"}
        self.asked: list[dict[str, str]] = []

    def show(self, page: str) -> None:
        asked = {key: values[0] for key, values in parse_qs(urlsplit(page).query).items()}
        self.asked.append(asked)
        assert asked["code_challenge_method"] == "S256"
        query = urlencode({**self._brought, "state": asked["state"]})
        back = f"{asked['redirect_uri']}?{query}"
        threading.Thread(target=urllib.request.urlopen, args=(back,)).start()


def allowing(code: str = "code-1"):
    return Browser(code=code).show


async def echo(stage) -> str:  # noqa: F811
    box = CombinedToolbox(default_toolbox(), stage.hub)
    return (await box.prepare("mcp__srv__echo", {"text": "hi"}, stage.context()).run()).for_model


@pytest.mark.thorough
async def test_what_logging_in_gives_is_kept_and_sent(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        assert "agent-tui mcp login srv" in stage.hub.servers[0].why
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


async def test_only_the_answer_with_the_state_of_the_login_ends_the_wait(tmp_path: Path):
    statuses: list[int] = []
    browser = Browser()

    def show(page: str) -> None:
        back = parse_qs(urlsplit(page).query)["redirect_uri"][0]

        def meddle() -> None:
            for query in ("code=x", "code=x&state=y", "error=access_denied"):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(f"{back}?{query}")
                with refused.value as answer:
                    statuses.append(answer.code)
            browser.show(page)

        threading.Thread(target=meddle).start()

    with McpHttpServer() as far:
        far.wants_login = True
        await log_in(far.url, tmp_path / "t.json", show)
    assert statuses == [400, 400, 400]
    assert far.grants[0]["code"] == "code-1"


async def test_a_pasted_address_of_another_login_is_said(tmp_path: Path, monkeypatch):
    async def paste(_callback: Callback, _terminal: int = 0) -> dict[str, str]:
        return {"code": "code-1", "state": "of-another"}

    monkeypatch.setattr(Callback, "wait_for_values", paste)
    with McpHttpServer() as far:
        far.wants_login = True
        with pytest.raises(UsageError, match="not the address that this login ended at") as told:
            await log_in(far.url, tmp_path / "t.json", lambda _page: None)
    assert "of-another" not in str(told.value)


async def test_a_login_that_fails_is_said_and_keeps_no_token(tmp_path: Path):
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = tmp_path / "tokens.json"
        with pytest.raises(UsageError, match="Login failed"):
            await log_in(far.url, tokens, allowing("code-2"))
        assert not tokens.exists()


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
        assert "agent-tui mcp login srv" in stage.hub.servers[0].why
        assert len(far.grants) == 1
        await stage.hub.aclose()


@pytest.mark.parametrize(
    ("ways", "secret", "sent"),
    [
        ([], "s3cret+1", ["Basic bWluZTpzM2NyZXQlMkIx"]),
        (["client_secret_post"], "s3cret+1", [""]),
        (["none"], "", [""]),
    ],
)
async def test_a_server_that_registers_nobody_is_used_with_an_id_of_ones_own(
    tmp_path: Path, ways, secret, sent
):
    with McpHttpServer() as far:
        far.wants_login, far.registers, far.ways_to_send_secret = True, False, ways
        browser = Browser()
        await log_in(far.url, tmp_path / "t.json", browser.show, Registration("mine", secret))
    (asked,) = browser.asked
    assert asked["client_id"] == "mine"
    assert asked["redirect_uri"].startswith("http://localhost:")
    assert far.sent_secrets == sent
    assert far.accepted == ["application/json"]
    assert far.grants[0].get("client_secret", "") == (secret if ways and secret else "")


@pytest.mark.parametrize(
    ("host", "secret", "is_named"),
    [("localhost", "s3cret+1", True), ("127.0.0.1", "s3cret+1", False), ("localhost", "", False)],
)
async def test_a_host_that_gets_the_secret_unseen_is_named_before_the_page_opens(
    tmp_path: Path, capsys, host, secret, is_named
):
    told: list[str] = []
    browser = Browser()

    def show(page: str) -> None:
        told.append(capsys.readouterr().err)
        browser.show(page)

    with McpHttpServer() as far:
        far.wants_login = True
        far.token_base = f"http://me:x@{host}:{far.port}"
        await log_in(far.url, tmp_path / "t.json", show, Registration("mine", secret))
    (before_the_page,) = told
    assert (
        f"Your secret will be sent to http://localhost:{far.port}" in before_the_page
    ) is is_named
    assert bool(before_the_page) is is_named


@pytest.mark.parametrize(("reads_pages", "client_id"), [(True, PAGE), (False, "client-1")])
async def test_a_page_about_us_is_the_id_where_the_server_reads_pages(
    tmp_path: Path, reads_pages, client_id
):
    with McpHttpServer() as far:
        far.wants_login, far.reads_pages = True, reads_pages
        browser = Browser()
        own = Registration(metadata_url=PAGE)
        await log_in(far.url, tmp_path / "t.json", browser.show, own)
    assert browser.asked[0]["client_id"] == client_id


async def test_without_such_an_id_one_is_told_to_register(tmp_path: Path):
    with McpHttpServer() as far:
        far.wants_login, far.registers = True, False
        with pytest.raises(UsageError, match="does not let agent-tui register itself"):
            await log_in(far.url, tmp_path / "t.json", allowing())


async def test_the_port_that_was_registered_is_used_or_named(tmp_path: Path):
    with McpHttpServer() as far, socket.socket() as taken:
        far.wants_login = True
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        own = Registration("mine", callback_port=port)
        with pytest.raises(UsageError, match=f"port {port} cannot be used"):
            await log_in(far.url, tmp_path / "t.json", allowing(), own)
        taken.close()
        browser = Browser()
        await log_in(far.url, tmp_path / "t.json", browser.show, own)
    assert browser.asked[0]["redirect_uri"] == f"http://localhost:{port}/callback"


@pytest.mark.parametrize("needs_login", [b"tools/list", b""])
async def test_a_login_may_be_asked_for_late_and_is_kept_whatever_follows(
    tmp_path: Path, needs_login
):
    with McpHttpServer() as far:
        far.wants_login, far.needs_login = True, needs_login
        far.refusal = 0 if needs_login else 500
        await log_in(far.url, tmp_path / "t.json", allowing())
    assert "tokens" in json.loads((tmp_path / "t.json").read_text())


async def test_a_server_that_asks_for_no_login_is_said(tmp_path: Path):
    with McpHttpServer() as far, pytest.raises(UsageError, match="did not ask for a login"):
        await log_in(far.url, tmp_path / "t.json", allowing(), Registration("mine", "s3cret"))
    assert not (tmp_path / "t.json").exists()


async def test_a_server_out_of_reach_is_named(tmp_path: Path):
    with McpHttpServer() as far:
        url = far.url
    with pytest.raises(UsageError, match=r"Login failed: no connection to 127\.0\.0\.1: "):
        await log_in(url, tmp_path / "t.json", allowing())


async def test_the_servers_no_is_said_and_the_older_login_kept(tmp_path: Path):
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = tmp_path / "t.json"
        await log_in(far.url, tokens, allowing())
        before = tokens.read_bytes()
        no = Browser(error="access_denied", error_description="Ask your\x1b[31m admin.")
        with pytest.raises(UsageError, match=r"did not grant access: Ask your admin\."):
            await log_in(far.url, tokens, no.show)
        assert tokens.read_bytes() == before


@pytest.mark.parametrize(
    "token", ["s3cret\nX-Evil: 1", "s3cret token", "s3cr\u00e9t", "", "s3cret\x7f"]
)
async def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(tmp_path: Path, token):
    with McpHttpServer() as far:
        far.wants_login, far.new_token = True, token
        with pytest.raises(UsageError, match="characters that no token has") as told:
            await log_in(far.url, tmp_path / "t.json", allowing())
    assert "cr" not in str(told.value).partition("characters")[2]
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("stored", "renewed", "said"),
    [
        ("s3cret\nX-Evil: 1", "token-2", "mcp login srv"),
        ("token-1", "s3cret\nX-Evil: 1", "characters that no token has"),
        ("token-1", {"s3cret": 1}, "mcp login srv"),
    ],
    ids=["stored", "renewed", "no text"],
)
async def test_a_token_that_cannot_be_sent_is_in_no_notice_and_no_log(
    stage,  # noqa: F811
    stored,
    renewed,
    said,
):
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        kept = json.loads(tokens.read_text())
        kept["tokens"]["access_token"] = stored
        tokens.write_text(json.dumps(kept))
        far.token_part = {"access_token": renewed}
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        (server,) = stage.hub.servers
        assert said in server.why
        await stage.hub.aclose()
    log = stage.log_path.read_text() if stage.log_path.exists() else ""
    assert "s3cret" not in server.why + repr(stage.told) + log


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"token_type": "mac"}, "token_type: Input should be 'Bearer'"),
        ({"access_token": {"s3cret": 1}}, "access_token: Input should be a valid string"),
    ],
)
async def test_an_answer_without_a_token_is_said_in_one_sentence(tmp_path: Path, part, said):
    with McpHttpServer() as far:
        far.wants_login, far.token_part = True, part
        with pytest.raises(UsageError) as told:
            await log_in(far.url, tmp_path / "t.json", allowing())
    assert str(told.value) == f"Login failed: the answer of the login server is not valid: {said}."


async def test_no_secret_is_in_what_is_said_of_a_login_that_fails(tmp_path: Path, caplog):
    with McpHttpServer() as far:
        far.wants_login, far.registers, far.echoes = True, False, True
        far.ways_to_send_secret = ["client_secret_post"]
        own = Registration("mine", "s3cret-of-mine")
        with pytest.raises(UsageError, match=r"Login failed.*client_secret=") as told:
            await log_in(far.url, tmp_path / "t.json", allowing("code-2"), own)
    assert "s3cret-of-mine" not in str(told.value) + caplog.text
    assert "s3cret-of-mine" not in repr(own)


async def test_a_right_that_a_call_lacks_is_asked_for_at_the_next_login(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        kept = json.loads(tokens.read_text())
        kept["tokens"]["scope"] = "files:read"
        tokens.write_text(json.dumps(kept))
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        far.lacking_scope = "files:write"
        again = "log in again with agent-tui mcp login srv: it wants the scope files:write"
        with pytest.raises(ToolError, match=again):
            await echo(stage)
        assert stage.hub.servers[0].state == "ready"
        far.lacking_scope = "chat:write"
        with pytest.raises(ToolError, match="it wants the scope chat:write"):
            await echo(stage)
        far.lacking_scope = ""
        for _ in range(2):  # a later login keeps what was granted
            browser = Browser()
            await log_in(far.url, tokens, browser.show)
            assert browser.asked[0]["scope"] == "files:read files:write chat:write"
            assert json.loads(await echo(stage)) == {"text": "hi"}
        await stage.hub.aclose()


async def test_a_token_that_is_refused_before_its_time_is_renewed(stage):  # noqa: F811
    with McpHttpServer() as far:
        far.wants_login = True
        tokens = token_file(stage.folder / "tokens", "srv", far.url)
        await log_in(far.url, tokens, allowing())
        stage.add(argv=(), url=far.url)
        await stage.take_up()
        far.new_token, far.tokens = "token-3", {"token-3"}
        assert json.loads(await echo(stage)) == {"text": "hi"}
        assert far.accepted[-1] == "application/json"
        assert [grant["grant_type"] for grant in far.grants] == [
            "authorization_code",
            "refresh_token",
        ]
        far.tokens = set()
        with pytest.raises(ToolError, match="agent-tui mcp login srv"):
            await echo(stage)
        await stage.hub.aclose()


@given(st.text("ab \t"), st.text("ab \t"))
def test_joined_scopes_are_those_of_both_each_once(first: str, second: str):
    joined = join_scopes(first, second).split(" ") if first.strip() + second.strip() else []
    assert set(joined) == {*first.split(), *second.split()}
    assert len(joined) == len(set(joined))
    assert join_scopes(join_scopes(first, second), second) == join_scopes(first, second)
