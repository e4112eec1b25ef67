"""Which model a name means, how large it is, and what can be chosen now."""

import pytest

from agent_tui.config import ModelSettings, Settings
from agent_tui.errors import ConfigError
from agent_tui.features.tour.replies import DEMO_MODEL, DEMO_WINDOW
from agent_tui.messages import JsonObject
from agent_tui.providers.base import ModelRef
from agent_tui.providers.catalog import (
    UNKNOWN_WINDOW,
    ModelCatalog,
    is_aside,
    newest_first,
    version_of,
)
from agent_tui.providers.keys import KEY_VARIABLES
from agent_tui.providers.servers.models import GUESSED_WINDOW
from agent_tui.providers.table import FAMILIES, ModelTable, read_bundled_table
from tests.support.model_servers import all_at, models_of
from tests.support.openai_server import OpenAiServer
from tests.support.rows import each_row


def entry(provider: str, window: int = 200_000, **more: bool | float | str) -> JsonObject:
    """One line of a table in litellm's form."""
    return {
        "litellm_provider": provider,
        "mode": "chat",
        "max_input_tokens": window,
        "max_output_tokens": 64_000,
        "input_cost_per_token": 3e-06,
        "supports_function_calling": True,
        **more,
    }


TABLE = ModelTable(
    {
        "claude-sonnet-4-5": entry("anthropic"),
        "claude-sonnet-4-5-20250929": entry("anthropic"),
        "claude-sonnet-5": entry("anthropic", supports_vision=True),
        "claude-haiku-4-5": entry("anthropic"),
        "gpt-5": entry("openai", 272_000),
        "gpt-5.1": entry("openai", 272_000),
        "gpt-5-mini": entry("openai", 272_000),
        "gemini/gemini-2.5-flash": entry("gemini", 1_000_000),
        "groq/gpt-5": entry("groq", 8_000),
        "text-embedding-3": entry("openai", mode="embedding"),
    }
)


def catalog(settings: Settings | None = None, **environ: str) -> ModelCatalog:
    """A catalog over `TABLE` that finds no servers."""
    return ModelCatalog(settings or Settings(), environ, table=TABLE, server_ports={})


@pytest.fixture(scope="module")
def bundled() -> ModelTable:
    """The table in litellm's wheel."""
    return read_bundled_table()


@each_row(
    ("name", "expected"),
    [
        ("anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("sonnet", "anthropic/claude-sonnet-5"),
        ("sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        ("gpt-5", "openai/gpt-5"),
        ("flash", "gemini/gemini-2.5-flash"),
        ("anthropic/claude-of-tomorrow", "anthropic/claude-of-tomorrow"),
        ("scripted/tour", "scripted/tour"),
    ],
)
def test_a_name_may_be_whole_without_provider_or_a_part(name: str, expected: str) -> None:
    assert catalog().resolve(name) == ModelRef(expected)


def test_a_provider_with_a_key_is_meant_before_one_without() -> None:
    assert catalog(GROQ_API_KEY="x").resolve("gpt-5").name == "groq/gpt-5"


def test_a_name_that_fits_nothing_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as raised:
        catalog().resolve("claud-sonet-5")
    assert "claud-sonet-5" in raised.value.message
    assert "anthropic/claude-sonnet-5" in raised.value.hint


def test_with_a_base_url_any_other_name_is_that_servers() -> None:
    settings = Settings(model="my-model", base_url="http://127.0.0.1:9/v1", api_key_env="MINE")
    expected = ModelRef("my-model", "http://127.0.0.1:9/v1", "MINE")
    assert catalog(settings).default_model() == expected
    assert catalog(settings).resolve("anthropic/claude-haiku-4-5").base_url == ""


def test_settings_of_one_model_win() -> None:
    override = ModelSettings(window=50_000, base_url="http://127.0.0.1:9/v1", api_key_env="MINE")
    settings = Settings(models={"openai/gpt-5": override})
    ref = catalog(settings).resolve("openai/gpt-5")
    assert ref == ModelRef("openai/gpt-5", "http://127.0.0.1:9/v1", "MINE")
    info = catalog(settings).info(ref)
    assert (info.window, info.source) == (50_000, "setting")
    seeing = Settings(models={"my/model": ModelSettings(sees_images=True)})
    assert catalog(seeing).info(ModelRef("my/model")).sees_images
    assert info.max_output <= 12_500


def test_what_is_known_comes_from_the_table_and_what_is_not_is_a_guess() -> None:
    known = catalog().info(ModelRef("anthropic/claude-sonnet-5"))
    assert (known.window, known.max_output, known.source) == (200_000, 50_000, "table")
    assert known.input_price == 3.0
    assert known.sees_images
    bare = catalog().info(ModelRef("claude-sonnet-5"))
    assert (bare.name, bare.window) == ("claude-sonnet-5", 200_000)
    guess = catalog().info(ModelRef("who/knows"))
    assert (guess.window, guess.source, guess.input_price) == (UNKNOWN_WINDOW, "guess", None)
    assert catalog().info(DEMO_MODEL).window == DEMO_WINDOW


def test_a_resold_model_is_known_by_its_own_name() -> None:
    info = catalog().info(ModelRef("openrouter/anthropic/claude-sonnet-4.5"))
    assert (info.name, info.source) == ("openrouter/anthropic/claude-sonnet-4.5", "table")


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("gpt-5", 272_000),
        ("openai/gpt-5", 272_000),
        ("team-a/anthropic/claude-sonnet-4.5", 200_000),
        ("claude-sonnet-4-5", 200_000),
    ],
)
def test_a_servers_model_of_a_known_name_has_the_window_of_that_name(
    name: str, window: int
) -> None:
    info = catalog().info(ModelRef(name, "http://gateway:4000/v1"))
    assert (info.window, info.source, info.input_price) == (window, "table", None)


def test_a_servers_model_of_another_name_has_a_guess() -> None:
    info = catalog().info(ModelRef("team-a/our-own", "http://gateway:4000/v1"))
    assert (info.window, info.source) == (GUESSED_WINDOW, "guess")


def test_the_default_is_the_setting_else_the_newest_of_the_first_key() -> None:
    assert catalog().default_model() is None
    assert catalog(Settings(model="gpt-5")).default_model() == ModelRef("openai/gpt-5")
    both = catalog(OPENAI_API_KEY="x", ANTHROPIC_API_KEY="x")
    assert both.default_model() == ModelRef("anthropic/claude-sonnet-5")
    assert catalog(OPENAI_API_KEY="x").default_model() == ModelRef("openai/gpt-5.1")
    assert catalog(OPENAI_API_KEY="").default_model() is None


def test_the_cheap_model_is_of_the_same_provider_and_never_the_same() -> None:
    cheap = catalog().cheap_model
    assert cheap(ModelRef("anthropic/claude-sonnet-5")) == ModelRef("anthropic/claude-haiku-4-5")
    assert cheap(ModelRef("claude-sonnet-5")) == ModelRef("anthropic/claude-haiku-4-5")
    assert cheap(ModelRef("openai/gpt-5", "", "MINE")) == ModelRef("openai/gpt-5-mini", "", "MINE")
    assert cheap(ModelRef("anthropic/claude-haiku-4-5")) is None
    assert cheap(ModelRef("openai/x", "http://127.0.0.1:9/v1")) is None
    assert cheap(DEMO_MODEL) is None


async def test_found_are_the_models_of_every_key_and_where_it_is() -> None:
    found = await catalog(GEMINI_API_KEY="x", GROQ_API_KEY="x").list_models()
    assert [(model.ref.name, model.via) for model in found] == [
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("groq/gpt-5", "GROQ_API_KEY"),
    ]


async def test_found_are_the_newest_first_and_at_the_end_what_few_look_for(
    bundled: ModelTable,
) -> None:
    environ = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    found = await ModelCatalog(Settings(), environ, table=bundled, server_ports={}).list_models()
    names = [model.ref.name for model in found]
    aside = [name for name in names if is_aside(name, names) or "-audio" in name]
    assert {"openai/gpt-audio", "openai/ft:gpt-4.1-2025-04-14"} <= set(aside)
    assert names[-len(aside) :] == aside
    for provider in ("openai", "anthropic"):
        usual = [n for n in names[: -len(aside)] if n.startswith(f"{provider}/")]
        assert usual == newest_first(usual)
        assert version_of(usual[0]) == max(map(version_of, usual))


async def test_a_servers_model_that_is_not_there_for_text_is_at_the_end(
    server: OpenAiServer, bundled: ModelTable
) -> None:
    listed = [{"id": name} for name in ("omni-moderation-latest", "dall-e-3", "mine")]
    server.pages.update({"/v1/models": {"data": listed}})
    own = ModelCatalog(Settings(base_url=server.base_url), {}, table=bundled, server_ports={})
    first, *others = await own.list_models()
    assert first.ref.model_id == "mine"
    assert len(others) == 2


def test_secret_variables_are_the_providers_and_those_of_the_settings() -> None:
    names = catalog(Settings(api_key_env="MINE")).secret_env_names()
    assert {"MINE", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"} <= names
    assert "AWS_SECRET_ACCESS_KEY" not in names
    assert "" not in names


async def test_models_of_running_servers_are_found_with_their_windows(
    server: OpenAiServer,
) -> None:
    server.pages.update(
        {
            "/api/tags": {"models": [{"name": "qwen3:8b"}, {"name": "llama3:8b"}]},
            "/api/ps": {"models": [{"name": "qwen3:8b", "context_length": 32_768}]},
            "/api/show": {"capabilities": ["tools", "vision"], "parameters": "stop x"},
            "/api/v0/models": {
                "data": [
                    {"id": "openai/gpt-oss", "type": "llm", "loaded_context_length": 16_000},
                    {"id": "embedder", "type": "embeddings"},
                ]
            },
            "/props": {"default_generation_settings": {"n_ctx": 4_096}},
            "/v1/models": {"data": [{"id": "served", "owned_by": "vllm", "max_model_len": 65_536}]},
        }
    )
    ports = all_at(server.port)
    running = ModelCatalog(Settings(), {}, table=TABLE, server_ports=ports)
    found = {(m.via.split(" at ")[0], m.ref.name): m for m in await running.list_models()}
    windows = {key: model.info.window for key, model in found.items()}
    assert windows == {
        ("Ollama", "openai/qwen3:8b"): 32_768,
        ("Ollama", "openai/llama3:8b"): 4_096,
        ("LM Studio", "openai/openai/gpt-oss"): 16_000,
        ("llama.cpp", "openai/served"): 4_096,
        ("vLLM", "openai/served"): 65_536,
    }
    qwen = found["Ollama", "openai/qwen3:8b"]
    assert qwen.ref.base_url == server.base_url
    assert qwen.info.sees_images
    assert qwen.info.source == "server"
    assert running.resolve("qwen3:8b") == qwen.ref
    assert running.info(qwen.ref) == qwen.info


async def test_a_server_of_ones_own_is_asked_for_its_window(server: OpenAiServer) -> None:
    server.pages["/v1/models"] = {"data": [{"id": "mine"}]}
    server.pages["/props"] = {"default_generation_settings": {"n_ctx": 10_000}}
    settings = Settings(base_url=server.base_url, api_key_env="MINE")
    own = ModelCatalog(settings, {"MINE": "the-key"}, table=TABLE, server_ports={})
    ref = own.default_model()
    assert ref == ModelRef("openai/mine", server.base_url, "MINE")
    assert (await own.learn(ModelRef("mine", server.base_url, "MINE"))).window == 10_000
    assert server.requests[0].headers["authorization"] == "Bearer the-key"
    assert [model.ref for model in await own.list_models()] == [ref]


async def test_nobody_at_home_is_no_model_and_says_what_to_do() -> None:
    ports = all_at(1)
    assert await ModelCatalog(Settings(), {}, table=TABLE, server_ports=ports).list_models() == ()
    assert models_of("http://127.0.0.1:1/v1") == ()
    with pytest.raises(ConfigError, match="/model"):
        catalog(Settings(base_url="http://127.0.0.1:1/v1")).default_model()


def test_a_login_in_an_address_is_not_told() -> None:
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:1/v1 lists no models") as caught:
        catalog(Settings(base_url="http://me:hunter2@127.0.0.1:1/v1")).default_model()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("answer", ["a page", {"data": "none"}, {"models": [{}]}, [1], 7])
async def test_a_server_that_is_something_else_is_not_a_model_server(
    server: OpenAiServer, answer: object
) -> None:
    paths = ("/api/tags", "/api/v0/models", "/props", "/v1/models")
    server.pages.update(dict.fromkeys(paths, answer))
    ports = all_at(server.port)
    found = await ModelCatalog(Settings(), {}, table=TABLE, server_ports=ports).list_models()
    assert found == ()


def test_the_bundled_table_has_a_default_for_every_provider_with_a_family(
    bundled: ModelTable,
) -> None:
    for provider in FAMILIES:
        environ = {KEY_VARIABLES[provider][0]: "x"}
        ref = ModelCatalog(Settings(), environ, table=bundled).default_model()
        assert ref is not None
        assert ref.provider == provider
        assert ModelCatalog(Settings(), environ, table=bundled).info(ref).source == "table"


@pytest.mark.parametrize("provider", FAMILIES)
def test_models_taken_unasked_stay_and_the_cheap_one_costs_less(
    bundled: ModelTable, provider: str
) -> None:
    family = FAMILIES[provider]
    patterns = (family.cheap, family.working)
    names = [name for p in patterns if (name := bundled.newest(provider, *p)) is not None]
    assert [n for n in names if "deprecation_date" in bundled._by_name[n]] == []
    infos = [info for name in names if (info := bundled.info(name)) is not None]
    assert len(infos) == len(names)
    prices = [info.input_price or 0.0 for info in infos]
    assert prices == sorted(set(prices))


@pytest.mark.parametrize(
    ("name", "near"), [("claude-sonet-45", "claude-sonnet-4-5"), ("nobody-knows-it", "")]
)
def test_an_unknown_name_suggests_what_may_have_been_meant_and_nothing_far_fetched(
    name: str, near: str
):
    with pytest.raises(ConfigError, match=name) as raised:
        catalog().resolve(name)
    assert near in raised.value.hint
    assert ("Nearest" in raised.value.hint) == bool(near)
