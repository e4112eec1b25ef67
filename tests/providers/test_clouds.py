"""OpenAI's, Google's and Anthropic's models at Azure and Vertex AI, in their own protocols."""

import json
from pathlib import Path

import pytest

from agent_tui.features.google.account import GoogleAccount
from agent_tui.messages import UserMessage
from agent_tui.providers.base import ModelRef, ModelRequest
from agent_tui.providers.host import ProviderHost
from agent_tui.providers.wires.base import MissingKeyError, WireRequest
from agent_tui.providers.wires.http import azure_openai_address
from agent_tui.providers.wires.table import wires_to
from tests.providers.native_stream_forms import (
    ANTHROPIC_FORMS,
    GEMINI_FORMS,
    RESPONSES_FORMS,
)
from tests.providers.requests import READ, collect, text_of
from tests.providers.stream_forms import CHAT_FORMS, Form
from tests.support.openai_server import Failure, OpenAiServer, failure
from tests.support.provider_process import SECRET
from tests.support.rows import each_row

pytestmark = pytest.mark.asyncio(loop_scope="session")

_CLAUDE = "publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict"
_GEMINI = "publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"


def request_to(server: OpenAiServer, name: str) -> ModelRequest:
    model = ModelRef(name, server.base_url, "THE_KEY")
    return ModelRequest(
        model, "Be brief.", (UserMessage(content="hello"),), (READ,), 20_000, "medium"
    )


@pytest.mark.parametrize(
    ("name", "path", "header", "form"),
    [
        ("azure/gpt-5", "/v1/openai/v1/responses", "api-key", RESPONSES_FORMS["a refusal"]),
        ("azure/my-4o", "/v1/openai/v1/chat/completions", "api-key", CHAT_FORMS["reasoning"]),
        (
            "azure_ai/claude-sonnet-4-5",
            "/anthropic/v1/messages",
            "x-api-key",
            ANTHROPIC_FORMS["refusal"],
        ),
        (
            "vertex_ai/claude-sonnet-4-5",
            f"/v1/{_CLAUDE}",
            "x-goog-api-key",
            ANTHROPIC_FORMS["refusal"],
        ),
        (
            "vertex_ai/gemini-2.5-pro",
            f"/v1/{_GEMINI}",
            "x-goog-api-key",
            GEMINI_FORMS["MAX_TOKENS"],
        ),
    ],
)
async def test_a_cloud_is_asked_in_the_models_own_protocol_at_its_own_address(
    host: ProviderHost, server: OpenAiServer, name: str, path: str, header: str, form: Form
) -> None:
    server.pages[path] = Failure(200, form.body, content_type="text/event-stream")
    assert text_of(await collect(host, request_to(server, name))) == form.text
    (request,) = server.requests
    assert request.headers[header] == SECRET
    assert request.body.get("model") == (None if "vertex" in name else name.partition("/")[2])


async def test_claude_at_vertex_is_asked_in_the_version_of_vertex(
    host: ProviderHost, server: OpenAiServer
) -> None:
    stream = Failure(200, ANTHROPIC_FORMS["refusal"].body, content_type="text/event-stream")
    server.pages[f"/v1/{_CLAUDE}"] = stream
    await collect(host, request_to(server, "vertex_ai/claude-sonnet-4-5"))
    (request,) = server.requests
    assert request.body["anthropic_version"] == "vertex-2023-10-16"
    assert request.body["thinking"]["budget_tokens"] == 10_000
    assert "interleaved" in request.headers["anthropic-beta"]
    assert "anthropic-version" not in request.headers


async def test_a_resource_without_the_responses_api_is_spoken_to_in_chat(
    host: ProviderHost, server: OpenAiServer
) -> None:
    stream = Failure(200, CHAT_FORMS["reasoning"].body, content_type="text/event-stream")
    server.pages["/v1/openai/v1/responses"] = failure(404, "Resource not found")
    server.pages["/v1/openai/v1/chat/completions"] = stream
    assert text_of(await collect(host, request_to(server, "azure/gpt-5-mini"))) == "Hi."
    assert server.requests[-1].body["max_completion_tokens"] == 20_000


@each_row(
    ("name", "wires"),
    [
        ("azure/gpt-5", ["responses", "completions", "chat"]),
        ("azure/responses/my-deployment", ["responses"]),
        ("azure/my-4o", ["completions", "chat"]),
        ("azure/o_series/my-o3", ["chat"]),
        ("azure_ai/deepseek-v3", ["chat"]),
        ("vertex_ai/gemini-2.5-pro", ["vertex-gemini"]),
        ("vertex_ai/meta/llama-4-scout", ["chat"]),
    ],
)
async def test_what_has_no_wire_of_its_own_stays_with_litellm(name: str, wires: list[str]) -> None:
    assert [wire.name for wire in wires_to(ModelRef(name))] == wires


@pytest.mark.parametrize(
    "base", ["https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/"]
)
async def test_a_resource_may_be_named_with_or_without_its_path(base: str) -> None:
    environ = {"AZURE_API_BASE": base, "AZURE_AD_TOKEN": "token"}
    address = azure_openai_address(WireRequest("azure/gpt-5", []), environ, "responses")
    assert address.url == "https://x.openai.azure.com/openai/v1/responses"
    assert address.headers == {"authorization": "Bearer token"}


async def test_a_resource_that_is_not_set_is_named() -> None:
    request = WireRequest("azure/gpt-5", [])
    with pytest.raises(MissingKeyError, match="AZURE_API_BASE"):
        azure_openai_address(request, {"AZURE_API_KEY": "key"}, "responses")


@pytest.mark.parametrize("given", ["/nowhere/credentials.json", '{"type": "none"}'])
async def test_an_account_that_google_does_not_know_is_said(given: str) -> None:
    pytest.importorskip("google.auth")
    with pytest.raises(MissingKeyError, match="VERTEX_API_KEY"):
        GoogleAccount({"VERTEXAI_CREDENTIALS": given})


async def test_an_account_is_read_from_the_file_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    account = {
        "type": "authorized_user",
        "client_id": "id",
        "client_secret": "secret",
        "refresh_token": "refresh",
    }
    path = tmp_path / "account.json"
    path.write_text(json.dumps(account), encoding="utf-8")
    assert GoogleAccount({"VERTEXAI_CREDENTIALS": str(path)})
