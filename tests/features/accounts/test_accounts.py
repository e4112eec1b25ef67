"""Signing in with a code, with a server on loopback in place of GitHub and of ChatGPT."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agent_tui.config import Settings
from agent_tui.features.accounts.chatgpt import CHATGPT, ChatGptService
from agent_tui.features.accounts.copilot import COPILOT, CopilotService
from agent_tui.features.accounts.device import Pending, sign_in
from agent_tui.messages import JsonObject, UserMessage
from agent_tui.providers.accounts import Account, DeviceCode, SignInError
from agent_tui.providers.base import ModelRef, ModelRequest, ProviderError
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.faults.classify import provider_error
from agent_tui.providers.faults.fault import Fault
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.silence import SilenceLimits
from tests.providers.requests import collect, failing, text_of
from tests.support.account_server import AccountServer
from tests.support.openai_server import OpenAiServer, Reply
from tests.support.patience import PATIENCE_S

PENDING: JsonObject = {"error": "authorization_pending"}
TOKEN: JsonObject = {"access_token": "gho_0123456789"}
TOKENS: JsonObject = {"access_token": "at-1", "refresh_token": "rt-1", "id_token": "it-1"}


@pytest.fixture
def server() -> Iterator[AccountServer]:
    with AccountServer() as running:
        yield running


def github(server: AccountServer, folder: Path, *polls: JsonObject | int) -> dict[str, str]:
    """`server` as GitHub, which answers `polls` one after the other; and the environment."""
    server.answers = {
        "/code": [
            {
                "device_code": "device-1",
                "user_code": "ABCD-1234",
                "verification_uri": "https://github.com/login/device",
                "interval": 0,
            }
        ],
        "/token": list(polls),
        "/copilot": [{"token": "short-1", "expires_at": 0}],
    }
    return {
        "GITHUB_COPILOT_TOKEN_DIR": str(folder / "copilot"),
        "GITHUB_COPILOT_DEVICE_CODE_URL": f"{server.url}/code",
        "GITHUB_COPILOT_ACCESS_TOKEN_URL": f"{server.url}/token",
        "GITHUB_COPILOT_API_KEY_URL": f"{server.url}/copilot",
    }


def chatgpt(server: AccountServer, *polls: JsonObject | int) -> None:
    """`server` as ChatGPT, which answers `polls` one after the other."""
    given: JsonObject = {"device_auth_id": "id-1", "user_code": "WXYZ", "interval": "0"}
    server.answers = {
        "/api/accounts/deviceauth/usercode": [given],
        "/api/accounts/deviceauth/token": list(polls),
        "/oauth/token": [TOKENS],
    }


async def test_a_code_that_was_entered_gives_a_token_that_is_kept(
    server: AccountServer, tmp_path: Path
):
    environ = github(server, tmp_path, PENDING, PENDING, TOKEN)
    short_lived = tmp_path / "copilot" / "api-key.json"
    short_lived.parent.mkdir()
    short_lived.write_text('{"token": "of another account", "expires_at": 9999999999}')
    shown: list[DeviceCode] = []
    assert not COPILOT.is_signed_in(environ)
    await COPILOT.sign_in(environ, shown.append)
    assert [(code.user_code, code.page) for code in shown] == [
        ("ABCD-1234", "https://github.com/login/device")
    ]
    kept = tmp_path / "copilot" / "access-token"
    assert kept.read_text() == "gho_0123456789"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not short_lived.exists()
    assert COPILOT.is_signed_in(environ)
    assert server.paths.count("/token") == 3
    assert json.loads(server.asked[1][2])["device_code"] == "device-1"
    assert COPILOT.sign_out(environ)
    assert not COPILOT.is_signed_in(environ)


@pytest.mark.parametrize(
    ("poll", "said"),
    [
        ({"error": "expired_token"}, "expired"),
        ({"error": "access_denied"}, "refused access"),
        ({"error": "x", "error_description": "Not today"}, "Not today"),
        (500, "status 500"),
    ],
)
async def test_why_nobody_was_signed_in_is_said(
    server: AccountServer, tmp_path: Path, poll: JsonObject | int, said: str
):
    environ = github(server, tmp_path, PENDING, poll)
    with pytest.raises(SignInError, match=said):
        await COPILOT.sign_in(environ, lambda _: None)
    assert not COPILOT.is_signed_in(environ)


async def test_a_code_that_nobody_enters_runs_out(server: AccountServer, tmp_path: Path):
    environ = github(server, tmp_path, PENDING)
    given = server.answers["/code"][0]
    assert isinstance(given, dict)
    given |= {"interval": 3_600, "expires_in": 0}
    with pytest.raises(SignInError, match="expired before it was entered"):
        await COPILOT.sign_in(environ, lambda _: None)


async def test_an_account_without_copilot_is_told_of_and_not_kept(
    server: AccountServer, tmp_path: Path
):
    environ = github(server, tmp_path, TOKEN)
    server.answers["/copilot"] = [403]
    with pytest.raises(SignInError, match="cannot use Copilot"):
        await COPILOT.sign_in(environ, lambda _: None)
    assert not COPILOT.is_signed_in(environ)


async def test_a_service_that_is_not_there_is_named(tmp_path: Path):
    environ = {"GITHUB_COPILOT_DEVICE_CODE_URL": "http://127.0.0.1:1/code"}
    environ["GITHUB_COPILOT_TOKEN_DIR"] = str(tmp_path)
    with pytest.raises(SignInError, match=r"Cannot reach 127\.0\.0\.1"):
        await COPILOT.sign_in(environ, lambda _: None)


async def test_chatgpt_exchanges_what_the_code_gave(server: AccountServer, tmp_path: Path):
    granted: JsonObject = {"authorization_code": "code-1", "code_verifier": "verifier-1"}
    chatgpt(server, 403, 404, granted)
    environ = {"CHATGPT_TOKEN_DIR": str(tmp_path / "chatgpt")}
    shown: list[DeviceCode] = []
    assert not CHATGPT.is_signed_in(environ)
    await sign_in(ChatGptService(environ, server.url), shown.append)
    assert [(code.user_code, code.page) for code in shown] == [
        ("WXYZ", f"{server.url}/codex/device")
    ]
    kept = tmp_path / "chatgpt" / "auth.json"
    assert json.loads(kept.read_text()) == TOKENS
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "code=code-1" in server.asked[-1][2]
    assert "code_verifier=verifier-1" in server.asked[-1][2]
    assert CHATGPT.is_signed_in(environ)


async def test_chatgpt_that_gives_no_codes_says_what_may_help(
    server: AccountServer, tmp_path: Path
):
    environ = {"CHATGPT_TOKEN_DIR": str(tmp_path)}
    with pytest.raises(SignInError, match="settings"):
        await sign_in(ChatGptService(environ, server.url), lambda _: None)


async def test_a_file_that_litellm_left_without_a_token_is_no_sign_in(tmp_path: Path):
    environ = {"CHATGPT_TOKEN_DIR": str(tmp_path)}
    (tmp_path / "auth.json").write_text('{"device_code_requested_at": 1}')
    assert not CHATGPT.is_signed_in(environ)


class Service:
    """A service that says `answers` one after the other; an exception is raised."""

    def __init__(self, *answers: JsonObject | Pending | Exception) -> None:
        self.answers = list(answers)
        self.kept: list[JsonObject] = []

    async def new_code(self, http: httpx.AsyncClient) -> DeviceCode:
        return DeviceCode("ABCD", "https://example.org", "id-1", 0, 0.2)

    async def tokens(self, http: httpx.AsyncClient, code: DeviceCode) -> JsonObject | Pending:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def keep(self, tokens: JsonObject) -> None:
        self.kept.append(tokens)


async def test_a_service_that_wants_more_time_gets_it():
    service = Service(Pending(wants_slower=True), TOKEN)  # 5 s more than the code is good for
    with pytest.raises(SignInError, match="expired"):
        await sign_in(service, lambda _: None)
    assert service.answers == [TOKEN]


async def test_a_moment_without_a_network_does_not_waste_the_code():
    service = Service(httpx.ConnectError("no network"), Pending(), TOKEN)
    await sign_in(service, lambda _: None)
    assert service.kept == [TOKEN]


def asking(model: str) -> ModelRequest:
    """A request to `model`."""
    messages = (UserMessage(content="hello"),)
    return ModelRequest(model=ModelRef(model), system="Be brief.", messages=messages)


async def refused(host: ProviderHost, model: str) -> ProviderError:
    """How a request to `model` fails before anything came."""
    received, error = await failing(host, asking(model))
    assert not received
    return error


@pytest.mark.parametrize("account", [COPILOT, CHATGPT])
@pytest.mark.asyncio(loop_scope="session")
async def test_a_model_of_an_account_that_nobody_is_signed_in_to_says_so_at_once(
    account: Account, host: ProviderHost
):
    error = await refused(host, f"{account.provider}/gpt-5.4")
    assert error.kind == "auth"
    assert f"not signed in to {account.title}" in error.message
    assert error.hint.startswith(f"Sign in with agent-tui login {account.name}")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_sign_in_is_not_called_a_key(status: int):
    error = provider_error(
        Fault("AuthenticationError", "No.", status), ModelRef(f"{COPILOT.provider}/m")
    )
    assert "GitHub Copilot sign-in has expired or does not cover" in error.message
    assert "key" not in error.message
    assert "agent-tui login copilot" in error.hint


@pytest.mark.thorough
async def test_a_sign_in_that_ended_is_said_and_no_code_asked_for(
    server: AccountServer, tmp_path: Path, worker_environ: dict[str, str]
):
    environ = {**worker_environ, **github(server, tmp_path, PENDING)}
    environ["CHATGPT_TOKEN_DIR"] = str(tmp_path / "chatgpt")
    environ["GITHUB_COPILOT_API_BASE"] = server.url
    server.answers["/chat/completions"] = server.answers["/responses"] = [401]
    CopilotService(environ).keep(TOKEN)
    ChatGptService(environ).keep(TOKENS)  # its server is not reached: see `worker_environ`
    host = ProviderHost(
        log_path=tmp_path / "log",
        silence=SilenceLimits.without_bytes(PATIENCE_S, PATIENCE_S),
        environ=environ,
    )
    for account in (COPILOT, CHATGPT):
        error = await refused(host, f"{account.provider}/gpt-5.4")
        assert "sign-in has expired" in error.message
        assert f"agent-tui login {account.name}" in error.hint
    await host.aclose()
    assert server.paths == ["/chat/completions"]


@pytest.mark.thorough
async def test_a_model_of_an_account_answers(
    server: AccountServer, tmp_path: Path, worker_environ: dict[str, str]
):
    environ = {**worker_environ, **github(server, tmp_path, PENDING)}
    CopilotService(environ).keep(TOKEN)
    with OpenAiServer() as copilot:
        environ["GITHUB_COPILOT_API_BASE"] = copilot.base_url
        copilot.play(Reply(text="hello"))
        host = ProviderHost(
            log_path=tmp_path / "log",
            silence=SilenceLimits.without_bytes(PATIENCE_S, PATIENCE_S),
            environ=environ,
        )
        chunks = await collect(host, asking("github_copilot/gpt-4o"))
        await host.aclose()
        (chat,) = copilot.chats
    assert text_of(chunks) == "hello"
    assert not server.asked
    assert chat.headers["authorization"] == "Bearer gho_0123456789"
    assert [message["role"] for message in chat.body["messages"]] == ["system", "user"]


async def test_models_of_an_account_are_found_while_somebody_is_signed_in(
    server: AccountServer, tmp_path: Path
):
    environ = github(server, tmp_path)
    environ["CHATGPT_TOKEN_DIR"] = str(tmp_path / "chatgpt")
    catalog = ModelCatalog(Settings(), environ, server_ports={})
    assert await catalog.list_models() == ()
    CopilotService(environ).keep(TOKEN)
    found = await catalog.list_models()
    assert {model.ref.provider for model in found} == {"github_copilot"}
    assert {model.via for model in found} == {"GitHub Copilot"}
    assert catalog.resolve("sonnet").provider == "github_copilot"
