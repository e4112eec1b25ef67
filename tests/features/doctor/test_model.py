import pytest

from agent_tui.features.doctor import models
from agent_tui.features.doctor.check import read_environment
from tests.features.doctor.conftest import CANARY
from tests.support.openai_server import OpenAiServer


def test_without_key_server_or_file_there_is_nothing_to_talk_to(environment, find):
    check = find(models.check_model(environment()))["default"]
    assert check.state == "bad"
    for way in ("--local", "ANTHROPIC_API_KEY", "--base-url"):
        assert way in check.advice


def test_a_key_chooses_a_model_and_is_named_as_the_reason(environment, find, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    found = find(models.check_model(environment()))
    assert found["default"].found.startswith("anthropic/claude")
    assert "because ANTHROPIC_API_KEY is set" in found["default"].found
    assert "from litellm's table" in found["window"].found
    assert "its key" not in found


def test_a_model_of_the_settings_without_its_key_is_bad(environment, find, config):
    config.write_text('model = "openai/gpt-4o"\n')
    found = find(models.check_model(environment()))
    assert found["default"].found == "openai/gpt-4o, set in config.toml"
    assert found["key"].state == "bad"
    assert "export OPENAI_API_KEY=" in found["key"].advice


def test_a_model_that_does_not_exist_is_bad_and_the_nearest_are_named(probed, monkeypatch):
    monkeypatch.setenv("AGENT_TUI_MODEL", "claud-sonet")
    check = probed(models.check_model, "default")
    assert check.state == "bad"
    assert "'claud-sonet'" in check.found
    assert "claude" in check.advice


def test_a_window_set_by_the_person_is_said_to_be(environment, find, config, monkeypatch):
    monkeypatch.setenv("AGENT_TUI_MODEL", "openai/gpt-4o")
    config.write_text('[models."openai/gpt-4o"]\nwindow = 5000\n')
    found = find(models.check_model(environment()))
    assert found["default"].found.endswith("set by AGENT_TUI_MODEL")
    assert found["window"].found == "5,000 tokens, from the settings"


def test_a_guessed_window_is_a_warning_with_the_line_to_write(environment, find, config):
    config.write_text('model = "openai/never-heard-of"\n')
    check = find(models.check_model(environment()))["window"]
    assert check.state == "warning"
    config.write_text(f"{config.read_text()}{check.advice.partition('config.toml: ')[2]}\n")
    assert not environment().loaded.problems
    assert find(models.check_model(environment()))["window"].state == "ok"


def test_a_server_of_the_settings_is_asked_for_its_first_model(environment, find, config):
    with OpenAiServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "mine", "max_model_len": 4096}]}
        config.write_text(f'base_url = "{server.base_url}"\n')
        found = find(models.check_model(environment()))
        assert found["default"].found.startswith("openai/mine, the first model at http://127.0.0.1")
        assert found["window"].found == "4,096 tokens, from its server"


def test_a_server_elsewhere_is_not_asked(environment, find, config):
    config.write_text('base_url = "https://me:hunter2@model.invalid/v1"\n')
    check = find(models.check_model(environment()))["default"]
    assert check.state == "info"
    assert check.found == "the first model at https://model.invalid/v1, not contacted"


def test_a_running_server_is_something_to_choose(find):
    with OpenAiServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "mine", "max_model_len": 4096}]}
        check = find(models.check_model(read_environment(server_ports={"vLLM": (server.port,)})))[
            "default"
        ]
    assert (check.state, check.found) == ("info", "none set; 1 on running servers")


@pytest.mark.parametrize(
    ("name", "state"), [("openai/gpt-4o-mini", "ok"), ("no such thing at all", "bad")]
)
def test_the_model_for_summaries_is_looked_for(probed, config, name, state):
    config.write_text(f'[compaction]\nmodel = "{name}"\n')
    assert probed(models.check_summary_model, "for summaries").state == state
