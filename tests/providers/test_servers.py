"""What running servers tell of their models, and how the catalog knows those by name."""

from typing import Any

import pytest

from agent_tui.config import ModelSettings, Settings
from agent_tui.errors import ConfigError
from agent_tui.providers.base import ModelInfo, ModelRef
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.servers.kinds import (
    ServerAddress,
)
from agent_tui.providers.servers.models import GUESSED_WINDOW, UNLOADED_WINDOW
from agent_tui.providers.servers.server_catalog import RunningServer, find_servers, server_at
from agent_tui.providers.table import ModelTable
from tests.support.model_servers import (
    LLAMA_CPP,
    LM_STUDIO,
    LM_STUDIO_V0,
    LOADING,
    OLLAMA,
    VLLM,
    WANTS_KEY,
    models_of,
)
from tests.support.openai_script import Failure
from tests.support.openai_server import OpenAiServer
from tests.support.patience import PATIENCE_S

"""For servers that answer: a busy machine fails no test."""

IMPATIENCE_S = 0.2
"""For servers that never do."""

KINDS = {"Ollama": OLLAMA, "LM Studio": LM_STUDIO, "llama.cpp": LLAMA_CPP, "vLLM": VLLM}


def find(server: OpenAiServer, kind: str) -> RunningServer:
    """What is found at `server`, where one of this kind would be."""
    address = ServerAddress(kind, server.base_url.removesuffix("/v1"))
    (found,) = find_servers([address], patience_s=PATIENCE_S)
    return found


def infos(server: RunningServer) -> dict[str, ModelInfo]:
    return {model.ref.model_id: model.info for model in server.list_models()}


def catalog(settings: Settings | None = None, **environ: str) -> ModelCatalog:
    """A catalog without a table that looks nowhere unless told."""
    return ModelCatalog(
        settings or Settings(),
        environ,
        table=ModelTable({}),
        server_ports={},
        patience_s=PATIENCE_S,
    )


# What each kind tells


def test_llama_cpp_tells_its_window_and_whether_its_template_takes_tools(
    server: OpenAiServer,
) -> None:
    server.pages.update(LLAMA_CPP)
    found = find(server, "llama.cpp")
    (model,) = found.list_models()
    assert model.ref == ModelRef("openai//models/small.gguf", server.base_url)
    assert (model.state, model.via) == ("loaded", f"llama.cpp at 127.0.0.1:{server.port}")
    assert (model.info.window, model.info.max_output) == (8_192, 2_048)
    assert (model.info.source, model.info.tool_style) == ("server", "text")
    assert model.info.takes_schema
    assert model.info.takes_grammar
    assert model.info.writes_calls
    assert model.info.sees_images


@pytest.mark.parametrize(
    ("props", "style"),
    [
        ({"chat_template_caps": {"supports_tools": True}, "chat_template": "x"}, "native"),
        ({"chat_template": "{% if tools %}{{ tools }}{% endif %}"}, "native"),
        ({"chat_template": "{{ messages }}"}, "text"),
        ({}, "native"),
    ],
)
def test_an_older_llama_cpp_is_judged_by_its_template(
    server: OpenAiServer, props: dict[str, Any], style: str
) -> None:
    server.pages.update(LLAMA_CPP)
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 512}, **props}
    (info,) = infos(find(server, "llama.cpp")).values()
    assert info.tool_style == style


def test_a_llama_cpp_with_several_models_tells_of_those_that_are_loaded(
    server: OpenAiServer,
) -> None:
    listed = [
        {"id": "big", "owned_by": "llamacpp", "status": {"value": "loaded"}},
        {"id": "other", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
    ]
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 0}, "role": "router"}
    server.pages["/v1/models"] = {"data": listed}
    server.pages["/props?model=big&autoload=false"] = LLAMA_CPP["/props"]
    models = {m.id: m for m in find(server, "llama.cpp").models}
    assert (models["big"].window, models["big"].state) == (8_192, "loaded")
    assert (models["other"].window, models["other"].state) == (None, "not loaded")


def test_ollama_tells_states_sizes_and_what_its_models_can_do(server: OpenAiServer) -> None:
    server.pages.update(OLLAMA)
    found = find(server, "Ollama")
    loaded, idle = found.list_models()
    assert [loaded.state, idle.state] == ["loaded", "not loaded"]
    assert [loaded.size_bytes, idle.size_bytes] == [5_225_388_164, 637_700_138]
    assert (loaded.info.window, loaded.info.source) == (32_768, "server")
    assert (idle.info.window, idle.info.source) == (UNLOADED_WINDOW, "guess")
    assert (loaded.info.tool_style, loaded.info.thinks) == ("native", True)
    assert loaded.info.takes_schema
    assert not loaded.info.takes_grammar


@pytest.mark.parametrize(
    ("details", "style"),
    [
        ({"capabilities": ["completion"]}, "text"),
        ({"capabilities": ["completion", "tools"]}, "native"),
        ({"template": "{{ if .Tools }}x{{ end }}"}, "native"),
        ({"template": "{{ .Prompt }}"}, "text"),
        (None, "native"),
    ],
)
def test_ollama_models_without_tools_get_them_in_the_prompt(
    server: OpenAiServer, details: dict[str, Any] | None, style: str
) -> None:
    server.pages.update(OLLAMA)
    server.pages["/api/show"] = details
    assert {info.tool_style for info in infos(find(server, "Ollama")).values()} == {style}


@pytest.mark.parametrize(
    ("details", "window", "source"),
    [
        ({"parameters": "stop x\nnum_ctx 16384"}, 16_384, "server"),
        ({"model_info": {"tiny.context_length": 2_048}}, 2_048, "guess"),
        ({"model_info": {"tiny.context_length": 2_000_000}}, UNLOADED_WINDOW, "guess"),
        ({"parameters": "num_ctx " + "9" * 50}, UNLOADED_WINDOW, "guess"),
    ],
)
def test_the_window_of_a_model_that_ollama_has_yet_to_load_is_its_own_or_assumed(
    server: OpenAiServer, details: dict[str, Any], window: int, source: str
) -> None:
    server.pages.update(OLLAMA)
    server.pages["/api/show"] = details
    info = infos(find(server, "Ollama"))["tiny:latest"]
    assert (info.window, info.source) == (window, source)


@pytest.mark.parametrize("pages", [LM_STUDIO, LM_STUDIO_V0], ids=["v1", "v0"])
def test_lm_studio_tells_states_and_which_models_were_trained_for_tools(
    server: OpenAiServer, pages: dict[str, Any]
) -> None:
    server.pages.update(pages)
    found = find(server, "LM Studio")
    loaded, idle = found.list_models()
    assert [loaded.ref.name, idle.ref.name] == ["openai/openai/gpt-oss-20b", "openai/gemma-3-4b"]
    assert [loaded.state, idle.state] == ["loaded", "not loaded"]
    assert loaded.info.window == (8_000 if pages is LM_STUDIO else 16_000)
    assert (idle.info.window, idle.info.source) == (UNLOADED_WINDOW, "guess")
    assert [loaded.info.tool_style, idle.info.tool_style] == ["native", "text"]
    assert [loaded.info.sees_images, idle.info.sees_images] == [False, True]
    assert loaded.info.takes_schema


def test_vllm_tells_its_window(server: OpenAiServer) -> None:
    server.pages.update(VLLM)
    (model,) = find(server, "vLLM").list_models()
    assert (model.info.window, model.info.source, model.state) == (65_536, "server", "ready")
    assert model.info.takes_schema


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", KINDS)
def test_a_server_at_the_port_of_another_is_known_by_its_answers(
    server: OpenAiServer, kind: str, place: str
) -> None:
    server.pages.update(KINDS[kind])
    found = find(server, place)
    expected = find(server, kind)
    assert found.models == expected.models
    assert place == "vLLM" or found.title == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_at_an_address_of_its_own_is_known_too_and_gets_its_key(
    server: OpenAiServer, kind: str
) -> None:
    server.pages.update(KINDS[kind])
    found = server_at(server.base_url, "the-key", "MINE", patience_s=PATIENCE_S)
    assert found is not None
    assert (found.title, found.models) == (kind, find(server, kind).models)
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
    found = find(server, "llama.cpp")
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


async def test_a_window_that_was_assumed_is_asked_for_again(server: OpenAiServer) -> None:
    server.pages.update(OLLAMA)
    ref = ModelRef("openai/tiny:latest", server.base_url)
    asking = catalog()
    assert (await asking.learn(ref)).window == UNLOADED_WINDOW
    running = [{"name": "tiny:latest", "context_length": 8_192}]
    server.pages["/api/ps"] = {"models": running}
    known = await asking.learn(ref)
    assert (known.window, known.source) == (8_192, "server")
    asked = len(server.requests)
    assert await asking.learn(ref) == known
    assert len(server.requests) == asked


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
