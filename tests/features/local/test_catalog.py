"""Models of this machine in the catalog: by name, with their windows, and as the default."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_tui.config import ModelSettings, Settings
from agent_tui.errors import ConfigError
from agent_tui.features.local.catalog import LocalCatalog
from agent_tui.features.local.library import ModelLibrary
from agent_tui.features.local.model import DEFAULT_WINDOW, OFFERS, LocalModel
from agent_tui.features.local.server_messages import ServedLocal
from agent_tui.features.local.settings import LocalSection, LocalSettings
from agent_tui.providers.base import ModelRef, ProviderError
from agent_tui.providers.catalog import ModelCatalog
from agent_tui.providers.local_models import NoLocalModels
from agent_tui.providers.table import ModelTable
from tests.providers.test_catalog import entry
from tests.support.gguf_files import gguf_bytes
from tests.support.rows import each_row

TABLE = ModelTable({"claude-sonnet-5": entry("anthropic")})


class Library(ModelLibrary):
    """A library that holds what it is given, each model with a file of its own; the first came
    last.
    """

    def __init__(self, root: Path, *models: LocalModel) -> None:
        super().__init__(root)
        self._given = models

    def models(self) -> tuple[LocalModel, ...]:
        return self._given

    def find(self, name: str) -> LocalModel | None:
        return next((model for model in self._given if model.name == name), None)

    def time_added(self, name: str) -> float:
        names = [model.name for model in self._given]
        return -names.index(name)


def local_model(folder: Path, name: str, **more: object) -> LocalModel:
    """A model with a file."""
    path = folder / f"{name}.gguf"
    path.touch()
    known = LocalModel(name, path, size_bytes=98_362_432, trained_window=8_192)
    return replace(known, **more)


def catalog(
    library: ModelLibrary | None,
    settings: Settings | None = None,
    served: Callable[[str], Awaitable[ServedLocal]] | None = None,
    **environ: str,
) -> ModelCatalog:
    settings = settings or Settings()
    local = (
        LocalCatalog(library, settings.of(LocalSection).local, load=served)
        if library
        else NoLocalModels()
    )
    return ModelCatalog(settings, environ, table=TABLE, server_ports={}, local=local)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """One model that came first, and one with tools that came last."""
    small = local_model(tmp_path, "smollm2")
    coder = local_model(tmp_path, "coder", trained_window=262_144, knows_tools=True)
    return Library(tmp_path, coder, small)


@pytest.mark.parametrize("name", ["local/smollm2", "smollm2", " smollm2 "])
def test_a_model_of_this_machine_has_a_name_with_and_without_local(
    library: Library, name: str
) -> None:
    assert catalog(library).resolve(name) == ModelRef("local/smollm2")
    assert catalog(library, Settings(model=name.strip())).default_model() == ModelRef(
        "local/smollm2"
    )


def test_a_model_that_is_not_there_is_refused_with_the_way_to_it(library: Library) -> None:
    with pytest.raises(ConfigError, match="nope") as raised:
        catalog(library).resolve("local/nope")
    assert "local/smollm2" in raised.value.hint
    assert "agent-tui models pull" in raised.value.hint


def test_a_model_whose_file_is_gone_is_refused_and_not_offered(library: Library) -> None:
    (library.root / "smollm2.gguf").unlink()
    with pytest.raises(ConfigError, match=r"smollm2\.gguf"):
        catalog(library).resolve("smollm2")
    assert catalog(library).local.default() == ModelRef("local/coder")


async def test_a_model_of_this_machine_is_found_first_with_size_and_state(
    library: Library,
) -> None:
    found = await catalog(library, ANTHROPIC_API_KEY="x").list_models()
    assert [(m.ref.name, m.via, m.state) for m in found] == [
        ("local/coder", "this machine", "ready"),
        ("local/smollm2", "this machine", "ready"),
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY", ""),
    ]
    assert found[0].size_bytes == 98_362_432


def test_its_window_is_what_it_was_trained_for_up_to_what_memory_allows(
    library: Library,
) -> None:
    small, coder = (catalog(library).info(ModelRef(f"local/{n}")) for n in ("smollm2", "coder"))
    assert (small.window, small.max_output, small.source) == (8_192, 2_048, "table")
    assert coder.window == DEFAULT_WINDOW
    assert (small.tool_style, coder.tool_style) == ("text", "native")
    for info in (small, coder):
        assert (info.writes_calls, info.takes_schema, info.takes_grammar) == (True, True, True)
    assert catalog(library).info(ModelRef("local/nope")).source == "guess"


@pytest.mark.parametrize(("size_bytes", "is_tiny"), [(98_362_432, True), (1_300_000_000, False)])
async def test_a_small_file_is_known_to_be_for_trying_also_once_its_server_runs(
    tmp_path: Path, size_bytes: int, is_tiny: bool
) -> None:
    async def served(name: str) -> ServedLocal:
        return ServedLocal("http://127.0.0.1:1", 4_096, 8_192, knows_tools=True, has_template=True)

    library = Library(tmp_path, local_model(tmp_path, "some", size_bytes=size_bytes))
    known, ref = catalog(library, served=served), ModelRef("local/some")
    assert known.info(ref).is_tiny is is_tiny
    learned = await known.learn(ref)
    assert (learned.source, learned.is_tiny) == ("server", is_tiny)


@pytest.mark.parametrize(("context", "window"), [(4_096, 4_096), (65_536, 65_536)])
def test_the_setting_decides_the_window(library: Library, context: int, window: int) -> None:
    settings = Settings.model_validate({"local": LocalSettings(context=context)})
    assert catalog(library, settings).info(ModelRef("local/coder")).window == window
    assert catalog(library, settings).info(ModelRef("local/smollm2")).window <= 8_192
    of_one = Settings(models={"local/coder": ModelSettings(window=5_000)})
    assert catalog(library, of_one).info(ModelRef("local/coder")).window == 5_000


async def test_what_its_server_says_is_believed_from_then_on(library: Library) -> None:
    async def served(name: str) -> ServedLocal:
        assert name == "smollm2"
        return ServedLocal("", 2_048, 8_192, knows_tools=True, has_template=True)

    ref = ModelRef("local/smollm2")
    learning = catalog(library, served=served)
    known = await learning.learn(ref)
    assert (known.window, known.source, known.tool_style) == (2_048, "server", "native")
    assert learning.info(ref) == known


async def test_a_server_that_does_not_start_shows_with_the_request(library: Library) -> None:
    async def served(name: str) -> ServedLocal:
        raise ProviderError("crashed", f"{name} cannot be loaded.")

    ref = ModelRef("local/smollm2")
    learning = catalog(library, served=served)
    assert await learning.learn(ref) == learning.info(ref)


def test_without_a_key_the_model_that_came_last_is_the_default(library: Library) -> None:
    assert catalog(library).default_model() == ModelRef("local/coder")
    assert catalog(library).local.default() == ModelRef("local/coder")
    with_key = catalog(library, ANTHROPIC_API_KEY="x")
    assert with_key.default_model() == ModelRef("anthropic/claude-sonnet-5")
    assert with_key.local.default() == ModelRef("local/coder")


@pytest.mark.parametrize("name", ["smollm2", "local/smollm2"])
def test_the_model_of_the_settings_is_the_local_one(library: Library, name: str) -> None:
    settings = Settings.model_validate({"local": LocalSettings(model=name)})
    assert catalog(library, settings).local.default() == ModelRef("local/smollm2")
    absent = Settings.model_validate({"local": LocalSettings(model="nope")})
    with pytest.raises(ConfigError, match="nope"):
        catalog(library, absent).local.default()


def test_with_nothing_on_this_machine_there_is_no_default(tmp_path: Path) -> None:
    empty = catalog(ModelLibrary(tmp_path / "none"))
    assert empty.default_model() is None
    assert empty.local.default() is None
    assert not (tmp_path / "none").exists()


def test_a_local_model_has_no_cheaper_one(library: Library) -> None:
    assert catalog(library, ANTHROPIC_API_KEY="x").cheap_model(ModelRef("local/coder")) is None


def test_with_a_base_url_the_model_of_the_settings_is_that_servers(library: Library) -> None:
    settings = Settings(model="smollm2", base_url="http://127.0.0.1:9/v1")
    assert catalog(library, settings).default_model() == ModelRef("smollm2", settings.base_url)
    assert catalog(library, settings).resolve("local/coder") == ModelRef("local/coder")


@each_row(
    ("ref", "writes_calls"),
    [
        (ModelRef("anthropic/claude-sonnet-5"), False),
        (ModelRef("claude-sonnet-5"), False),
        (ModelRef("openai/gpt-5"), False),
        (ModelRef("scripted/tour"), False),
        (ModelRef("openai/gpt-5", "http://127.0.0.1:9/v1"), True),
        (ModelRef("groq/llama-4"), True),
        (ModelRef("who/knows"), True),
    ],
)
def test_only_the_services_own_models_are_trusted_to_keep_to_the_protocol(
    ref: ModelRef, writes_calls: bool
) -> None:
    assert catalog(None).info(ref).writes_calls is writes_calls


def test_a_damaged_description_is_named_when_its_model_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text("{")
    with pytest.raises(ConfigError, match=r"Cannot read .*odd\.json") as raised:
        catalog(ModelLibrary(tmp_path)).resolve("local/odd")
    assert raised.value.hint == "To remove it: agent-tui models remove odd"


def test_the_default_is_what_was_added_last_however_old_its_file_is(tmp_path: Path) -> None:
    library = ModelLibrary(tmp_path / "models")
    for number, name in enumerate(("new", "old")):
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(gguf_bytes())
        os.utime(path, (1_000_000 - number, 1_000_000 - number))
        library.add(path)
        os.utime(library.root / f"{name}.json", (2_000_000 + number, 2_000_000 + number))
    assert catalog(library).local.default() == ModelRef("local/old")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "Restore the file, or remove the model: agent-tui models remove coder"),
        (
            {"is_ours": True, "source": "https://a.example/c.gguf"},
            "agent-tui models pull https://a.example/c.gguf --name coder.",
        ),
        (
            {"is_ours": True, "source": "pypi:x==1", "sha256": OFFERS[0].sha256},
            "agent-tui models pull smollm2 --name coder.",
        ),
    ],
)
def test_a_gone_file_is_told_with_a_way_that_leads_to_it(
    tmp_path: Path, more: dict[str, object], words: str
) -> None:
    model = local_model(tmp_path, "coder", **more)
    model.path.unlink()
    with pytest.raises(ConfigError) as raised:
        catalog(Library(tmp_path, model)).resolve("coder")
    assert words in raised.value.hint
