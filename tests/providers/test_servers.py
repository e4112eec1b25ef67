"""What running servers tell of their models, and how the catalog knows those by name."""

import pytest

from agent_tui.config import ModelSettings, Settings
from agent_tui.errors import ConfigError
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.servers.kinds import ServerAddress
from agent_tui.providers.servers.models import GUESSED_WINDOW
from agent_tui.providers.servers.server_catalog import find_servers, server_at
from agent_tui.providers.table import ModelTable
from tests.support.model_servers import (
    LLAMA_CPP,
    LM_STUDIO,
    LOADING,
    OLLAMA,
    VLLM,
    WANTS_KEY,
    find_server,
    models_of,
)
from tests.support.openai_script import Failure
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S

"""For servers that answer: a busy machine fails no test."""

IMPATIENCE_S = 0.2
"""For servers that never do."""

KINDS = {"Ollama": OLLAMA, "LM Studio": LM_STUDIO, "llama.cpp": LLAMA_CPP, "vLLM": VLLM}


def catalog(settings: Settings | None = None, **environ: str) -> ModelCatalog:
    """A catalog without a table that looks nowhere unless told."""
    return ModelCatalog(
        settings or Settings(),
        environ,
        table=ModelTable({}),
        server_ports={},
        patience_s=PATIENCE_S,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", KINDS)
def test_a_server_at_the_port_of_another_is_known_by_its_answers(
    server: OpenAiServer, kind: str, place: str
) -> None:
    server.pages.update(KINDS[kind])
    found = find_server(server, place)
    expected = find_server(server, kind)
    assert found.models == expected.models
    assert place == "vLLM" or found.title == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_at_an_address_of_its_own_is_known_too_and_gets_its_key(
    server: OpenAiServer, kind: str
) -> None:
    server.pages.update(KINDS[kind])
    found = server_at(server.base_url, "the-key", "MINE", patience_s=PATIENCE_S)
    assert found is not None
    assert (found.title, found.models) == (kind, find_server(server, kind).models)
    assert {model.ref.api_key_env for model in found.list_models()} == {"MINE"}
    keys = {request.headers.get("authorization") for request in server.requests}
    assert keys == {"Bearer the-key", None}  # None: those of `find`


def test_an_unknown_server_that_tells_no_window_gets_a_guess(server: OpenAiServer) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "mine"}]}
    found = server_at(server.base_url, patience_s=PATIENCE_S)
    assert found is not None
    (model,) = found.list_models()
    assert (model.info.window, model.info.source) == (GUESSED_WINDOW, "guess")
    assert model.via == f"server at 127.0.0.1:{server.port}"


def test_an_address_without_v1_is_asked_as_it_stands(server: OpenAiServer) -> None:
    server.pages["/gateway/models"] = {"data": [{"id": "mine", "context_length": 9_000}]}
    (model,) = models_of(f"http://127.0.0.1:{server.port}/gateway/")
    assert (model.id, model.window) == ("mine", 9_000)


def test_models_that_cannot_be_talked_to_are_left_out(server: OpenAiServer) -> None:
    names = ["nomic-embed-text", "BAAI/bge-m3", "whisper-1", "rerank-2", "tts-1", "kitts-7b"]
    server.pages["/v1/models"] = {"data": [{"id": name} for name in names]}
    assert [model.id for model in models_of(server.base_url)] == ["kitts-7b"]
    server.pages.clear()
    server.pages.update(OLLAMA)
    server.pages["/api/show"] = {"capabilities": ["embedding"]}
    assert find_servers([ServerAddress("Ollama", server.base_url[:-3])])[0].models != ()


# Servers that have no models


@pytest.mark.parametrize(
    ("answer", "word"), [(LOADING, "loading"), (WANTS_KEY, "--api-key-env")], ids=["503", "401"]
)
def test_a_server_without_models_says_why(server: OpenAiServer, answer: Failure, word: str) -> None:
    server.pages.update(dict.fromkeys(LLAMA_CPP, answer))
    found = find_server(server, "llama.cpp")
    assert (found.title, found.models) == ("llama.cpp", ())
    assert word in found.problem
    with pytest.raises(ConfigError, match=word):
        catalog(Settings(base_url=server.base_url)).default_model()


def test_another_program_that_refuses_is_no_model_server(server: OpenAiServer) -> None:
    page = Failure(403, "<html><title>Sign in</title></html>", content_type="text/html")
    server.pages.update(dict.fromkeys(("/props", "/v1/models"), page))
    root = server.base_url.removesuffix("/v1")
    assert find_servers([ServerAddress("llama.cpp", root)], patience_s=PATIENCE_S) == ()


# In the catalog


async def test_the_same_name_at_two_servers_stays_two_models(server: OpenAiServer) -> None:
    server.pages.update(OLLAMA)
    with OpenAiServer() as second:
        second.pages.update(OLLAMA)
        settings = Settings(
            models={"mine": ModelSettings(base_url=second.base_url, api_key_env="KEY")}
        )
        both = ModelCatalog(
            settings,
            {"KEY": "the-key", "OLLAMA_HOST": f"127.0.0.1:{server.port}"},
            table=ModelTable({}),
            server_ports={"Ollama": (1,)},
            patience_s=PATIENCE_S,
        )
        found = [m for m in await both.list_models() if m.ref.model_id == "qwen3:8b"]
        assert {m.ref for m in found} == {
            ModelRef("openai/qwen3:8b", server.base_url),
            ModelRef("openai/qwen3:8b", second.base_url, "KEY"),
        }
        assert len({m.via for m in found}) == 2
        assert all("authorization" not in r.headers for r in server.requests)
        assert {r.headers["authorization"] for r in second.requests} == {"Bearer the-key"}


async def test_a_server_of_the_settings_is_not_listed_twice(server: OpenAiServer) -> None:
    server.pages.update(LLAMA_CPP)
    settings = Settings(base_url=f"http://localhost:{server.port}/v1")
    ports = {"llama.cpp": (server.port,)}
    twice = ModelCatalog(
        settings, {}, table=ModelTable({}), server_ports=ports, patience_s=PATIENCE_S
    )
    assert [model.ref.base_url for model in await twice.list_models()] == [settings.base_url]


def test_the_model_of_the_settings_is_looked_for_at_running_servers(
    server: OpenAiServer,
) -> None:
    server.pages.update(OLLAMA)
    for name in ("tiny:latest", "tiny"):
        running = ModelCatalog(
            Settings(model=name),
            {},
            table=ModelTable({}),
            server_ports={"Ollama": (server.port,)},
            patience_s=PATIENCE_S,
        )
        assert running.default_model() == ModelRef("openai/tiny:latest", server.base_url)


async def test_a_server_that_went_away_is_remembered_as_it_was(server: OpenAiServer) -> None:
    with OpenAiServer() as leaving:
        leaving.pages.update(VLLM)
        ref = ModelRef("Qwen/Qwen3-Coder", leaving.base_url)
        asking = catalog()
        known = await asking.learn(ref)
    assert await asking.learn(ref) == known
    gone = await asking.learn(ModelRef("other", ref.base_url))
    assert (gone.window, gone.source) == (GUESSED_WINDOW, "guess")


# A server whose address is typed


@pytest.mark.parametrize(
    "typed", ["127.0.0.1:{}", "http://127.0.0.1:{}/", "http://127.0.0.1:{}/v1"]
)
async def test_a_server_is_found_at_what_was_typed_and_listed_from_then_on(
    server: OpenAiServer, typed: str
) -> None:
    server.pages.update(VLLM)
    models = catalog()
    assert [model for model in await models.list_models() if model.ref.base_url] == []
    found = await models.find_at(typed.format(server.port))
    assert {model.ref.base_url for model in found} == {server.base_url}
    assert set(found) <= set(await models.list_models())


async def test_a_server_without_v1_is_found_by_its_address(server: OpenAiServer) -> None:
    server.pages["/gateway/models"] = {"data": [{"id": "mine", "context_length": 9_000}]}
    address = f"http://127.0.0.1:{server.port}/gateway"
    (model,) = await catalog().find_at(address)
    assert model.ref == ModelRef("openai/mine", address)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("127.0.0.1:{}", "needs an API key"),
        ("ftp://127.0.0.1:{}", "must begin with http:// or https://"),
        ("127.0.0.1:x", "needs a port"),
    ],
)
async def test_an_address_that_leads_to_no_models_says_why(
    server: OpenAiServer, typed: str, why: str
) -> None:
    server.pages["/v1/models"] = WANTS_KEY
    with pytest.raises(ConfigError) as raised:
        await catalog().find_at(typed.format(server.port))
    assert why in str(raised.value)
