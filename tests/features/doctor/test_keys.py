import keyring
import pytest
from keyring.backends import fail

from agent_tui.features.doctor import settings
from agent_tui.providers.kept_keys import KeptKeys
from agent_tui.providers.keys import what_is_wrong_with
from tests.features.doctor.conftest import CANARY


def test_a_key_that_is_set_is_said_and_not_shown(environment, find, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    found = find(settings.check_keys(environment()))
    assert (found["ANTHROPIC_API_KEY"].state, found["ANTHROPIC_API_KEY"].found) == ("ok", "is set")
    assert "ANTHROPIC_API_KEY" not in found["not set"].found
    assert "OPENAI_API_KEY" in found["not set"].found


def test_a_kept_key_and_an_account_are_said_and_where_they_are(environment, find, home):
    data, copilot = home / "data", home / ".config/litellm/github_copilot"
    KeptKeys(data / "keys").keep("openai", CANARY, in_keyring=False)
    copilot.mkdir(parents=True)
    (copilot / "access-token").write_text(CANARY)
    found = find(settings.check_keys(environment()))
    assert found["OPENAI_API_KEY"].found == f"is stored in {data / 'keys' / 'openai.json'}"
    assert found["copilot"].found == "signed in to GitHub Copilot"
    assert CANARY not in str(found)


def test_a_kept_key_that_cannot_be_read_is_a_warning(environment, find, home):
    (home / "data" / "keys").mkdir(parents=True)
    (home / "data" / "keys" / "openai.json").write_text('{"is_in_keyring": true}')
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    try:
        check = find(settings.check_keys(environment()))["stored"]
    finally:
        keyring.set_keyring(before)
    assert check.state == "warning"
    assert "Cannot read the key of openai." in check.found
    assert "agent-tui login" in check.advice


def test_every_provider_is_spoken_of(environment, monkeypatch):
    monkeypatch.setenv("TOGETHER_AI_TOKEN", CANARY)
    said = " ".join(f"{check.name} {check.found}" for check in settings.check_keys(environment()))
    for variables in settings.KEY_VARIABLES.values():
        assert any(variable in said for variable in variables)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (f" {CANARY}", "ends with white space"),
        (f"{CANARY}\n", "ends with white space"),
        (f"{CANARY} x", "contains white space"),
        (f'"{CANARY}"', "quotation marks around it"),
        (f"{CANARY}'", "quotation marks around it"),
        (f"Bearer-{CANARY}", "Bearer"),
        ("$OPENAI_KEY", "placeholder"),
        ("<your key>", "white space"),
        (f"{CANARY}\u200b", "characters"),
        (f"{CANARY}\x07", "characters"),
        (" ", "white space"),
    ],
)
def test_a_broken_key_is_said_and_not_shown(environment, find, monkeypatch, key, said):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    check = find(settings.check_keys(environment()))["OPENAI_API_KEY"]
    assert check.state == "bad"
    assert said in check.found
    assert "canary" not in str(check)
    assert "OPENAI_API_KEY" in check.advice


@pytest.mark.parametrize("key", [CANARY, "a", "AIza_x-y.z/+=", "0123"])
def test_a_whole_key_is_not_faulted(key):
    assert what_is_wrong_with(key) == ""


def test_the_variable_the_settings_name_is_looked_for(environment, find, config, monkeypatch):
    config.write_text('base_url = "https://example.org/v1"\napi_key_env = "MY_KEY"\n')
    missing = find(settings.check_named_variables(environment()))["api_key_env"]
    assert (missing.state, missing.found) == ("bad", "MY_KEY is not set")
    assert "export MY_KEY=" in missing.advice
    monkeypatch.setenv("MY_KEY", CANARY)
    assert (
        find(settings.check_named_variables(environment()))["api_key_env"].found == "MY_KEY is set"
    )


def test_a_missing_key_is_not_grave_for_a_server_on_this_machine(environment, find, config):
    config.write_text(
        '[models."mine"]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "MY_KEY"\n'
    )
    assert find(settings.check_named_variables(environment()))[
        'models."mine".api_key_env'
    ].state == ("warning")


@pytest.mark.parametrize("key", [CANARY, "AKIAIOSFODNN7EXAMPLE", "lowercase_thing"])
def test_a_key_where_its_variables_name_belongs_is_not_shown(environment, find, config, key):
    config.write_text(f'api_key_env = "{key}"\n')
    check = find(settings.check_named_variables(environment()))["api_key_env"]
    assert check.state == "bad"
    assert key not in str(check)
    assert "environment variable" in check.advice


def test_a_variable_that_moves_a_provider_is_named_without_its_address(
    environment, find, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@example.org")
    check = find(settings.check_keys(environment()))["addresses"]
    assert check.found.startswith("OPENAI_BASE_URL set")
    assert "example.org" not in str(check)
