"""Accounts with names: what there is, which is used, and what requests then carry."""

import json
from pathlib import Path

import pytest

from agent_tui.errors import AgentTuiError, ConfigError
from agent_tui.features.login.named import DEFAULT, NamedAccounts
from agent_tui.providers.accounts import own_accounts
from agent_tui.providers.base import ModelRef
from agent_tui.providers.kept_keys import KeptKeys, is_account_name
from tests.support.rows import each_row

CLAUDE = ModelRef("anthropic/claude")
KEYS = {"default": "sk-default-0001", "work": "sk-work-0002", "private": "sk-private-0003"}


class Home:
    """An environment with stored keys and sign-ins."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.keys = KeptKeys(folder / "keys")
        self.environ = {"CHATGPT_TOKEN_DIR": str(folder / "chatgpt"), **environ}

    @property
    def accounts(self) -> NamedAccounts:
        return NamedAccounts(self.environ, self.keys, self.folder / "accounts")

    def keep(self, *names: str) -> "Home":
        for name in names:
            self.keys.keep("anthropic", KEYS[name], in_keyring=False, name=name)
        return self

    def sign_in(self, name: str) -> None:
        chatgpt = own_accounts()["chatgpt"]
        (file,) = chatgpt.files(self.accounts.environ_of(chatgpt, name))
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"access_token": name}))


def test_the_key_in_the_environment_is_the_default_account(tmp_path: Path):
    home = Home(tmp_path, ANTHROPIC_API_KEY=KEYS["default"]).keep("work", "private")
    accounts = home.accounts
    accounts.begin("")
    assert accounts.names("anthropic") == (DEFAULT, "private", "work")
    assert (accounts.in_use("anthropic"), accounts.environ) == (DEFAULT, {})
    assert accounts.others(CLAUDE) == ("private", "work")
    switched: list[str] = []
    accounts.on_switch = switched.append
    accounts.use("anthropic", "work")
    assert accounts.environ == {"ANTHROPIC_API_KEY": KEYS["work"]}
    assert accounts.others(CLAUDE) == (DEFAULT, "private")
    accounts.use("anthropic", DEFAULT)
    assert accounts.environ == {}
    assert switched == ["anthropic", "anthropic"]


def test_no_other_variable_of_the_provider_stands_beside_a_named_key(tmp_path: Path):
    home = Home(tmp_path, GOOGLE_API_KEY="AIza-default")
    home.keys.keep("gemini", "AIza-work", in_keyring=False, name="work")
    accounts = home.accounts
    accounts.begin("work")
    assert accounts.environ == {"GEMINI_API_KEY": "AIza-work", "GOOGLE_API_KEY": ""}


def test_a_sign_in_with_a_name_has_its_own_folder(tmp_path: Path):
    home = Home(tmp_path)
    home.sign_in(DEFAULT)
    home.sign_in("work")
    accounts = home.accounts
    assert accounts.names("chatgpt") == (DEFAULT, "work")
    accounts.begin("work")
    assert accounts.in_use("chatgpt") == "work"
    assert accounts.environ == {"CHATGPT_TOKEN_DIR": str(tmp_path / "accounts/chatgpt/work")}
    chatgpt = own_accounts()["chatgpt"]
    assert chatgpt.sign_out(accounts.environ_of(chatgpt, "work"))
    assert home.accounts.names("chatgpt") == (DEFAULT,)


def test_the_only_account_is_used_and_of_several_none_without_the_user(tmp_path: Path):
    accounts = Home(tmp_path / "one").keep("work").accounts
    accounts.begin("")
    assert accounts.in_use("anthropic") == "work"
    accounts = Home(tmp_path / "two").keep("work", "private").accounts
    accounts.begin("")
    assert accounts.environ == {}


def test_a_wanted_account_that_does_not_exist_is_an_error(tmp_path: Path):
    accounts = Home(tmp_path).keep("work").accounts
    with pytest.raises(ConfigError, match="No account is called 'wrok'"):
        accounts.begin("wrok")
    with pytest.raises(AgentTuiError, match="login anthropic --as NAME"):
        accounts.use("anthropic", "private")


def test_a_key_that_is_gone_changes_nothing(tmp_path: Path):
    home = Home(tmp_path, ANTHROPIC_API_KEY=KEYS["default"]).keep("work")
    accounts = home.accounts
    (tmp_path / "keys" / "anthropic@work.json").write_text('{"other": 1}')
    with pytest.raises(AgentTuiError, match="is gone"):
        accounts.use("anthropic", "work")
    assert (accounts.environ, accounts.in_use("anthropic")) == ({}, DEFAULT)
    (tmp_path / "keys" / "anthropic@work.json").write_text("{")
    assert accounts.names("anthropic") == (DEFAULT,)


@each_row(
    "model",
    [
        ModelRef("anthropic/claude", "http://127.0.0.1:1/v1"),
        ModelRef("anthropic/claude", api_key_env="MY_KEY"),
        ModelRef("openai/gpt-5"),
        ModelRef("../x"),
        ModelRef("*/x"),
        ModelRef("x"),
    ],
)
def test_a_model_with_its_own_key_or_address_has_no_other_account(
    tmp_path_factory, model: ModelRef
):
    home = Home(tmp_path_factory.mktemp("home"), ANTHROPIC_API_KEY="sk-1").keep("work")
    assert home.accounts.others(model) == ()


@each_row(
    ("name", "is_one"),
    [
        ("work", True),
        ("a-1_b", True),
        ("", False),
        ("Work", False),
        ("../x", False),
        (".", False),
        ("a/b", False),
        ("-a", False),
        ("a" * 33, False),
        ("a\n", False),
        ("ä", False),
    ],
)
def test_names_are_safe_in_names_of_files(name: str, is_one: bool):
    assert is_account_name(name) is is_one
