"""The list of ``agent-tui models``: what a feature lists, then servers and keys."""

import pytest

from agent_tui.cli.listed_models import ListedModel, ModelSection
from agent_tui.features.models.listing import ModelOverview, print_overview
from agent_tui.providers.base import FoundModel, ModelInfo, ModelRef


def found(name: str, via: str, window: int = 1000, state: str = "") -> FoundModel:
    return FoundModel(ModelRef(name), ModelInfo(name, window, 100), via, state)


FOUND = (
    found("local/tiny", "this machine"),
    found("ollama_chat/qwen3", "Ollama at 127.0.0.1:11434", 32_768, "loaded"),
    *(found(f"openai/gpt-{number}", "OPENAI_API_KEY") for number in range(9)),
)
MOON = ListedModel(("moon/one", "1 kB"), {"name": "one"}, ("moon/one", "Rocket"))
UNPRINTED = ListedModel((), {"name": "two"}, ("moon/two",))
BROUGHT = (ModelSection("On the moon", "moon", (MOON, UNPRINTED)),)


def test_models_of_servers_are_listed_and_those_with_keys_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_overview(ModelOverview.of(BROUGHT, FOUND, ""), is_whole=False)
    shown = capsys.readouterr().out
    places = [shown.index(part) for part in ("moon/one", "ollama_chat/qwen3", "9 models")]
    assert places == sorted(places)
    assert "~32,768 tokens  Ollama at 127.0.0.1:11434  loaded" in shown
    assert "gpt-2, ..." in shown
    assert "gpt-3" not in shown
    assert "local/tiny" not in shown


def test_all_models_are_listed_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_overview(ModelOverview.of((), FOUND, "GPT"), is_whole=True)
    shown = capsys.readouterr().out
    assert shown.count("OPENAI_API_KEY") == 9
    assert "qwen3" not in shown


@pytest.mark.parametrize(
    ("wanted", "names"), [("", ["one", "two"]), ("rocket", ["one"]), ("moon two", ["two"])]
)
def test_a_filter_looks_at_what_a_feature_names(wanted: str, names: list[str]) -> None:
    listed = ModelOverview.of(BROUGHT, FOUND, wanted).to_json()
    assert isinstance(listed, dict)
    assert listed["moon"] == [{"name": name} for name in names]


def test_without_any_model_the_advice_of_features_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nothing = ModelOverview.of((), (), "")
    print_overview(nothing, is_whole=False)
    print_overview(nothing, is_whole=False, advice="Fly there.")
    assert capsys.readouterr().out == "No models.\nNo models. Fly there.\n"
